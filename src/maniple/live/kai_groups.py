"""What a cycle came to for a PodGroup of KAI's: why it waits, its scheduling condition, and the notes about it.

Called by `kai.py`. There is one condition a node pool, and the newest comes last with the next number. Unlike KAI's, the condition is taken away when the
gang has its place, so that nobody reads of a running gang that it cannot be scheduled.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from maniple.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED
from maniple.framework import standing
from maniple.framework.outcome import Plan
from maniple.framework.pod_sets import DEFAULT
from maniple.framework.reasons import joined
from maniple.live.dialect import Word
from maniple.objects.kai import Explanation, KaiPodGroup, SchedulingCondition
from maniple.profiles.kai import LAST_START, STALE_SINCE

UNSCHEDULABLE = "Unschedulable"
NOT_READY, STALE = "NotReady", "StaleJob"
BEING_RELEASED = "waits for resources that are being released"


def not_ready(plan: Plan, job: int) -> str:
    """Which pods a gang lacks before it can be placed; empty when it has enough."""
    return standing.not_ready(plan.session, job)


def why_waiting(plan: Plan, job: int) -> tuple[str, str]:
    """Why a job waits, as a reason for programs and in words."""
    session = plan.session
    problem = standing.queue_problem(session, job) if job in session.cluster.jobs.facts else ""
    if problem:
        return standing.QUEUE_MISSING, problem
    return standing.POD_ERRORS, joined(session.refusals.jobs.get(job, ())) or standing.NO_TURN


def explanations(plan: Plan, job: int, reason: str, message: str) -> tuple[Explanation, ...]:
    """The same for programs, cause by cause."""
    told = plan.session.refusals.jobs.get(job, ()) if reason == standing.POD_ERRORS else ()
    found = standing.explained(plan.session, job, told or (message,), reason)
    return tuple(Explanation(**one) for one in found)


def with_condition(
    group: KaiPodGroup, pool: str, message: str, reasons: tuple[Explanation, ...], when: datetime
) -> KaiPodGroup:
    """The group, saying last of all that it cannot be scheduled in a node pool; itself if that is what it says."""
    known = group.status.scheduling_conditions
    last = known[-1] if known else None
    new = SchedulingCondition(
        type=standing.UNSCHEDULABLE_ON_POOL,
        node_pool=pool,
        status="True",
        reason=UNSCHEDULABLE,
        message=message,
        reasons=reasons,
        transition_id=str(_latest(known) + 1),
        last_transition_time=when,
    )
    if last is not None and _bare(last) == _bare(new):
        return group
    return _with_conditions(group, (*(one for one in known if one.node_pool != pool), new))


def without_condition(group: KaiPodGroup, pool: str) -> KaiPodGroup:
    known = group.status.scheduling_conditions
    others = tuple(one for one in known if one.node_pool != pool)
    return group if len(others) == len(known) else _with_conditions(group, others)


def with_moments(group: KaiPodGroup, plan: Plan, job: int) -> KaiPodGroup:
    """The group with the times that a later cycle has to know: when it got its first place, and since when it has been broken."""
    session, annotations = plan.session, dict(group.metadata.annotations)
    started = session.started.get(job)
    if started is not None:
        annotations[LAST_START] = _text(started)
    if job in session.stale_since:
        since = session.stale_since[job]
        annotations.pop(STALE_SINCE, None)
        if since is not None:
            annotations[STALE_SINCE] = _text(since)
    if annotations == group.metadata.annotations:
        return group
    return replace(group, metadata=replace(group.metadata, annotations=annotations))


def stale_word(plan: Plan, job: int) -> Word:
    """That a gang is broken; or, when it is not, that this is over."""
    session, sets = plan.session, plan.session.pod_sets
    since = session.stale_since.get(job, session.cluster.jobs.facts[job].stale_since)
    if since is None:
        return Word("Normal", STALE, "")
    told = [
        f"{sets.count(one, ACTIVE_USED)} of the {one.minimum} pods that are needed"
        + ("" if one.name == DEFAULT else f" in sub-group {one.name}")
        for one in sets.of(job)
        if sets.count(one, ACTIVE_USED) < one.minimum
    ]
    if not told:
        return Word("Normal", STALE, "")
    return Word(
        "Normal", STALE, f"the gang is broken: it has {', '.join(told)}; what is left of it is evicted"
    )


def active(plan: Plan, job: int) -> int:
    """Tasks on nodes, or about to be."""
    return int(plan.session.jobs.counts[:, job] @ ACTIVE_ALLOCATED)


def prefix(group: KaiPodGroup, pool: str) -> str:
    """A group that is tried once in each node pool says in which it was."""
    return standing.pool_prefix(group, pool)


def _with_conditions(group: KaiPodGroup, conditions: Sequence[SchedulingCondition]) -> KaiPodGroup:
    return replace(group, status=replace(group.status, scheduling_conditions=tuple(conditions)))


def _latest(conditions: Sequence[SchedulingCondition]) -> int:
    numbers = [one.transition_id for one in conditions]
    return max((int(number) for number in numbers if number.isascii() and number.isdecimal()), default=0)


def _bare(condition: SchedulingCondition) -> SchedulingCondition:
    """What makes one condition another: neither when it came nor the details, which change with every pod that starts."""
    reasons = tuple(replace(one, details=None) for one in condition.reasons)
    return replace(condition, transition_id="", last_transition_time=None, reasons=reasons)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
