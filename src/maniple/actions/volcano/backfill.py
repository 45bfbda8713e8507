"""backfill: place tasks without requests wherever the filters allow it.

Queues, jobs and tasks come in their orders, each queue drained before the next; resources are not checked. A
task is bound once its whole job is ready, together with all other placed tasks of the job. Where the last pod
slot of a node is still being released, a task waits for it.

Tasks without requests count as ready before they have a node. So a gang gets places for as many as it lacks, or
for none; a hard topology of the job is kept; and nothing is placed for a queue that is not open. With
`gangs.backfilled_in_parts` each task for which there is a node is bound, as in Volcano.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.actions.volcano.placing import NOT_WHOLE, QUEUE_SHUT
from maniple.actions.volcano.topology import stopped
from maniple.actions.volcano.turns import JobTurns
from maniple.actions.volcano.worksheet import by_job
from maniple.cluster.domains import ROOT
from maniple.cluster.resources import PODS
from maniple.cluster.statuses import Status
from maniple.eviction.asking import THERE, needed_by_roles
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import Purpose, TaskRows
from maniple.framework.reasons import NotWhole
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction, bind_allocated, withdraw
from maniple.placement.engine import Mask, Placement
from maniple.placement.tables import trace_proposal


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
    """Tasks without requests, in order, by job."""
    tasks = session.tasks
    wanted = tasks.best_effort & ~tasks.gated
    wanted &= (tasks.status == Status.PENDING) | (tasks.status == Status.PIPELINED)
    rows = np.flatnonzero(wanted)
    withdraw(session, rows[tasks.status[rows] == Status.PIPELINED])
    return {job: own for job, own in by_job(session, rows) if _admitted(session, job)}


def _admitted(session: Session, job: int) -> bool:
    if session.is_waiting(job) or session.hooks.job_valid(job) is not None:
        return False
    rules, queue = session.rules, int(session.jobs.queue[job])
    shape = None if rules.gangs.backfilled_in_parts else session.groups.shaped.get(job)
    refused = stopped(session, shape) if shape is not None else None
    if not rules.queues.closed_take_jobs and not session.queues.facts[queue].open:
        refused = QUEUE_SHUT.format(queue=session.queue_name(queue))
    if refused is not None:
        session.refusals.of_job(job, refused)
    return refused is None


def _serve(session: Session, placement: Placement, job: int, rows: TaskRows) -> None:
    """Place a job's tasks, each where it can go, and bind them if the job is ready."""
    if session.rules.gangs.backfilled_in_parts:
        for row in rows.tolist():
            _place(session, placement, Transaction(session), job, row)
            if session.hooks.job_ready(job):
                bind_allocated(session, job)
        return
    before, found = _placed(session, job), 0
    for within in _grounds(session, job):
        transaction = Transaction(session)
        for row in rows.tolist():
            _place(session, placement, transaction, job, row, within)
        found = _placed(session, job)
        if found > before and found >= session.jobs.minimum[job] and not _lacks_roles(session, job):
            if session.hooks.job_ready(job):
                transaction.commit()
                bind_allocated(session, job)  # what else of it has been placed
            return
        transaction.discard()
        if (trace := session.traced(job)) is not None:
            trace.undone(job, found - before, "the gang is not whole", "job_ready")
    cause = NotWhole(NOT_WHOLE.format(found=found, ready=before, minimum=session.jobs.minimum[job]))
    session.refusals.of_tasks(job, -1, rows, cause, failed=False)


def _grounds(session: Session, job: int) -> list[Mask | None]:
    """Where to try a job, one after the other: anywhere, or inside a domain that its hard topology allows."""
    shape = session.groups.shaped.get(job)
    if shape is None or not shape.hard:
        return [None]
    gradients = session.hooks.hyper_node_gradient_for_job(job, ROOT, Purpose.ALLOCATE)
    return [session.domains.members[domain] for gradient in gradients for domain in gradient]


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


def _place(
    session: Session,
    placement: Placement,
    transaction: Transaction,
    job: int,
    row: int,
    within: Mask | None = None,
) -> None:
    class_, rows = session.classes[session.tasks.class_of[row]], np.array([row])
    role = int(session.tasks.role[row])
    reason, free = session.hooks.pre_predicate(class_), _with_a_place(session)
    near = free if within is None else within if free is None else free & within
    proposal = placement.fill(class_, 1, near) if reason is None else None
    trace = session.traced(job, tasks=True)
    if proposal is not None:
        if trace is not None:
            trace_proposal(session, placement, rows, proposal, near)
        placement.place(transaction, rows, proposal, session.refusals)
        return
    soon = placement.fill(class_, 1, within) if reason is None and free is not None else None
    if trace is not None:
        trace.asked(job, "pre_predicate", reason, class_)
        trace_proposal(session, placement, rows, soon, within)
    if soon is not None:
        transaction.pipeline(rows, soon.nodes)
        return
    cause = placement.judging.histogram(class_) if reason is None else reason.text
    session.refusals.of_tasks(job, role, rows, cause)


def _with_a_place(session: Session) -> Mask | None:
    """Nodes, except where the last pod slot is still being released; None if no pod is leaving.

    Filters do not count pods that are leaving, but a node that has them takes no more.
    """
    if not session.flowing:
        return None
    nodes = session.nodes
    mask: Mask = (nodes.allocatable[PODS] > nodes.used[PODS]) | (nodes.releasing[PODS] <= 0)
    return mask
