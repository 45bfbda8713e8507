"""The default solver: make room for a whole job at once, with as few evictions as possible.

Victims come in KAI's order (`eviction/victims.py`), and are searched for job by job (`search.py`). The job and its
victims are placed in the order of queues (`trial.py`).

Invariants: all or nothing; no victim could have stayed; a job loses tasks that it can spare or all that it has;
a job that was served or moved in an action is no victim in it; moved tasks find their places also when the job
is placed first.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.searching.budget import Allowance
from maniple.actions.searching.feasible import enough_in_total
from maniple.actions.searching.rooms import Rooms
from maniple.actions.searching.search import Search
from maniple.actions.searching.telling import CANDIDATES, tell_search
from maniple.actions.searching.terms import Terms
from maniple.actions.searching.trial import Trial
from maniple.actions.signatures import Constraints
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.asking import demands_of
from maniple.eviction.room_sums import HeldParts, RoomSums
from maniple.eviction.victims import VictimPool, VictimSequence
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Mask, Placement

FULL = "all nodes together have less free than the job requests, and moving pods frees nothing"
_AHEAD = 32  # how many jobs ahead of a job are considered in the order of turns


class Solver:
    """Serves jobs of one action."""

    def __init__(self, session: Session, placement: Placement, constraints: Constraints) -> None:
        self._session = session
        self._placement = placement
        self._placer = JobPlacer(session, placement)
        self._pool: VictimPool | None = None
        self._differ = False  # not all tasks that have a place are of one class
        self._rooms = Rooms(session, placement, constraints)  # as long as nothing changes
        self._held = HeldParts(session)
        self._many = 0  # chunks to begin with where a few are not enough, going by the last job
        self._guess = 1  # chunks that the next job may need, going by the last one

    def solve(
        self, job: int, terms: Terms, allowance: Allowance, ahead: Sequence[int] = ()
    ) -> Transaction | None:
        """A transaction that serves the job, or None with nothing changed.

        `ahead`: pending jobs of its queue that come before it.
        """
        session = self._session
        rows = session.groups.to_allocate(job)
        if not len(rows):
            return None
        if terms.all_return:
            if not session.hooks.is_job_over_capacity(job, rows).schedulable:
                return None  # the victims would all come back to a queue that is full
            if not enough_in_total(session, rows):
                if (trace := session.traced(job)) is not None:
                    trace.search_ended(job, False, FULL)
                return None
        if self._pool is None:
            self._pool = VictimPool(session, terms.losers.jobs())
            self._differ = len(np.bincount(session.tasks.class_of[self._placed()]).nonzero()[0]) > 1
        pool = self._pool
        jobs = pool.jobs[terms.allowed(pool.jobs)]
        jobs = jobs[jobs != job]
        for some in self._rounds(jobs, terms):
            sequence = VictimSequence(session, pool, some, terms.lets_go)
            demands = demands_of(session, rows)
            allowance.prepare(len(demands))
            sums = RoomSums(session, self._placement, demands, self._held)
            sums.many = self._many
            place = partial(self._places, job, rows)
            if (trace := session.traced(job)) is not None:
                tell_search(session, trace, job, rows, terms, sequence.first(CANDIDATES))
            trial = Trial(
                session,
                self._placement,
                job,
                rows,
                terms.reason,
                sums,
                allowance,
                place,
                returning=self._placer,
                ahead=ahead[:_AHEAD],
            )
            search = Search(session, self._placement, trial, terms, sequence, sums, allowance, self._guess)
            if search.run():
                self._guess, self._many = len(search.chunks), sums.many
                self._rooms.forget()
                pool.drop(*search.gone(), job)
                return search.transaction
            if allowance.ran_out:
                break
        return None

    def _places(self, job: int, rows: TaskRows, transaction: Transaction, nodes: Mask | None) -> bool:
        return self._placer.allocate(transaction, job, nodes, pipeline_only=True, real=False, rows=rows)

    def _rounds(self, jobs: JobRows, terms: Terms) -> Iterator[JobRows]:
        """Where all victims have to find other places: first the jobs for which there are such places now. Then all."""
        if terms.all_return and self._differ:
            movable = jobs[self._movable(jobs)]
            if 0 < len(movable) < len(jobs):
                yield movable
        yield jobs

    def _movable(self, jobs: JobRows) -> NDArray[np.bool_]:
        """Jobs with tasks that would all have a place somewhere, each by itself."""
        session, tasks = self._session, self._session.tasks
        there = self._placed()
        class_of = tasks.class_of[there]
        full = self._rooms.are_full(np.bincount(class_of).nonzero()[0].tolist())
        stuck = np.zeros(len(session.jobs.queue), dtype=np.bool_)
        stuck[tasks.job[there[full[class_of]]]] = True
        return ~stuck[jobs]

    def _placed(self) -> TaskRows:
        """The tasks of all jobs that have a place."""
        tasks = self._session.tasks
        return np.flatnonzero((tasks.status >= 0) & ACTIVE_ALLOCATED[tasks.status] & (tasks.job >= 0))


__all__ = ["Solver"]
