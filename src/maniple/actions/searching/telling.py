"""What a trace says of a search for victims: which jobs may lose pods, in what order, and what protects the others.

Called by the solvers for a job that is traced, before they search. It asks what the search itself asks, job by job and
plugin by plugin.
"""

import numpy as np

from maniple.actions.searching.terms import Terms
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.eviction.chunks import Chunk
from maniple.eviction.protection import JobProtectors
from maniple.eviction.telling import RULE, SPARED
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import NON_PREEMPTIBLE, Session
from maniple.framework.traces.events import Candidate, Search, Spared
from maniple.framework.traces.recorder import Recorder

NO_SCENARIO = "no set of victims was found with which the job fits and which the plugins accept"
CANDIDATES = 16  # that are recorded


def tell_search(
    session: Session,
    trace: Recorder,
    job: int,
    rows: TaskRows,
    terms: Terms,
    candidates: list[Chunk] | None = None,
) -> None:
    """`candidates`: the first in order; None where they are not known beforehand."""
    if not trace.looks_at_victims(job):
        return
    spared, free = _judged(session, trace, job, terms)
    named = (
        candidates if candidates is not None else [Chunk(one, _there(session, one), False) for one in free]
    )
    some = None if trace.everything else CANDIDATES
    trace.add(
        Search(
            session.job_key(job),
            trace.pods(rows),
            tuple(candidate(session, trace, one) for one in named[:some]),
            len(free),
            tuple(spared if trace.everything else spared[:SPARED]),
            len(spared),
        )
    )


def candidate(session: Session, trace: Recorder, chunk: Chunk) -> Candidate:
    queue = session.queue_name(int(session.jobs.queue[chunk.job]))
    return Candidate(session.job_key(chunk.job), queue, trace.pods(chunk.rows), chunk.core)


def _judged(session: Session, trace: Recorder, job: int, terms: Terms) -> tuple[list[Spared], list[int]]:
    """Jobs with pods on nodes: those that are protected, and those that may lose pods."""
    rows = session.jobs.rows
    active = rows[(ACTIVE_ALLOCATED @ session.jobs.counts[:, rows] > 0) & (rows != job)]
    losers = set(terms.losers.jobs().tolist())
    allowed = dict(zip(active.tolist(), terms.allowed(active).tolist(), strict=True))
    spared: list[Spared] = []
    free: list[int] = []
    for one in active.tolist():
        by, why = RULE, ""
        if one not in losers:
            why = _not_a_loser(session, one)
        elif not allowed[one]:
            why = terms.not_allowed(one) if terms.not_allowed is not None else "this action does not touch it"
        elif session.jobs.counts[Status.PIPELINED, one]:
            why = "it waits for a place that it was given in this cycle"
        else:
            by, why = _protector(trace, job, one, terms)
        if why:
            queue = session.queue_name(int(session.jobs.queue[one]))
            spared.append(Spared(session.job_key(one), queue, by, why, len(_there(session, one))))
        else:
            free.append(one)
    return spared, free


def _not_a_loser(session: Session, job: int) -> str:
    if not session.preemptible(job):
        said = session.job_facts(job).preemptible
        if said is not None:
            return "non-preemptible: its pod group says so"
        return (
            f"non-preemptible: its priority is {int(session.jobs.priority[job])}, {NON_PREEMPTIBLE} or more"
        )
    if job in session.decisions.promised:
        return "it gets a place in this cycle for which pods were evicted"
    if not session.queue_tree.serves(int(session.jobs.queue[job])):
        return "its queue is not served"
    return "a pod of it is on a node that is not scheduled here"


def _protector(trace: Recorder, job: int, victim: int, terms: Terms) -> tuple[str, str]:
    cause = terms.reason
    if terms.lets_go is None or not isinstance(cause, EvictionCause) or not cause.asked:
        return RULE, ""
    with trace.session.aside():
        by = JobProtectors(trace.session, cause.asked[0]).first(job, victim)
    return (by, f"protected by plugin {by}") if by else (RULE, "")


def _there(session: Session, job: int) -> TaskRows:
    rows = session.tasks_of(job)
    there: TaskRows = rows[np.asarray(ACTIVE_ALLOCATED[session.tasks.status[rows]], dtype=np.bool_)]
    return there


__all__ = ["CANDIDATES", "NO_SCENARIO", "candidate", "tell_search"]
