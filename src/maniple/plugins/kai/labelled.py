"""Tasks with one of the labels by which KAI's plugins order the tasks of a job.

One pass over all pods of a session serves the plugins `kubeflow`, `ray` and `taskorder`; if no task has a
label, its order costs nothing.
"""

from collections.abc import Callable

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

JOB_ROLE = "training.kubeflow.org/job-role"
NODE_TYPE = "ray.io/node-type"
TASK_PRIORITY = "kai.scheduler/task-priority"
_LABELS = frozenset({JOB_ROLE, NODE_TYPE, TASK_PRIORITY})


class LabelledTasks:
    """The values of those labels, by label and task row."""

    def __init__(self, session: Session) -> None:
        self.values: dict[str, dict[int, str]] = {label: {} for label in _LABELS}
        for row, pod in session.cluster.tasks.pods.items():
            labels = pod.metadata.labels
            if labels and not _LABELS.isdisjoint(labels):
                for label in _LABELS.intersection(labels):
                    self.values[label][row] = labels[label]

    @classmethod
    def shared(cls, session: Session) -> "LabelledTasks":
        if cls not in session.shared:
            session.shared[cls] = cls(session)
        known: LabelledTasks = session.shared[cls]
        return known


class LabelOrder:
    """Orders tasks by a label: `rank` of its value, and `without` for those without it."""

    def __init__(self, session: Session, label: str, rank: Callable[[str], int], without: int) -> None:
        found = LabelledTasks.shared(session).values[label]
        self._ranks = np.full(len(session.tasks) if found else 0, without, dtype=np.int64)
        self._ranks[list(found)] = [rank(value) for value in found.values()]

    def of(self, rows: TaskRows) -> Amounts:
        """The smaller number first."""
        return self._ranks[rows] if len(self._ranks) else np.zeros(len(rows), dtype=np.int64)
