"""What the running scheduler asks of a profile: kinds to watch, groups for lone pods, and how decisions are said and carried out in that system.

`kai.py`, `volcano.py` and `maniple.py` (both in one cluster) implement it. Dialects are pure: they read a plan and objects and say what should be written;
`status.py`, `waiting.py` and `decisions.py` write it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from maniple.framework.outcome import Eviction, WaitingPod
from maniple.framework.plan import Plan
from maniple.live.port import EventType
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest, KaiPodGroup
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup

# An object by its kind and key, as it is believed to be.
Find = Callable[[type[Object], str], Object | None]
_GROUPS: Mapping[str, type[Object]] = {kind.api_group: kind for kind in (VolcanoPodGroup, KaiPodGroup)}


@dataclass(frozen=True, slots=True)
class Word:
    """A note about a group, for people. Without a text: it is no longer so."""

    type: EventType
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a cycle came to for one job: its group as it is and as it should read, and why it waits, if it does."""

    before: Object
    after: Object
    why: str = ""
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch. `subresource`: whether it goes to the status; None, where the kind's status is."""

    body: Mapping[str, Any]
    subresource: bool | None = None


@dataclass(frozen=True, slots=True)
class PodWords:
    """How the waiting pods of a group say so: by a condition, by an event, with the node that is cleared for them; and what comes first."""

    condition: bool = True
    event: bool = False
    nominates: bool = True
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Farewell:
    """How an eviction is told: on which object, and whether the pod gets a condition first."""

    regarding: Object
    type: EventType
    text: str
    condition: str = ""  # its message; without one there is no condition
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the event, for programs
    promised: str = ""  # the node that is kept for whoever comes in the pod's place


class LiveDialect(Protocol):
    kinds: tuple[type[Object], ...]
    queue_kinds: tuple[type[Object], ...]
    tells_queues: bool  # what queues hold is written into them

    def lacking(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """Objects that have to be there before anything can be scheduled, and are not, given the queues there are."""

    def bare(self, item: Object) -> Object:
        """An object without what nobody reads in this system."""

    def group(self, pod: Pod) -> tuple[Pod, Object | None]:
        """A pod as it is to be read, and the group that is made for it if it has none."""

    def remark(self, item: Object, *, gone: bool) -> str:
        """What is to be said when an object comes, changes or goes; nothing about most."""

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        """The cluster was found to have a kind, or not to have it. True when pods are to be read anew."""

    # -- statuses -----------------------------------------------------------------------------------------------------

    def reports(self, plan: Plan, find: Find, when: datetime, cause: str) -> Iterator[Report]:
        """What a plan came to, job by job. `cause` names the cycle."""

    def why(self, plan: Plan, pod: WaitingPod, find: Find) -> str:
        """Why a pod waits that has no cause of its own."""

    def pod_words(self, group: Object | None) -> PodWords:
        """How the pods of a group say that they wait."""

    def adopted(self, seen: Object, after: Object) -> Object:
        """A group that was seen, with everything that is written of the other."""

    def words(self, group: Object) -> str:
        """What a group says for people."""

    def differ_in_words_only(self, before: Object, after: Object) -> bool:
        """Whether two states of a group mean the same."""

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        """How to get from one to the other."""

    def queue_allocated(self, queue: Object, allocated: Mapping[str, str]) -> Object:
        """The queue as it should read."""

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]: ...

    def parent(self, name: str, parent: str) -> str:
        """The queue above one that names this parent; empty when there is none."""

    def minds_time(self, plan: Plan) -> bool:
        """Whether the next cycle may decide otherwise for no other reason than that time has passed."""

    # -- decisions ----------------------------------------------------------------------------------------------------

    def beyond(self, pod: Pod) -> str:
        """What of this pod nobody here could carry out, so that it is not placed; empty for most."""

    def direct(self, pod: Pod) -> bool:
        """Whether a pod is bound from here, and not by somebody who is asked to."""

    def bind_request(self, plan: Plan, pod: Pod, node: str, find: Find) -> dict[str, Any] | None:
        """What has to be made so that somebody else binds the pod; None when it is bound from here."""

    def labels(self, pod: Pod) -> Mapping[str, str]:
        """Labels that a pod gets with its place."""

    def assigned(self, pod: Pod, node: str) -> str:
        """What is said about a pod that has got its place."""

    def farewell(self, plan: Plan, eviction: Eviction, pod: Pod, find: Find) -> Farewell: ...

    def ours(self, request: BindRequest) -> bool:
        """Whether a request is ours to clear away."""


def group_of(plan: Plan, job: str, find: Find) -> Object | None:
    """The pod group of a job, if it has one."""
    known = plan.groups.get(job)
    return find(_GROUPS[known.api_group], known.key) if known is not None else None
