"""Nominations: the domain cleared for a sub-job, and the node in it cleared for each of its tasks.

Gang-aware eviction makes nominations; they are used as they are. Called by allocate and topology before they
search for domains. Either every pending task of the sub-job gets the node that was cleared for it, or the
nomination has failed: it is dropped, with the nodes of the tasks, and the ordinary search begins.
"""

from maniple.actions.volcano.placing import TaskPlacer
from maniple.actions.volcano.worksheet import Run, Worksheet
from maniple.cluster.domains import NONE
from maniple.framework.groups.tree import PodSet
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement
from maniple.placement.lookahead import Proposal
from maniple.placement.tables import trace_proposal


class NominationPath:
    def __init__(self, session: Session, placement: Placement, placer: TaskPlacer) -> None:
        self._session = session
        self._placement = placement
        self._placer = placer

    def try_job(self, transaction: Transaction, sheet: Worksheet) -> bool:
        """For a job that is one sub-job and has no limit: its nomination, if it has one."""
        one = self._session.groups.root(sheet.job).members[0]
        return one.nominated != NONE and self.take(transaction, one, sheet)

    def take(self, transaction: Transaction, one: PodSet, sheet: Worksheet) -> bool:
        """Place all tasks of the sheet on the nodes cleared for them.

        False, with nothing changed, if that is not possible.
        """
        checkpoint, mark = transaction.checkpoint(), sheet.mark()
        while len(sheet):
            run = sheet.run()
            proposal = self._proposal(one, run)
            if proposal is None:
                transaction.rollback(checkpoint)
                sheet.restore(mark)
                self._forget(one, sheet)
                return False
            if self._session.traced(one.job, tasks=True) is not None:
                only = self._placer.only(run.nominated)
                trace_proposal(self._session, self._placement, run.rows[:1], proposal, only)
            self._placement.place(transaction, run.rows[:1], proposal, self._session.refusals)
            sheet.take(1)
        return True

    def redeem(self, job: int) -> None:
        """A job was committed: what was cleared for it is taken."""
        if job in self._session.groups.nominated:
            for one in self._session.groups.root(job).members:
                self._session.groups.denominate(one)

    def _proposal(self, one: PodSet, run: Run) -> Proposal | None:
        session = self._session
        node = session.nodes.facts.index.get(run.nominated)
        if (
            node is None
            or not session.domains.members[one.nominated, node]
            or session.tasks.gated[run.rows[0]]
        ):
            return None
        queue = int(session.jobs.queue[one.job])
        if (
            session.hooks.allocatable(queue, run.class_, 1) < 1
            or session.hooks.pre_predicate(run.class_) is not None
        ):
            return None
        return self._placement.fill(run.class_, 1, self._placer.only(run.nominated))

    def _forget(self, one: PodSet, sheet: Worksheet) -> None:
        self._session.groups.denominate(one)
        self._session.groups.unpinned.update(sheet.left().tolist())
