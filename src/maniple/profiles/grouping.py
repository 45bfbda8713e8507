"""Pods without a group: each belongs to the group that its owners ask for, in memory.

Objects go in (`put`, `owner`, `namespace`, `gone`), and `settle` says which groups and pods read differently now. The
planner has a grouper for each cluster and the running scheduler one for its cache, so that both group alike; given the
same objects, in whatever order, the groups are the same. Cost follows change: a pod that joins a group reads its own
owners and nothing else.

Where pods of a group disagree about it, by labels of their own, the first by name decides.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from maniple.objects.core import Namespace, Pod
from maniple.objects.limits import WAITS
from maniple.objects.load import Problem
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.owners import is_owner, raw_metadata, raw_owner
from maniple.profiles.group_forms import Asked, Form, topologies_of, ungrouped
from maniple.profiles.volcano import PREEMPTABLE
from maniple.workloads.building import namespace_of
from maniple.workloads.fields import title
from maniple.workloads.grouping import member, owners_of
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import FieldError, Group, Member, Owner, PodSet, Raw
from maniple.workloads.wishes import QUEUE

_STARTED = ("Running", "Succeeded")
_PODS = ("", "Pod")  # which may own others: the executors of a Spark driver
_OWN_ANNOTATIONS = (WAITS, PREEMPTABLE)
_NO_GROUP = Member(Group("", Owner("v1", "Pod", "")))

# An owner by group of the API, kind, and key.
OwnerKey = tuple[str, str, str]


@dataclass(slots=True)
class _Known:
    """A pod, and what was found out about it."""

    pod: Pod
    member: Member = _NO_GROUP
    error: FieldError | None = None
    owners: tuple[OwnerKey, ...] = ()  # that it was read with, and one that is missing
    missing: Owner | None = None
    family: str = ""
    read: Pod | None = None  # as it is to be read

    @property
    def started(self) -> bool:
        return self.pod.status.phase in _STARTED


@dataclass(slots=True)
class _Family:
    """The pods of one group, by set; `groups` are written for them: one, and one for each set that waits."""

    names: dict[str, list[str]] = field(default_factory=dict)  # in order
    started: dict[str, int] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)  # pods with a node
    errors: dict[str, FieldError] = field(default_factory=dict)
    basis: object = None  # what the groups were written from
    asked: Group | None = None
    groups: dict[str, Object] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)  # sets that wait, and why

    @property
    def first(self) -> str:
        return min(names[0] for names in self.names.values())


@dataclass(slots=True)
class Changes:
    """What reads differently; groups that are gone come first."""

    gone: list[Object] = field(default_factory=list)
    groups: list[Object] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)


class Grouper:
    """Groups of pods. `absent`: kinds of which no object can be seen, so that it is no use to wait for one."""

    def __init__(self, form: Form, table: Table = TABLE) -> None:
        self.form = form
        self._table = table
        # Of node labels, by name, with the families whose groups refer to them.
        self._topologies: dict[str, tuple[Object, set[str]]] = {}
        self._owners: dict[OwnerKey, tuple[Raw, Object]] = {}
        self._namespaces: dict[str, Raw] = {}
        self._pods: dict[str, _Known] = {}
        self._dependents: dict[OwnerKey, dict[str, None]] = {}
        self._families: dict[str, _Family] = {}
        self._followers: dict[str, dict[str, None]] = {}  # by group: those that wait until it runs
        self._stale_pods: dict[str, None] = {}
        self._stale_families: dict[str, None] = {}
        self._unread: dict[str, None] = {}  # pods that may read differently
        self._new_problems: dict[Problem, None] = {}
        self.absent: set[tuple[str, str]] = set()

    # -- objects in --------------------------------------------------------------------------------------------------

    def put(self, pod: Pod) -> bool:
        """Take in a pod; returns whether it is grouped here."""
        pod = ungrouped(pod)
        if not self.form.takes(pod):
            self.gone(pod.key)
            return False
        known = self._pods.get(pod.key)
        if known is None:
            self._pods[pod.key] = _Known(pod)
            self._read_again((*_PODS, pod.key))
        elif known.pod == pod:
            return True
        else:
            same = known.pod.metadata == pod.metadata and known.pod.spec == pod.spec
            if same and known.started == (pod.status.phase in _STARTED):
                known.pod = pod
                self._unread[pod.key] = None
                self._stale_families[known.family] = None
                return True
            self._leave(known)
            reads_alike = known.pod.metadata == pod.metadata
            known.pod = pod
            if not reads_alike:
                self._read_again((*_PODS, pod.key))
        self._stale_pods[pod.key] = None
        return True

    def gone(self, key: str) -> None:
        """A pod is gone, or not grouped here any more."""
        known = self._pods.pop(key, None)
        if known is not None:
            self._leave(known)
            self._release(key, known.owners)
            self._stale_pods.pop(key, None)
            self._unread.pop(key, None)
            self._read_again((*_PODS, key))

    def owner(self, item: Object) -> None:
        """Take in an owner."""
        raw = raw_owner(item)
        key = (item.api_group, item.kind, item.key)
        before = self._owners.get(key)
        self._owners[key] = raw, item
        if before is None or before[0] != raw:
            self._read_again(key)

    def owner_gone(self, item: Object) -> None:
        key = (item.api_group, item.kind, item.key)
        if self._owners.pop(key, None) is not None:
            self._read_again(key)

    def namespace(self, item: Namespace, *, gone: bool = False) -> None:
        """Take in a namespace, of which labels and annotations may name a queue."""
        name = item.metadata.name
        known = {**item.metadata.labels, **item.metadata.annotations}
        said = not gone and not known.keys().isdisjoint(QUEUE)
        raw: Raw = {"kind": "Namespace", "metadata": raw_metadata(item)} if said else {}
        if self._namespaces.get(name, {}) != raw:
            self._namespaces[name] = raw
            self._read_again(("", "Namespace", name))

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        """Whether objects of a kind can be seen; returns whether that is new."""
        key = kind.api_group, kind.kind
        if (key in self.absent) is not there:
            return False
        (self.absent.discard if there else self.absent.add)(key)
        for owner in [one for one in self._dependents if one[:2] == key]:
            self._read_again(owner)
        return True

    def take(self, item: Object) -> bool:
        """Take in any object; returns whether it is a pod that is grouped here."""
        if isinstance(item, Pod):
            return self.put(item)
        if isinstance(item, Namespace):
            self.namespace(item)
        elif is_owner(item):
            self.owner(item)
        return False

    def drop(self, item: Object) -> None:
        """Take out any object."""
        if isinstance(item, Pod):
            self.gone(item.key)
        elif isinstance(item, Namespace):
            self.namespace(item, gone=True)
        elif is_owner(item):
            self.owner_gone(item)

    # -- groups out --------------------------------------------------------------------------------------------------

    def settle(self) -> Changes:
        """What reads differently since the last time."""
        for key in [*self._stale_pods]:
            self._read(key)
        self._stale_pods.clear()
        changes = Changes()
        while self._stale_families:
            name, _ = self._stale_families.popitem()
            self._write(name, changes)
        for key in self._unread:
            known = self._pods[key]
            read = self._as_read(known)
            if read != known.read:
                known.read = read
                changes.pods.append(read)
        self._unread.clear()
        return changes

    def pod(self, key: str) -> Pod | None:
        """A pod as it is to be read; None if it is not grouped here."""
        known = self._pods.get(key)
        return known.read if known is not None else None

    def missing(self, key: str) -> Owner | None:
        """The owner of a pod that has not been seen, of a kind that can be."""
        known = self._pods.get(key)
        return known.missing if known is not None else None

    def pods_of(self, owner: Object) -> Iterable[str]:
        """The pods that are grouped with this owner."""
        return self._dependents.get((owner.api_group, owner.kind, owner.key), {})

    def owners_of(self, key: str) -> list[tuple[type[Object], str]]:
        """The owners that a pod was read with, as far as they have been seen."""
        known = self._pods.get(key)
        found = [self._owners.get(one) for one in (known.owners if known is not None else ())]
        return [(type(one[1]), one[1].key) for one in found if one is not None]

    def owner_of(self, group: Object) -> Owner | None:
        """The owner of a group that was made here."""
        family = self._family(group.key)
        return family.asked.owner if family is not None and family.asked is not None else None

    def lone_pod(self, group: Object) -> str | None:
        """The key of the pod of a group that was made here, if there is only one."""
        family = self._family(group.key)
        names = [*family.names.values()] if family is not None else []
        return names[0][0] if len(names) == 1 and len(names[0]) == 1 else None

    def members(self, group: Object) -> list[Pod]:
        """The pods of a group that was made here, in the order of their names."""
        family = self._family(group.key)
        if family is None:
            return []
        names = sorted(name for part in family.names.values() for name in part)
        read = (self._pods[name].read for name in names)
        return [pod for pod in read if pod is not None]

    def _family(self, group: str) -> _Family | None:
        found = self._families.get(group) or self._families.get(group.rpartition(":")[0])
        return found if found is not None and group in found.groups else None

    def asked(self) -> dict[str, Group]:
        """By the key of each group that was made here: what was asked for."""
        return {key: one.asked for one in self._families.values() if one.asked for key in one.groups}

    def problems(self) -> list[Problem]:
        """What could not be read of owners, each thing once."""
        errors = (error for one in self._families.values() for error in one.errors.values())
        return [*dict.fromkeys(map(_problem, errors))]

    def new_problems(self) -> list[Problem]:
        """What could not be read since the last time that this was asked."""
        found, self._new_problems = [*self._new_problems], {}
        return found

    # -- pods --------------------------------------------------------------------------------------------------------

    def _read_again(self, owner: OwnerKey) -> None:
        for key in self._dependents.get(owner, ()):
            self._leave(self._pods[key])
            self._stale_pods[key] = None

    def _read(self, key: str) -> None:
        """Find a pod's owners and its group."""
        known = self._pods[key]
        raw, namespace = raw_pod(known.pod), known.pod.metadata.namespace or "default"
        followed: list[OwnerKey] = [("", "Namespace", namespace)]  # and the owners, in their order

        def find(owner: Owner) -> Raw | None:
            at = _key(owner, namespace)
            followed.append(at)
            found = self._owners.get(at)
            if found is None and at[:2] == _PODS and at[2] in self._pods:
                above = self._pods[at[2]].pod
                found = raw_pod(above), above
            if found is None:
                return None
            uid = found[1].metadata.uid
            return found[0] if not uid or not owner.uid or uid == owner.uid else None

        owners = owners_of(raw, find)
        chain, known.missing = [*owners.found], None
        if owners.missing is not None:
            if self._can_be_seen(owners.missing):
                known.missing = owners.missing
            else:
                chain.append(_stub(owners.missing, namespace))
        self._hold(key, known, tuple(followed))
        try:
            known.error = None
            known.member = member(raw, chain, self._namespaces.get(namespace, {}), self._table)
        except FieldError as error:
            known.error, known.member = error, _unreadable(raw, chain, error)
        known.family = self._family_of(known)
        self._join(key, known)

    def _can_be_seen(self, owner: Owner) -> bool:
        kind = owner.api_version.rpartition("/")[0], owner.kind
        return kind in self._table and kind not in self.absent

    def _family_of(self, known: _Known) -> str:
        group, pod = known.member.group, known.pod.metadata
        alone = group.independent and self.form.one_by_one
        return f"{pod.namespace or 'default'}/{f'pod:{pod.name}' if alone else group.name}"

    def _hold(self, key: str, known: _Known, owners: tuple[OwnerKey, ...]) -> None:
        if owners != known.owners:
            self._release(key, known.owners)
            known.owners = owners
            for one in owners:
                self._dependents.setdefault(one, {})[key] = None

    def _release(self, key: str, owners: Iterable[OwnerKey]) -> None:
        for one in owners:
            users = self._dependents.get(one, {})
            users.pop(key, None)
            if not users:
                self._dependents.pop(one, None)

    # -- families ----------------------------------------------------------------------------------------------------

    def _join(self, key: str, known: _Known) -> None:
        family = self._families.setdefault(known.family, _Family())
        part = known.member.set_name
        insort(family.names.setdefault(part, []), key)
        family.started[part] = family.started.get(part, 0) + known.started
        family.placed[part] = family.placed.get(part, 0) + bool(known.pod.spec.node_name)
        if known.error is not None:
            family.errors[key] = known.error
            self._new_problems[_problem(known.error)] = None
        self._stale_families[known.family] = None
        self._unread[key] = None

    def _leave(self, known: _Known) -> None:
        family = self._families.get(known.family)
        if family is None:
            return
        key, part = known.pod.key, known.member.set_name
        names = family.names[part]
        del names[bisect_left(names, key)]
        if not names:
            del family.names[part]
        family.started[part] -= known.started
        family.placed[part] -= bool(known.pod.spec.node_name)
        family.errors.pop(key, None)
        self._stale_families[known.family] = None
        known.family = ""

    def _write(self, name: str, changes: Changes) -> None:
        """Bring the groups of a family up to date."""
        family = self._families.get(name)
        if family is None:
            return
        if not family.names:
            self._write_topologies(name, (), changes)
            changes.gone += family.groups.values()
            del self._families[name]
            self._tell_followers(name)
            return
        first = self._pods[family.first]
        group = first.member.group
        closed, why = self._waiting_sets(family, group), self._why(name, family, group)
        samples = {part: self._pods[names[0]].pod for part, names in sorted(family.names.items())}
        metadata = self._metadata(first)
        runs = sum(family.started.values()) >= group.minimum
        basis = group, closed, why, samples, metadata, runs
        if family.basis == basis:
            return
        moved = family.asked is not None and (family.closed != closed or family.asked != group)
        family.basis, family.asked, family.closed = basis, group, closed
        namespace, _, own = name.partition("/")
        written = {}
        for part in ("", *closed):
            mine = {key: pod for key, pod in samples.items() if (key == part if part else key not in closed)}
            if mine:
                asked = _part_of(group, part, closed)
                title = f"{own}:{part}" if part else own
                made = self.form.group(Asked(title, metadata, asked, mine, closed.get(part, why)))
                written[f"{namespace}/{title}"] = made
        self._write_topologies(name, written.values(), changes)
        changes.gone += [one for key, one in family.groups.items() if _replaced(one, written.get(key))]
        changes.groups += [one for key, one in written.items() if family.groups.get(key) != one]
        family.groups = written
        if moved:
            self._unread |= {key: None for names in family.names.values() for key in names}
        self._tell_followers(name)

    def _write_topologies(self, family: str, groups: Iterable[Object], changes: Changes) -> None:
        """Those of node labels are there for as long as a group refers to them."""
        wanted = {name: one for group in groups for name, one in topologies_of(group).items()}
        for name in [one for one in self._topologies if one not in wanted]:
            known, users = self._topologies[name]
            users.discard(family)
            if not users:
                del self._topologies[name]
                changes.gone.append(known)
        for name, one in wanted.items():
            if name not in self._topologies:
                self._topologies[name] = one, set()
                changes.groups.append(one)
            self._topologies[name][1].add(family)

    def _metadata(self, first: _Known) -> ObjectMeta:
        """Of the owner that decides, which is older than any of its pods."""
        owner = first.member.group.owner
        found = self._owners.get(_key(owner, first.pod.metadata.namespace or "default"))
        alone = first.family.endswith(f"/pod:{first.pod.metadata.name}")
        return first.pod.metadata if found is None or alone else found[1].metadata

    def _as_read(self, known: _Known) -> Pod:
        family, part = self._families[known.family], known.member.set_name
        assert family.asked is not None
        waits = part if part in family.closed else ""
        own = known.family.partition("/")[2]
        group = _part_of(family.asked, waits, family.closed)
        return self.form.pod(known.pod, f"{own}:{waits}" if waits else own, group, "" if waits else part)

    # -- what has to run first ---------------------------------------------------------------------------------------

    def _waiting_sets(self, family: _Family, group: Group) -> dict[str, str]:
        """The sets whose pods wait until others run, and why; one of which a pod has a node waits no more."""
        closed = {}
        for one in group.sets:
            lacking = [name for name in one.after if not self._set_runs(family, group, name)]
            if lacking and not family.placed.get(one.name):
                closed[one.name] = f"pods of {one.name} wait until {_listed(lacking)} of {_title(group)} runs"
        return closed

    def _set_runs(self, family: _Family, group: Group, name: str) -> bool:
        needed = next((one.minimum for one in group.sets if one.name == name), 0)
        return family.started.get(name, 0) >= needed

    def _why(self, name: str, family: _Family, group: Group) -> str:
        """Why the whole group waits."""
        if family.errors:
            return str(family.errors[min(family.errors)])
        if any(family.placed.values()):
            return ""
        lacking = []
        for part in group.after:
            other = f"{name.partition('/')[0]}/{replace(group, part=part).name}"
            self._followers.setdefault(other, {})[name] = None
            if not self._runs(other):
                lacking.append(part)
        return f"waits until {_listed(lacking)} of {_title(group)} runs" if lacking else ""

    def _runs(self, name: str) -> bool:
        family = self._families.get(name)
        if family is None or family.asked is None:
            return False
        return sum(family.started.values()) >= family.asked.minimum

    def _tell_followers(self, name: str) -> None:
        for one in self._followers.pop(name, ()):
            if one in self._families:
                self._stale_families[one] = None


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


def with_status(group: Object, known: Object | None) -> Object:
    """A group with the status that it had, and the annotations that were written to it since."""
    if known is None or type(known) is not type(group):
        return group
    metadata = group.metadata
    kept = {key: text for key, text in known.metadata.annotations.items() if key not in _OWN_ANNOTATIONS}
    metadata = structs.replace(metadata, annotations={**kept, **metadata.annotations})
    return structs.replace(group, metadata=metadata, status=known.status)  # type: ignore[attr-defined]


def _problem(error: FieldError) -> Problem:
    return Problem(error.title, error.path, error.message)


def _key(owner: Owner, namespace: str) -> OwnerKey:
    return owner.api_version.rpartition("/")[0], owner.kind, f"{namespace}/{owner.name}"


def _stub(owner: Owner, namespace: str) -> Raw:
    """An owner of which nothing is known but the reference to it."""
    metadata = {"name": owner.name, "namespace": namespace, "uid": owner.uid}
    return {"apiVersion": owner.api_version, "kind": owner.kind, "metadata": metadata}


def _unreadable(pod: Raw, chain: list[Raw], error: FieldError) -> Member:
    """The group of pods that wait until an owner can be read; of the pod alone, if it is the pod that cannot be."""
    top = chain[-1] if chain and error.title != title(pod) else pod
    metadata = top["metadata"]
    owner = Owner(str(top.get("apiVersion")), str(top.get("kind")), str(metadata.get("name")))
    return Member(Group(namespace_of(pod), owner))


def _part_of(group: Group, part: str, closed: Mapping[str, str]) -> Group:
    """A group without the sets that wait, or one of these."""
    if not closed:
        return group
    sets: list[PodSet] = [one for one in group.sets if (one.name == part if part else one.name not in closed)]
    if part:
        return replace(group, minimum=max(sets[0].minimum, 1), sets=())
    lost = sum(one.minimum for one in group.sets if one.name in closed)
    parents = {one.parent for one in group.sets}
    kept = {one.parent for one in sets}
    sets = [one for one in sets if one.name not in parents or one.name in kept]
    return replace(group, minimum=max(group.minimum - lost, 1), sets=tuple(sets))


def _replaced(before: Object, after: Object | None) -> bool:
    return after is None or type(after) is not type(before)


def _listed(names: list[str]) -> str:
    return " and ".join(names)


def _title(group: Group) -> str:
    return f"{group.owner.kind} {group.namespace}/{group.owner.name}"
