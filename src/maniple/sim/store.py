"""The embedded API store: objects as plain dictionaries, a version for every change, resumable watches.

The rules are the API server's as far as a scheduler can see them: names are unique in a kind, every change
gets the next resourceVersion, created objects go through admission and validation, a watch starts after a
version and delivers every later change in order, and a version that is too old is refused with 410. `cut`
ends every watch and `compact` drops the history, so that both can be tested. Returned objects are never
changed afterwards; a change replaces.

What is stored is valid: it loads, it has no nulls, and it has a `spec` and a `status` if its kind has them.
The fake controllers read it without looking twice.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maniple.objects.admission import POLICY_KINDS, Policies, admitted
from maniple.objects.load import ObjectError, load, struct_of
from maniple.objects.meta import Object
from maniple.objects.workloads import unsupported
from maniple.sim import errors

Raw = dict[str, Any]
Kind = type[Object]
Observer = Callable[["StoreEvent"], None]

_HISTORY = 100_000


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One change; `before` and `after` are the object on either side of it, or None."""

    version: int
    kind: Kind
    key: str
    before: Raw | None
    after: Raw | None


class Store:
    """All objects of all kinds that `objects` knows."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._objects: dict[Kind, dict[str, Raw]] = defaultdict(dict)
        self._version = 0
        self._made = 0
        self._policies: Policies | None = None  # None: to be rebuilt
        self._history: deque[StoreEvent] = deque()
        self._forgotten = 0  # changes up to this version can no longer be watched
        self._watches: dict[Kind, set[asyncio.Queue[StoreEvent | None]]] = defaultdict(set)
        self._mended = asyncio.Event()
        self._mended.set()
        # Called with every change at once, in order: the fake kubelets and controllers.
        self.observers: list[Observer] = []

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the latest change."""
        return self._version

    def list(self, kind: Kind) -> tuple[list[Raw], int]:
        """All objects of a kind, and the version after which a watch has to start."""
        return list(self._objects[kind].values()), self._version

    def find(self, kind: Kind, key: str) -> Raw | None:
        return self._objects[kind].get(key)

    def get(self, kind: Kind, key: str) -> Raw:
        found = self.find(kind, key)
        if found is None:
            raise errors.not_found(kind.kind, key)
        return found

    async def watch(self, kind: Kind, since: int) -> AsyncGenerator[StoreEvent]:
        """Every change of a kind after a version; ends when the watch is cut; 410 if the version is too old."""
        await self._mended.wait()
        if since < self._forgotten:
            raise errors.gone(since)
        inbox: asyncio.Queue[StoreEvent | None] = asyncio.Queue()
        for event in self._history:
            if event.version > since and event.kind is kind:
                inbox.put_nowait(event)
        self._watches[kind].add(inbox)
        try:
            while (event_or_end := await inbox.get()) is not None:
                yield event_or_end
        finally:
            self._watches[kind].discard(inbox)

    # -- faults -----------------------------------------------------------------------------------------------------

    def cut(self, *, until_mended: bool = False) -> None:
        """End every watch, as a broken connection does; what was sent and not read yet is lost with it."""
        if until_mended:
            self._mended.clear()
        for watches in self._watches.values():
            for inbox in watches:
                while not inbox.empty():
                    inbox.get_nowait()
                inbox.put_nowait(None)

    def mend(self) -> None:
        """Let watches start again."""
        self._mended.set()

    def compact(self) -> None:
        """Drop the history: a watch that was cut cannot be resumed."""
        self._history.clear()
        self._forgotten = self._version

    # -- writing ----------------------------------------------------------------------------------------------------

    def create(self, raw: Mapping[str, Any]) -> Raw:
        kind, key = identify(raw)
        if key in self._objects[kind]:
            raise errors.already_exists(kind.kind, key)
        made = self._admitted(kind, raw)
        self._made += 1
        metadata = made["metadata"]
        metadata.setdefault("uid", f"00000000-0000-4000-8000-{self._made:012d}")
        metadata.setdefault("creationTimestamp", moment(self._now()))
        return self._keep(kind, key, made)

    def _admitted(self, kind: Kind, raw: Mapping[str, Any]) -> Raw:
        """The object as it is stored; 422 if it is not valid."""
        try:
            made: Raw = _copy(admitted(kind, raw, self._admission()))
        except RecursionError:
            raise errors.invalid(f"{kind.kind} {identify(raw)[1]}: nested too deeply") from None
        try:
            load(made)
        except ObjectError as error:
            raise errors.invalid(str(error.problem), error.problem.field) from None
        for part in ("spec", "status"):
            if part in kind.__struct_fields__:
                made.setdefault(part, {})
        return made

    def _admission(self) -> Policies:
        if self._policies is None:
            raws = [raw for kind in POLICY_KINDS for raw in self._objects[kind].values()]
            self._policies = Policies(map(load, raws))
        return self._policies

    def patch(self, kind: Kind, key: str, patch: Mapping[str, Any]) -> Raw:
        """A merge patch: null removes, lists are replaced.

        A uid or version other than the object's is a conflict.
        """
        current = self.get(kind, key)
        for name, word in (("uid", "uid"), ("resourceVersion", "version")):
            meant = patch.get("metadata", {}).get(name)
            if meant and meant != current["metadata"][name]:
                raise errors.conflict(
                    kind.kind, key, f"the {word} is {current['metadata'][name]}, not {meant}"
                )
        merged = _merged(current, patch)
        if merged == current:
            return current
        return self._keep(kind, key, merged)

    def remove(self, kind: Kind, key: str, uid: str = "") -> None:
        current = self.get(kind, key)
        if uid and uid != current["metadata"]["uid"]:
            raise errors.conflict(kind.kind, key, f"the uid is {current['metadata']['uid']}, not {uid}")
        self._keep(kind, key, None)

    def _keep(self, kind: Kind, key: str, raw: Raw | None) -> Raw:
        self._version += 1
        if kind in POLICY_KINDS:
            self._policies = None
        kept = self._objects[kind]
        before = kept.get(key)
        if raw is None:
            del kept[key]
        else:
            raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
            kept[key] = raw
        event = StoreEvent(self._version, kind, key, before, raw)
        self._history.append(event)
        if len(self._history) > _HISTORY:
            self._forgotten = self._history.popleft().version
        for inbox in self._watches[kind]:
            inbox.put_nowait(event)
        for observer in tuple(self.observers):
            observer(event)
        return raw or before or {}


def identify(raw: Mapping[str, Any]) -> tuple[Kind, str]:
    """The kind and key of a plain object; the rest is not validated."""
    kind = struct_of(raw)
    if kind is None:
        for field in ("kind", "apiVersion"):
            if not isinstance(raw.get(field), str) or not raw[field]:
                raise errors.invalid(f"object: {field}: missing")
        raise errors.invalid(unsupported(raw))
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        raise errors.invalid(f"{kind.kind}: metadata.name: missing")
    return kind, f"{metadata.get('namespace') or 'default'}/{name}" if kind.namespaced else name


def is_policy(raw: Mapping[str, Any]) -> bool:
    """Whether admission of other objects depends on this one."""
    return struct_of(raw) in POLICY_KINDS


def moment(when: datetime) -> str:
    """A time as the API writes it, to the second."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def _copy(value: Any) -> Any:
    """A copy without nulls, which count as absent."""
    if isinstance(value, Mapping):
        return {key: _copy(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_copy(part) for part in value]
    return value


def _merged(current: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return _copy(patch)
    merged = dict(current) if isinstance(current, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
