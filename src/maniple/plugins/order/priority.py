"""priority: the higher number first, for tasks, jobs and sub-jobs; lower ones may be preempted.

A victim of another job must belong to a job of strictly lower priority; a victim of the same job must be a
task of strictly lower priority. A job starves while ready + pipelined < number of its tasks.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.groups.tree import PodSet
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.session import Session
from maniple.plugins.candidates import served_jobs
from maniple.plugins.settings import takes_none


class Priority:
    """No arguments."""

    name = "priority"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._served = served_jobs(session)

    def task_order(self, rows: TaskRows) -> Amounts:
        return -self._session.tasks.priority[rows]

    def job_order(self, job: int) -> int:
        return -int(self._session.jobs.priority[job])

    def job_orders(self, jobs: JobRows) -> Amounts:
        return -self._session.jobs.priority[jobs].astype(np.int64)

    def pod_set_order(self, pod_set: PodSet) -> int:
        """A pod set is as important as its most important task, and never less than 0."""
        return -self._session.groups.priority(pod_set)

    def job_starving(self, job: int) -> bool:
        session = self._session
        return session.ready(job) + session.pipelined(job) < session.task_count(job)

    def preemptable(self, task: int, candidates: TaskRows) -> TaskRows:
        tasks, priority = self._session.tasks, self._session.jobs.priority
        job = int(tasks.job[task])
        if not self._served[job]:
            return candidates[:0]
        candidates = candidates[self._served[tasks.job[candidates]]]
        jobs = tasks.job[candidates]
        lower_job = priority[jobs] < priority[job]
        lower_task = tasks.priority[candidates] < tasks.priority[task]
        allowed: NDArray[np.bool_] = np.where(jobs == job, lower_task, lower_job)
        return candidates[allowed]

    def unified_evictable(self, task: int, candidates: TaskRows) -> TaskRows:
        """Within a queue this is preemption by priority; across queues it is reclaim, where it does not
        count."""
        tasks, jobs = self._session.tasks, self._session.jobs
        job = int(tasks.job[task])
        if not self._served[job]:
            return candidates[:0]
        candidates = candidates[self._served[tasks.job[candidates]]]
        theirs = tasks.job[candidates]
        across = jobs.queue[theirs] != jobs.queue[job]
        allowed: NDArray[np.bool_] = across | (jobs.priority[theirs] < jobs.priority[job])
        return candidates[allowed]
