"""kubeflow: of a job's tasks, the master or launcher first."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.labelled import JOB_ROLE, LabelOrder
from maniple.plugins.settings import takes_none

_LEADERS = ("master", "launcher")


class Kubeflow:
    """No arguments."""

    name = "kubeflow"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._order = LabelOrder(session, JOB_ROLE, lambda role: int(role not in _LEADERS), without=1)

    def task_order(self, rows: TaskRows) -> Amounts:
        return self._order.of(rows)
