"""Typed changes from the store's lists and watches, through cuts and expired versions.

One reflector per kind, merged by `SimCluster`. It is to the embedded store what an informer is to an API
server: its changes, applied in order, give the state of the store a moment ago, and nothing is lost while a
watch is cut.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from maniple.objects.load import ObjectError, Problem, load
from maniple.objects.meta import Object
from maniple.sim.errors import ApiError
from maniple.sim.store import Kind, Raw, Store

_RESUME_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class SimChange:
    """`type` is put, gone, bad (see `problem`), sync, or synced (once every kind has reached its first sync)."""

    type: str
    kind: Kind | None
    object: Object | None = None
    problem: Problem | None = None


class Reflector:
    def __init__(
        self, store: Store, kind: Kind, emit: Callable[[SimChange], None], *, delay: float = 0.0
    ) -> None:
        self._store = store
        self._kind = kind
        self._emit = emit
        self._delay = delay
        self._known: dict[str, Object] = {}
        self._bad: dict[str, Problem] = {}
        self.lists = 0

    async def run(self) -> None:
        while True:
            version = self._list()
            try:
                await self._follow(version)
            except ApiError as error:
                if error.status != 410:
                    raise

    def _list(self) -> int:
        items, version = self._store.list(self._kind)
        self.lists += 1
        listed = {_key(self._kind, raw) for raw in items}
        for key in [key for key in (*self._known, *self._bad) if key not in listed]:
            self._gone(key)
        for raw in items:
            self._put(_key(self._kind, raw), raw)
        self._emit(SimChange("sync", self._kind))
        return version

    async def _follow(self, version: int) -> None:
        """Every change after a version, forever; raises 410 if the store no longer has that version."""
        while True:
            async with aclosing(self._store.watch(self._kind, version)) as events:
                async for event in events:
                    if self._delay:
                        await asyncio.sleep(self._delay)
                    if event.after is None:
                        self._gone(event.key)
                    else:
                        self._put(event.key, event.after)
                    version = event.version
            await asyncio.sleep(_RESUME_SECONDS)

    def _put(self, key: str, raw: Raw) -> None:
        before = self._known.get(key)
        version = raw["metadata"]["resourceVersion"]
        if before is not None and before.metadata.resource_version == version:
            return
        try:
            item = load(raw)
        except ObjectError as error:
            self._report_bad(key, error.problem)
            return
        if before is not None and before.metadata.uid != item.metadata.uid:
            self._gone(key)
        self._bad.pop(key, None)
        self._known[key] = item
        self._emit(SimChange("put", self._kind, item))

    def _report_bad(self, key: str, problem: Problem) -> None:
        """An unreadable object counts as absent, and is reported once."""
        if self._bad.get(key) != problem:
            self._gone(key)
            self._bad[key] = problem
            self._emit(SimChange("bad", self._kind, problem=problem))

    def _gone(self, key: str) -> None:
        self._bad.pop(key, None)
        before = self._known.pop(key, None)
        if before is not None:
            self._emit(SimChange("gone", self._kind, before))


def _key(kind: Kind, raw: Raw) -> str:
    metadata = raw["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if kind.namespaced else str(metadata["name"])
