"""allocate: jobs get nodes, a gang at a time.

Queues take turns, in each turn one job. A job is brought to exactly its minimum, all or nothing; once it is there, each further turn
places one task more, so that the extras of elastic jobs are handed out fairly. Tasks that fit only on what is being released are
pipelined. A job that becomes ready is committed; one that could become ready only after releases keeps what it took for the
rest of the cycle; any other is undone and not tried again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.actions.turns import JobTurns
from maniple.actions.worksheet import Run, Worksheet, worksheets
from maniple.cluster.statuses import ALLOCATED_LIKE, Status
from maniple.framework.arguments import Arguments
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.placement.engine import Mask, Placement, Proposal

ROLE_FAILED = "another task of role {role!r} found no node"
NOT_WHOLE = "a place was found for {found} tasks, but the gang needs {minimum} and has {ready}"
OVERUSED = "queue {queue!r} has used up what it deserves"
QUEUE_FULL = "queue {queue!r} may take no more tasks of this size"


class Allocate:
    name = "allocate"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action allocate")
        self._remember_errors = self.arguments.bool("predicateErrorCacheEnable", True)
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        _Allocation(session, placement, remember_errors=self._remember_errors).run()


class _Allocation:
    """One run of the action."""

    def __init__(self, session: Session, placement: Placement, *, remember_errors: bool) -> None:
        self._session = session
        self._placement = placement
        self._remember_errors = remember_errors

    def run(self) -> None:
        session = self._session
        sheets = {sheet.job: sheet for sheet in worksheets(session) if self._admitted(sheet.job)}
        turns = JobTurns(session, sheets)
        while (queue := turns.next_queue()) is not None:
            if session.hooks.overused(queue):
                self._turn_away(queue, turns.left(queue))
                continue  # out for the rest of the cycle
            job = turns.next_job(queue)
            if job is None:
                continue
            if self._serve(sheets[job]) and len(sheets[job]):
                turns.return_job(job)
            turns.return_queue(queue)

    def _turn_away(self, queue: int, jobs: list[int]) -> None:
        cause = OVERUSED.format(queue=self._session.queue_name(queue))
        for job in jobs:
            self._session.refusals.of_job(job, cause)

    def _admitted(self, job: int) -> bool:
        session = self._session
        if session.is_waiting(job):
            if "enqueue" in session.actions:
                return False
            session.phases[job] = "Inqueue"
        invalid = session.hooks.job_valid(job)
        if invalid is not None:
            session.refusals.of_job(job, invalid)
        return invalid is None

    def _serve(self, sheet: Worksheet) -> bool:
        """One turn of a job: place tasks until it is ready. True when that ended in a commit."""
        session, job = self._session, sheet.job
        transaction, ready = Transaction(session), None
        errors = _RoleErrors(self._placement) if self._remember_errors and sheet.mixed_roles() else None
        while len(sheet) and not ready:
            placed, go_on = self._place_run(transaction, sheet, sheet.run(), errors)
            ready = session.hooks.job_ready(job) if placed else None
            if not go_on:
                break
        if session.hooks.job_ready(job) if ready is None else ready:
            transaction.commit()
            return True
        if not session.hooks.job_pipelined(job):
            self._discard(transaction, job)
        return False

    def _discard(self, transaction: Transaction, job: int) -> None:
        session = self._session
        found = sum(len(operation.event.rows) for operation in transaction.operations)
        cause = NOT_WHOLE.format(
            found=found, ready=session.ready(job) - found, minimum=session.jobs.minimum[job]
        )
        for operation in transaction.operations:
            session.refusals.of_tasks(job, -1, operation.event.rows, cause, failed=False)
        transaction.discard()

    def _place_run(
        self, transaction: Transaction, sheet: Worksheet, run: Run, errors: "_RoleErrors | None"
    ) -> tuple[int, bool]:
        """Place tasks of a run; how many were placed last, and whether the job's other tasks may still be tried."""
        session, job = self._session, sheet.job
        refused = self._refused_outright(job, run)
        if refused is not None:
            cause, fatal = refused
            sheet.take(len(run))
            session.refusals.of_tasks(job, run.role, run.rows, cause, failed=fatal)
            return 0, not fatal or self._worth_going_on(job)
        most = min(len(run), self._shortfall(job, run.role))
        allowed = session.hooks.allocatable(int(session.jobs.queue[job]), run.class_, most)
        if allowed == 0:
            sheet.take(len(run))
            session.refusals.of_tasks(job, run.role, run.rows, self._queue_full(job, run), failed=False)
            return 0, True
        proposal = self._propose(run, allowed, errors)
        if proposal is None:
            sheet.take(len(run))
            session.refusals.of_tasks(job, run.role, run.rows, self._placement.histogram(run.class_))
            return 0, self._worth_going_on(job)
        rows = run.rows[: len(proposal)]
        self._placement.place(transaction, rows, proposal)
        sheet.take(len(rows))
        return len(rows), True

    def _refused_outright(self, job: int, run: Run) -> tuple[str, bool] | None:
        """A cause to pass over a run without looking at nodes, and whether it counts as a failure of its role."""
        session = self._session
        if session.tasks.gated[run.rows[0]]:
            return "waiting for its scheduling gate to be removed", False
        if run.role >= 0 and run.role in session.refusals.roles.get(job, ()):
            return ROLE_FAILED.format(role=session.cluster.tasks.roles[run.role]), False
        reason = session.hooks.pre_predicate(run.class_)
        return None if reason is None else (reason.text, True)

    def _queue_full(self, job: int, run: Run) -> str:
        """The queue is the first to refuse; whether there would be a node is worth knowing too."""
        queue = self._session.queue_name(int(self._session.jobs.queue[job]))
        text, nodes = QUEUE_FULL.format(queue=queue), self._placement.histogram(run.class_)
        return f"{text}; {nodes}" if nodes.hopeless else text

    def _shortfall(self, job: int, role: int) -> int:
        """How many tasks of a role may be placed before anybody needs to ask again whether the job is ready."""
        session = self._session
        if not session.counts_shortfall:
            return 1
        return max(session.hooks.shortfall(job, role, session.task_count(job)), 1)

    def _propose(self, run: Run, count: int, errors: "_RoleErrors | None") -> Proposal | None:
        within = errors.nodes_left(run) if errors is not None else None
        if run.nominated:
            only = self._only(run.nominated)
            if only is not None:
                wanted = only if within is None else only & within
                proposal = self._placement.fill(run.class_, 1, wanted)
                if proposal is not None:
                    return proposal
        return self._placement.fill(run.class_, count, within)

    def _only(self, node: str) -> Mask | None:
        row = self._session.nodes.facts.index.get(node)
        if row is None:
            return None
        only = np.zeros(len(self._session.nodes), dtype=np.bool_)
        only[row] = True
        return only

    def _worth_going_on(self, job: int) -> bool:
        """After a task found no node: can the job still become ready with its other tasks?"""
        session = self._session
        minimum = int(session.jobs.minimum[job])
        if minimum >= session.task_count(job):
            return False
        role_minimums = session.job_facts(job).role_minimums
        failed = session.refusals.roles.get(job, set())
        rows = session.tasks_of(job)
        roles, statuses = session.tasks.role[rows], session.tasks.status[rows]
        if minimum < sum(role_minimums.values()):
            hopeful = (statuses == Status.PENDING) & ~np.isin(roles, list(failed))
            return session.ready(job) + int(hopeful.sum()) >= minimum
        names = {role: session.cluster.tasks.roles[role] if role >= 0 else "" for role in failed}
        allocated = ALLOCATED_LIKE[statuses]
        return all(
            int((allocated & (roles == role)).sum()) >= role_minimums.get(name, 0)
            for role, name in names.items()
        )


class _RoleErrors:
    """Nodes that refused some task of a role are not asked again for that role, whatever its other tasks look like."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._refusing: dict[int, Mask] = {}

    def nodes_left(self, run: Run) -> Mask | None:
        if run.role < 0:
            return None
        earlier = self._refusing.get(run.role)
        refusing = self._placement.verdicts(run.class_) != FITS
        self._refusing[run.role] = refusing if earlier is None else earlier | refusing
        return None if earlier is None else ~earlier
