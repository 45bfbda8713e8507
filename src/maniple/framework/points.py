"""The extension points: every question that actions put to plugins, each declared once.

A plugin answers a point by having a method of that name. `Hooks` is the session's side: one attribute per
point, already combined over tiers by the rule in its annotation, together with the switch that turns a
plugin's answer off and the default when no plugin registered. Jobs, queues and tasks are row numbers; many
tasks are arrays of them.

Volcano's NodeOrder, NodeMap/NodeReduce and BatchNodeOrder are one point here (`scorers`), as are Predicate
and SimulatePredicate (`filters`); SimulateAdd/RemoveTask are `on_allocate`/`on_deallocate`, since a dry run
is a transaction that is undone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, get_args, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.framework import combine
from maniple.framework.combine import Rule, Vote
from maniple.framework.criteria import Filter, NodeRows, Scorer, Scores
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.reasons import Reason
from maniple.framework.refusals import Refusals

Key = tuple[Any, ...]
TaskRows = NDArray[np.int64]
JobRows = NDArray[np.int64]
Column = NDArray[Any]


# An answer to `pre_bind`
CLAIMS_FIRST = "claims"
# Answers to `spare`
ALL = int(np.iinfo(np.int64).max)
ASK = -1


@dataclass(slots=True, eq=False)
class Event:
    """Tasks of one class and one job that took, or gave back, what they ask for on the nodes named beside them."""

    class_: TaskClass
    job: int
    rows: TaskRows
    nodes: NodeRows


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What has to become of a placed pod's volumes before it is bound, and how many seconds that may take."""

    bound: Mapping[str, str]  # by claim: the volume that is there and shall be its
    made: tuple[str, ...]  # claims for which a volume is made on the pod's node
    seconds: float


@dataclass(frozen=True, slots=True)
class Point:
    """A rule of combination; the switch that gates a plugin's answer (None: not gated); the default answer."""

    rule: Rule
    switch: str | None = None
    default: Any = None
    alternative: Rule | None = None  # where tiers are alternatives (`victims.tiers_are_alternatives`)


@dataclass(frozen=True, slots=True)
class Capacity:
    """KAI's answer to a capacity question."""

    schedulable: bool = True
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any] | None = None


class Purpose(Enum):
    """What domains are looked for."""

    ALLOCATE = "allocate"  # room as it is
    EVICT = "evict"  # room that evictions could make


def _given(_part: int | PodSet, domain: int, _purpose: Purpose) -> list[list[int]]:
    return [[domain]]


class Hooks:
    """All points, combined for one session."""

    # order: the smaller key first
    job_order: Annotated[Callable[[int], Key], Point(combine.order, "enableJobOrder")]
    # the same for many jobs at once, for plugins whose keys are numbers
    job_orders: Annotated[Callable[[JobRows], tuple[Column, ...]], Point(combine.order, "enableJobOrder")]
    queue_order: Annotated[Callable[[int], Key], Point(combine.order, "enableQueueOrder")]
    task_order: Annotated[Callable[[TaskRows], tuple[Column, ...]], Point(combine.order, "enableTaskOrder")]
    victim_queue_order: Annotated[Callable[[int, int], Key], Point(combine.order)]
    # queue, its next job (-1: none), jobs of it that are already taken as victims -> the queue with the
    # smaller key is next
    queue_turn: Annotated[Callable[[int, int, Sequence[int]], Key], Point(combine.order)]
    pod_set_order: Annotated[Callable[[PodSet], Key], Point(combine.order, "enabledSubJobOrder")]
    sub_group_order: Annotated[Callable[[Group], Key], Point(combine.order)]

    # is a job valid, ready, pipelined, starving; may it enter, go on, take
    job_valid: Annotated[Callable[[int], str | None], Point(combine.first)]
    job_ready: Annotated[Callable[[int], bool], Point(combine.all_of, "enableJobReady")]
    job_pipelined: Annotated[Callable[[int], bool], Point(combine.votes, "enableJobPipelined", True)]
    job_starving: Annotated[Callable[[int], bool], Point(combine.first_tier_all, "enableJobStarving", False)]
    pod_set_ready: Annotated[Callable[[PodSet], bool], Point(combine.all_of, "enabledSubJobReady")]
    pod_set_pipelined: Annotated[
        Callable[[PodSet], bool], Point(combine.votes, "enabledSubJobPipelined", True)
    ]
    job_enqueueable: Annotated[Callable[[int], bool], Point(combine.votes, "enableJobEnqueued", True)]
    job_enqueued: Annotated[Callable[[int], None], Point(combine.call_all, "enableJobEnqueued")]
    overused: Annotated[Callable[[int], bool], Point(combine.any_of, "enabledOverused")]
    # queue, class, how many in a row are wanted -> how many are allowed
    allocatable: Annotated[Callable[[int, TaskClass, int], int], Point(combine.minimum, "enabledAllocatable")]
    # the same whether or not the queue is open: what the original asks while victims leave on trial
    simulated_allocatable: Annotated[
        Callable[[int, TaskClass, int], int], Point(combine.minimum, "enabledAllocatable")
    ]
    # what a queue may still be allocated of each resource, once for each limit that holds for it: from plugins that
    # answer `allocatable` by nothing but amounts
    queue_room: Annotated[Callable[[int], list[list[float]]], Point(combine.collected, "enabledAllocatable")]
    preemptive: Annotated[Callable[[int, TaskRows], bool], Point(combine.all_of, "enablePreemptive")]
    # tasks of this role that the job certainly lacks before `job_ready` could become true: lets a gang be
    # placed at once
    shortfall: Annotated[Callable[[int, int, int], int], Point(combine.minimum)]
    # tasks without which a job, or a pod set, cannot be ready, or pipelined: domains that hold fewer are not tried
    job_lack: Annotated[Callable[[int], int], Point(combine.highest, "enableJobReady", 0)]
    job_lack_pipelined: Annotated[Callable[[int], int], Point(combine.highest, "enableJobPipelined", 0)]
    pod_set_lack: Annotated[Callable[[PodSet], int], Point(combine.highest, "enabledSubJobReady", 0)]
    pod_set_lack_pipelined: Annotated[
        Callable[[PodSet], int], Point(combine.highest, "enabledSubJobPipelined", 0)
    ]

    # nodes
    pre_predicate: Annotated[Callable[[TaskClass], Reason | None], Point(combine.first, "enablePredicate")]
    filters: Annotated[Callable[[], list[Filter]], Point(combine.collected, "enablePredicate")]
    scorers: Annotated[Callable[[], list[Scorer]], Point(combine.collected, "enableNodeOrder")]
    best_node: Annotated[
        Callable[[TaskClass, NodeRows, Scores], int | None], Point(combine.first, "enableBestNode")
    ]
    # the last word before tasks take the nodes that were chosen for them: a cause keeps them waiting
    reserve: Annotated[Callable[[Event], str | None], Point(combine.first)]
    gpu_order: Annotated[Callable[[TaskClass, int, str], float], Point(combine.total, default=0.0)]

    # domains: what each is worth for a pod set, told before it is tried there; lists of domains for a job or a
    # pod set inside a domain, the nearest first
    hyper_node_order: Annotated[
        Callable[[PodSet, NDArray[np.int64]], Scores], Point(combine.total, "enabledHyperNodeOrder", 0.0)
    ]
    hyper_node_gradient_for_job: Annotated[
        Callable[[int, int, Purpose], list[list[int]]],
        Point(combine.first_registered, "enabledHyperNodeGradient", _given),
    ]
    hyper_node_gradient_for_pod_set: Annotated[
        Callable[[PodSet, int, Purpose], list[list[int]]],
        Point(combine.first_registered, "enabledHyperNodeGradient", _given),
    ]
    # part of a job, its tasks that are placed together, where causes are noted, nodes -> lists of nodes to
    # try one after the other
    subset_nodes: Annotated[
        Callable[[Group | PodSet, TaskRows, Refusals, NodeRows], list[NodeRows]], Point(combine.partitions)
    ]
    # part of a job -> there is no domain as it requires, however empty the nodes are
    lacks_domains: Annotated[Callable[[Group | PodSet], bool], Point(combine.any_of)]

    # victims: the task to make room for, candidates in order -> the allowed ones
    preemptable: Annotated[
        Callable[[int, TaskRows], TaskRows],
        Point(combine.victims, "enablePreemptable", alternative=combine.victims_of_any_tier),
    ]
    reclaimable: Annotated[
        Callable[[int, TaskRows], TaskRows],
        Point(combine.agreed, "enableReclaimable", alternative=combine.victims_of_any_tier),
    ]
    unified_evictable: Annotated[
        Callable[[int, TaskRows], TaskRows], Point(combine.victims, alternative=combine.victims_of_any_tier)
    ]
    # job, its tasks that may be taken, in task order -> those that it can lose and still be whole
    surplus: Annotated[Callable[[int, TaskRows], TaskRows], Point(combine.narrowed)]
    # the same for many jobs at once: how many of the last of its tasks `surplus` would give, or ASK if that
    # takes a call of `surplus`
    spare: Annotated[Callable[[JobRows], NDArray[np.int64]], Point(combine.least, default=ALL)]
    victim_tasks: Annotated[Callable[[TaskRows], TaskRows], Point(combine.union_by_tier, "enabledVictim")]
    # of a task that `victim_tasks` named: why, in plain words; None from a plugin that did not name it
    victim_reason: Annotated[Callable[[int], str | None], Point(combine.first, "enabledVictim")]
    # of the tasks that `victim_tasks` named, the ones that may go after all
    victims_allowed: Annotated[Callable[[TaskRows], TaskRows], Point(combine.narrowed, "enabledVictim")]
    can_reclaim_resources: Annotated[Callable[[int], bool], Point(combine.first_registered, default=False)]
    reclaim_victim_filter: Annotated[Callable[[int, int], bool], Point(combine.all_of)]
    preempt_victim_filter: Annotated[Callable[[int, int], bool], Point(combine.all_of)]
    consolidation_victim_filter: Annotated[Callable[[int, int], bool], Point(combine.all_of)]
    reclaim_scenario_validator: Annotated[Callable[[Any], bool], Point(combine.all_of)]
    preempt_scenario_validator: Annotated[Callable[[Any], bool], Point(combine.all_of)]
    consolidation_scenario_validator: Annotated[Callable[[Any], bool], Point(combine.all_of)]

    # KAI's capacity questions
    is_job_over_capacity: Annotated[  # the tasks are those of the job that are to be placed
        Callable[[int, TaskRows], Capacity], Point(combine.first_registered, default=Capacity())
    ]
    is_non_preemptible_job_over_queue_quota: Annotated[
        Callable[[int, TaskRows], Capacity], Point(combine.first_registered, default=Capacity())
    ]
    is_task_allocation_on_node_over_capacity: Annotated[
        Callable[[int, int], Capacity], Point(combine.first_registered, default=Capacity())
    ]

    # what has to be done for a task of this class between the decision and the binding; None: nothing.
    # CLAIMS_FIRST needs no waiting when the plan is carried out: the plan says what to write (`Plan.claims`)
    pre_bind: Annotated[Callable[[TaskClass], str | None], Point(combine.first)]

    # what the plan says besides: of placed tasks, what has to be written into the status of resource claims, by claim,
    # and what has to become of their volumes, by task; of a queue, its amounts
    claims_to_write: Annotated[Callable[[Iterable[int]], dict[str, dict[str, Any]]], Point(combine.merged)]
    volumes_to_bind: Annotated[Callable[[Iterable[int]], dict[str, PodVolumes]], Point(combine.merged)]
    queue_report: Annotated[
        Callable[[int], Mapping[str, Column | float]], Point(combine.first_registered, default={})
    ]

    # notices
    on_allocate: Annotated[Callable[[Event], None], Point(combine.call_all)]
    on_deallocate: Annotated[Callable[[Event], None], Point(combine.call_all)]
    # tasks behind the scheduling gate of queue admission, which may be removed: their queue has room
    on_admit: Annotated[Callable[[Event], None], Point(combine.call_all)]
    on_job_solution_start: Annotated[Callable[[], None], Point(combine.call_all)]
    pre_job_allocation: Annotated[Callable[[int], None], Point(combine.call_all)]
    on_close: Annotated[Callable[[], None], Point(combine.call_all)]

    def __init__(
        self, registered: Mapping[str, Sequence[Sequence[Callable[..., Any]]]], *, alternatives: bool = False
    ) -> None:
        self.answered = frozenset(name for name, tiers in registered.items() if any(tiers))
        for name, point in POINTS.items():
            rule = point.alternative if alternatives and point.alternative else point.rule
            setattr(self, name, rule(registered.get(name, ()), point.default))


def _declared() -> dict[str, Point]:
    hints = get_type_hints(Hooks, include_extras=True)
    return {
        name: extra
        for name, hint in hints.items()
        for extra in get_args(hint)[1:]
        if isinstance(extra, Point)
    }


POINTS: dict[str, Point] = _declared()
NO_HOOKS = Hooks({})  # until plugins are there; nothing changes it


_POINTS_OF: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()  # by the class of a plugin


def answered_points(plugin: object) -> list[str]:
    """The points that a plugin answers: methods of its class, or what it has set for itself."""
    kind = type(plugin)
    found = _POINTS_OF.get(kind)
    if found is None:
        found = _POINTS_OF[kind] = tuple(name for name in POINTS if hasattr(kind, name))
    own = getattr(plugin, "__dict__", {}).keys() & POINTS.keys()
    return [name for name in POINTS if name in found or name in own] if own else [*found]


__all__ = [
    "ALL",
    "ASK",
    "CLAIMS_FIRST",
    "NO_HOOKS",
    "POINTS",
    "Capacity",
    "Event",
    "Hooks",
    "PodVolumes",
    "Point",
    "Purpose",
    "Vote",
    "answered_points",
]
