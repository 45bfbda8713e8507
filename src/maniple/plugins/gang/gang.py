"""gang: a job gets its minimum whole or nothing; what it has beyond the minimum may be evicted.

- ready: ready tasks + pending best-effort tasks (in the original also gated ones) >= minimum, every role has
  its own minimum, and every policy its sub-groups
- pipelined: the same, with pipelined tasks counted
- starving: ready tasks + pipelined < minimum
- victims: of each job, the first (ready tasks - minimum) candidates; all of one that is evicted whole, or none

A sub-job of a policy is ready, pipelined and ordered by the same rule with its own minimum (see
`sub_groups.py`). Role minimums are ignored if they add up to more than the job's minimum (see `roles.py`). At
the end of a session every job with tasks gets a condition that says whether its gang is complete.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import Status
from maniple.framework.combine import Vote
from maniple.framework.groups.tree import PodSet
from maniple.framework.points import ASK, POINTS, JobRows, TaskRows
from maniple.framework.session import Session
from maniple.framework.wholes import any_whole, is_whole, unbroken
from maniple.plugins.candidates import place_in_group, served_jobs
from maniple.plugins.gang.conditions import needed, write_conditions
from maniple.plugins.gang.roles import RoleMinimums
from maniple.plugins.gang.sub_groups import SubGroupMinimums
from maniple.plugins.settings import takes_none

TOO_FEW_TASKS = "NotEnoughTasks"
TOO_FEW_OF_A_ROLE = "NotEnoughPodsOfTask"
_PENDING = int(Status.PENDING)


class Gang:
    """No arguments."""

    name = "gang"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._broken_first = session.rules.gangs.broken_first
        self._served = served_jobs(session)
        self._roles = RoleMinimums(session)
        self._sub_groups = SubGroupMinimums(session)
        self._minimum: list[int] = session.jobs.minimum.tolist()
        self._needed = needed(session)
        self._needed_of: list[int] = self._needed.tolist()
        self._voting: dict[tuple[str, int], bool] = {}  # by point, and the number of plugins

    # -- completeness of jobs -------------------------------------------------------------------------------------

    def job_valid(self, job: int) -> str | None:
        lacking = self._roles.lacking_for_good(job) or self._sub_groups.lacking_for_good(job)
        if lacking is not None:
            return f"{TOO_FEW_OF_A_ROLE}: {lacking}"
        jobs, minimum = self._session.jobs, self._minimum[job]
        # Pending and placed tasks are nearly always enough, and cheaper to count than all.
        if jobs.ready.item(job) + jobs.counts.item(_PENDING, job) >= minimum:
            return None
        valid = self._session.valid(job)
        if valid < minimum:
            return f"{TOO_FEW_TASKS}: the gang has {valid} usable tasks and needs {minimum}"
        return None

    def job_order(self, job: int) -> int:
        """Incomplete jobs come before complete ones, and first of all a gang that has lost some of its tasks.

        What still runs of such a gang is useless until it is complete again.
        """
        if self._missing(job) <= 0:
            return 1
        broken = self._broken_first and self._session.ready(job) > 0
        return -1 if broken else 0

    def job_orders(self, jobs: JobRows) -> NDArray[np.int64]:
        columns = self._session.jobs
        complete = self._needed[jobs] <= columns.ready[jobs] + columns.pending_best_effort[jobs]
        broken = (columns.ready[jobs] > 0) & self._broken_first
        return np.where(complete, 1, np.where(broken, -1, 0))

    def job_ready(self, job: int) -> bool:
        return self._missing(job) <= 0 and not self._roles.missing(job) and self._sub_groups.enough(job)

    def job_pipelined(self, job: int) -> Vote:
        enough = self._missing(job) <= self._session.pipelined(job)
        enough = enough and not self._roles.missing(job, pipelined=True)
        return Vote.PERMIT if enough and self._sub_groups.enough(job, pipelined=True) else Vote.REJECT

    def job_starving(self, job: int) -> bool:
        """Neither best-effort tasks nor roles count here: eviction only helps a job to its minimum."""
        return self._session.ready(job) + self._session.pipelined(job) < self._minimum[job]

    def shortfall(self, job: int, role: int, most: int) -> int:
        """Any fewer tasks of this role leave the job incomplete; at least 1, since extras are added one at a
        time."""
        missing = self._roles.missing(job)
        if any(other != role for other in missing):
            return most
        return min(most, max(self._missing(job), missing.get(role, 0), 1))

    def job_lack(self, job: int) -> int:
        return self._missing(job)

    def job_lack_pipelined(self, job: int) -> int:
        return self._missing(job) - self._session.pipelined(job)

    def _missing(self, job: int) -> int:
        """Tasks short of the minimum; zero or less when there are enough."""
        jobs = self._session.jobs
        return self._needed_of[job] - jobs.ready.item(job) - jobs.pending_best_effort.item(job)

    # -- completeness of pod sets ---------------------------------------------------------------------------------

    def pod_set_order(self, pod_set: PodSet) -> int:
        return 1 if self.pod_set_ready(pod_set) else 0

    def pod_set_ready(self, pod_set: PodSet) -> bool:
        return self.pod_set_lack(pod_set) <= 0

    def pod_set_pipelined(self, pod_set: PodSet) -> Vote:
        return Vote.PERMIT if self.pod_set_lack_pipelined(pod_set) <= 0 else Vote.REJECT

    def pod_set_lack(self, pod_set: PodSet) -> int:
        if pod_set.whole:
            return self._missing(pod_set.job)
        return self._session.groups.lacking(pod_set)

    def pod_set_lack_pipelined(self, pod_set: PodSet) -> int:
        if pod_set.whole:
            return self.job_lack_pipelined(pod_set.job)
        groups = self._session.groups
        return groups.lacking(pod_set) - groups.counts(pod_set).pipelined

    # -- victims --------------------------------------------------------------------------------------------------

    def surplus(self, job: int, rows: TaskRows) -> TaskRows:
        """Of a job's tasks in task order, those it can lose and stay complete: the last ones that no role
        needs."""
        spare = self._session.ready(job) - self._minimum[job]
        if spare <= 0:
            return rows[:0]
        losable = self._sub_groups.losable(job, self._roles.losable(job, rows))
        return losable[max(len(losable) - spare, 0) :]

    def spare(self, jobs: JobRows) -> NDArray[np.int64]:
        """The same as a number, if neither roles nor sub-groups matter."""
        columns = self._session.jobs
        spare: NDArray[np.int64] = np.maximum(columns.ready[jobs] - columns.minimum[jobs], 0).astype(np.int64)
        for place in np.flatnonzero(spare).tolist():
            job = int(jobs[place])
            if self._roles.matter_to(job) or self._sub_groups.matter_to(job):
                spare[place] = ASK
        return spare

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows | None:
        """What each job has beyond its minimum, counted afresh for every list of candidates.

        The search for victims protects gangs by itself (`surplus`). A vote is needed only by the original's
        node-by-node search, and if no other plugin votes, so that there are victims at all.
        """
        return self._beyond_minimums(candidates) if self._votes("preemptable") else None

    def reclaimable(self, _task: int, candidates: TaskRows) -> TaskRows | None:
        return self._beyond_minimums(candidates) if self._votes("reclaimable") else None

    def _votes(self, point: str) -> bool:
        key = (point, len(self._session.plugins))
        known = self._voting.get(key)
        if known is None:
            switch = POINTS[point].switch
            others = [(o, p) for o, p in self._session.plugins if p is not self and hasattr(p, point)]
            alone = not any(switch is None or option.enabled(switch) for option, _ in others)
            known = self._voting[key] = alone or self._session.rules.victims.sought_pod_by_pod
        return known

    def _beyond_minimums(self, candidates: TaskRows) -> TaskRows:
        job_of = self._session.tasks.job
        candidates = candidates[self._served[job_of[candidates]]]
        jobs = job_of[candidates].tolist()
        spare = {job: self._session.ready(job) - self._minimum[job] for job in set(jobs)}
        if any_whole(self._session):
            # Where a job goes whole or not at all, no gang is broken if all of it goes.
            whole = set(job_of[unbroken(self._session, candidates)].tolist())
            spare |= {job: len(jobs) if job in whole else 0 for job in spare if is_whole(self._session, job)}
        places = place_in_group(job_of[candidates]).tolist()
        allowed = [place < spare[job] for job, place in zip(jobs, places, strict=True)]
        return candidates[np.array(allowed, dtype=np.bool_)]

    def unified_evictable(self, _task: int, candidates: TaskRows) -> TaskRows:
        """Gang-aware eviction itself splits jobs into surplus tasks and whole gangs."""
        return candidates

    # -- closing --------------------------------------------------------------------------------------------------

    def on_close(self) -> None:
        write_conditions(self._session)
