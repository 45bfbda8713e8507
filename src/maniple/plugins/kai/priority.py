"""priority: jobs with the higher priority first."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.resources import Amounts
from maniple.framework.points import JobRows
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class Priority:
    """No arguments."""

    name = "priority"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._priority = session.jobs.priority

    def job_order(self, job: int) -> int:
        return -int(self._priority[job])

    def job_orders(self, jobs: JobRows) -> Amounts:
        return -self._priority[jobs]
