"""taskorder: of a job's tasks, the one with the higher number in the label `kai.scheduler/task-priority`
first.

A number comes before a value that is not a number, and that before no label.
"""

import re
from collections.abc import Mapping
from typing import Any

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.labelled import TASK_PRIORITY, LabelOrder
from maniple.plugins.settings import takes_none

_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NO_NUMBER = 2**62
_NO_LABEL = 2**62 + 1


class TaskOrder:
    """No arguments."""

    name = "taskorder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._order = LabelOrder(session, TASK_PRIORITY, _rank, without=_NO_LABEL)

    def task_order(self, rows: TaskRows) -> Amounts:
        return self._order.of(rows)


def _rank(value: str) -> int:
    return -int(value) if _NUMBER.fullmatch(value) else _NO_NUMBER
