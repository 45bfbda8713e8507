"""The terms on which room is made for a job: which jobs may lose tasks, and what accepts the result.

Actions pass these to a solver.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.points import JobRows
from maniple.framework.session import Session


class Losers:
    """Jobs that may lose tasks in an action.

    They are preemptible, have tasks on nodes of this pool, and belong to queues that are served.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _jobs(self) -> JobRows:
        """Computed only if a job needs room."""
        session, queues = self._session, self._session.jobs.queue
        rows = session.jobs.rows
        served = [queue for queue in np.unique(queues[rows]).tolist() if session.queue_tree.serves(queue)]
        spared = [*self._elsewhere().tolist(), *session.decisions.promised]
        rows = rows[np.isin(queues[rows], served) & ~np.isin(rows, spared)]
        return rows[session.are_preemptible(rows)]

    def _elsewhere(self) -> JobRows:
        """Jobs with a task on a node that is not in this pool: nothing of them can be taken back here."""
        tasks = self._session.tasks
        nowhere = np.flatnonzero((tasks.status >= 0) & (tasks.node < 0))
        placed = nowhere[ACTIVE_ALLOCATED[tasks.status[nowhere]] > 0]
        return np.unique(tasks.job[placed]).astype(np.int64)

    def jobs(self) -> JobRows:
        """As of now, in no order."""
        active = ACTIVE_ALLOCATED @ self._session.jobs.counts[:, self._jobs] > 0
        return self._jobs[active]


@dataclass(slots=True, eq=False, kw_only=True)
class SearchTerms:
    """What holds for any search, whatever its victims."""

    reason: str
    accept: Callable[[ScenarioOutcome], bool]
    all_return: bool = False  # no task is evicted unless it finds another place
    most: int | None = None  # so many jobs may be touched


@dataclass(slots=True, eq=False, kw_only=True)
class Terms(SearchTerms):
    losers: Losers
    allowed: Callable[[JobRows], NDArray[np.bool_]]  # of them, those that come into question for this job
    lets_go: Callable[[int], bool] | None  # and that plugins do not protect
    not_allowed: Callable[[int], str] | None = None  # of a job that does not come into question, why

    def victims(self) -> list[int]:
        """All jobs that may have to give way."""
        jobs = self.losers.jobs()
        jobs = jobs[self.allowed(jobs)]
        return [job for job in jobs.tolist() if self.lets_go is None or self.lets_go(job)]


__all__ = ["Losers", "SearchTerms", "Terms"]
