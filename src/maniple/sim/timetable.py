"""When objects are created and deleted: set by their annotations, carried out by the event loop.

`maniple.dev/arrive-after: 20s` creates an object that much later, `maniple.dev/leave-after: 60s` deletes it
that long after its creation, and `maniple.dev/replicas: "8"` on a pod stands for eight pods `<name>-0` to
`<name>-7`. An object without any of them exists from the start.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from maniple.objects.replicas import expanded
from maniple.sim.errors import ApiError
from maniple.sim.kubelet import duration
from maniple.sim.store import Raw, Store, identify, is_policy

ARRIVE_AFTER = "maniple.dev/arrive-after"
LEAVE_AFTER = "maniple.dev/leave-after"
INHERITED = (ARRIVE_AFTER, LEAVE_AFTER)  # pods of a manifest come and go with it


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that was not created, and why."""

    raw: Raw
    message: str
    field: str = ""


class Timetable:
    """Objects to be created; what cannot be created is kept in `refused`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._leaving = 0
        self.coming = 0  # objects that are still to be created
        self.refused: list[Refusal] = []

    @property
    def busy(self) -> bool:
        """Whether something is still to be created."""
        return bool(self.coming)

    @property
    def leaving(self) -> bool:
        """Whether something is still to be deleted."""
        return bool(self._leaving)

    def add(self, raws: Iterable[Raw]) -> None:
        """Create what is due, and the rest at its time.

        Objects due at the same time are created in this order, those that admission looks up first.
        """
        coming: dict[float, list[Raw]] = {}
        for raw in raws:
            for item in expanded(raw):
                coming.setdefault(duration(item, ARRIVE_AFTER) or 0, []).append(item)
        self._arrive_together(coming.pop(0, []))
        for seconds, items in coming.items():
            self.coming += len(items)
            asyncio.get_running_loop().call_later(seconds, self._arrive_late, items)

    def _arrive_late(self, raws: list[Raw]) -> None:
        self.coming -= len(raws)
        self._arrive_together(raws)

    def _arrive_together(self, raws: list[Raw]) -> None:
        for raw in sorted(raws, key=lambda raw: not is_policy(raw)):
            self._arrive(raw)

    def _arrive(self, raw: Raw) -> None:
        try:
            made = self._store.create(raw)
        except ApiError as error:
            self.refused.append(Refusal(raw, error.message, error.field))
            return
        seconds = duration(raw, LEAVE_AFTER)
        if seconds is not None:
            self._leaving += 1
            asyncio.get_running_loop().call_later(seconds, self._leave, made)

    def _leave(self, raw: Raw) -> None:
        self._leaving -= 1
        kind, key = identify(raw)
        with suppress(ApiError):
            self._store.remove(kind, key, uid=raw["metadata"]["uid"])
