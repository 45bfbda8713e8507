"""What a trace says of a search for victims in profile `volcano`: which pods may go, and which plugin protects others.

Called by `room.py` for a job that is traced, before it searches; `RoomTerms` are the terms of such a search.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from maniple.actions.searching.telling import CANDIDATES, candidate
from maniple.cluster.statuses import ON_NODE, Status
from maniple.eviction.asking import Demand
from maniple.eviction.surplus_first import SurplusSequence
from maniple.eviction.telling import RULE, SPARED, Blame, protected, spared
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.traces.events import Search
from maniple.framework.traces.recorder import Recorder

FAILED_BEFORE = "a job that requests no more found no victims before, and nothing was freed since"


@dataclass(slots=True, eq=False)
class RoomTerms:
    """The terms on which room is made: from which queues, which victims the plugins allow, and why."""

    queue: int  # that requests room
    queues: Sequence[int]
    approve: Callable[[int, TaskRows], TaskRows]
    within_limits: Callable[
        [list[Demand]], bool
    ]  # called after evicting the victims, before placing the tasks
    accept: Callable[[], bool]  # called once the tasks are placed
    reason: str


def tell_absent(session: Session, jobs: Sequence[int], why: str = "") -> None:
    """Why the traced job, if there is one, is not among the starving jobs; `why`: of one that starves."""
    trace = session.trace
    if trace is None or not trace.considered or trace.job in jobs:
        return
    job = trace.job
    if not session.jobs.counts[Status.PENDING, job]:
        trace.left_out(job, "no pod of it waits for a node")
    elif session.is_waiting(job):
        trace.left_out(job, f"it is not admitted: its phase is {session.phase(job)}")
    elif not session.hooks.job_starving(job):
        trace.asked(job, "job_starving", False)
        trace.left_out(job, "it does not starve: it has its minimum, or claims nodes for it")
    elif why:
        trace.left_out(job, why)


def tell_surplus(
    session: Session,
    trace: Recorder,
    job: int,
    wanted: TaskRows,
    terms: RoomTerms,
    candidates: TaskRows,
    sequence: SurplusSequence | None,
) -> None:
    """`candidates`: tasks that the action may evict at all; `sequence`: of them, those that the search would take."""
    if not trace.looks_at_victims(job):
        return
    chunks = sequence.first(CANDIDATES) if sequence is not None else []
    blame = _blame(session, trace, job, int(wanted[0]), terms, candidates)
    found = set(np.concatenate([np.zeros(0, np.int64), *(one.rows for one in chunks)]).tolist())
    if sequence is not None and len(chunks) < CANDIDATES:  # these are all that there are
        for row in candidates.tolist():
            if row not in found and row not in blame and session.tasks.job[row] != job:
                blame[row] = (RULE, sequence.why_not(row))
    told = spared(session, blame)
    trace.add(
        Search(
            session.job_key(job),
            trace.pods(wanted),
            tuple(candidate(session, trace, one) for one in chunks),
            len(candidates) - len(set(blame).intersection(candidates.tolist())),
            tuple(told if trace.everything else told[:SPARED]),
            len(told),
        )
    )


def tell_failed(
    session: Session, trace: Recorder, job: int, wanted: TaskRows, terms: RoomTerms, candidates: TaskRows
) -> None:
    """No search was needed, since an equal one has failed."""
    tell_surplus(session, trace, job, wanted, terms, candidates, None)
    trace.search_ended(job, False, FAILED_BEFORE)


def _blame(
    session: Session, trace: Recorder, job: int, asker: int, terms: RoomTerms, candidates: TaskRows
) -> Blame:
    """By task that is on a node and may not be evicted: which plugin or rule protects it."""
    tasks, blame = session.tasks, Blame()
    there = np.flatnonzero((tasks.status >= 0) & (tasks.job >= 0) & (tasks.job != job) & (tasks.node >= 0))
    there = there[np.asarray(ON_NODE[tasks.status[there]], dtype=np.bool_)]
    may = set(candidates.tolist())
    for row in there.tolist():
        queue = int(session.jobs.queue[tasks.job[row]])
        if row not in may:
            blame[row] = (RULE, _not_a_candidate(session, row))
        elif queue not in terms.queues:
            why = f"the action does not take from queue {session.queue_name(queue)!r} for this job"
            blame[row] = (RULE, why)
    open_ = np.array([row for row in candidates.tolist() if row not in blame], dtype=np.int64)
    open_ = open_[tasks.job[open_] != job]
    return blame | protected(trace, asker, open_, terms.approve, terms.reason)


def _not_a_candidate(session: Session, row: int) -> str:
    status = Status(int(session.tasks.status[row]))
    if not session.tasks.preemptable[row]:
        return "it is not preemptable"
    if status is Status.RUNNING:
        return "its queue does not give up pods"
    return f"the action does not evict pods in state {status.name.title()}"


__all__ = ["RoomTerms", "tell_absent", "tell_failed", "tell_surplus"]
