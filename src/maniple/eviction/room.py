"""Making room for one job after the other: the loop that reclaim and preempt share.

A job that found no room is remembered by what it asked for. The next one that asks for the same or more, on the same terms, is not worth
trying while nothing changed in between: a backlog of hopeless jobs costs one search.
"""

from functools import cached_property

import numpy as np

from maniple.eviction.asking import Asking, demands_of, next_tasks
from maniple.eviction.scenario import Scenario, Terms
from maniple.eviction.units import UnitPool
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.placement.engine import Placement

NO_VICTIMS = "{reason}: no tasks that may be evicted would make room"


class RoomMaker:
    """Serves starving jobs out of one pool of victims."""

    def __init__(self, session: Session, placement: Placement, asking: Asking, candidates: TaskRows) -> None:
        self._session = session
        self._placement = placement
        self._asking = asking
        self._candidates = candidates
        self._ratios: dict[tuple[int, int], float] = {}
        self._failed: dict[tuple[int, ...], tuple[int, int]] = {}  # what was asked -> how many, and when

    def serve(self, job: int, terms: Terms) -> bool:
        """Make room for a job as long as it starves; True when anything came of it."""
        session, served = self._session, False
        rows = self._asking.tasks(job)
        while len(rows) and session.hooks.job_starving(job):
            wanted = next_tasks(session, job, rows)
            if not self._try(job, wanted, terms):
                session.refusals.of_job(job, NO_VICTIMS.format(reason=terms.reason))
                break
            served = True
            rows = rows[~np.isin(rows, wanted)] if len(wanted) < len(rows) else rows[:0]
        return served

    @cached_property
    def _pool(self) -> UnitPool:
        return UnitPool(self._session, self._candidates)

    def _try(self, job: int, wanted: TaskRows, terms: Terms) -> bool:
        session = self._session
        demands = demands_of(session, wanted)
        if any(session.hooks.pre_predicate(demand.class_) is not None for demand in demands):
            return False
        asked = (terms.queue, int(session.jobs.priority[job]), *(d.class_.number for d in demands))
        stamp = len(session.changes)
        count, when = self._failed.get(asked, (len(wanted) + 1, -1))
        if when == stamp and count <= len(wanted):
            return False
        if terms.queues:
            scenario = Scenario(session, self._placement, demands, terms, self._ratios)
            if scenario.solve(self._pool):
                return True
        self._failed[asked] = (len(wanted), len(session.changes))
        return False
