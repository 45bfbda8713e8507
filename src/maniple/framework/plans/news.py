"""Which jobs a cycle has something new to tell about: what statuses are written from, at the cost of what changed.

In a large cluster nearly all jobs run and go on running. Their columns are compared with those of an earlier
cycle, all at once, and only the others are looked at one by one.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import Status
from maniple.framework.plans.freezing import Closed

# A job with a task of one of these has something to tell in every cycle.
_UNSETTLED = [
    int(one) for one in (Status.PENDING, Status.GATED, Status.PIPELINED, Status.ALLOCATED, Status.RELEASING)
]
_WAITING = [int(Status.PENDING), int(Status.PIPELINED)]


def news(closed: Closed, before: Closed | None) -> list[int]:
    """The jobs with a pod group whose outcome may differ from the one `before`."""
    groups = closed.jobs.groups
    if before is None or before.names.doubled != closed.names.doubled:
        return [*groups]
    same = _alike(closed, before)
    same &= ~closed.jobs.counts[_UNSETTLED].any(axis=0)
    for job in (*_exceptions(closed, before), *_exceptions(before, closed)):
        if job < len(same):
            same[job] = False
    return [job for job in np.flatnonzero(~same).tolist() if job in groups]


def leaves_work(closed: Closed) -> bool:
    """Whether another cycle might decide more, were nothing to change but what this one decided.

    It takes something that waits: a task for room, a pod group for being admitted, or room that is being made.
    """
    jobs, decided = closed.jobs, closed.decided
    if decided.evicted or jobs.counts[_WAITING][:, jobs.rows].any():
        return True
    empty = jobs.rows[~jobs.counts[:, jobs.rows].any(axis=0) & ~jobs.admitted[jobs.rows]]
    return not jobs.phases.keys() >= {*empty.tolist()}


def leaving(closed: Closed) -> NDArray[np.int64]:
    """By job: how many of its tasks are about to leave a node."""
    tasks = closed.tasks
    releasing = (tasks.status == Status.RELEASING) & (tasks.node >= 0)
    counted: NDArray[np.int64] = np.bincount(
        tasks.job[releasing].clip(0), minlength=closed.jobs.counts.shape[1]
    )
    return counted


def _alike(closed: Closed, before: Closed) -> NDArray[np.bool_]:
    """By job: whether its columns are those of before."""
    after, past = closed.jobs, before.jobs
    same = np.zeros(len(after.queue), dtype=np.bool_)
    known = min(len(after.queue), len(past.queue))
    same[:known] = (after.counts[:, :known] == past.counts[:, :known]).all(axis=0)
    for now, then in (
        (after.edition, past.edition),
        (after.queue, past.queue),
        (after.minimum, past.minimum),
    ):
        same[:known] &= now[:known] == then[:known]
    same &= _served(closed, len(same)) == _served(before, len(same))
    stated, stated_then = closed.refused.conditions, before.refused.conditions
    same &= (stated.marked(len(same)) == stated_then.marked(len(same))) & (
        stated.common == stated_then.common
    )
    return same


def _served(closed: Closed, size: int) -> NDArray[np.bool_]:
    served = np.zeros(max(size, len(closed.jobs.queue)), dtype=np.bool_)
    served[closed.jobs.rows] = True
    return served[:size]


def _exceptions(closed: Closed, other: Closed) -> Iterator[int]:
    """Jobs about which one cycle says something that the other may not say, beside their columns."""
    refused, decided = closed.refused, closed.decided
    jobs = closed.jobs
    for said in (refused.jobs, refused.over, decided.started, decided.stale_since, jobs.phases, jobs.foreign):
        yield from said
    stated, parts = other.refused.conditions, other.jobs.parts
    yield from (job for job, one in refused.conditions.own.items() if stated.of(job) != one)
    yield from (job for job, one in jobs.parts.items() if parts.get(job) != one)
    if closed.queues.problems:
        yield from np.flatnonzero(np.isin(closed.jobs.queue, [*closed.queues.problems])).tolist()
