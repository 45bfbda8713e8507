"""nominatednode: a million points for the node that a pod's status nominates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.kai.bands import NOMINATED_NODE
from maniple.plugins.settings import takes_none


class NominatedNode:
    """No arguments; equal pods with different nominations are split into classes."""

    name = "nominatednode"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        index, status = session.nodes.facts.index, session.tasks.status
        nominated = {
            row: index[node]
            for row, node in session.cluster.tasks.nominated.items()
            if node in index and status[row] == Status.PENDING
        }
        session.refine(
            self.name,
            np.array(list(nominated), dtype=np.int64),
            np.array(list(nominated.values()), dtype=np.int64),
        )

    def scorers(self) -> list[Scorer]:
        return [Scorer(self.name, NOMINATED_NODE, Dependence.STATIC, self._raw, applies=self._applies)]

    def _applies(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        there: Scores = (cells.node_rows() == class_.marks[self.name]).astype(np.float64)
        return there
