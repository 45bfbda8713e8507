"""What the running scheduler needs from a profile.

Kinds to watch, how pods are read, and how decisions are written in that system. `kai.py`,
`volcano.py` and `maniple.py` (both in one cluster) implement it. Dialects are pure: they read a plan and
objects and return what should be written; `status.py`, `waiting.py` and `decisions.py` write it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from maniple.framework.plans.outcome import Eviction, GroupOutcome, WaitingPod
from maniple.framework.plans.plan import Plan
from maniple.live.port import EventType
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest, KaiPodGroup
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup

# An object by its kind and key, as it is believed to be.
Find = Callable[[type[Object], str], Object | None]
# The message of a waiting job, from its name, its group and its brief cause.
Worded = Callable[[str, Object, str], str]
_GROUPS: Mapping[str, type[Object]] = {kind.api_group: kind for kind in (VolcanoPodGroup, KaiPodGroup)}


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """A note about a group; without a text it no longer applies."""

    type: EventType
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a cycle for one job: its group before and after, and why it is pending, if it is.

    `why` is what its conditions and events say, `counts` how many of its pods there are in each status.
    """

    before: Object
    after: Object
    why: str = ""
    events: tuple[GroupEvent, ...] = ()
    queue: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What the status of a queue is written from: amounts as Kubernetes writes them, with those of queues below.

    `allocated` and `fixed` (of it, what non-preemptible jobs hold) are None where pods of other schedulers hold more.
    `phases`: the queue's own pod groups, counted; `jobs`: those that have not ended, with those of queues below.
    """

    allocated: Mapping[str, str] | None
    fixed: Mapping[str, str] | None
    requested: Mapping[str, str]
    children: tuple[str, ...] = ()
    phases: Mapping[str, int] = field(default_factory=dict)
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch; `subresource`: whether it goes to the status; None: wherever the kind's status is."""

    body: Mapping[str, Any]
    subresource: bool | None = None


@dataclass(frozen=True, slots=True)
class PodReporting:
    """How a group's pending pods report it: by condition, by event, with a nominated node; with a prefix."""

    condition: bool = True
    event: bool = False
    nominates: bool = True
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class EvictionNotice:
    """How an eviction is reported: on which object, and whether the pod gets a condition first."""

    regarding: Object
    type: EventType
    text: str
    condition: str = ""  # its message; without one there is no condition
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the event, for programs
    promised: str = ""  # the node that is kept for the pod's replacement


class LiveDialect(Protocol):
    kinds: tuple[type[Object], ...]
    queue_kinds: tuple[type[Object], ...]
    writes_queue_status: bool  # some or all fields of it

    def missing_objects(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """Objects that must exist before anything can be scheduled and do not, given the existing queues."""

    def trimmed(self, item: Object) -> Object:
        """An object without the fields that this system never reads."""

    def read(self, pod: Pod) -> Pod:
        """A pod, with its group, as it is to be read."""

    def warning(self, item: Object, *, gone: bool) -> str:
        """What to report when an object is added, changed or deleted; nothing for most."""

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        """Whether the cluster has a kind is now known; returns whether pods must be read again."""

    # -- statuses ----------------------------------------------------------------------------------------------------

    def reports(
        self,
        plan: Plan,
        groups: Mapping[str, GroupOutcome],
        find: Find,
        when: datetime,
        cause: str,
        worded: Worded,
    ) -> Iterator[Report]:
        """The outcome of a plan for these of its groups, job by job; `cause` names the cycle."""

    def unconfirmed(self, before: Object, after: Object) -> Object:
        """The group as it should read while the cluster has not confirmed that its pods are bound.

        `after` itself if that does not claim that they are, `before` if nothing else differs.
        """

    def why(self, plan: Plan, pod: WaitingPod, find: Find) -> str:
        """Why a pod is pending that has no cause of its own."""

    def pod_reporting(self, group: Object | None) -> PodReporting:
        """How the pods of a group report that they are pending."""

    def adopted(self, seen: Object, after: Object) -> Object:
        """The group as seen, with all fields that this scheduler writes taken from the other."""

    def messages(self, group: Object) -> str:
        """The messages of a group."""

    def differ_in_messages_only(self, before: Object, after: Object) -> bool:
        """Whether two states of a group differ in messages only."""

    def is_awaited(self, before: Object, after: Object) -> bool:
        """Whether controllers act only after they see this change of a group."""

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        """The patches from one state to the other."""

    def queue_status(self, queue: Object, report: QueueReport) -> Object:
        """The queue as it should read; the same one if it does."""

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]: ...

    def parent(self, name: str, parent: str) -> str:
        """The queue above one that names this parent; empty when there is none."""

    def depends_on_time(self, plan: Plan) -> bool:
        """Whether the next cycle may decide differently just because time has passed."""

    # -- decisions ---------------------------------------------------------------------------------------------------

    def unsupported_reason(self, pod: Pod) -> str:
        """Why this pod could not be bound here, so that it is not placed; empty for most."""

    def direct(self, pod: Pod) -> bool:
        """Whether a pod is bound directly, not by request."""

    def bind_request(self, plan: Plan, pod: Pod, node: str, find: Find) -> dict[str, Any] | None:
        """The object to create so that a binder binds the pod; None if it is bound directly."""

    def labels(self, pod: Pod) -> Mapping[str, str]:
        """Labels that a pod gets when it is placed."""

    def assigned(self, pod: Pod, node: str) -> str:
        """What is reported about a pod that has been placed."""

    def eviction_notice(self, plan: Plan, eviction: Eviction, pod: Pod, find: Find) -> EvictionNotice: ...

    def ours(self, request: BindRequest) -> bool:
        """Whether a request is ours to delete."""


def group_of(plan: Plan, job: str, find: Find) -> Object | None:
    """The pod group of a job, if it has one."""
    known = plan.group(job)
    return find(_GROUPS[known.api_group], known.key) if known is not None else None
