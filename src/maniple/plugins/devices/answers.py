"""Verdicts and scores of nodes by class, recomputed only for nodes that changed since.

For criteria that inspect a node too closely to be a sum of columns. The owner reports which node changed
(`touch`); between two calls for the same class that is a handful.
"""

from collections.abc import Callable

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Scores
from maniple.framework.reasons import Verdicts

# class, node -> number of a reason (0: it fits) and a score
Judge = Callable[[TaskClass, int], tuple[int, float]]


class Answers:
    """Verdicts and scores of one criterion over all nodes."""

    def __init__(self, size: int, judge: Judge) -> None:
        self._size = size
        self._judge = judge
        self._changes: list[int] = []
        self._known: dict[int, tuple[int, Verdicts, Scores]] = {}

    def touch(self, node: int) -> None:
        self._changes.append(node)

    def of(self, class_: TaskClass) -> tuple[Verdicts, Scores]:
        """The current columns; read only."""
        known = self._known.get(class_.number)
        if known is None:
            verdicts, scores = np.zeros(self._size, dtype=np.int16), np.zeros(self._size)
            missed = set(range(self._size))
        else:
            seen, verdicts, scores = known
            missed = set(self._changes[seen:])
        for node in missed:
            verdicts[node], scores[node] = self._judge(class_, node)
        self._known[class_.number] = (len(self._changes), verdicts, scores)
        return verdicts, scores
