"""backfill: tasks that ask for nothing go wherever the filters let them.

Queues, jobs and tasks in their orders, each queue drained before the next; resources are not checked. A task is bound once its whole job
is ready, together with whatever else of the job has been placed. Where the last place for a pod is still being released, a task waits for it.

Tasks that ask for nothing count as ready before they have a node. So a gang that has nothing on nodes yet gets places for as many as it needs, or
for none; and nobody is placed for a queue that is not open. With `compat: strict` each task is bound for which there is a node, as in the original.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.actions.placing import NOT_WHOLE, QUEUE_SHUT
from maniple.actions.turns import JobTurns
from maniple.actions.worksheet import by_job
from maniple.cluster.resources import PODS
from maniple.cluster.statuses import Status
from maniple.eviction.asking import THERE, needed_by_roles
from maniple.framework.arguments import Arguments
from maniple.framework.points import TaskRows
from maniple.framework.reasons import NotWhole
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
                _serve(session, placement, job, waiting[job])


def _waiting(session: Session) -> dict[int, TaskRows]:
    """Tasks that ask for nothing, in order, by job."""
    tasks = session.tasks
    wanted = tasks.best_effort & ~tasks.gated
    wanted &= (tasks.status == Status.PENDING) | (tasks.status == Status.PIPELINED)
    rows = np.flatnonzero(wanted)
    withdraw(session, rows[tasks.status[rows] == Status.PIPELINED])
    return {job: own for job, own in by_job(session, rows) if _admitted(session, job)}


def _admitted(session: Session, job: int) -> bool:
    if session.is_waiting(job) or session.hooks.job_valid(job) is not None:
        return False
    queue = int(session.jobs.queue[job])
    if session.strict or session.queues.facts[queue].open:
        return True
    session.refusals.of_job(job, QUEUE_SHUT.format(queue=session.queue_name(queue)))
    return False


def _serve(session: Session, placement: Placement, job: int, rows: TaskRows) -> None:
    """Place a job's tasks, each where it can go, and bind them if the job is ready."""
    transaction, begun = Transaction(session), _placed(session, job) > 0
    for row in rows.tolist():
        _place(session, placement, transaction, job, row)
        if session.strict and session.hooks.job_ready(job):
            bind_allocated(session, job)
    if session.strict:
        return
    found, minimum = _placed(session, job), int(session.jobs.minimum[job])
    if not begun and (found < minimum or _lacks_roles(session, job)):
        transaction.discard()
        cause = NotWhole(NOT_WHOLE.format(found=found, ready=0, minimum=minimum))
        session.refusals.of_tasks(job, -1, rows, cause, failed=False)
    elif session.hooks.job_ready(job):
        transaction.commit()
        bind_allocated(session, job)  # what else of it has been placed


def _placed(session: Session, job: int) -> int:
    """How many tasks of a job are on nodes, will be, or are done."""
    return int(session.jobs.counts[THERE, job].sum())


def _lacks_roles(session: Session, job: int) -> bool:
    minimums = session.job_facts(job).role_minimums
    if not minimums or sum(minimums.values()) > int(session.jobs.minimum[job]):
        return False  # as gang sees it, minimums that add up to more than the job's own do not count
    own = session.tasks_of(job)
    waiting = own[session.tasks.status[own] == Status.PENDING]
    return next(needed_by_roles(session, job, waiting), None) is not None


def _place(session: Session, placement: Placement, transaction: Transaction, job: int, row: int) -> None:
    class_, rows = session.classes[session.tasks.class_of[row]], np.array([row])
    role = int(session.tasks.role[row])
    reason, free = session.hooks.pre_predicate(class_), _with_a_place(session)
    proposal = placement.fill(class_, 1, free) if reason is None else None
    if proposal is not None:
        placement.place(transaction, rows, proposal)
        return
    soon = placement.fill(class_, 1) if reason is None and free is not None else None
    if soon is not None:
        transaction.pipeline(rows, soon.nodes)
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
