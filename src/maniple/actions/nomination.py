"""Nominations: gang-aware eviction cleared a domain for a sub-job and a node in it for each of its tasks; they are taken as they stand.

Called by allocate and topology before they look for domains themselves. Either every task of the sub-job that waits gets the node that was cleared
for it, or the nomination has missed: it is forgotten, nodes of the tasks included, and the ordinary search begins.
"""

from maniple.actions.placing import TaskPlacer
from maniple.actions.worksheet import Run, Worksheet
from maniple.cluster.domains import NONE
from maniple.framework.session import Session
from maniple.framework.sub_jobs import SubJob
from maniple.framework.transaction import Transaction
from maniple.placement.engine import Placement
from maniple.placement.lookahead import Proposal


class NominationPath:
    def __init__(self, session: Session, placement: Placement, placer: TaskPlacer) -> None:
        self._session = session
        self._placement = placement
        self._placer = placer

    def try_job(self, transaction: Transaction, sheet: Worksheet) -> bool:
        """For a job that is one sub-job and has no limit: its nomination, if it has one."""
        one = self._session.sub_jobs.of(sheet.job).sub_jobs[0]
        return one.nominated != NONE and self.take(transaction, one, sheet)

    def take(self, transaction: Transaction, one: SubJob, sheet: Worksheet) -> bool:
        """Place all that is on the sheet on the nodes cleared for it; False when that is not possible, and nothing is changed."""
        checkpoint, mark = transaction.checkpoint(), sheet.mark()
        while len(sheet):
            run = sheet.run()
            proposal = self._proposal(one, run)
            if proposal is None:
                transaction.rollback(checkpoint)
                sheet.restore(mark)
                self._forget(one, sheet)
                return False
            self._placement.place(transaction, run.rows[:1], proposal)
            sheet.take(1)
        return True

    def redeem(self, job: int) -> None:
        """A job was committed: what was cleared for it is taken."""
        if job in self._session.sub_jobs.nominated:
            for one in self._session.sub_jobs.of(job).sub_jobs:
                self._session.sub_jobs.denominate(one)

    def _proposal(self, one: SubJob, run: Run) -> Proposal | None:
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

    def _forget(self, one: SubJob, sheet: Worksheet) -> None:
        self._session.sub_jobs.denominate(one)
        self._session.sub_jobs.unpinned.update(sheet.left().tolist())
