"""drf: dominant resource fairness between jobs, and between queues in a tree if `enableHierarchy` is on.

share of a job = max over the resources that the cluster has of allocated / total; `pods` is one of them. The
smaller share goes first. A task may be preempted for another if, with the one added and the other removed,
the preemptor's share is not above the victim's. In hierarchical mode queues are ordered by their branches,
from the root down, and a task may be reclaimed if the reclaimer's queue still comes before the victim's after
the exchange.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.framework.points import Event, JobRows, TaskRows
from maniple.framework.session import Session
from maniple.plugins.candidates import served_jobs, sums_before
from maniple.plugins.fairness.hierarchy import QueueHierarchy
from maniple.plugins.settings import is_hierarchical, takes_none

SAME_SHARE = 1e-6


class Drf:
    """No arguments; pipelined tasks count as allocated from the moment they are placed."""

    name = "drf"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._served = served_jobs(session)
        self._allocated = session.jobs.allocated.copy()
        self._offered = np.flatnonzero(session.total > 0)
        self._total = session.total[self._offered][:, None].astype(np.float64)
        self._measures: list[tuple[int, int]] = [(d, int(session.total[d])) for d in self._offered.tolist()]
        self._shares: list[float] = self._shares_of(self._allocated).tolist()
        self._changed: set[int] = set()  # jobs whose share must be recomputed
        self._hierarchy: QueueHierarchy | None = None
        if is_hierarchical(session, self.name):
            self._hierarchy = QueueHierarchy(session, self._allocated, self._served)
            # Only this mode implements two more extension points.
            self.queue_order = self._hierarchy.queue_order
            self.reclaimable = self._hierarchy.reclaimable

    def job_order(self, job: int) -> float:
        """The job's dominant share."""
        if job in self._changed:
            self._changed.remove(job)
            has: list[int] = self._allocated[:, job].tolist()
            self._shares[job] = max([0.0, *[has[dimension] / total for dimension, total in self._measures]])
        return self._shares[job]

    def job_orders(self, jobs: JobRows) -> NDArray[np.float64]:
        for job in list(self._changed):
            self.job_order(job)
        shares = self._shares
        return np.array([shares[job] for job in jobs.tolist()], dtype=np.float64)

    def preemptable(self, task: int, candidates: TaskRows) -> TaskRows:
        """Victims are subtracted from their jobs one after the other, whether allowed or not."""
        tasks = self._session.tasks
        job = int(tasks.job[task])
        if not self._served[job]:
            return candidates[:0]
        asker = self._allocated[:, job] + self._session.classes[tasks.class_of[task]].request
        ours = self._shares_of(asker[:, None])[0]
        candidates = candidates[self._served[tasks.job[candidates]]]
        jobs = tasks.job[candidates]
        requests = self._session.requests(candidates)
        theirs = self._shares_of(self._allocated[:, jobs] - sums_before(requests, jobs) - requests)
        allowed: NDArray[np.bool_] = (ours < theirs) | (np.abs(ours - theirs) <= SAME_SHARE)
        return candidates[allowed]

    def on_allocate(self, event: Event) -> None:
        self._change(event, len(event.rows))

    def on_deallocate(self, event: Event) -> None:
        self._change(event, -len(event.rows))

    def _change(self, event: Event, count: int) -> None:
        job = event.job
        if not self._served[job]:
            return
        amounts = event.class_.request * count
        self._allocated[:, job] += amounts
        self._changed.add(job)
        if self._hierarchy is not None:
            self._hierarchy.changed(job, amounts)

    def _shares_of(self, allocated: NDArray[np.int64]) -> NDArray[np.float64]:
        """The dominant share of each column."""
        return np.asarray((allocated[self._offered] / self._total).max(axis=0, initial=0.0))
