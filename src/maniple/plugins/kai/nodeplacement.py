"""nodeplacement: pack nodes (`binpack`, the default) or spread over them (`spread`); arguments `gpu`, `cpu`.

What counts is GPUs for tasks that request any, otherwise CPU. binpack: nine points at most, the more the less
of it is left; none if a node has none of it. spread: the fraction of it that is left. Left is what is idle or
being released and not claimed; a partly used GPU is not left.

KAI scales what is left to the candidates at hand, here it is scaled to the largest node: the order of nodes
is the same, and a node's points do not depend on the others.
"""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Scorer
from maniple.framework.node_scores import NodeScore
from maniple.framework.session import Session
from maniple.plugins.kai.bands import DENSITY
from maniple.plugins.kai.gpu_requests import requests_gpu, whole_gpu
from maniple.plugins.kai.node_formulas import Constant, Density, PartLeft
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
        self._scores: dict[int, NodeScore] = {}  # by kind of spec
        self._made: dict[
            tuple[int | None, bool], NodeScore
        ] = {}  # by dimension, and whether it counts for GPUs

    def _spreads(self, session: Session, given: Arguments, resource: str) -> bool:
        strategy = given.string(resource, _BINPACK)
        if strategy not in (_BINPACK, _SPREAD):
            session.report(
                f"{self.name}: argument {resource!r} must be {_BINPACK} or {_SPREAD}, found {strategy!r}; "
                f"{_BINPACK} is used"
            )
        return strategy == _SPREAD

    def scorers(self) -> list[Scorer]:
        return [Scorer.compiled(self.name, 1.0, self._of_node)]

    def _of_node(self, class_: TaskClass) -> NodeScore:
        known = self._scores.get(class_.spec.kind)
        if known is None:
            for_gpu = requests_gpu(self._session, class_)
            dimension = self._dimension(class_) if for_gpu else CPU
            key = dimension, for_gpu
            if key not in self._made:
                self._made[key] = self._make(
                    dimension, spreads=self._spreads_gpu if for_gpu else self._spreads_cpu
                )
            known = self._scores[class_.spec.kind] = self._made[key]
        return known

    def _dimension(self, class_: TaskClass) -> int | None:
        """The GPUs that count for a task: whole ones of the requested vendor, else those that can be shared."""
        whole = whole_gpu(self._session, class_)
        return self._session.gpus.dimension if whole is None else whole

    def _make(self, dimension: int | None, *, spreads: bool) -> NodeScore:
        if dimension is None:
            return Constant(0.0)
        allocatable, gpus = self._session.nodes.allocatable, self._session.gpus
        if not spreads:
            largest = max(int(allocatable[dimension].max(initial=0)), 1)
            return Density(allocatable, dimension, DENSITY, largest)
        whole = allocatable[dimension]
        if dimension == gpus.dimension:
            whole = gpus.count * self._session.resources.scale(dimension)
        return PartLeft(allocatable, dimension, whole)
