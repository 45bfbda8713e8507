"""The tree of a job: pod sets at the leaves, groups of them above, the job itself at the root.

Every node has a minimum or holds nodes that have one, and may have a limit on how far apart its tasks are in
the network. Made by `growing.py`; read by actions and plugins. Rows of domains are those of the session's
domain tree.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domains import NONE
from maniple.cluster.facts import LevelWish

TaskRows = NDArray[np.int64]
DEFAULT = "default"  # the pod set of tasks that belong to no named one
NO_TASKS: TaskRows = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest tier of HyperNodes that tasks may be spread over; None where nothing holds them together."""

    highest: int | None
    wished: bool = False  # a soft wish: as close as possible, and no further limit
    unknown: str = ""  # a tier name that no HyperNode has


class Counts(NamedTuple):
    """Of a pod set's tasks, how many are in which state."""

    ready: int
    pipelined: int
    best_effort: int  # waiting, not gated, requesting nothing


@dataclass(slots=True, eq=False)
class Group:
    """Parts of a job that belong together. The root, which has no name, is the job."""

    job: int
    name: str = ""
    wish: LevelWish | None = None  # a domain of a topology's level
    limit: Limit | None = None  # a domain of the tree of HyperNodes
    parent: "Group | None" = None
    groups: "list[Group]" = field(default_factory=list)
    pod_sets: "list[PodSet]" = field(default_factory=list)
    least: dict[str, int] = field(default_factory=dict)  # policy -> pod sets of it that the job needs
    split: bool = False  # by policies
    domain: int = NONE  # around what is placed

    def all_pod_sets(self) -> "list[PodSet]":
        """Its own and those of the groups inside."""
        inside = [one for inner in self.groups for one in inner.all_pod_sets()] if self.groups else []
        return inside + self.pod_sets

    @property
    def members(self) -> "list[PodSet]":
        """Its own pod sets, without those whose pods have not been created."""
        return [one for one in self.pod_sets if not one.absent]

    @property
    def limits(self) -> list[Limit]:
        return [limit for limit in (self.limit, *(one.limit for one in self.pod_sets)) if limit is not None]

    @property
    def hard(self) -> bool:
        """Some of its tasks must not be placed just anywhere: more than a wish holds them together."""
        return any(not limit.wished for limit in self.limits)

    @property
    def bounded(self) -> bool:
        """Something limits how far apart tasks may be."""
        return any(limit.highest is not None for limit in self.limits)


@dataclass(slots=True, eq=False)
class PodSet:
    """Tasks of which at least `minimum` are needed.

    One that the job can do without has no minimum, but may be a gang of its own: it is there with at least
    `unit` tasks or not at all.
    """

    number: int  # among the pod sets of its job
    job: int
    name: str
    minimum: int
    rows: TaskRows
    parent: Group
    wish: LevelWish | None = None
    limit: Limit | None = None  # that of the job, where it is all of the job
    whole: bool = False  # it is all of the job
    unit: int = 0
    policy: str = ""  # that made it; empty for tasks that no policy selects
    size: int = 0  # tasks that make it ready
    index: int = 0  # number in its first label value
    absent: bool = False  # its pods have not been created
    domain: int = NONE  # around what is placed
    nominated: int = NONE  # cleared for it by eviction

    @property
    def optional(self) -> bool:
        return self.minimum == 0


@dataclass(slots=True, eq=False)
class Progress:
    """The pod set that is being placed: inside which domain, and around what it has so far."""

    pod_set: PodSet
    ground: int
    domain: int


def runs(rows: TaskRows, class_of: NDArray[np.int32]) -> Iterator[TaskRows]:
    """Tasks in order, cut where the class changes."""
    if len(rows):
        classes = class_of[rows]
        yield from np.split(rows, np.flatnonzero(np.diff(classes)) + 1)
