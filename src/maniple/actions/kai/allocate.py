"""allocate: jobs get what is free, each as a whole.

Jobs come in the order of the queue tree. One that is not whole yet gets all that it lacks, any other one task more; a job that can still grow goes back in
line, so that queues take turns. A job that finds only part of its tasks a place on idle resources, and the rest on what is being released, claims all its places instead of
binding half of itself. A job that cannot be placed leaves no trace and is not tried again in this cycle. Before all others come jobs for which
room was made in an earlier cycle, on the nodes where it was.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.actions.kai.allocate_job import JobPlacer
from maniple.actions.kai.order import JobsByQueue
from maniple.cluster.statuses import Status
from maniple.framework.arguments import Arguments
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.placement.engine import Mask, Placement


class Allocate:
    name = "allocate"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action allocate")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        placer = JobPlacer(session, placement)
        if not session.strict:  # the original nominates nothing
            _keep_promises(session, placer)
        depth = session.configuration.queue_depth.get(self.name)
        line = JobsByQueue(session, waiting(session), depth=depth, steady=True)
        while (job := line.pop()) is not None:
            if _serve(session, placer, job) and session.pending(job):
                line.push(job)


def waiting(session: Session) -> list[int]:
    """Jobs that have something to place, and enough tasks to be whole."""
    return session.pod_sets.able(session.jobs.rows)


def _keep_promises(session: Session, placer: JobPlacer) -> None:
    """Room that was made for a job belongs to it: jobs with nominated nodes have the first turn there."""
    index, nominated = session.nodes.facts.index, session.cluster.tasks.nominated
    if not nominated:
        return
    rows = [row for row in nominated if session.tasks.status[row] == Status.PENDING]
    jobs = {int(session.tasks.job[row]) for row in rows}
    line = JobsByQueue(session, [job for job in waiting(session) if job in jobs])
    while (job := line.pop()) is not None:
        wanted = session.pod_sets.to_allocate(job).tolist()
        nodes = np.zeros(len(session.nodes), dtype=np.bool_)
        nodes[[index[node] for row in wanted if (node := nominated.get(row)) in index]] = True
        if nodes.any() and _serve(session, placer, job, nodes):
            line.push(job)


def _serve(session: Session, placer: JobPlacer, job: int, nodes: Mask | None = None) -> bool:
    """One turn of a job, on these nodes or on all. True when something was placed. A refusal counts only on all nodes."""
    transaction, real = Transaction(session), nodes is None
    if not placer.allocate(transaction, job, nodes, pipeline_only=False, real=real):
        return False
    claims = session.pod_sets.should_pipeline(job)
    if claims:
        transaction.to_pipelined(job)
    placed = len(transaction) > 0
    transaction.commit()
    if not claims:
        session.start(job)
    return placed


__all__ = ["Allocate", "waiting"]
