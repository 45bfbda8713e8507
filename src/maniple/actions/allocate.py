"""allocate: place jobs on free resources, each as a whole.

Jobs come in the order of the queue tree. A job below its minimum gets all tasks that it lacks, any other job
one more task; a job that can still grow goes back in line, so that queues take turns. If only some tasks of a
job fit on idle resources and the rest on resources being released, the job claims all its places instead of
binding some of its tasks. A job that cannot be placed leaves no trace and is not tried again in this cycle.
Jobs for which room was made in an earlier cycle come first, on the nodes where it was made.
"""

from collections.abc import Mapping
from typing import Any

from maniple.actions.admitting import admit
from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.placing.promises import Promises
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement


class Allocate:
    name = "allocate"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action allocate")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        admit(session)
        placer = JobPlacer(session, placement)
        if session.cluster.tasks.nominated and session.rules.placing.cleared_room_is_kept:
            Promises(session, placement, placer).keep(waiting(session))
        depth = session.configuration.queue_depth.get(self.name)
        jobs = waiting(session)
        if session.trace is not None:
            session.trace.absent(jobs)
        line = JobsByQueue(session, jobs, depth=depth, steady=True, traced=True)
        while (job := line.pop()) is not None:
            if _serve(session, placer, job) and session.pending(job):
                line.push(job)


def waiting(session: Session) -> list[int]:
    """Jobs that have something to place, and enough tasks to be whole."""
    return session.groups.able(session.jobs.rows)


def _serve(session: Session, placer: JobPlacer, job: int) -> bool:
    """One turn of a job. True when something was placed."""
    transaction = Transaction(session)
    if not placer.allocate(transaction, job, None, pipeline_only=False, real=True) or not len(transaction):
        return False
    placer.finish(transaction, job)
    return True


__all__ = ["Allocate", "waiting"]
