"""What queues divide: the capacity of ready nodes, less what pods of other schedulers hold there.

Read when a session opens. CPU in millicores, bytes, GPUs, where slices of a device count with the number in
their names; then whole units of the other resources that are counted.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import ACTIVE_USED
from maniple.framework.session import Session
from maniple.plugins.kai.counting import Counting

_SCALING_POD = "scaling-pod"


def cluster_total(session: Session, counting: Counting) -> NDArray[np.float64]:
    nodes, units = session.nodes, session.gpus.units
    ready = nodes.facts.ready
    gpus = units @ nodes.allocatable[: len(units)]
    if session.options.get("restrictNodeScheduling"):
        key = str(session.options.get("gpuWorkerNodeLabelKey", "node-role.kubernetes.io/gpu-worker"))
        gpus = gpus * (nodes.facts.label(key).codes >= 0)
    offered = np.array([nodes.allocatable[CPU], nodes.allocatable[MEMORY], gpus], dtype=np.float64)
    total: NDArray[np.float64] = offered[:, ready].sum(axis=1)
    if len(counting.others):
        more = nodes.allocatable[np.ix_(counting.others, np.flatnonzero(ready))].sum(axis=1)
        total = np.concatenate([total, more / counting.units[len(total) :, 0]])
    rows = _foreign(session, ready)
    if len(rows):
        total -= (counting.of_tasks(rows) / counting.units).sum(axis=1)
    return total if session.rules.queues.overdrawn_cluster_is_negative else np.maximum(total, 0.0)


def _foreign(session: Session, ready: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Tasks on ready nodes that another scheduler has placed; reservation pods hold nothing of their own."""
    tasks = session.tasks
    alone = (tasks.job < 0) & (tasks.node >= 0) & (tasks.status >= 0)
    rows = np.flatnonzero(alone)
    rows = rows[ACTIVE_USED[tasks.status[rows]] & ready[tasks.node[rows]]]
    ours = _names(session.options.get("schedulerName", "kai-scheduler"))
    stand_ins = {
        str(session.options.get("resourceReservationAppLabel", "kai-resource-reservation")),
        _SCALING_POD,
    }
    pods = session.cluster.tasks.pods
    foreign = [
        row
        for row in rows.tolist()
        if (pod := pods[row]).spec.scheduler_name not in ours
        and pod.metadata.labels.get("app") not in stand_ins
    ]
    return np.array(foreign, dtype=np.int64)


def _names(option: str | Iterable[str]) -> frozenset[str]:
    return frozenset([option] if isinstance(option, str) else option)


__all__ = ["cluster_total"]
