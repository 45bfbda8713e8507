"""A family: the pods of one group that exists in memory, and what has to run before some of them are scheduled."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from maniple.objects.core import Pod
from maniple.objects.limits import WAITS
from maniple.objects.meta import Object
from maniple.profiles.group_forms import AskedGroup
from maniple.profiles.volcano import PREEMPTABLE
from maniple.workloads.model import FieldError, Group

_STARTED = ("Running", "Succeeded")
_OWN_ANNOTATIONS = (WAITS, PREEMPTABLE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is counted: its family and set, and whether it runs and has a node."""

    family: str
    part: str
    started: bool
    placed: bool
    error: FieldError | None = None

    @classmethod
    def of(cls, pod: Pod, family: str, part: str, error: FieldError | None) -> "Place":
        return cls(family, part, pod.status.phase in _STARTED, bool(pod.spec.node_name), error)


@dataclass(slots=True)
class Family:
    """`groups` are written for its pods: one, and one for each set that waits."""

    names: dict[str, list[str]] = field(default_factory=dict)  # of pods, by set, in order
    started: dict[str, int] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)  # pods with a node
    errors: dict[str, FieldError] = field(default_factory=dict)
    basis: object = None  # what the groups were written from
    asked: Group | None = None
    closed: Mapping[str, str] = field(default_factory=dict)  # sets that wait, and why
    parts: dict[str, Group] = field(
        default_factory=dict
    )  # what is asked for: without these, and for each of these
    written: dict[str, tuple[AskedGroup, Object]] = field(default_factory=dict)

    def join(self, key: str, place: Place) -> None:
        part = place.part
        insort(self.names.setdefault(part, []), key)
        self.started[part] = self.started.get(part, 0) + place.started
        self.placed[part] = self.placed.get(part, 0) + place.placed
        if place.error is not None:
            self.errors[key] = place.error

    def leave(self, key: str, place: Place) -> None:
        names = self.names[place.part]
        del names[bisect_left(names, key)]
        if not names:
            del self.names[place.part]
        self.started[place.part] -= place.started
        self.placed[place.part] -= place.placed
        self.errors.pop(key, None)

    @property
    def first(self) -> str:
        return min(names[0] for names in self.names.values())

    def pods(self) -> list[str]:
        return sorted(name for part in self.names.values() for name in part)

    @property
    def lone_pod(self) -> str | None:
        names = [*self.names.values()]
        return names[0][0] if len(names) == 1 and len(names[0]) == 1 else None

    @property
    def groups(self) -> dict[str, Object]:
        """By key."""
        return {key: item for key, (_, item) in self.written.items()}

    def runs(self, minimum: int) -> bool:
        return sum(self.started.values()) >= minimum

    def waiting_sets(self, group: Group) -> dict[str, str]:
        """The sets whose pods wait until others run, and why; one of which a pod has a node waits no more."""
        closed: dict[str, str] = {}
        if not any(one.after for one in group.sets):
            return closed
        running = {one.name for one in group.sets if self.started.get(one.name, 0) >= one.minimum}
        for one in group.sets:
            lacking = [name for name in one.after if name not in running]
            if lacking and not self.placed.get(one.name):
                closed[one.name] = (
                    f"pods of {one.name} wait until {listed(lacking)} of {title_of(group)} runs"
                )
        return closed


@dataclass(slots=True)
class Changes:
    """What reads differently; groups that are gone come first."""

    gone: list[Object] = field(default_factory=list)
    groups: list[Object] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)

    def rewrite(self, before: Mapping[str, Object], after: Mapping[str, Object]) -> None:
        """The groups of a family."""
        self.gone += [one for key, one in before.items() if type(after.get(key)) is not type(one)]
        self.groups += [one for key, one in after.items() if before.get(key) != one]


def parts_of(group: Group, closed: Mapping[str, str]) -> dict[str, Group]:
    """A group without the sets that wait, under the empty name, and one for each of these."""
    if not closed:
        return {"": group}
    waiting = {one.name: one for one in group.sets if one.name in closed}
    sets = [one for one in group.sets if one.name not in closed]
    parents = {one.parent for one in group.sets}
    kept = {one.parent for one in sets}
    sets = [one for one in sets if one.name not in parents or one.name in kept]
    minimum = group.minimum - sum(one.minimum for one in waiting.values())
    parts = {name: replace(group, minimum=max(one.minimum, 1), sets=()) for name, one in waiting.items()}
    return {"": replace(group, minimum=max(minimum, 1), sets=tuple(sets)), **parts}


def with_status(group: Object, known: Object | None) -> Object:
    """A group with the status that it had, and the annotations that were written to it since."""
    if known is None or type(known) is not type(group):
        return group
    metadata = group.metadata
    kept = {key: text for key, text in known.metadata.annotations.items() if key not in _OWN_ANNOTATIONS}
    metadata = structs.replace(metadata, annotations={**kept, **metadata.annotations})
    return structs.replace(group, metadata=metadata, status=known.status)  # type: ignore[attr-defined]


def listed(names: Iterable[str]) -> str:
    return " and ".join(names)


def title_of(group: Group) -> str:
    return f"{group.owner.kind} {group.namespace}/{group.owner.name}"
