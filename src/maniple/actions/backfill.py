"""backfill: tasks that ask for nothing go wherever the filters let them.

Queues, jobs and tasks in their orders, each queue drained before the next; resources are not checked. A task is bound once its whole job
is ready, together with whatever else of the job has been placed. Where the last place for a pod is still being released, a task waits for it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.actions.turns import JobTurns
from maniple.actions.worksheet import by_job
from maniple.cluster.resources import PODS
from maniple.cluster.statuses import Status
from maniple.framework.arguments import Arguments
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction, bind_allocated, withdraw
from maniple.placement.engine import Mask, Placement


class Backfill:
    name = "backfill"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action backfill")
        # Each task is looked at on its own, so there is never an earlier error to remember; the key is accepted.
        self.arguments.bool("predicateErrorCacheEnable", True)
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        waiting = _waiting(session)
        turns = JobTurns(session, waiting)
        while (queue := turns.next_queue()) is not None:
            while (job := turns.next_job(queue)) is not None:
                for row in waiting[job].tolist():
                    _place(session, placement, job, row)


def _waiting(session: Session) -> dict[int, TaskRows]:
    """Tasks that ask for nothing, in order, by job."""
    tasks = session.tasks
    wanted = tasks.best_effort & ~tasks.gated
    wanted &= (tasks.status == Status.PENDING) | (tasks.status == Status.PIPELINED)
    rows = np.flatnonzero(wanted)
    withdraw(session, rows[tasks.status[rows] == Status.PIPELINED])
    return {job: own for job, own in by_job(session, rows) if _admitted(session, job)}


def _admitted(session: Session, job: int) -> bool:
    return not session.is_waiting(job) and session.hooks.job_valid(job) is None


def _place(session: Session, placement: Placement, job: int, row: int) -> None:
    class_, rows = session.classes[session.tasks.class_of[row]], np.array([row])
    role = int(session.tasks.role[row])
    reason, free = session.hooks.pre_predicate(class_), _with_a_place(session)
    proposal = placement.fill(class_, 1, free) if reason is None else None
    if proposal is not None:
        placement.place(Transaction(session), rows, proposal)
        if session.hooks.job_ready(job):
            bind_allocated(session, job)
        return
    soon = placement.fill(class_, 1) if reason is None and free is not None else None
    if soon is not None:
        Transaction(session).pipeline(rows, soon.nodes)
        return
    cause = placement.histogram(class_) if reason is None else reason.text
    session.refusals.of_tasks(job, role, rows, cause)


def _with_a_place(session: Session) -> Mask | None:
    """Nodes without those whose last place for a pod is still being left; None when nobody is leaving.

    Filters do not count pods that are on their way out, but a node that has them takes no more.
    """
    if not session.flowing:
        return None
    nodes = session.nodes
    mask: Mask = (nodes.allocatable[PODS] > nodes.used[PODS]) | (nodes.releasing[PODS] <= 0)
    return mask
