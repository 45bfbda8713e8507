"""From pods to their owners, and from these to the group that each pod is a member of.

Pods with the same owners are one line: the references are followed once for all of them, and those of which a kind
reads the same (`Kind.reads_of_pod`) get the same answer. So the cost of a change follows what differs between pods, and
not their number.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from maniple.objects.core import Namespace, Pod
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.owners import raw_metadata, raw_owner
from maniple.workloads.building import namespace_of
from maniple.workloads.fields import title
from maniple.workloads.grouping import Reads, member, owners_of
from maniple.workloads.grove import GANG
from maniple.workloads.kinds import Table
from maniple.workloads.model import FieldError, Group, Member, Owner, Raw
from maniple.workloads.wishes import KEYS, QUEUE

# An owner by group of the API, kind, and key.
OwnerKey = tuple[str, str, str]

_PODS = ("", "Pod")  # which may own others: the executors of a Spark driver
_NO_NAMESPACE: Raw = {}
_NOTHING = Reads(frozenset(), False, 0)
_MORE_ANSWERS = 2, 64  # kept for a line, compared with its pods: times and plus


@dataclass(frozen=True, slots=True)
class Answer:
    """The group of a pod; `error`: it waits until that is mended."""

    member: Member
    error: FieldError | None = None


@dataclass(slots=True, weakref_slot=True)
class _Heritage:
    """The owners that lines have in common, from the one that decides, and what `Chain.once` found out of them."""

    owners: tuple[Raw, ...] = ()
    known: dict[object, dict[object, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class _Line:
    """Pods with the same owners; `at`: the key that they have in common."""

    at: object
    pods: dict[str, None] = field(default_factory=dict)
    owners: tuple[OwnerKey, ...] = ()  # that were looked for, whether they are there or not
    chain: tuple[Raw, ...] = ()  # those that count, the nearest first
    missing: Owner | None = None
    reads: Reads = _NOTHING
    heritage: _Heritage = field(default_factory=_Heritage)
    looked_up: bool = False  # whether the above holds
    answers: dict[object, Answer] = field(default_factory=dict)


class Lineage:
    """`pod`: finds a pod by its key. `absent`: kinds of which no object can be seen, so that none is waited for."""

    def __init__(self, table: Table, pod: Callable[[str], Pod | None]) -> None:
        self.absent: set[tuple[str, str]] = set()
        self._table = table
        self._pod = pod
        self._owners: dict[OwnerKey, tuple[Raw, Object]] = {}
        self._namespaces: dict[str, Raw] = {}
        self._lines: dict[object, _Line] = {}
        self._line_of: dict[str, object] = {}
        self._below: dict[OwnerKey, dict[object, None]] = {}  # the lines that follow an owner
        self._heritages: WeakValueDictionary[object, _Heritage] = WeakValueDictionary()

    # -- changes: each returns the pods that may be members of another group now -------------------------------------

    def owner(self, item: Object) -> list[str]:
        """Take in an owner."""
        raw = raw_owner(item)
        key = (item.api_group, item.kind, item.key)
        before = self._owners.get(key)
        self._owners[key] = raw, item
        return self._changed(key) if before is None or before[0] != raw else []

    def owner_gone(self, item: Object) -> list[str]:
        key = (item.api_group, item.kind, item.key)
        return self._changed(key) if self._owners.pop(key, None) is not None else []

    def namespace(self, item: Namespace, *, gone: bool = False) -> list[str]:
        """Take in a namespace, of which labels and annotations may name a queue."""
        name = item.metadata.name
        known = {**item.metadata.labels, **item.metadata.annotations}
        said = not gone and not known.keys().isdisjoint(QUEUE)
        raw: Raw = {"kind": "Namespace", "metadata": raw_metadata(item)} if said else {}
        if self._namespaces.get(name, {}) == raw:
            return []
        self._namespaces[name] = raw
        return self._changed(("", "Namespace", name))

    def kind_is(self, kind: type[Object], *, there: bool) -> list[str] | None:
        """Whether objects of a kind can be seen; None if that was known."""
        key = kind.api_group, kind.kind
        if (key in self.absent) is not there:
            return None
        (self.absent.discard if there else self.absent.add)(key)
        return [pod for owner in self._below if owner[:2] == key for pod in self._changed(owner)]

    def pod_changed(self, key: str) -> list[str]:
        """A pod that others may belong to."""
        return self._changed((*_PODS, key))

    def forget(self, key: str) -> None:
        """A pod is gone, or has other owners."""
        at = self._line_of.pop(key, None)
        if at is not None:
            line = self._lines[at]
            del line.pods[key]
            if not line.pods:
                self._follow(line, ())
                del self._lines[at]

    def _changed(self, owner: OwnerKey) -> list[str]:
        lines = [self._lines[at] for at in self._below.get(owner, ())]
        for line in lines:
            line.looked_up = False
        return [pod for line in lines for pod in line.pods]

    # -- answers -----------------------------------------------------------------------------------------------------

    def answer(self, pod: Pod) -> Answer:
        """The group of a pod."""
        line = self._line(pod)
        if not line.looked_up:
            self._look_up(line, pod)
        read = (
            _read_of(pod, line.reads.keys),
            (pod.metadata.name, pod.metadata.uid) if line.reads.name else "",
        )
        known = line.answers.get(read)
        if known is not None:
            return known
        raw = raw_pod(pod)
        try:
            found = Answer(self._member(line, pod, raw))
        except FieldError as error:
            found = Answer(_unreadable(raw, line.chain, error), error)
            if error.title == title(raw):
                return found  # which is about this pod alone
        line.answers[read] = found
        return found

    def _member(self, line: _Line, pod: Pod, raw: Raw) -> Member:
        times, plus = _MORE_ANSWERS
        if len(line.answers) > times * len(line.pods) + plus:  # as pods come and go
            line.answers, line.heritage.known = {}, {}
        known = line.heritage.known.setdefault(_read_of(pod, KEYS), {})
        namespace = self._namespaces.get(pod.metadata.namespace or "default", _NO_NAMESPACE)
        return member(raw, line.chain, namespace, self._table, known)

    def _line(self, pod: Pod) -> _Line:
        key, at = pod.key, _line_key(pod)
        if self._line_of.get(key) != at:
            self.forget(key)
            self._line_of[key] = at
            self._lines.setdefault(at, _Line(at)).pods[key] = None
        return self._lines[at]

    def _look_up(self, line: _Line, pod: Pod) -> None:
        """Follow the references from the pods of a line, such as this one, to their owners."""
        namespace = pod.metadata.namespace or "default"
        followed: list[OwnerKey] = [("", "Namespace", namespace)]  # and the owners, in their order

        def find(owner: Owner) -> Raw | None:
            at = _key(owner, namespace)
            followed.append(at)
            found = self._found(at)
            if found is None:
                return None
            uid = found[1].uid
            return found[0] if not uid or not owner.uid or uid == owner.uid else None

        owners = owners_of(raw_pod(pod), find)
        chain, line.missing = owners.found, None
        if owners.missing is not None:
            if self._can_be_seen(owners.missing):
                line.missing = owners.missing
            else:
                chain = (*chain, _stub(owners.missing, namespace))
        line.chain, line.looked_up, line.answers = chain, True, {}
        line.reads = Reads.of(chain, self._table)
        line.heritage = self._heritage(chain, line.reads.deciding, namespace)
        self._follow(line, tuple(dict.fromkeys(followed)))

    def _heritage(self, chain: tuple[Raw, ...], deciding: int, namespace: str) -> _Heritage:
        if not deciding:
            return _Heritage()
        owners = (*chain[deciding - 1 :], self._namespaces.get(namespace, _NO_NAMESPACE))
        return self._heritages.setdefault(tuple(map(id, owners)), _Heritage(owners))

    def _found(self, at: OwnerKey) -> tuple[Raw, ObjectMeta] | None:
        known = self._owners.get(at)
        if known is not None:
            return known[0], known[1].metadata
        above = self._pod(at[2]) if at[:2] == _PODS else None
        return (raw_pod(above), above.metadata) if above is not None else None

    def _can_be_seen(self, owner: Owner) -> bool:
        kind = owner.api_version.rpartition("/")[0], owner.kind
        return kind in self._table and kind not in self.absent

    def _follow(self, line: _Line, owners: tuple[OwnerKey, ...]) -> None:
        if owners == line.owners:
            return
        for one in line.owners:
            lines = self._below[one]
            del lines[line.at]
            if not lines:
                del self._below[one]
        line.owners = owners
        for one in owners:
            self._below.setdefault(one, {})[line.at] = None

    # -- what is known of owners -------------------------------------------------------------------------------------

    def missing(self, key: str) -> Owner | None:
        """The owner of a pod that has not been seen, of a kind that can be."""
        line = self._lines.get(self._line_of.get(key))
        return line.missing if line is not None else None

    def pods_of(self, owner: Object) -> Iterator[str]:
        """The pods that are grouped with this owner."""
        for at in self._below.get((owner.api_group, owner.kind, owner.key), ()):
            yield from self._lines[at].pods

    def owners_of(self, key: str) -> list[tuple[type[Object], str]]:
        """The owners that a pod was read with, as far as they have been seen."""
        line = self._lines.get(self._line_of.get(key))
        found = [self._owners.get(one) for one in (line.owners if line is not None else ())]
        return [(type(one[1]), one[1].key) for one in found if one is not None]

    def metadata_of(self, owner: Owner, namespace: str) -> ObjectMeta | None:
        found = self._owners.get(_key(owner, namespace))
        return found[1].metadata if found is not None else None


def raw_pod(pod: Pod) -> dict[str, Any]:
    """What `workloads/` may read of a pod."""
    spec = pod.spec
    read: dict[str, Any] = {
        "priorityClassName": spec.priority_class_name,
        "schedulerName": spec.scheduler_name,
    }
    if spec.scheduling_group is not None:
        read["schedulingGroup"] = spec.scheduling_group
    if spec.workload_ref is not None:
        read["workloadRef"] = spec.workload_ref
    return {"apiVersion": "v1", "kind": "Pod", "metadata": raw_metadata(pod), "spec": read}


def _line_key(pod: Pod) -> object:
    """Equal for pods with the same owners. Of a pod without any it is the pod's own."""
    meta, spec = pod.metadata, pod.spec
    named = meta.labels.get(GANG), spec.scheduling_group, spec.workload_ref
    if not meta.owner_references and not any(named):
        return pod.key
    return meta.namespace or "default", meta.owner_references, str(named)


def _read_of(pod: Pod, keys: frozenset[str]) -> object:
    """What a pod says with these labels and annotations, and its priority class."""
    meta = pod.metadata
    said = (
        () if keys.isdisjoint(values) else tuple((key, text) for key, text in values.items() if key in keys)
        for values in (meta.labels, meta.annotations)
    )
    return (*said, pod.spec.priority_class_name)


def _key(owner: Owner, namespace: str) -> OwnerKey:
    return owner.api_version.rpartition("/")[0], owner.kind, f"{namespace}/{owner.name}"


def _stub(owner: Owner, namespace: str) -> Raw:
    """An owner of which nothing is known but the reference to it."""
    metadata = {"name": owner.name, "namespace": namespace, "uid": owner.uid}
    return {"apiVersion": owner.api_version, "kind": owner.kind, "metadata": metadata}


def _unreadable(pod: Raw, chain: Iterable[Raw], error: FieldError) -> Member:
    """The group of pods that wait until an owner can be read; of the pod alone, if it is the pod that cannot be."""
    owners = [*chain]
    top = owners[-1] if owners and error.title != title(pod) else pod
    metadata = top["metadata"]
    owner = Owner(str(top.get("apiVersion")), str(top.get("kind")), str(metadata.get("name")))
    return Member(Group(namespace_of(pod), owner))
