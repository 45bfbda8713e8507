"""A fake of Kubernetes' garbage collector, for PodGroups that were written here: one whose owner is gone is deleted a
moment later.

The store notifies it of every change. Other objects stay when their owner is deleted, or was never there: what is
loaded into an embedded cluster need not be complete.
"""

import asyncio

from maniple.profiles.written_groups import GROUP_KINDS, MANAGED_BY, MANIPLE
from maniple.sim.errors import ApiError
from maniple.sim.store import Kind, Raw, Store, StoreEvent, identify


class GarbageCollector:
    def __init__(self, store: Store, *, seconds: float = 0.05) -> None:
        self._store = store
        self._seconds = seconds
        self._owned: dict[str, set[tuple[Kind, str]]] = {}  # by the uid of the owner
        self._timers: dict[tuple[Kind, str], asyncio.TimerHandle] = {}
        store.observers.append(self._told)

    @property
    def busy(self) -> bool:
        """Whether something is still to be deleted."""
        return bool(self._timers)

    def _told(self, event: StoreEvent) -> None:
        before, after = event.before, event.after
        if event.kind in GROUP_KINDS:
            self._follow(event.kind, event.key, before, after)
        if before is not None and (after is None or after["metadata"]["uid"] != before["metadata"]["uid"]):
            for kind, key in self._owned.get(str(before["metadata"]["uid"]), ()):
                self._look_later(kind, key)

    def _follow(self, kind: Kind, key: str, before: Raw | None, after: Raw | None) -> None:
        for uid in _owners(before):
            groups = self._owned.get(uid, set())
            groups.discard((kind, key))
            if not groups:
                self._owned.pop(uid, None)
        for uid in _owners(after):
            self._owned.setdefault(uid, set()).add((kind, key))
        if before is None and after is not None and _owners(after):
            self._look_later(kind, key)

    def _look_later(self, kind: Kind, key: str) -> None:
        if (kind, key) not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[kind, key] = loop.call_later(self._seconds, self._look, kind, key)

    def _look(self, kind: Kind, key: str) -> None:
        del self._timers[kind, key]
        group = self._store.find(kind, key)
        if group is None or not _references(group):
            return
        if not any(self._is_there(group, one) for one in _references(group)):
            self._store.remove(kind, key)

    def _is_there(self, group: Raw, reference: Raw) -> bool:
        place = {"name": reference["name"], "namespace": group["metadata"]["namespace"]}
        try:
            kind, key = identify({**reference, "metadata": place})
        except ApiError:
            return True  # of a kind that the store does not have
        owner = self._store.find(kind, key)
        return owner is not None and owner["metadata"]["uid"] == reference["uid"]


def _references(group: Raw | None) -> list[Raw]:
    metadata = (group or {}).get("metadata", {})
    written = (metadata.get("labels") or {}).get(MANAGED_BY) == MANIPLE
    return list(metadata.get("ownerReferences") or []) if written else []


def _owners(group: Raw | None) -> list[str]:
    return [str(one.get("uid")) for one in _references(group)]
