"""Half a gang is taken back: members that are bound and have not started are evicted after a time.

Called by the planner after the last action, where the rule `gangs.half_gangs_are_taken_back` holds. A gang may stay
half because one of its pods can never be bound, because others took the room of a scheduler that was killed, or
because a node went away. Until its time is over the rest is tried first (`gangs.broken_first`). Then its members
release what they hold, and their controller creates them again. The time counts from the last confirmed bind or
the creation of a missing member, both of which the API server notes, so that a new scheduler goes on counting. A gang
of which anything runs or has ended is never touched here, nor one whose missing pods do not exist: they are still to
be created.
"""

from datetime import datetime, timedelta

import numpy as np

from maniple.cluster.statuses import READY, VALID, WAITING, Status, status_set
from maniple.framework.configuration.durations import long_nanoseconds
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.core import Pod

NAME = "gang recovery"
DEFAULT_GRACE = "60s"
TEXT = "its gang has {there} of {minimum} pods on nodes and none has started for {grace:,.0f} s"
LOST = "its node {node} is gone, and the pod has not started for {grace:,.0f} s"
# Something of the gang runs, has run, or is about to be placed.
_BEGUN = status_set(Status.RUNNING, Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN, Status.BINDING)


def take_back(session: Session) -> None:
    """Evict the unstarted members of gangs that have been half for too long."""
    if session.now is None or not session.rules.gangs.half_gangs_are_taken_back:
        return
    period = str(session.options.get("stalenessGracePeriod", DEFAULT_GRACE))
    grace = timedelta(microseconds=long_nanoseconds(period) / 1000)
    if grace < timedelta(0):
        return
    transaction = Transaction(session)
    for job in _candidates(session):
        _judge(session, job, grace, session.now, transaction)
    transaction.commit()


def _candidates(session: Session) -> list[int]:
    """Gangs with a member that is bound and has not started, of which nothing has begun, and that are not whole."""
    jobs, tasks = session.jobs, session.tasks
    rows = jobs.rows[(jobs.counts[Status.BOUND, jobs.rows] > 0) & (jobs.minimum[jobs.rows] > 1)]
    if not len(rows):
        return []
    begun, there = _BEGUN @ jobs.counts[:, rows], READY @ jobs.counts[:, rows]
    without_node = (tasks.status == Status.BOUND) & (tasks.node < 0) & (tasks.job >= 0)
    lost = np.bincount(tasks.job[without_node], minlength=jobs.counts.shape[1])[rows] > 0
    found: list[int] = rows[(begun == 0) & (lost | (there < jobs.minimum[rows]))].tolist()
    return found


def _judge(session: Session, job: int, grace: timedelta, now: datetime, transaction: Transaction) -> None:
    tasks, minimum = session.tasks, int(session.jobs.minimum[job])
    rows = session.in_task_order(session.tasks_of(job))
    bound = rows[tasks.status[rows] == Status.BOUND]
    lost = {row: name for row in bound.tolist() if (name := _lost_node(session, row))}
    there = int(READY[tasks.status[rows]].sum()) - len(lost)
    if there >= minimum and not lost:
        return
    session.decisions.half_gangs = True  # a later cycle may decide otherwise
    since = _since(session, bound, rows[WAITING[tasks.status[rows]]])
    if since is None or _age(now, since) < grace:
        return
    seconds = grace.total_seconds()
    # On a node that is gone there are no sums to change. The rest of the gang is completed first.
    for row, name in lost.items():
        session.decisions.evicted.append((row, _cause(LOST.format(node=name, grace=seconds))))
    if not lost and int(VALID[tasks.status[rows]].sum()) >= minimum:
        cause = _cause(TEXT.format(there=there, minimum=minimum, grace=seconds))
        for row in bound.tolist():
            transaction.evict(bound[bound == row], cause)


def _since(session: Session, bound: TaskRows, missing: TaskRows) -> datetime | None:
    """When the last of these was bound or created; None while a bind is not confirmed."""
    pods = session.cluster.tasks.pods
    moments = [_bound_since(pods[row]) for row in bound.tolist()]
    created = [pods[row].metadata.creation_timestamp for row in missing.tolist()]
    known = [moment for moment in moments if moment is not None]
    return max(known + [one for one in created if one is not None]) if len(known) == len(moments) else None


def _cause(text: str) -> EvictionCause:
    return EvictionCause(text, NAME, detail=text)


def _lost_node(session: Session, row: int) -> str:
    """The name of a task's node if that does not exist."""
    table, node = session.cluster.nodes, int(session.cluster.tasks.node[row])
    return table.keys[node] if node >= 0 and not table.defined[node] else ""


def _bound_since(pod: Pod) -> datetime | None:
    """When the API server noted that it was bound; None as long as it has not."""
    moments = [
        one.last_transition_time
        for one in pod.status.conditions
        if one.type == "PodScheduled" and one.status == "True"
    ]
    return moments[0] if moments else None


def _age(now: datetime, since: datetime) -> timedelta:
    return now - since if (now.tzinfo is None) == (since.tzinfo is None) else timedelta(0)
