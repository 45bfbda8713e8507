"""On what terms room is made for a job: at whose expense, and who has the last word. Actions hand these to a solver."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.chunks import Outcome
from maniple.framework.points import JobRows
from maniple.framework.session import Session


class Losers:
    """Jobs that may have to give way in an action: preemptible, with something to lose on nodes of this pool, of queues that are served."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _jobs(self) -> JobRows:
        """Asked for only if anybody asks for room."""
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
    """What holds for any search, whoever its victims are."""

    reason: str
    accept: Callable[[Outcome], bool]
    all_return: bool = False  # nobody is evicted who does not find another place
    most: int | None = None  # so many jobs may be touched


@dataclass(slots=True, eq=False, kw_only=True)
class Terms(SearchTerms):
    losers: Losers
    allowed: Callable[[JobRows], NDArray[np.bool_]]  # of them, those that come into question for this job
    lets_go: Callable[[int], bool] | None  # and that plugins do not protect

    def victims(self) -> list[int]:
        """All jobs that may have to give way."""
        jobs = self.losers.jobs()
        jobs = jobs[self.allowed(jobs)]
        return [job for job in jobs.tolist() if self.lets_go is None or self.lets_go(job)]


__all__ = ["Losers", "SearchTerms", "Terms"]
