"""Pods without a group: each belongs to the group that its owners ask for, in memory.

Objects go in (`take`, `drop`), and `settle` says which groups and pods read differently now. The planner has a grouper
for each cluster and the running scheduler one for its cache, so that both group alike; given the same objects, in
whatever order, the groups are the same. `lineage.py` finds the group of each pod, `families.py` keeps the pods of each
group, and `group_forms.py` writes it.

Where pods of a group disagree about it, by labels of their own, the first by name decides.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from maniple.objects.core import Namespace, Pod
from maniple.objects.load import Problem
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.owners import is_owner
from maniple.profiles.families import Changes, Family, Place, listed, parts_of, title_of
from maniple.profiles.group_forms import AskedGroup, Form, sample_of, topologies_of, ungrouped
from maniple.profiles.lineage import Lineage
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import FieldError, Group, Owner


@dataclass(slots=True)
class _Known:
    """A pod, and what was found out about it."""

    pod: Pod
    group: Group | None = None
    place: Place | None = None
    read: Pod | None = None  # as it is to be read


class Grouper:
    """Groups of pods."""

    def __init__(self, form: Form, table: Table = TABLE) -> None:
        self.form = form
        self._lineage = Lineage(table, self._own)
        # Of node labels, by name, with the families whose groups refer to them.
        self._topologies: dict[str, tuple[Object, set[str]]] = {}
        self._pods: dict[str, _Known] = {}
        self._families: dict[str, Family] = {}
        self._followers: dict[str, dict[str, None]] = {}  # by group: those that wait until it runs
        self._stale_pods: dict[str, None] = {}
        self._stale_families: dict[str, None] = {}
        self._unread: dict[str, None] = {}  # pods that may read differently
        self._new_problems: dict[Problem, None] = {}

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
            self._read_again(self._lineage.pod_changed(pod.key))
        elif known.pod == pod:
            return True
        else:
            others_read_alike = known.pod.metadata == pod.metadata
            known.pod = pod
            if not others_read_alike:
                self._read_again(self._lineage.pod_changed(pod.key))
        self._stale_pods[pod.key] = None
        self._unread[pod.key] = None
        return True

    def gone(self, key: str) -> None:
        """A pod is gone, or not grouped here any more."""
        known = self._pods.pop(key, None)
        if known is not None:
            self._move(key, known, None)
            self._lineage.forget(key)
            self._stale_pods.pop(key, None)
            self._unread.pop(key, None)
            self._read_again(self._lineage.pod_changed(key))

    def take(self, item: Object) -> bool:
        """Take in any object; returns whether it is a pod that is grouped here."""
        if isinstance(item, Pod):
            return self.put(item)
        if isinstance(item, Namespace):
            self._read_again(self._lineage.namespace(item))
        elif is_owner(item):
            self._read_again(self._lineage.owner(item))
        return False

    def drop(self, item: Object) -> None:
        """Take out any object."""
        if isinstance(item, Pod):
            self.gone(item.key)
        elif isinstance(item, Namespace):
            self._read_again(self._lineage.namespace(item, gone=True))
        elif is_owner(item):
            self._read_again(self._lineage.owner_gone(item))

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        """Whether objects of a kind can be seen; returns whether that is new."""
        pods = self._lineage.kind_is(kind, there=there)
        self._read_again(pods or ())
        return pods is not None

    def _read_again(self, pods: Iterable[str]) -> None:
        self._stale_pods |= dict.fromkeys(pods)

    # -- groups out --------------------------------------------------------------------------------------------------

    def settle(self) -> Changes:
        """What reads differently since the last time."""
        for key in self._stale_pods:
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
        return self._lineage.missing(key)

    def pods_of(self, owner: Object) -> Iterator[str]:
        """The pods that are grouped with this owner."""
        return self._lineage.pods_of(owner)

    def has_pods(self, owner: Object) -> bool:
        return any(True for _ in self._lineage.pods_of(owner))

    def owners_of(self, key: str) -> list[tuple[type[Object], str]]:
        """The owners that a pod was read with, as far as they have been seen."""
        return self._lineage.owners_of(key)

    def owner_of(self, group: Object) -> Owner | None:
        """The owner of a group that was made here."""
        family = self._family(group.key)
        return family.asked.owner if family is not None and family.asked is not None else None

    def lone_pod(self, group: Object) -> str | None:
        """The key of the pod of a group that was made here, if there is only one."""
        family = self._family(group.key)
        return family.lone_pod if family is not None else None

    def members(self, group: Object) -> list[Pod]:
        """The pods of a group that was made here, in the order of their names."""
        family = self._family(group.key)
        read = (self._pods[name].read for name in family.pods()) if family is not None else ()
        return [pod for pod in read if pod is not None]

    def _family(self, group: str) -> Family | None:
        found = self._families.get(group) or self._families.get(group.rpartition(":")[0])
        return found if found is not None and group in found.written else None

    def asked(self) -> dict[str, Group]:
        """By the key of each group that was made here: what was asked for."""
        return {key: one.asked for one in self._families.values() if one.asked for key in one.written}

    def problems(self) -> list[Problem]:
        """What could not be read of owners, each thing once."""
        errors = (error for one in self._families.values() for error in one.errors.values())
        return [*dict.fromkeys(map(_problem, errors))]

    def new_problems(self) -> list[Problem]:
        """What could not be read since the last time that this was asked."""
        found, self._new_problems = [*self._new_problems], {}
        return found

    # -- pods --------------------------------------------------------------------------------------------------------

    def _own(self, key: str) -> Pod | None:
        known = self._pods.get(key)
        return known.pod if known is not None else None

    def _read(self, key: str) -> None:
        """Find a pod's group."""
        known = self._pods[key]
        answer = self._lineage.answer(known.pod)
        group, part = answer.member.group, answer.member.set_name
        place = Place.of(known.pod, self._family_of(known.pod, group), part, answer.error)
        self._move(key, known, place)
        known.group = group
        self._stale_families[place.family] = None

    def _family_of(self, pod: Pod, group: Group) -> str:
        alone = group.independent and self.form.one_by_one
        meta = pod.metadata
        return f"{meta.namespace or 'default'}/{f'pod:{meta.name}' if alone else group.name}"

    def _move(self, key: str, known: _Known, place: Place | None) -> None:
        before, known.place = known.place, place
        if before == place:
            return
        if before is not None:
            self._families[before.family].leave(key, before)
            self._stale_families[before.family] = None
        if place is not None:
            self._families.setdefault(place.family, Family()).join(key, place)
            self._unread[key] = None
            if place.error is not None:
                self._new_problems[_problem(place.error)] = None

    def _as_read(self, known: _Known) -> Pod:
        assert known.place is not None
        family, part = self._families[known.place.family], known.place.part
        waits = part if part in family.closed else ""
        own = known.place.family.partition("/")[2]
        name, group = f"{own}:{waits}" if waits else own, family.parts[waits]
        return self.form.pod(known.pod, name, group, "" if waits else part)

    # -- families ----------------------------------------------------------------------------------------------------

    def _write(self, name: str, changes: Changes) -> None:
        """Bring the groups of a family up to date."""
        family = self._families.get(name)
        if family is None:
            return
        if not family.names:
            self._write_topologies(name, (), changes)
            changes.rewrite(family.groups, {})
            del self._families[name]
            self._tell_followers(name)
            return
        first = self._pods[family.first]
        group = first.group
        assert group is not None
        closed, why = family.waiting_sets(group), self._why(name, family, group)
        samples = {part: sample_of(self._pods[names[0]].pod) for part, names in sorted(family.names.items())}
        metadata = self._metadata(first, group)
        basis = group, closed, why, samples, metadata, family.runs(group.minimum)
        if family.basis == basis:
            return
        if family.basis is None or (group, closed) != (family.asked, family.closed):
            parts = parts_of(group, closed)
            if self._marks(family.parts) != self._marks(parts):
                self._unread |= dict.fromkeys(family.pods())
            family.asked, family.closed, family.parts = group, closed, parts
        family.basis = basis
        before, after = family.groups, self._written(name, family, why, samples, metadata)
        self._write_topologies(name, after.values(), changes)
        changes.rewrite(before, after)
        self._tell_followers(name)

    def _marks(self, parts: Mapping[str, Group]) -> object:
        """What pods are read by, of the groups that they are in."""
        return {part: self.form.marks(group) for part, group in parts.items()}

    def _written(
        self, name: str, family: Family, why: str, samples: Mapping[str, Pod], metadata: ObjectMeta
    ) -> dict[str, Object]:
        """The groups of a family; those of which nothing has changed are not written again."""
        namespace, _, own = name.partition("/")
        mine: dict[str, dict[str, Pod]] = {}
        for part, pod in samples.items():
            mine.setdefault(part if part in family.closed else "", {})[part] = pod
        before, family.written = family.written, {}
        for part, pods in mine.items():
            title = f"{own}:{part}" if part else own
            key = f"{namespace}/{title}"
            asked = AskedGroup(title, metadata, family.parts[part], pods, family.closed.get(part, why))
            known = before.get(key)
            made = known[1] if known is not None and known[0] == asked else self.form.group(asked)
            family.written[key] = asked, made
        return family.groups

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

    def _metadata(self, first: _Known, group: Group) -> ObjectMeta:
        """Of the owner that decides, which is older than any of its pods."""
        own = first.pod.metadata
        alone = first.place is not None and first.place.family.endswith(f"/pod:{own.name}")
        found = None if alone else self._lineage.metadata_of(group.owner, own.namespace or "default")
        return own if found is None else found

    # -- what has to run first ---------------------------------------------------------------------------------------

    def _why(self, name: str, family: Family, group: Group) -> str:
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
        return f"waits until {listed(lacking)} of {title_of(group)} runs" if lacking else ""

    def _runs(self, name: str) -> bool:
        family = self._families.get(name)
        return family is not None and family.asked is not None and family.runs(family.asked.minimum)

    def _tell_followers(self, name: str) -> None:
        for one in self._followers.pop(name, ()):
            if one in self._families:
                self._stale_families[one] = None


def _problem(error: FieldError) -> Problem:
    return Problem(error.title, error.path, error.message)
