"""nodeplacement: pack nodes (`binpack`, the default) or spread over them (`spread`); arguments `gpu`, `cpu`.

What counts is GPUs for tasks that request any, otherwise CPU. binpack: nine points at most, the more the less
of it is left; none if a node has none of it. spread: the fraction of it that is left. Left is what is idle or
being released and not claimed; a partly used GPU is not left.

KAI scales what is left to the candidates at hand, here it is scaled to the largest node: the order of nodes
is the same, and a node's points do not depend on the others.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, Amounts
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.kai.bands import DENSITY
from maniple.plugins.kai.gpu_requests import requests_gpu, whole_gpu
from maniple.plugins.settings import report

_BINPACK, _SPREAD = "binpack", "spread"


class NodePlacement:
    name = "nodeplacement"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        given = Arguments(arguments, self.name)
        self._spreads_gpu = self._spreads(session, given, "gpu")
        self._spreads_cpu = self._spreads(session, given, "cpu")
        report(session, given)
        self._session = session
        self._largest = np.maximum(session.nodes.allocatable.max(axis=1, initial=0), 1)
        self._for_gpu: dict[int, bool] = {}  # by class

    def _spreads(self, session: Session, given: Arguments, resource: str) -> bool:
        strategy = given.string(resource, _BINPACK)
        if strategy not in (_BINPACK, _SPREAD):
            session.report(
                f"{self.name}: argument {resource!r} must be {_BINPACK} or {_SPREAD}, found {strategy!r}; "
                f"{_BINPACK} is used"
            )
        return strategy == _SPREAD

    def scorers(self) -> list[Scorer]:
        return [Scorer(self.name, 1.0, Dependence.NODE, self._raw)]

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        for_gpu = self._for_gpu.get(class_.number)
        if for_gpu is None:
            for_gpu = self._for_gpu[class_.number] = requests_gpu(self._session, class_)
        dimension = self._dimension(class_) if for_gpu else CPU
        if dimension is None:
            return np.array(0.0)
        if self._spreads_gpu if for_gpu else self._spreads_cpu:
            return self._part_left(cells, dimension)
        density: Scores = DENSITY * (1 - _left(cells, dimension) / self._largest[dimension])
        return density * (cells.allocatable(dimension) > 0)

    def _dimension(self, class_: TaskClass) -> int | None:
        """The GPUs that count for a task: whole ones of the requested vendor, else those that can be shared."""
        whole = whole_gpu(self._session, class_)
        return self._session.gpus.dimension if whole is None else whole

    def _part_left(self, cells: Cells, dimension: int) -> Scores:
        whole = cells.allocatable(dimension)
        if dimension == self._session.gpus.dimension:
            whole = self._session.gpus.count[cells.rows] * self._session.resources.scale(dimension)
        left = _left(cells, dimension)
        return np.divide(left, whole, out=np.zeros(left.shape), where=whole > 0)


def _left(cells: Cells, dimension: int) -> Amounts:
    nodes, rows = cells.nodes, cells.rows
    waiting: Amounts = nodes.releasing[dimension][rows] - nodes.pipelined[dimension][rows]
    return cells.allocatable(dimension) - cells.used(dimension) + waiting
