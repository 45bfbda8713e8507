"""ray: of a job's tasks, the head first."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.labelled import NODE_TYPE, LabelOrder
from maniple.plugins.settings import takes_none


class Ray:
    """No arguments."""

    name = "ray"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._order = LabelOrder(session, NODE_TYPE, lambda kind: int(kind != "head"), without=1)

    def task_order(self, rows: TaskRows) -> Amounts:
        return self._order.of(rows)
