"""Passing over jobs without any chance in a session that is only a trial.

Their pending tasks are moved to the state of gated ones when the plugins have been made, so that queues' shares
count their demand and actions do not see them.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import Status
from maniple.framework.session import Session

_PENDING, _GATED = int(Status.PENDING), int(Status.GATED)
_TIMES = 4  # what is requested before a job, of what there is, so that nothing is left for it
_CELLS = 4_000_000  # of a matrix that is worked on at once


def pass_over(session: Session, job: str, kept: Collection[str] | None) -> int:
    """Pass over jobs that find no room or come later, except the one and those that are kept; None: over all others.

    Returns how many there were.
    """
    tasks, jobs = session.tasks, session.jobs
    rows = np.flatnonzero((tasks.status == _PENDING) & (tasks.job >= 0))
    chosen = np.zeros(len(jobs.queue), dtype=np.bool_)
    chosen[tasks.job[rows]] = True
    named = [job] if kept is None else [job, *kept]
    index_of = session.cluster.jobs.index_of
    chosen[[row for key in named if (row := index_of(key)) is not None]] = False
    if kept is not None:
        # What admission lets in limits what it lets in next.
        chosen &= session.cluster.jobs.admitted[: len(chosen)] | ("enqueue" not in session.actions)
        rows = rows[chosen[tasks.job[rows]]]
        chosen &= ~_with_room(session, rows) | _behind(session, job) | _crowded_out(session, rows)
    rows = rows[chosen[tasks.job[rows]]]
    moved = np.bincount(tasks.job[rows], minlength=len(chosen))
    tasks.status[rows] = _GATED
    jobs.counts[_PENDING] -= moved
    jobs.counts[_GATED] += moved
    jobs.version[chosen] += 1
    return int(np.count_nonzero(moved))


def _behind(session: Session, job: str) -> NDArray[np.bool_]:
    """By job: it has a lower priority than the one, or the same and is younger."""
    jobs, row = session.jobs, session.cluster.jobs.index_of(job)
    priority, created = jobs.priority, jobs.created
    younger = (priority == priority[row]) & (created > created[row])
    behind: NDArray[np.bool_] = (priority < priority[row]) | younger
    return behind


def _with_room(session: Session, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """By job: as far as sums over nodes tell, enough of these tasks could be placed."""
    tasks, jobs = session.tasks, session.jobs
    found = np.zeros(len(jobs.queue), dtype=np.bool_)
    if not len(rows):
        return found
    pairs, sizes = np.unique(
        tasks.job[rows] * np.int64(len(session.classes)) + tasks.class_of[rows], return_counts=True
    )
    owners, classes = np.divmod(pairs, len(session.classes))
    numbers, places = np.unique(classes, return_inverse=True)
    requests = np.array([session.classes[number].request for number in numbers.tolist()])
    room = slots(session.nodes.future_idle(), requests)[places]
    enough = np.bincount(owners, weights=np.minimum(room, sizes), minlength=len(found))
    lacking = np.maximum(jobs.minimum - jobs.ready, 1)
    found[:] = enough >= lacking
    return found


def _crowded_out(session: Session, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """By job: those before it in its queue request more than there is of something that it requests.

    By far more, since some of these may find no place for another reason.
    """
    tasks, jobs = session.tasks, session.jobs
    found = np.zeros(len(jobs.queue), dtype=np.bool_)
    demand = np.zeros((len(jobs.queue), len(session.resources)), dtype=np.int64)
    np.add.at(demand, tasks.job[rows], session.requests(rows).T)
    idle = np.maximum(session.nodes.future_idle(), 0).sum(axis=1)
    order = session.in_job_order(np.unique(tasks.job[rows]))
    for queue in np.unique(jobs.queue[order]).tolist():
        line = order[jobs.queue[order] == queue]
        before = demand[line].cumsum(axis=0) - demand[line]
        found[line] = ((before > _TIMES * idle) & (demand[line] > 0)).any(axis=1)
    return found


def slots(idle: Amounts, requests: Amounts) -> NDArray[np.int64]:
    """For each request how many such tasks nodes have room for, whatever else keeps them out."""
    height = min(idle.shape[0], requests.shape[1])
    kinds, counts = np.unique(np.maximum(idle[:height], 0), axis=1, return_counts=True)
    found = np.zeros(len(requests), dtype=np.int64)
    step = max(1, _CELLS // max(kinds.shape[1], 1))
    for first in range(0, len(requests), step):
        part = requests[first : first + step]
        room = np.full((len(part), kinds.shape[1]), np.iinfo(np.int32).max, dtype=np.int64)
        for dimension in range(height):
            asked = part[:, dimension]
            some = np.flatnonzero(asked > 0)
            if len(some):
                room[some] = np.minimum(room[some], kinds[dimension] // asked[some, None])
        found[first : first + step] = room @ counts
    return found
