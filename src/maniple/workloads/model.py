"""The group tree that a workload asks for, and the errors in an owner's fields."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

Raw = Mapping[str, Any]
T = TypeVar("T")


class FieldError(Exception):
    """A field of an owner cannot be read: no group can be made of it until it is mended."""

    def __init__(self, title: str, path: str, message: str) -> None:
        super().__init__(f"{title}: {path}: {message}")
        self.title = title  # such as "PyTorchJob ml/train"
        self.path = path
        self.message = message


class Part(dict[str, Any]):
    """A part of an owner that is read as an object of its own: errors name the owner and the whole path."""

    def __init__(self, found: Raw, place: Sequence[str | int]) -> None:
        super().__init__(found)
        self.place = tuple(place)


@dataclass(frozen=True, slots=True)
class DomainWish:
    """How close together pods are to be: by the level of a KAI Topology, or by a tier of Volcano's HyperNodes.

    Without a topology, `required` is the key of a node label: all nodes with the same value are one domain.
    """

    topology: str = ""
    required: str = ""
    preferred: str = ""
    highest_tier: int | None = None
    highest_tier_name: str = ""
    mode: str = "hard"  # of the tier


@dataclass(frozen=True, slots=True)
class PodSet:
    """A part of a group; one that others name as their parent has no pods of its own."""

    name: str
    minimum: int
    parent: str = ""
    domain: DomainWish | None = None
    # Sets that have to run before the pods of this one are scheduled. Until then the group's minimum is without it.
    after: tuple[str, ...] = ()
    # Pods that there ever are at a time, where that is known: a minimum that is said cannot be above it.
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The object that a group belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A ResourceClaim of a group: the name that pods use for it, and that of the claim or of its template."""

    name: str
    claim: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that are placed together: as many as the minimum, or none.

    `part` tells the groups of one owner apart. `minimum` counts all sets; it may be below the sum of theirs only if
    there are none.
    """

    namespace: str
    owner: Owner
    minimum: int = 1
    part: str = ""
    sets: tuple[PodSet, ...] = ()
    queue: str = ""
    priority_class: str = ""
    preemptible: bool | None = None
    domain: DomainWish | None = None
    # Parts of the same owner whose groups have to run before the pods of this one are scheduled.
    after: tuple[str, ...] = ()
    # The pods have nothing to do with one another: a profile may give each a group of its own.
    independent: bool = False
    # Its pods are evicted all together or not at all, also those above the minimum.
    evicted_whole: bool = False
    # ResourceClaims that the pods share.
    claims: tuple[SharedClaim, ...] = ()

    @property
    def name(self) -> str:
        """As people know it: the kind and the name of the owner. No object can have a name with a colon."""
        kind = self.owner.kind.lower()
        if self.owner.api_version.startswith("batch.volcano.sh/"):
            kind = f"vc{kind}"  # kubectl's short name; a Job of Kubernetes may have the same name
        return f"{kind}:{self.owner.name}:{self.part}" if self.part else f"{kind}:{self.owner.name}"


@dataclass(frozen=True, slots=True)
class Member:
    """Where a pod belongs."""

    group: Group
    set_name: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """A pod with its owners, the nearest first, and the namespace that they are in.

    `above`: owners that leave the decision to those below them, the nearest first; only what labels and annotations
    say counts of them.
    """

    pod: Raw
    owners: Sequence[Raw] = ()
    above: Sequence[Raw] = ()
    namespace: Raw = field(default_factory=dict)
    # What was found out already, with this or another pod of the same priority class, wishes and owners from the one
    # that decides.
    known: dict[object, Any] = field(default_factory=dict, compare=False)

    @property
    def top(self) -> Raw:
        """The object that decides."""
        return self.owners[-1] if self.owners else self.pod

    def once(self, what: object, find: Callable[[], T]) -> T:
        """What does not depend on the pod, but for its priority class and wishes, nor on owners below the one that
        decides; so do errors in owners.
        """
        if what not in self.known:
            try:
                self.known[what] = find()
            except FieldError as error:
                if error.title.startswith("Pod "):  # of this one
                    raise
                self.known[what] = error
        found = self.known[what]
        if isinstance(found, FieldError):
            raise found.with_traceback(None)
        return found  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Raw]:
        """In the order in which labels and annotations count: owners from the one that decides down, the pod, then
        those above."""
        yield from reversed(self.owners)
        yield self.pod
        yield from self.above
