"""Groups in memory under the names that they have in the cluster, where they are written.

A `Grouper` makes them; here they get their names. So nothing changes when a group that was written comes back by the
watch: its pods have been in a group of that name from the first moment, and it is the group in memory that counts,
with the uid and the status of the one in the cluster. Where a PodGroup of that name was written by others, the group
keeps the name that only memory knows, and theirs is left alone.

`stale` has what the cluster may have to follow: groups by their name in memory, pods, and PodGroups of the cluster.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.load import Problem
from maniple.objects.meta import Object
from maniple.profiles.families import Changes, with_status
from maniple.profiles.group_forms import AskedGroup, Form
from maniple.profiles.grouping import Grouper
from maniple.profiles.written_groups import (
    GROUP_KINDS,
    NAMES,
    group_named,
    is_ours,
    is_whole,
    is_written,
    marks,
    may_be_written,
    named,
    to_write,
    unwritten,
)
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import Group, Owner

Ref = tuple[type[Object], str]


class _Noting:
    """A form that notes what it was asked for, by the group that it made of it."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self.one_by_one = form.one_by_one
        self.asked: dict[Ref, AskedGroup] = {}

    def takes(self, pod: Pod) -> bool:
        return self._form.takes(pod)

    def group(self, asked: AskedGroup) -> Object:
        made = self._form.group(asked)
        self.asked[_ref(made)] = asked
        return made

    def pod(self, pod: Pod, name: str, group: Group, set_name: str) -> Pod:
        return self._form.pod(pod, name, group, set_name)

    def marks(self, group: Group) -> object:
        return self._form.marks(group)


class NamedGrouper:
    """Like `Grouper`. A *title* is the kind and the key of a group as that one has it."""

    def __init__(self, form: Form, table: Table = TABLE) -> None:
        self._form = _Noting(form)
        self._grouper = Grouper(self._form, table)
        self._made: dict[Ref, Object] = {}  # by title: as the grouper has it
        self._wanted: dict[Ref, Object] = {}  # by title: as it is to be in the cluster
        self._given: dict[Ref, Object] = {}  # by title: as it was said last
        self._titles: dict[Ref, Ref] = {}  # by the name in the cluster
        self._again: dict[Ref, None] = {}  # titles whose name may be another one
        self._marks: dict[str, tuple[str | None, ...]] = {}  # by pod: what it says about its group
        self._worn: dict[str, Ref] = {}  # by pod: the group that was written to it
        self._wearers: dict[Ref, set[str]] = {}  # by group: the pods that it was written to
        self._left: set[Ref] = set()  # groups that their pods have left for another
        self._absent: set[type[Object]] = set()
        self.objects: dict[Ref, Object] = {}  # PodGroups of the cluster, as far as they may be ours
        self.stale: dict[Ref, None] = {}

    # -- objects in --------------------------------------------------------------------------------------------------

    def put(self, pod: Pod) -> bool:
        self._note(pod)
        return self._grouper.put(unwritten(pod))

    def gone(self, key: str) -> None:
        self._unnote(key)
        self._grouper.gone(key)

    def take(self, item: Object) -> bool:
        if isinstance(item, Pod):
            return self.put(item)
        return self._grouper.take(item)

    def drop(self, item: Object) -> None:
        if isinstance(item, Pod):
            self.gone(item.key)
        else:
            self._grouper.drop(item)

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        if kind in GROUP_KINDS:
            (self._absent.discard if there else self._absent.add)(kind)
            self.stale |= {title: None for title in self._wanted if title[0] is kind}
        return self._grouper.kind_is(kind, there=there)

    def seen(self, item: Object) -> None:
        """A PodGroup is in the cluster, new or changed."""
        real = _ref(item)
        before = self.objects.get(real)
        if not may_be_written(item):
            if before is not None:
                self.unseen(item)
            return
        self.objects[real] = item
        self.stale[real] = None
        title = self._titles.get(real)
        if title is None:
            return
        self.stale[title] = None
        wanted = self._wanted[title]
        same = before is not None and before.metadata.uid == item.metadata.uid
        if not same or (before is not None and is_ours(before, wanted) != is_ours(item, wanted)):
            self._again[title] = None
            self._look_at_pods(title)

    def unseen(self, item: Object) -> bool:
        """A PodGroup is gone; returns whether it was one that was written here and is to be."""
        real = _ref(item)
        before = self.objects.pop(real, None)
        self._left.discard(real)
        self.stale[real] = None
        title = self._titles.get(real)
        if title is None or before is None:
            return False
        self._again[title] = self.stale[title] = None
        return is_ours(before, self._wanted[title])

    def _note(self, pod: Pod) -> None:
        """What a pod says about its group may have changed."""
        key, said = pod.key, marks(pod)
        if self._marks.get(key) == said:
            return
        self._unnote(key)
        self._marks[key] = said
        group = group_named(pod)
        if group is not None:
            self._worn[key] = group
            self._wearers.setdefault(group, set()).add(key)

    def _unnote(self, key: str) -> None:
        self.stale[Pod, key] = None
        self._marks.pop(key, None)
        group = self._worn.pop(key, None)
        if group is None:
            return
        pods = self._wearers[group]
        pods.discard(key)
        if not pods:
            del self._wearers[group]
            self.stale[group] = None

    # -- groups out --------------------------------------------------------------------------------------------------

    def settle(self) -> Changes:
        changes, found = self._grouper.settle(), Changes()
        for group in changes.gone:
            self._take_out(group, found)
        for group in changes.groups:
            if isinstance(group, GROUP_KINDS):
                self._made[_ref(group)] = group
                self._again[_ref(group)] = None
            else:
                found.groups.append(group)
        pods = {pod.key: None for pod in changes.pods}
        again, self._again = self._again, {}
        for title in again:
            if title in self._made and self._give(title, found):
                pods |= {pod.key: None for pod in self._grouper.members(self._made[title])}
        found.pods = [pod for pod in map(self.pod, pods) if pod is not None]
        self.stale |= {(Pod, key): None for key in pods}
        return found

    def _take_out(self, group: Object, found: Changes) -> None:
        if not isinstance(group, GROUP_KINDS):
            found.gone.append(group)
            return
        title = _ref(group)
        self._made.pop(title, None)
        self._form.asked.pop(title, None)
        self._forget_name(title)
        found.gone.append(self._given.pop(title, group))
        self.stale[title] = None

    def _forget_name(self, title: Ref) -> None:
        wanted = self._wanted.pop(title, None)
        if wanted is None:
            return
        real = _ref(wanted)
        self._titles.pop(real, None)
        self.stale[real] = None
        if real in self.objects and self._wearers.get(real):
            self._left.add(real)

    def _give(self, title: Ref, found: Changes) -> bool:
        """Say what a group is now; returns whether it has another name than before."""
        made, asked, before = self._made[title], self._form.asked[title], self._given.get(title)
        given = made
        if is_whole(asked):
            wanted = to_write(made, asked)
            real, known = _ref(wanted), self._wanted.get(title)
            if known is not None and _ref(known) != real:
                self._forget_name(title)
            self._wanted[title], self._titles[real] = wanted, title
            self._left.discard(real)
            there = self.objects.get(real)
            if there is None or is_ours(there, wanted):
                uid = there.metadata.uid if there is not None else made.metadata.uid
                given = replace(wanted, metadata=replace(wanted.metadata, uid=uid))
        self._given[title] = given
        self.stale[title] = None
        if given != before:
            found.groups.append(given)
        if before is None or _ref(before) == _ref(given):
            return False
        found.gone.append(before)
        return True

    def _look_at_pods(self, title: Ref) -> None:
        self.stale |= {(Pod, pod.key): None for pod in self._grouper.members(self._made[title])}

    def believed(self, item: Object) -> Object:
        """A PodGroup of the cluster as it is to be read: one that was written here says what memory says."""
        title = self._titles.get(_ref(item))
        if title is None or not is_ours(item, self._wanted[title]):
            return item
        wanted = self._wanted[title]
        metadata = replace(wanted.metadata, uid=item.metadata.uid)
        return with_status(replace(wanted, metadata=metadata), item)

    def pod(self, key: str) -> Pod | None:
        read = self._grouper.pod(key)
        title = _title_of(read) if read is not None else None
        given = self._given.get(title) if title is not None else None
        if read is None or title is None or given is None or _ref(given) == title:
            return read
        return named(read, title[0], given.metadata.name)

    # -- questions ---------------------------------------------------------------------------------------------------

    def missing(self, key: str) -> Owner | None:
        return self._grouper.missing(key)

    def pods_of(self, owner: Object) -> Iterable[str]:
        return self._grouper.pods_of(owner)

    def has_pods(self, owner: Object) -> bool:
        return self._grouper.has_pods(owner)

    def owners_of(self, key: str) -> list[Ref]:
        return self._grouper.owners_of(key)

    def owner_of(self, group: Object) -> Owner | None:
        return self._grouper.owner_of(self._as_made(group))

    def lone_pod(self, group: Object) -> str | None:
        return self._grouper.lone_pod(self._as_made(group))

    def members(self, group: Object) -> list[Pod]:
        found = (self.pod(one.key) for one in self._grouper.members(self._as_made(group)))
        return [pod for pod in found if pod is not None]

    def new_problems(self) -> list[Problem]:
        return self._grouper.new_problems()

    def wanted(self, title: Ref) -> Object | None:
        """A group as it is to be in the cluster; None if it is not there any more, or only in memory."""
        return self._wanted.get(title)

    def written(self, real: Ref) -> bool:
        """Whether the cluster has a group of this name that was written here and is to be."""
        title, there = self._titles.get(real), self.objects.get(real)
        return title is not None and there is not None and is_ours(there, self._wanted[title])

    def title_of(self, key: str) -> Ref | None:
        """The title of the group of a pod."""
        read = self._grouper.pod(key)
        return _title_of(read) if read is not None else None

    def is_obsolete(self, real: Ref) -> bool:
        """Whether a group that was written here is not needed, and does not go with an owner."""
        there = self.objects.get(real)
        if there is None or not is_written(there) or real in self._titles or real in self._wearers:
            return False
        return not there.metadata.owner_references or real in self._left

    def is_absent(self, kind: type[Object]) -> bool:
        """Whether PodGroups of a kind cannot be seen."""
        return kind in self._absent

    def _as_made(self, group: Object) -> Object:
        title = self._titles.get(_ref(group))
        return self._made[title] if title is not None else group


def _ref(item: Object) -> Ref:
    return type(item), item.key


def _title_of(pod: Pod) -> Ref | None:
    """The group of a pod as the grouper has it."""
    namespace, known = pod.metadata.namespace or "default", pod.metadata.annotations
    for kind, name in NAMES.items():
        if ":" in known.get(name, ""):
            return kind, f"{namespace}/{known[name]}"
    return None
