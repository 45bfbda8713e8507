"""Jobs that are evicted whole or not at all, also with what they have beyond their minimum.

Kubernetes' own PodGroups say so (`disruptionMode: PodGroup`). Whatever evicts asks here: searches that take whole jobs
anyway only must not offer the surplus of such a job, those that go pod by pod take it as one unit. What is leaving
already does not count, nor pods whose node is gone: the rest of the job is all that there is.
"""

from collections.abc import Iterable

import numpy as np

from maniple.cluster.statuses import ALLOCATED_LIKE, Status, status_set
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction

_GONE = status_set(Status.RELEASING, Status.PIPELINED)  # those that claim another place leave theirs, too


def is_whole(session: Session, job: int) -> bool:
    """Whether the job is evicted whole or not at all."""
    return job >= 0 and bool(session.cluster.jobs.evicted_whole[job])


def any_whole(session: Session) -> bool:
    """Whether there is any such job."""
    return bool(session.cluster.jobs.evicted_whole.any())


def with_mates(session: Session, rows: TaskRows) -> TaskRows:
    """Tasks, with all others that have to go if they do."""
    more = [there(session, job) for job in _jobs(session, rows)]
    return np.unique(np.concatenate([rows, *more])) if more else rows


def unbroken(session: Session, rows: TaskRows) -> TaskRows:
    """Tasks, without those of jobs of which some would stay."""
    broken = [job for job in _jobs(session, rows) if not np.isin(there(session, job), rows).all()]
    return rows[~np.isin(session.tasks.job[rows], broken)] if broken else rows


def units(session: Session, rows: TaskRows) -> list[TaskRows]:
    """Tasks in the order in which they go, as what goes together: a task, or a job when the last of its tasks would."""
    whole = _jobs(session, rows)
    if not whole:
        return [rows[place : place + 1] for place in range(len(rows))]
    owners = session.tasks.job[rows]
    lasts = {int(np.flatnonzero(owners == job)[-1]): job for job in whole}
    return [
        rows[owners == lasts[place]] if place in lasts else rows[place : place + 1]
        for place in range(len(rows))
        if place in lasts or int(owners[place]) not in whole
    ]


def evict_rest(
    session: Session, transaction: Transaction, lost: Iterable[tuple[int, TaskRows]], reason: str
) -> None:
    """Of jobs that were evicted on trial and partly came back to their own places: evict these again.

    `lost`: jobs with the tasks that were evicted together.
    """
    status = session.tasks.status
    for job, rows in lost if any_whole(session) else ():
        if is_whole(session, job):
            gone = _GONE[status[rows]]
            if gone.any() and not gone.all():
                transaction.evict(rows[~gone], reason)


def there(session: Session, job: int) -> TaskRows:
    """The tasks of a job that hold a node for good."""
    rows = session.tasks_of(job)
    held = ALLOCATED_LIKE[session.tasks.status[rows]] & (session.tasks.node[rows] >= 0)
    found: TaskRows = rows[held].astype(np.int64)
    return found


def _jobs(session: Session, rows: TaskRows) -> set[int]:
    """The jobs of tasks that are evicted whole."""
    if not any_whole(session):
        return set()
    column = session.cluster.jobs.evicted_whole
    owners = np.unique(session.tasks.job[rows])
    owners = owners[owners >= 0]
    return set(owners[column[owners]].tolist())


__all__ = ["any_whole", "evict_rest", "is_whole", "there", "unbroken", "units", "with_mates"]
