"""backfill: place tasks without requests even if other tasks of their job are pending.

Runs after `allocate`, in the order of queues and jobs. Only jobs at their minimum are considered: the tasks of
a gang are placed together or not at all, whatever they request. Resources are not checked; filters are, and so
is whether the queue accepts the job.
"""

from collections.abc import Mapping
from typing import Any

from maniple.actions.allocate import waiting
from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.groups.tree import runs
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement


class Backfill:
    name = "backfill"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action backfill")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        placer = JobPlacer(session, placement)
        tasks = session.tasks
        some = set(tasks.job[(tasks.status == Status.PENDING) & tasks.best_effort].tolist())
        jobs = [job for job in waiting(session) if job in some and len(_asking_for_nothing(session, job))]
        depth = session.configuration.queue_depth.get(self.name)
        line = JobsByQueue(session, jobs, depth=depth, traced=True)
        while (job := line.pop()) is not None:
            for rows in runs(_asking_for_nothing(session, job), session.tasks.class_of):
                _place(session, placer, job, rows)


def _asking_for_nothing(session: Session, job: int) -> TaskRows:
    """The pending tasks of the job without requests, in order; none while the job is below its minimum."""
    tasks = session.tasks
    rows = session.tasks_of(job)
    rows = rows[(tasks.status[rows] == Status.PENDING) & tasks.best_effort[rows]]
    return rows[:0] if session.groups.below_minimum(job) else session.in_task_order(rows)


def _place(session: Session, placer: JobPlacer, job: int, rows: TaskRows) -> bool:
    """Place as many of these equal tasks as possible: all at once if they fit, otherwise by halves.

    Returns whether all were placed.
    """
    transaction = Transaction(session)
    if placer.allocate(transaction, job, None, pipeline_only=False, real=len(rows) == 1, rows=rows):
        transaction.commit()
        return True
    half = len(rows) // 2
    # Where the first half does not fit, there is nothing left for the second.
    return (
        half > 0 and _place(session, placer, job, rows[:half]) and _place(session, placer, job, rows[half:])
    )


__all__ = ["Backfill"]
