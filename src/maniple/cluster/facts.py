"""What the model needs to know of an object, and the dialect that reads it off.

Volcano and KAI say the same things in different fields and annotations. A `Dialect` (the profiles implement it) turns an
object into facts; everything behind it is one model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from maniple.cluster.resources import Amount
from maniple.cluster.statuses import Status
from maniple.objects.core import Node, Pod
from maniple.objects.meta import LabelSelector, Object


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


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """How close together tasks want to be, as somebody wrote it: inside one domain of at most this tier."""

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

    @property
    def shaped(self) -> bool:
        """There is more to say about the job's tasks than how many of them it needs."""
        return self.topology is not None or bool(self.sub_groups)


@dataclass(slots=True)
class QueueFacts:
    """One queue. What a fairness plugin needs beyond this it reads from the queue's object."""

    parent: str = ""
    weight: int = 1
    priority: int = 0
    open: bool = True


class Dialect(Protocol):
    """How one system's objects are read."""

    name: str
    default_priority: int
    # annotations that make two otherwise equal pods differ for placement
    placement_annotations: tuple[str, ...]

    def counts(self, resource: str) -> bool:
        """Whether a resource name is accounted for."""

    def task(self, pod: Pod) -> TaskFacts | None:
        """Facts of a pod, or None when it is none of this scheduler's business and on no node."""

    def job(self, group: Object) -> JobFacts | None:
        """Facts of a pod group, or None when the object is no pod group of this dialect."""

    def queue(self, queue: Object) -> QueueFacts | None:
        """Facts of a queue, or None when the object is no queue of this dialect."""

    def allocatable(self, node: Node) -> Mapping[str, Amount]:
        """What a node offers, before limits that other objects add to it."""

    def volume_requests(self, drivers: Mapping[str, int]) -> Mapping[str, int]:
        """Attachable volumes of a pod, counted by driver, as resources; empty when not accounted for."""


def seconds(moment: datetime | None) -> float:
    """A creation time as a sortable number; 0 for an object that carries none."""
    return moment.timestamp() if moment is not None else 0.0
