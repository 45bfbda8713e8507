"""Placing the tasks of a sheet, run by run, until their job (or sub-job) is ready.

All paths through allocate share this: allocate calls it for whole jobs, and topology for sub-jobs inside a
domain. A `Ground` holds the job and the nodes; causes go to the ground's own record, so that a trial that is
undone leaves none behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maniple.actions.volcano.worksheet import Run, Worksheet
from maniple.cluster.classes import TaskClass
from maniple.cluster.domains import ROOT
from maniple.cluster.statuses import ALLOCATED_LIKE, Status
from maniple.framework.groups.tree import PodSet, Progress
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import Histogram, NotWhole, QueueRefusal, joined
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Mask, Placement
from maniple.placement.lookahead import Foreseen, Proposal
from maniple.placement.tables import trace_proposal

ROLE_FAILED = "no node was found for another pod of role {role!r}"
NOT_WHOLE = "{found} more can be placed, but the gang needs {minimum} pods and has {ready}"
GATE_MAY_GO = "waiting for its scheduling gate to be removed, for which queue {queue!r} has room"
QUEUE_FULL = "queue {queue!r} has no room for a pod of this size"
QUEUE_SHUT = "queue {queue!r} is not open"
INSIDE = "In hyperNode {name}: {cause}"


@dataclass(slots=True, eq=False)
class Ground:
    """The job or sub-job to place, where, and the record of refusals."""

    job: int
    refusals: Refusals
    pod_set: PodSet | None = None
    domain: int = ROOT
    within: Mask | None = None  # the nodes of the domain; all of them for the root
    beside: Progress | None = None  # where the pod set is so far


class TaskPlacer:
    """Places runs of tasks in one session."""

    def __init__(self, session: Session, placement: Placement, *, remember_errors: bool) -> None:
        self._session = session
        self._placement = placement
        self._remember_errors = remember_errors
        self._errors_last = session.rules.placing.errors_outlive_placements
        self._admitted: set[int] = set()
        self._tried: Mask | None = None  # the nodes that were considered for the last proposal

    def fill(self, transaction: Transaction, sheet: Worksheet, ground: Ground) -> bool:
        """Place tasks until the job or sub-job is ready, or the rest is not worth trying; whether it is ready."""
        ready = None
        errors = self._errors(sheet)
        while len(sheet) and not ready:
            placed, go_on = self._place_run(transaction, sheet, ground, errors)
            ready = self._is_ready(ground) if placed else None
            if not go_on:
                break
        return self._is_ready(ground) if ready is None else ready

    def _errors(self, sheet: Worksheet) -> "RoleErrors | None":
        """To be remembered where tasks of one role differ; where errors last, also if a node may open again."""
        if not self._remember_errors:
            return None
        reopens = self._errors_last and any(self._counts_pods(class_) for class_ in sheet.classes())
        return RoleErrors(self._placement) if reopens or sheet.mixed_roles() else None

    def _counts_pods(self, class_: TaskClass) -> bool:
        return any(one.prepared for one in self._placement.column(class_).criteria.cluster_filters)

    def note_not_whole(self, transaction: Transaction, ground: Ground) -> None:
        """Record for tasks that had a place why they do not get it."""
        session, one = self._session, ground.pod_set
        rows = [operation.event.rows for operation in transaction.operations]
        split = one is not None and one.job in session.groups.split
        ready, minimum = session.ready(ground.job), int(session.jobs.minimum[ground.job])
        if split and one is not None:
            ready, minimum = session.groups.counts(one).ready, one.size
        note_not_whole(ground.refusals, ground.job, rows, ready - sum(map(len, rows)), minimum)

    # -- one run --------------------------------------------------------------------------------------------------

    def _place_run(
        self, transaction: Transaction, sheet: Worksheet, ground: Ground, errors: "RoleErrors | None"
    ) -> tuple[int, bool]:
        """Place tasks of the first run; how many were placed last, and whether the other tasks may still be tried."""
        session, job, run, refusals = self._session, ground.job, sheet.run(), ground.refusals
        if session.tasks.gated[run.rows[0]]:
            sheet.take(len(run))
            self._admit(ground, run)
            return 0, True
        most = min(len(run), self._shortfall(ground, run.role))
        allowed = session.hooks.allocatable(int(session.jobs.queue[job]), run.class_, most)
        trace = session.traced(job, tasks=True)
        if allowed == 0:
            sheet.take(len(run))
            cause = self._queue_full(job, run)
            refusals.of_tasks(job, run.role, run.rows, cause, failed=False)
            if trace is not None:
                trace.asked(job, "allocatable", False, int(session.jobs.queue[job]), run.class_, most)
                trace.refused(job, run.rows, cause)
            return 0, True
        refused = self._refused_outright(ground, run)
        if refused is not None:
            cause, fatal = refused
            if trace is not None:
                trace.refused(job, run.rows, cause)
            sheet.take(len(run))
            refusals.of_tasks(job, run.role, run.rows, cause, failed=fatal)
            return 0, not fatal or self._worth_going_on(ground)
        if errors is not None and self._errors_last and self._counts_pods(run.class_):
            allowed = 1  # what a node says is remembered task by task
        proposal = self._propose(sheet, run, allowed, ground, errors)
        if trace is not None:
            trace_proposal(session, self._placement, run.rows[:allowed], proposal, self._tried, ground.beside)
        if proposal is None:
            self._rule_out(run)
            sheet.take(len(run))
            refusals.of_tasks(job, run.role, run.rows, self._no_node(run, ground))
            return 0, self._worth_going_on(ground)
        rows = run.rows[: len(proposal)]
        self._placement.place(transaction, rows, proposal, refusals)
        if ground.beside is not None:
            session.groups.advance(ground.beside, proposal.nodes)
        sheet.take(len(rows))
        return len(rows), True

    def _is_ready(self, ground: Ground) -> bool:
        if ground.pod_set is not None:
            return self._session.groups.is_ready(ground.pod_set)
        return self._session.hooks.job_ready(ground.job)

    def _shortfall(self, ground: Ground, role: int) -> int:
        """How many tasks of a role may be placed before readiness has to be checked again."""
        session, job = self._session, ground.job
        if ground.pod_set is not None and job in session.groups.split:
            return max(session.hooks.pod_set_lack(ground.pod_set), 1)
        if not session.counts_shortfall:
            return 1
        return max(session.hooks.shortfall(job, role, session.task_count(job)), 1)

    def _propose(
        self, sheet: Worksheet, run: Run, count: int, ground: Ground, errors: "RoleErrors | None"
    ) -> Proposal | None:
        foreseen = self._foreseen(sheet, run, ground, errors) if errors is not None else None
        if foreseen is not None:
            return foreseen
        within = ground.within
        left = errors.nodes_left(run) if errors is not None else None
        if left is not None:
            within = left if within is None else left & within
        if run.nominated:
            only = self.only(run.nominated)
            if only is not None:
                wanted = only if within is None else only & within
                proposal = self._placement.fill(run.class_, 1, wanted, ground.beside)
                if proposal is not None:
                    self._tried = wanted
                    return proposal
        self._tried = within
        return self._placement.fill(run.class_, count, within, ground.beside)

    def _foreseen(self, sheet: Worksheet, run: Run, ground: Ground, errors: "RoleErrors") -> Proposal | None:
        """A node that was decided together with those of other tasks of the gang.

        Not while the job is traced: the table of a task is made when its turn comes. The nodes are the same.
        """
        session = self._session
        if not errors.looked and self._may_look(run, ground):
            errors.looked, errors.role = True, run.role
            rows = sheet.singles(self._shortfall(ground, run.role))
            errors.foreseen = self._placement.foresee(rows, refusals_last=run.role >= 0)
        return errors.next(run, len(session.changes))

    def _may_look(self, run: Run, ground: Ground) -> bool:
        whole = ground.pod_set is None and ground.within is None and ground.beside is None
        return whole and self._session.traced(ground.job) is None

    def only(self, node: str) -> Mask | None:
        row = self._session.nodes.facts.index.get(node)
        if row is None:
            return None
        only = np.zeros(len(self._session.nodes), dtype=np.bool_)
        only[row] = True
        return only

    # -- refusing -------------------------------------------------------------------------------------------------

    def _admit(self, ground: Ground, run: Run) -> None:
        """Tasks that wait behind our own gate: it may go for as many as their queue has room for."""
        session, job = self._session, ground.job
        queue = int(session.jobs.queue[job])
        known = np.array([row in self._admitted for row in run.rows.tolist()], dtype=np.bool_)
        fresh = run.rows[~known]
        allowed = session.hooks.allocatable(queue, run.class_, len(fresh)) if len(fresh) else 0
        rows, others = fresh[:allowed], fresh[allowed:]
        if len(rows):
            session.decisions.admitted.append(rows)
            self._admitted.update(rows.tolist())
            session.hooks.on_admit(Event(run.class_, job, rows, np.full(len(rows), -1, dtype=np.intp)))
            cause = GATE_MAY_GO.format(queue=session.queue_name(queue))
            session.refusals.of_tasks(job, run.role, rows, cause, failed=False)
        if len(others):
            ground.refusals.of_tasks(job, run.role, others, self._queue_full(job, run), failed=False)

    def _refused_outright(self, ground: Ground, run: Run) -> tuple[str, bool] | None:
        """A cause to pass over a run without looking at nodes, and whether it counts as a failure of its role."""
        session = self._session
        if run.role >= 0 and run.role in ground.refusals.roles.get(ground.job, ()):
            return ROLE_FAILED.format(role=session.cluster.tasks.roles[run.role]), False
        reason = session.hooks.pre_predicate(run.class_)
        return None if reason is None else (reason.text, True)

    def _rule_out(self, run: Run) -> None:
        """Where errors last, nodes rejected here stay excluded during preemption, whatever came since."""
        if self._errors_last and run.class_.spec.own.affinity:
            self._session.refusals.ruled_out[int(run.rows[0])] = self._placement.judging.shut(run.class_)

    def _queue_full(self, job: int, run: Run) -> str:
        """The queue is the first to refuse; whether there would be a node is worth knowing too."""
        text, nodes = queue_full(self._session, job), self._placement.judging.hopeless(run.class_)
        return QueueRefusal(text if nodes is None else f"{text}; {nodes}")

    def _no_node(self, run: Run, ground: Ground) -> Histogram | str:
        cause = self._placement.judging.histogram(run.class_, ground.within)
        if ground.domain == ROOT:
            return cause
        return INSIDE.format(name=self._session.domains.names[ground.domain], cause=cause)

    def _worth_going_on(self, ground: Ground) -> bool:
        """After a task found no node: can the job still become ready with its other tasks?"""
        session, job, one = self._session, ground.job, ground.pod_set
        minimum = int(session.jobs.minimum[job])
        if minimum >= session.task_count(job):
            return False
        if one is not None and job in session.groups.split:
            return one.size < len(one.rows)
        role_minimums = session.job_facts(job).role_minimums
        failed = ground.refusals.roles.get(job, set())
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


def note_not_whole(refusals: Refusals, job: int, rows: Sequence[TaskRows], ready: int, minimum: int) -> None:
    """For tasks that had a place: why they do not get it. `ready`: without these tasks."""
    cause = NotWhole(NOT_WHOLE.format(found=sum(map(len, rows)), ready=ready, minimum=minimum))
    for some in rows:
        refusals.of_tasks(job, -1, some, cause, failed=False)


def queue_full(session: Session, job: int) -> str:
    """Why the queue of a job does not take a task."""
    queue = int(session.jobs.queue[job])
    shut = queue in session.queues.facts and not session.queues.facts[queue].open
    told = (QUEUE_SHUT if shut else QUEUE_FULL).format(queue=session.queue_name(queue))
    return joined(session.refusals.jobs.get(job, ())) or told


class RoleErrors:
    """Nodes that refused some task of a role are not tried again for that role, whatever its other tasks are like.

    Where the tasks differ in amounts only, nodes for several of them may be known beforehand.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._refusing: dict[int, Mask] = {}
        self.looked = False
        self.foreseen: Foreseen | None = None
        self.role = -1  # of the tasks that it is for

    def next(self, run: Run, changes: int) -> Proposal | None:
        """The node known beforehand for a task, if there is one and it still holds."""
        foreseen = self.foreseen
        if foreseen is None:
            return None
        proposal = foreseen.next(int(run.rows[0]), changes)
        if proposal is None:
            taken = foreseen.ahead.taken
            if taken and self.role >= 0:
                self._refusing[self.role] = ~foreseen.left[taken - 1]
            self.foreseen = None
        return proposal

    def nodes_left(self, run: Run) -> Mask | None:
        """Nodes that did not refuse an earlier task of the role; None if those that did refuse this one as well."""
        if run.role < 0:
            return None
        earlier, refusing = self._refusing.get(run.role), self._placement.judging.refusing(run.class_)
        if earlier is None:
            self._refusing[run.role] = refusing
            return None
        self._refusing[run.role] = either = earlier | refusing
        reopens = self._placement.column(run.class_).criteria.cluster_filters
        return ~earlier if reopens or (either != refusing).any() else None
