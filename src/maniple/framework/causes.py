"""Why tasks and jobs wait, in words, from a closed session. Called by the plan when somebody asks."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from maniple.cluster.statuses import ACTIVE_ALLOCATED, WAITING, Status
from maniple.framework.freezing import Closed
from maniple.framework.reasons import Histogram, joined
from maniple.framework.standing import (
    NO_TURN,
    POD_ERRORS,
    QUEUE_MISSING,
    explained,
    not_ready,
    pool_prefix,
    scheduling_condition,
)
from maniple.objects.kai import KaiPodGroup

_WAITING = np.flatnonzero(WAITING)


class Causes:
    def __init__(self, closed: Closed) -> None:
        self._closed = closed
        self._told: dict[int, list[str]] = {}

    @cached_property
    def own(self) -> Mapping[int, Histogram | str]:
        """By task: why it found no place itself."""
        return self._closed.refused.by_task()

    def of_task(self, row: int, job: int) -> str:
        """The cause of a waiting task: its own, or its job's."""
        closed = self._closed
        if row in self.own:
            return str(self.own[row])
        if job < 0:
            return "belongs to no pod group"
        if job not in closed.jobs.facts:
            return f"pod group {closed.names.job(job)} does not exist"
        if closed.tasks.gated[row] or closed.tasks.status[row] == Status.GATED:
            return "waits for its scheduling gates to be removed"
        return joined(self.of_job(job)) or NO_TURN

    def of_job(self, job: int) -> list[str]:
        """What a job as a whole waits for."""
        known = self._told.get(job)
        if known is None:
            problem = self.queue_problem(job) or self.not_ready(job)
            known = self._told[job] = [problem] if problem else list(self._closed.refused.jobs.get(job, ()))
        return known

    def queue_problem(self, job: int) -> str:
        """What is wrong with the queue that a job names; empty if nothing is."""
        return self._closed.queues.problems.get(int(self._closed.jobs.queue[job]), "")

    def not_ready(self, job: int) -> str:
        """Which pods a job still needs before it can be tried; empty if there are enough, and where none are needed."""
        closed = self._closed
        if not closed.by_pod_sets:
            return ""
        return not_ready(closed.jobs.pod_sets(job), plain_words=closed.plain_words)

    def over(self, job: int) -> dict[str, Any] | None:
        """The answer of the queue that has no room for a job."""
        over = self._closed.refused.over.get(job)
        if over is None:
            return None
        return {"reason": over.reason, "message": over.message, "details": dict(over.details or {})}

    def with_tasks(self, job: int) -> list[str]:
        """Why a job waits: its own reasons, and those of its tasks that they do not contain already."""
        closed = self._closed
        counts = closed.jobs.counts[:, job]
        if counts.any() and not counts[_WAITING].any():
            return list(closed.refused.jobs.get(job, ()))
        told = list(self.of_job(job))
        if counts[Status.PENDING]:
            rows = self._tasks_of(job)
            in_order = rows[np.argsort(closed.tasks.rank[rows])].tolist()
            causes = dict.fromkeys(str(self.own[row]) for row in in_order if row in self.own)
            told += [cause for cause in causes if not any(cause in one for one in told)]
        return list(dict.fromkeys(told))

    def _tasks_of(self, job: int) -> Any:
        order, bounds = self._by_job
        return order[bounds[job] : bounds[job + 1]]

    @cached_property
    def _by_job(self) -> tuple[Any, list[int]]:
        jobs = self._closed.tasks.job
        order = np.argsort(jobs, kind="stable")
        return order, np.searchsorted(jobs[order], np.arange(len(self._closed.jobs.queue) + 1)).tolist()

    def condition(self, job: int, told: list[str]) -> dict[str, Any] | None:
        """KAI's condition of a pod group.

        None while the job has no pods that wait or too few of them, and as soon as any of it has a place.
        """
        closed = self._closed
        group, counts = closed.jobs.groups[job], closed.jobs.counts[:, job]
        if not isinstance(group, KaiPodGroup) or not told:
            return None
        if not counts[Status.PENDING] or counts[ACTIVE_ALLOCATED].any():
            return None
        missing = self.queue_problem(job)
        if not missing and self.not_ready(job):
            return None
        reasons = explained(self.over(job), told, QUEUE_MISSING if missing else POD_ERRORS)
        return scheduling_condition(pool_prefix(group, closed.pool) + joined(told), reasons, closed.pool)
