"""The port of `live/` on the embedded store: the same calls as on a real API server, with the same errors.

Every write takes `write_seconds` and can be made to fail (`faults`). A watch lags behind by `watch_seconds` a
change. Events are kept as they were recorded; the same event on the same object is counted.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from maniple.objects.core import Pod
from maniple.objects.covers import covers
from maniple.objects.load import load
from maniple.objects.meta import Condition, Object
from maniple.sim import errors
from maniple.sim.binder import bind_pod
from maniple.sim.faults import Faults
from maniple.sim.reflector import Reflector, SimChange
from maniple.sim.store import Kind, Raw, Store, identify, moment


class Now(Protocol):
    def now(self) -> datetime: ...


@dataclass(slots=True)
class SimEvent:
    """An event on an object."""

    regarding: str  # "Kind namespace/name"
    type: str
    reason: str
    note: str
    first: datetime
    count: int = 1
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def said(self) -> tuple[str, ...]:
        return self.regarding, self.type, self.reason, self.note


class SimCluster:
    """One client of the store; several may share a store, as several schedulers share an API server."""

    def __init__(
        self,
        store: Store,
        clock: Now,
        *,
        write_seconds: float = 0.002,
        watch_seconds: float = 0.0,
        faults: Faults | None = None,
    ) -> None:
        self.store = store
        self.faults = faults or Faults()
        self.events: list[SimEvent] = []
        self._noted: dict[tuple[str, ...], SimEvent] = {}  # the same events, by what they say
        # Every binding that was carried out, in order: pod, uid, node.
        self.binds: list[tuple[str, str, str]] = []
        self._reflectors: list[Reflector] = []
        self._clock = clock
        self._write_seconds = write_seconds
        self._watch_seconds = watch_seconds

    async def changes(self, kinds: Iterable[Kind]) -> AsyncGenerator[SimChange]:
        """All existing objects, the marker "synced", then all changes."""
        queue: asyncio.Queue[SimChange] = asyncio.Queue()
        wanted = tuple(dict.fromkeys(kinds))
        waiting: set[Kind | None] = set(wanted)
        self._reflectors = [
            Reflector(self.store, kind, queue.put_nowait, delay=self._watch_seconds) for kind in wanted
        ]
        tasks = [asyncio.create_task(each.run(), name="reflector") for each in self._reflectors]
        try:
            while True:
                change = await queue.get()
                yield change
                if change.type == "sync" and waiting:
                    waiting.discard(change.kind)
                    if not waiting:
                        yield SimChange("synced", None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def relists(self) -> int:
        """How often a kind had to be listed again because the store no longer had the version of its watch."""
        return sum(reflector.lists - 1 for reflector in self._reflectors if reflector.lists)

    # -- writes ------------------------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        """Binding twice to the same node succeeds; to another one is a conflict."""
        await self._write("bind", pod.key, lambda: self._bind(pod, node, annotations or {}))

    def _bind(self, pod: Pod, node: str, annotations: Mapping[str, str]) -> None:
        bound = bind_pod(
            self.store, self._clock, pod.key, node, uid=pod.metadata.uid, annotations=annotations
        )
        if bound is not None:
            self.binds.append((pod.key, str(bound["metadata"]["uid"]), node))

    async def evict(self, pod: Pod, grace: int | None = None) -> None:
        """Delete the pod; succeeds if it does not exist any more."""
        await self._write("evict", pod.key, lambda: self._evict(pod, grace))

    def _evict(self, pod: Pod, grace: int | None) -> None:
        current = self.store.find(Pod, pod.key)
        if current is not None and current["metadata"]["uid"] == pod.metadata.uid:
            self._remove(Pod, pod.key, grace)

    def _remove(self, kind: Kind, key: str, grace: int | None = None) -> None:
        """Delete as the API does: a pod on a node is marked and removed by its kubelet."""
        current = self.store.get(kind, key)
        running = (
            kind is Pod
            and current.get("spec", {}).get("nodeName")
            and current.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        )
        if running and grace != 0:
            if not current["metadata"].get("deletionTimestamp"):
                stamp = {"deletionTimestamp": moment(self._clock.now())}
                self.store.patch(kind, key, {"metadata": stamp})
        else:
            self.store.remove(kind, key)

    async def patch_status(
        self, kind: Kind, key: str, patch: Mapping[str, Any], subresource: bool | None = None
    ) -> None:
        """A merge patch of the status."""
        await self._write("patch_status", key, lambda: self.store.patch(kind, key, patch))

    async def may(self, verb: str, kind: Kind, namespace: str = "") -> bool:
        """Everybody may do everything here."""
        return True

    async def patch_pod_condition(
        self, pod: Pod, condition: Condition, now: datetime, nominated_node: str | None = None
    ) -> None:
        """Set one condition and, if given, the nominated node; an empty name clears the nomination."""
        await self._write(
            "patch_pod_condition", pod.key, lambda: self._set_condition(pod, condition, now, nominated_node)
        )

    def _set_condition(self, pod: Pod, condition: Condition, now: datetime, nominated: str | None) -> None:
        current = self.store.get(Pod, pod.key)
        known = list(current.get("status", {}).get("conditions", []))
        old: Raw = next((each for each in known if each["type"] == condition.type), {})
        same = old.get("status") == condition.status
        new = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": old.get("lastTransitionTime") if same else moment(now),
        }
        status: Raw = {"conditions": [*(each for each in known if each is not old), new]}
        if nominated is not None:
            status["nominatedNodeName"] = nominated or None
        self.store.patch(Pod, pod.key, {"metadata": {"uid": pod.metadata.uid}, "status": status})

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> None:
        """Create an object; an existing one is left as it is, and must contain as much if it has to be the
        `same`."""

        def make() -> None:
            try:
                self.store.create(raw)
            except errors.ApiError as error:
                exists = error.reason == "AlreadyExists"
                if not exists or (same and not covers(self.store.find(*identify(raw)), raw)):
                    raise

        await self._write("create", str(raw.get("kind")), make)

    async def read(self, kind: Kind, key: str) -> Object | None:
        found: list[Raw | None] = []
        await self._write("read", key, lambda: found.append(self.store.find(kind, key)))
        return load(found[0]) if found[0] is not None else None

    async def change(self, item: Object, patch: Mapping[str, Any], *, status: bool = False) -> Object:
        """A merge patch of the version that was read.

        It changes either the status or everything else, and leaves the other alone.
        """
        metadata, meant = item.metadata, {"status"} if status else patch.keys() - {"status"}
        known = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {name: part for name, part in patch.items() if name in meant}
        body["metadata"] = {**body.get("metadata", {}), **known}
        found: list[Raw] = []
        await self._write(
            "change", item.key, lambda: found.append(self.store.patch(type(item), item.key, body))
        )
        return load(found[0])

    async def delete(self, item: Object) -> None:
        """Delete this object (same uid); succeeds if it does not exist any more."""
        await self._write("delete", item.key, lambda: self._delete(item))

    def _delete(self, item: Object) -> None:
        current = self.store.find(type(item), item.key)
        if current is not None and current["metadata"]["uid"] == item.metadata.uid:
            self._remove(type(item), item.key)

    async def record_event(
        self,
        regarding: Object,
        event_type: str,
        reason: str,
        note: str,
        *,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        title = f"{regarding.kind} {regarding.key}"
        new = SimEvent(title, event_type, reason, note, self._clock.now(), annotations=annotations or {})
        await self._write("record_event", regarding.key, lambda: self._note(new))

    def _note(self, new: SimEvent) -> None:
        known = self._noted.setdefault(new.said, new)
        if known is new:
            self.events.append(new)
        else:
            known.count += 1

    async def _write(self, verb: str, key: str, action: Callable[[], object]) -> None:
        if self._write_seconds:
            await asyncio.sleep(self._write_seconds)
        self.faults.before(verb, key)
        action()
        self.faults.after(verb, key)
