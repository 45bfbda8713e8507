"""Labels that KAI's plugins read: of queues, and those that `kubeflow`, `ray` and `taskorder` order tasks of a job by.

The cluster keeps track of tasks that have one; if there are none, their order costs nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

JOB_ROLE = "training.kubeflow.org/job-role"
NODE_TYPE = "ray.io/node-type"
TASK_PRIORITY = "kai.scheduler/task-priority"
ORDER_LABELS = frozenset({JOB_ROLE, NODE_TYPE, TASK_PRIORITY})
QUEUE_LABEL = "kai.scheduler/queue"


def queue_label(options: Mapping[str, Any]) -> str:
    """The label in which pods and claims name their queue."""
    return str(options.get("queueLabelKey") or QUEUE_LABEL)


class LabelOrder:
    """Orders tasks by a label: `rank` of its value, and `without` for those without it."""

    def __init__(self, session: Session, label: str, rank: Callable[[str], int], without: int) -> None:
        labelled = session.cluster.tasks.labels.items()
        found = {row: labels[label] for row, labels in labelled if label in labels}
        self._ranks = np.full(len(session.tasks) if found else 0, without, dtype=np.int64)
        self._ranks[list(found)] = [rank(value) for value in found.values()]

    def of(self, rows: TaskRows) -> Amounts:
        """The smaller number first."""
        return self._ranks[rows] if len(self._ranks) else np.zeros(len(rows), dtype=np.int64)
