"""gang: a job gets its minimum whole or nothing; what it has beyond the minimum may be taken away.

ready     = ready tasks + waiting best-effort tasks >= minimum, and every role has its own minimum
pipelined = the same, with pipelined tasks counted
starving  = ready tasks + pipelined < minimum
victims   = of each job, the first (ready tasks - minimum) candidates

Role minimums are not looked at when they add up to more than the job's minimum (see `roles.py`). At the end
of a session every job with tasks gets a condition that says whether its gang is complete.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.statuses import Status
from maniple.framework.combine import Vote
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.candidates import place_in_group, served_jobs
from maniple.plugins.gang.conditions import write_conditions
from maniple.plugins.gang.roles import RoleMinimums
from maniple.plugins.settings import takes_none

TOO_FEW_TASKS = "NotEnoughTasks"
TOO_FEW_OF_A_ROLE = "NotEnoughPodsOfTask"


class Gang:
    """No arguments."""

    name = "gang"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._served = served_jobs(session)
        self._roles = RoleMinimums(session)
        self._minimum: list[int] = session.jobs.minimum.tolist()

    # -- is the job complete --------------------------------------------------------------------------------------

    def job_valid(self, job: int) -> str | None:
        lacking = self._roles.lacking_for_good(job)
        if lacking is not None:
            return f"{TOO_FEW_OF_A_ROLE}: {lacking}"
        jobs, minimum = self._session.jobs, self._minimum[job]
        # Those that wait and those that are placed are nearly always enough, and cheaper to count than all.
        if jobs.ready[job] + jobs.counts[Status.PENDING, job] >= minimum:
            return None
        valid = self._session.valid(job)
        if valid < minimum:
            return f"{TOO_FEW_TASKS}: the gang has {valid} usable tasks and needs {minimum}"
        return None

    def job_order(self, job: int) -> int:
        """Those that lack something come before those that are complete."""
        return 1 if self._missing(job) <= 0 else 0

    def job_ready(self, job: int) -> bool:
        return self._missing(job) <= 0 and not self._roles.missing(job)

    def job_pipelined(self, job: int) -> Vote:
        enough = self._missing(job) <= self._session.pipelined(job)
        return Vote.PERMIT if enough and not self._roles.missing(job, pipelined=True) else Vote.REJECT

    def job_starving(self, job: int) -> bool:
        """Best-effort tasks do not count here, nor do roles: eviction only helps a job to its minimum."""
        return self._session.ready(job) + self._session.pipelined(job) < self._minimum[job]

    def shortfall(self, job: int, role: int, most: int) -> int:
        """Any fewer tasks of this role leave the job incomplete; at least 1, since extras are given one at a time."""
        missing = self._roles.missing(job)
        if any(other != role for other in missing):
            return most
        return min(most, max(self._missing(job), missing.get(role, 0), 1))

    def _missing(self, job: int) -> int:
        """Tasks short of the minimum; zero or less when there are enough."""
        jobs = self._session.jobs
        return self._minimum[job] - int(jobs.ready[job]) - int(jobs.pending_best_effort[job])

    # -- victims --------------------------------------------------------------------------------------------------

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows:
        """What each job has beyond its minimum, counted anew for every list of candidates."""
        job_of = self._session.tasks.job
        candidates = candidates[self._served[job_of[candidates]]]
        jobs = job_of[candidates].tolist()
        spare = {job: self._session.ready(job) - self._minimum[job] for job in set(jobs)}
        places = place_in_group(job_of[candidates]).tolist()
        allowed = [place < spare[job] for job, place in zip(jobs, places, strict=True)]
        return candidates[np.array(allowed, dtype=np.bool_)]

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)

    def unified_evictable(self, _task: int, candidates: TaskRows) -> TaskRows:
        """Gang-aware eviction splits jobs into what is safe to take and whole gangs by itself."""
        return candidates

    # -- the end --------------------------------------------------------------------------------------------------

    def on_close(self) -> None:
        write_conditions(self._session)
