"""Victim order: which of the tasks that could make room for another is evicted first.

Used wherever victims are picked for a task: by actions, the search for victims, and plugins with a rule that
depends on the order. Tasks of jobs that are not part of the session go first. Then queue by queue as
`victim_queue_order` says, and where that says nothing the queue that would be served last; inside a queue the
job that would be served last (plugins only, not the age of jobs); among tasks of equal jobs the one that
would be placed last.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.framework.points import TaskRows
from maniple.framework.session import Session

_ORPHANED = 0


def in_victim_order(session: Session, asker: int, rows: TaskRows) -> TaskRows:
    """The rows as they would be evicted for the task `asker`, first one first."""
    if len(rows) < 2:
        return rows
    tasks = session.tasks
    group = _groups(session, asker, tasks.job[rows])
    numbered = tasks.index[rows]
    # Numbers in names decide only where every task has one: otherwise the order would not be transitive.
    unnumbered = np.unique(group[numbered < 0])
    numbered = np.where(np.isin(group, unnumbered), 0, numbered) if unnumbered.size else numbered
    keys = (
        tasks.rank[rows],
        tasks.created[rows],
        numbered,
        *reversed(session.hooks.task_order(rows)),
        -group,
    )
    return rows[np.lexsort(keys)[::-1]]


def _groups(session: Session, asker: int, jobs: NDArray[np.int32]) -> NDArray[np.int64]:
    """A number for each task's job; the smaller is evicted first, and jobs that compare as equal have the same."""
    if (jobs == jobs[0]).all():
        return np.zeros(len(jobs), dtype=np.int64)
    distinct, places = np.unique(jobs, return_inverse=True)
    present = [job for job in distinct.tolist() if _takes_part(session, job)]
    asking = int(session.tasks.job[asker])
    if _takes_part(session, asking):
        turns = _queue_turns(session, int(session.jobs.queue[asking]), session.jobs.queue[present].tolist())
    else:
        turns = [0] * len(present)
    order = {job: session.hooks.job_order(job) for job in present}
    turn_of = dict(zip(present, turns, strict=True))
    present.sort(key=order.__getitem__, reverse=True)
    present.sort(key=turn_of.__getitem__)
    numbers: dict[int, int] = {}
    previous: tuple[Any, ...] | None = None
    number = _ORPHANED
    for job in present:
        standing = (turn_of[job], order[job])
        number += standing != previous
        numbers[job], previous = number, standing
    return np.array([numbers.get(job, _ORPHANED) for job in distinct.tolist()], dtype=np.int64)[places]


def _queue_turns(session: Session, asking: int, queues: Sequence[int]) -> list[int]:
    """For each queue, its place among them."""
    order = sorted(set(queues), key=session.queue_key_order, reverse=True)
    order.sort(key=lambda queue: session.hooks.victim_queue_order(queue, asking))
    place = {queue: number for number, queue in enumerate(order)}
    return [place[queue] for queue in queues]


def _takes_part(session: Session, job: int) -> bool:
    rows = session.jobs.rows
    place = int(np.searchsorted(rows, job))
    return place < len(rows) and int(rows[place]) == job
