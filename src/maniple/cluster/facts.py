"""What the model needs to know of an object, and the dialect that reads it.

Volcano and KAI say the same things in different fields and annotations. A `Dialect` (the profiles implement
it) turns an object into facts; everything behind it is one model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from maniple.cluster.resources import Amount
from maniple.cluster.statuses import Status
from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.meta import LabelSelector, Object

NOT_ADMITTED = ("", "Pending")  # phases of jobs
AT = "@"  # never part of a name


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What a pod asks of GPUs beyond whole devices: the same part of each of some devices, by portion or by memory."""

    portion: int = 0  # hundredths of a device, which is how fine quotas count
    memory: int = 0  # MiB of a device
    devices: int = 1
    legacy_mig: bool = False  # holds a slice that was handed out in a way that is no longer used
    exact: float = 0.0  # the portion as it was written, by which it takes memory; 0: the hundredths
    slices: tuple[tuple[str, int], ...] = ()  # which slices it holds, if that is so
    reserves: bool = False  # stands for the parts of a device that others hold
    unreadable: str = ""  # the annotation that asks for a part, if it cannot be read

    @property
    def shares(self) -> bool:
        return bool(self.portion or self.memory)


@dataclass(slots=True)
class TaskFacts:
    """One pod. `job` is None for a pod that is only accounted on its node."""

    status: Status
    job: str | None
    node: str
    role: str = ""
    priority: int = 0
    index: int = -1  # number at the end of the pod's name, when the dialect orders by it
    preemptable: bool = True
    gated: bool = False
    admissible: bool = False  # gated only by the gate that queue admission itself removes
    nominated: str = ""
    gpu_groups: tuple[str, ...] = ()  # the shared devices that it has parts of


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """How close together tasks should be, as the object states it: inside one domain of at most this tier."""

    mode: str  # hard or soft
    highest_tier: int | None = None
    highest_tier_name: str = ""


@dataclass(frozen=True, slots=True)
class SubGroupRule:
    """How a job's tasks are split into sub-jobs: those that the selector means, by their values of the keys."""

    name: str
    size: int  # tasks that a sub-job needs
    least: int  # sub-jobs that the job needs
    selector: LabelSelector | None = None
    keys: tuple[str, ...] = ()
    topology: TopologyWish | None = None


@dataclass(frozen=True, slots=True)
class LevelWish:
    """How close together tasks should be, by the labels of a topology: inside one domain of a level."""

    topology: str
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A sub-group as it was written. One that others name as their parent holds groups, any other holds tasks."""

    name: str
    minimum: int
    parent: str = ""
    wish: LevelWish | None = None


@dataclass(slots=True)
class JobFacts:
    """One gang."""

    queue: str
    minimum: int
    phase: str = ""
    priority_class: str = ""
    role_minimums: Mapping[str, int] = field(default_factory=dict)
    min_resources: Mapping[str, str | int | float] | None = None
    preemptable: bool = False
    topology: TopologyWish | None = None
    sub_groups: tuple[SubGroupRule, ...] = ()
    groups: tuple[GroupFacts, ...] = ()
    closed: bool = False  # a task whose role is none of the groups is not part of the job
    level_wish: LevelWish | None = None
    preemptible: bool | None = None  # None: by its priority
    evicted_whole: bool = False  # or not at all, also what it has beyond its minimum
    started: datetime | None = None
    stale_since: datetime | None = None
    names_queue: bool = True  # otherwise the queue of its namespace counts, if that has one
    system: str = ""  # of the group, where groups of several systems may have one name

    @property
    def shaped(self) -> bool:
        """There is more to say about the job's tasks than how many of them it needs."""
        return self.topology is not None or bool(self.sub_groups)

    @property
    def parted(self) -> bool:
        """Its tasks may be divided into several pod sets."""
        return bool(self.groups or self.sub_groups or self.role_minimums)

    @property
    def admitted(self) -> bool:
        return self.phase not in NOT_ADMITTED

    @property
    def stale(self) -> bool:
        return self.stale_since is not None


@dataclass(slots=True)
class QueueFacts:
    """One queue. What a fairness plugin needs beyond this it reads from the queue's object."""

    parent: str = ""
    weight: int = 1
    priority: int = 0
    open: bool = True
    states_priority: bool = True  # otherwise it has the one of queues that state none


def as_one(said: Sequence[QueueFacts]) -> QueueFacts:
    """One queue from the objects of several systems.

    What only one of them states holds; if several state a priority, the highest one does.
    """
    priorities = [one.priority for one in said if one.states_priority]
    return QueueFacts(
        parent=next((one.parent for one in said if one.parent), ""),
        weight=max(one.weight for one in said),
        priority=max(priorities) if priorities else said[0].priority,
        open=all(one.open for one in said),
        states_priority=bool(priorities),
    )


def job_key(name: str, system: str) -> str:
    """The key of a job: that of its group, and the group's system where several systems have groups."""
    return f"{name}{AT}{system}" if system else name


class Dialect(Protocol):
    """How one system's objects are read."""

    name: str
    default_priority: int
    # whether resource claims and slices count in requests and on nodes (see `requests`, `allocatable`)
    counts_devices: bool
    order_labels: frozenset[str]  # labels of pods by which plugins order the tasks of a job
    # whether pods that need different config maps differ for placement
    minds_config_maps: bool
    # annotations that make two otherwise equal pods differ for placement
    placement_annotations: tuple[str, ...]
    # the values of `schedulerName` of pods that are scheduled here
    scheduler_names: frozenset[str]

    def covers(self, item: Object) -> bool:
        """Whether an object is there for this scheduler at all."""

    def counts(self, resource: str) -> bool:
        """Whether a resource name is accounted for."""

    def task(self, pod: Pod, decided: Object | None = None) -> TaskFacts | None:
        """Facts of a pod, or None when it is none of this scheduler's business and on no node.

        `decided` is the object that says where the pod is about to be bound (see `decides`).
        """

    def group_of(self, pod: Pod) -> str | None:
        """The job that a pod's annotations name, whichever scheduler the pod names."""

    def decides(self, item: Object) -> str | None:
        """The key of the pod whose place an object of this dialect decides; None for any other object."""

    def requests(
        self, pod: Pod, amounts: Mapping[str, Amount], claims: Sequence[ResourceClaim]
    ) -> Mapping[str, Amount]:
        """What a pod counts with, given what its containers ask for and its resource claims."""

    def negligible(self, resource: str) -> int:
        """The amount, in base units, below which asking for a resource is asking for nothing."""

    def gpu(self, pod: Pod) -> GpuAsk | None:
        """What a pod asks of GPUs beyond whole devices."""

    def job(self, group: Object) -> JobFacts | None:
        """Facts of a pod group, or None when the object is no pod group of this dialect."""

    def queue(self, queue: Object) -> QueueFacts | None:
        """Facts of a queue, or None when the object is no queue of this dialect."""

    def allocatable(self, node: Node, devices: int = 0) -> Mapping[str, Amount]:
        """What a node offers, before limits that other objects add to it.

        `devices`: GPUs that drivers publish for the node in slices.
        """

    def volume_requests(self, drivers: Mapping[str, int]) -> Mapping[str, int]:
        """Attachable volumes of a pod, counted by driver, as resources; empty when not accounted for."""


def seconds(moment: datetime | None) -> float:
    """A creation time as a sortable number; 0 for an object that carries none."""
    return moment.timestamp() if moment is not None else 0.0
