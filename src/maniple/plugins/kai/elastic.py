"""elastic: jobs below a minimum first, then those with exactly their minimum, then those with more."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.points import JobRows
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none

_BELOW, _EXACT, _ABOVE = 0, 1, 2
_ACTIVE = ACTIVE_ALLOCATED.astype(np.int64)


class Elastic:
    """No arguments."""

    name = "elastic"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def job_order(self, job: int) -> int:
        pod_sets, jobs = self._session.groups, self._session.jobs
        if pod_sets.undivided[job]:
            surplus = int(_ACTIVE @ jobs.counts[:, job]) - int(jobs.minimum[job])
            return _EXACT + (surplus > 0) - (surplus < 0)
        state = _EXACT
        for pod_set in pod_sets.of(job):
            surplus = pod_sets.count(pod_set, ACTIVE_ALLOCATED) - pod_set.minimum
            if surplus < 0:
                return _BELOW
            if surplus > 0:
                state = _ABOVE
        return state

    def job_orders(self, jobs: JobRows) -> Amounts:
        """All at once if a job is one pod set."""
        have = _ACTIVE @ self._session.jobs.counts[:, jobs]
        states: Amounts = np.sign(have - self._session.jobs.minimum[jobs]) + _EXACT
        for place in np.flatnonzero(~self._session.groups.undivided[jobs]).tolist():
            states[place] = self.job_order(int(jobs[place]))
        return states
