"""stalegangeviction: a gang that has been broken for too long loses the rest of its tasks.

A gang is broken if some of its tasks exist, none has succeeded, and a pod set has fewer tasks than it needs.
The time is counted from the moment noted on the pod group, or from now on (`session.decisions.stale_since`). It
does not matter whether the job is preemptible.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED, Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.durations import long_nanoseconds
from maniple.framework.groups.remembered import remembered
from maniple.framework.groups.tree import DEFAULT
from maniple.framework.reasons import POD, EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement

TEXT = (
    "Workload doesn't meet the minimum required number of pods ({minimum}){group},"
    " evicting remaining pod: {pod}"
)
DETAIL = "its gang{group} has had fewer than {minimum} pods for {age}; {grace} are allowed"


class StaleGangEviction:
    name = "stalegangeviction"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action stalegangeviction")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        if session.now is None:
            return
        period = str(session.options.get("stalenessGracePeriod", "60s"))
        grace = timedelta(microseconds=long_nanoseconds(period) / 1000)
        broken = _broken(session)
        known = session.cluster.jobs.stale.intersection(session.jobs.rows.tolist())
        for job in sorted(broken | known):
            since = session.cluster.jobs.facts[job].stale_since
            if job in broken:
                if since is None or _age(session.now, since) < timedelta(0):  # noted by its owner, for later
                    since = session.decisions.stale_since[job] = session.now
                age = _age(session.now, since)
                if grace >= timedelta(0) and age >= grace:
                    _evict(session, job, age, grace)
            elif since is not None:
                session.decisions.stale_since[job] = None


def _broken(session: Session) -> set[int]:
    """Jobs that are not whole gangs.

    Where a job is one pod set, which is the rule, counting all of them at once is enough.
    """
    jobs, undivided = session.jobs, session.groups.undivided
    rows = jobs.rows[jobs.counts[Status.SUCCEEDED, jobs.rows] == 0]
    active = ACTIVE_USED @ jobs.counts[:, rows]
    doubtful = (active > 0) & (~undivided[rows] | (active < jobs.minimum[rows]))
    stale = remembered(session, "stale", rows[doubtful].tolist(), session.groups.stale)
    return {job for job, broken in stale.items() if broken}


def _age(now: datetime, since: datetime) -> timedelta:
    return now - since if (now.tzinfo is None) == (since.tzinfo is None) else timedelta(0)


def _seconds(time: timedelta) -> str:
    return f"{time.total_seconds():,.0f} s"


def _evict(session: Session, job: int, age: timedelta, grace: timedelta) -> None:
    """Everything that is there and does not leave already, for good."""
    transaction = Transaction(session)
    for pod_set in session.groups.of(job):
        rows = pod_set.rows[ACTIVE_ALLOCATED[session.tasks.status[pod_set.rows]]]
        group = "" if pod_set.name == DEFAULT else f" in sub-group {pod_set.name}"
        named = {"minimum": pod_set.minimum, "group": group}
        text = "" if session.rules.words.plain else TEXT.format(**named, pod=POD)
        detail = DETAIL.format(**named, age=_seconds(age), grace=_seconds(grace))
        cause = EvictionCause(text, StaleGangEviction.name, detail=detail)
        for row in session.in_task_order(rows).tolist():
            transaction.evict(rows[rows == row], cause)
    transaction.commit()


__all__ = ["StaleGangEviction"]
