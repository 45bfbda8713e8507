"""conformance: pods that keep the cluster itself running are never victims.

Protected are pods of the priority classes system-cluster-critical and system-node-critical, and everything in
kube-system.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.plugins.settings import takes_none

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


class Conformance:
    """No arguments."""

    name = "conformance"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._pods = session.cluster.tasks.pods

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows:
        allowed = [not is_critical(self._pods[row]) for row in candidates.tolist()]
        return candidates[np.array(allowed, dtype=np.bool_)]

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)

    def unified_evictable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)


def is_critical(pod: Pod) -> bool:
    return pod.spec.priority_class_name in CRITICAL_CLASSES or pod.metadata.namespace == SYSTEM_NAMESPACE
