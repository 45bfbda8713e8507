"""The outcome of a cycle for a KAI PodGroup: why it is pending, its scheduling condition, its events.

Called by `kai.py`. There is one condition per node pool; the newest comes last with the next number. Unlike
KAI's, the condition is removed when the gang is placed, so that a running gang does not read as
unschedulable.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.groups.tree import DEFAULT
from maniple.framework.plans import standing
from maniple.framework.plans.outcome import GroupOutcome
from maniple.framework.plans.plan import Plan
from maniple.framework.reasons import joined
from maniple.live.dialect import GroupEvent
from maniple.live.messages import message
from maniple.objects.kai import Explanation, KaiPodGroup, SchedulingCondition
from maniple.profiles.kai import LAST_START, STALE_SINCE

UNSCHEDULABLE = "Unschedulable"
NOT_READY, STALE = "NotReady", "StaleJob"
BEING_RELEASED = "waits for resources that are being released"
_ACTIVE = [status.word for status in Status if ACTIVE_ALLOCATED[status]]


def why_waiting(one: GroupOutcome) -> tuple[str, str]:
    """Why a job is pending, as a reason for programs and as a message."""
    if one.queue_problem:
        return standing.QUEUE_MISSING, one.queue_problem
    return standing.POD_ERRORS, joined(one.refusals) or standing.NO_TURN


def explanations(one: GroupOutcome, reason: str, why: str) -> tuple[Explanation, ...]:
    """The same for programs, cause by cause."""
    refusals = one.refusals if reason == standing.POD_ERRORS else ()
    found = standing.explained(one.over, refusals or (why,), reason)
    return tuple(Explanation(**{**each, "message": message(each["message"])}) for each in found)


def with_condition(
    group: KaiPodGroup, pool: str, why: str, reasons: tuple[Explanation, ...], when: datetime
) -> KaiPodGroup:
    """The group whose last condition says that it is unschedulable in a node pool; the same if it says so
    already."""
    known = group.status.scheduling_conditions
    last = known[-1] if known else None
    new = SchedulingCondition(
        type=standing.UNSCHEDULABLE_ON_POOL,
        node_pool=pool,
        status="True",
        reason=UNSCHEDULABLE,
        message=message(why),
        reasons=reasons,
        transition_id=str(_latest(known) + 1),
        last_transition_time=when,
    )
    if last is not None and _bare(last) == _bare(new):
        return group
    if last is not None and _first_line(last) == _first_line(new):
        # The same causes, with another answer to them: not a transition.
        new = replace(new, transition_id=last.transition_id, last_transition_time=last.last_transition_time)
    return _with_conditions(group, (*(one for one in known if one.node_pool != pool), new))


def without_condition(group: KaiPodGroup, pool: str) -> KaiPodGroup:
    known = group.status.scheduling_conditions
    others = tuple(one for one in known if one.node_pool != pool)
    return group if len(others) == len(known) else _with_conditions(group, others)


def with_moments(group: KaiPodGroup, plan: Plan, job: str) -> KaiPodGroup:
    """The group with the times that later cycles need: of its first placement, and since when it is stale."""
    if job not in plan.started and job not in plan.stale_since:
        return group
    annotations, started = dict(group.metadata.annotations), plan.started.get(job)
    if started is not None:
        annotations[LAST_START] = _text(started)
    if job in plan.stale_since:
        since = plan.stale_since[job]
        annotations.pop(STALE_SINCE, None)
        if since is not None:
            annotations[STALE_SINCE] = _text(since)
    if annotations == group.metadata.annotations:
        return group
    return replace(group, metadata=replace(group.metadata, annotations=annotations))


def stale_event(one: GroupOutcome) -> GroupEvent:
    """That a gang is stale; or, if it is not, that this is over."""
    if one.stale_since is None:
        return GroupEvent("Normal", STALE, "")
    missing = [
        f"{part.used} of the {part.minimum} required pods"
        + ("" if part.name == DEFAULT else f" in sub-group {part.name}")
        for part in one.pod_sets
        if not part.satisfied
    ]
    if not missing:
        return GroupEvent("Normal", STALE, "")
    return GroupEvent(
        "Normal", STALE, f"the gang is stale: it has {', '.join(missing)}; the remaining pods are evicted"
    )


def active(one: GroupOutcome) -> int:
    """Tasks on nodes, or about to be."""
    return one.count(*_ACTIVE)


def prefix(group: KaiPodGroup, pool: str) -> str:
    """A group that is tried once in each node pool says in which one it was."""
    return standing.pool_prefix(group, pool)


def _with_conditions(group: KaiPodGroup, conditions: Sequence[SchedulingCondition]) -> KaiPodGroup:
    return replace(group, status=replace(group.status, scheduling_conditions=tuple(conditions)))


def _latest(conditions: Sequence[SchedulingCondition]) -> int:
    numbers = [one.transition_id for one in conditions]
    return max((int(number) for number in numbers if number.isdecimal() and len(number) < 19), default=0)


def _bare(condition: SchedulingCondition) -> SchedulingCondition:
    """A condition for comparison: without its time and the details, which change with every pod that starts."""
    reasons = tuple(replace(one, details=None) for one in condition.reasons)
    return replace(condition, transition_id="", last_transition_time=None, reasons=reasons)


def _first_line(condition: SchedulingCondition) -> SchedulingCondition:
    """With KAI's own words only: the answer to why the group waits is on the lines below."""
    bare = _bare(condition)
    return replace(bare, message=bare.message.partition("\n")[0])


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
