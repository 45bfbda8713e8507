"""conformance: pods that keep the cluster itself running are never victims.

Protected are pods of the priority classes system-cluster-critical and system-node-critical, and everything in
kube-system.
"""

from collections.abc import Mapping
from typing import Any

from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class Conformance:
    """No arguments."""

    name = "conformance"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._critical = session.tasks.critical

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows:
        return candidates[~self._critical[candidates]]

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)

    def unified_evictable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)
