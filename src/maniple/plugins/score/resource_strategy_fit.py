"""resource-strategy-fit: pack some resources and spread others, each with its own weight.

score = 100 x W x (sum of w_r x f_r) / (sum of w_r) over the requested resources r that the arguments name, by
their full name or, failing that, by the longest pattern with a trailing "*". f_r = (used + request) /
allocatable for MostAllocated, (allocatable - used - request) / allocatable for LeastAllocated; a node that
would be more than full in one of them scores 0. A pod's annotations may state another strategy and other
weights. Two more policies keep scarce resources free (see `scarce.py`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.score.packing import Term, weighted_average
from maniple.plugins.score.scarce import Proportional, ScarceResourceAvoidance
from maniple.plugins.settings import report

STRATEGY_ANNOTATION = "volcano.sh/resource-strategy-scoring-type"
WEIGHTS_ANNOTATION = "volcano.sh/resource-strategy-weight"
MOST, LEAST = "MostAllocated", "LeastAllocated"

_BEST = 100
_DEFAULT_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class Strategy:
    most: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ResourceStrategyFitArguments:
    """`resources` by name or pattern."""

    weight: int = _DEFAULT_WEIGHT
    resources: Mapping[str, Strategy] = field(
        default_factory=lambda: {"cpu": Strategy(), "memory": Strategy()}
    )

    @classmethod
    def read(cls, given: Arguments) -> "ResourceStrategyFitArguments":
        weight = given.int("resourceStrategyFitWeight", _DEFAULT_WEIGHT)
        written = given.mapping("resources")
        resources = {
            name: _strategy(given, name, value)
            for name, value in written.items()
            if _is_name_or_pattern(given, name)
        }
        weight = _DEFAULT_WEIGHT if weight < 0 else weight
        return cls(weight, resources) if written else cls(weight)

    def of(self, resource: str) -> Strategy | None:
        if resource in self.resources:
            return self.resources[resource]
        fitting = [p for p in self.resources if p.endswith("*") and resource.startswith(p[:-1])]
        return self.resources[max(fitting, key=len)] if fitting else None


class ResourceStrategyFit:
    name = "resource-strategy-fit"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        given = Arguments(arguments, self.name)
        self._arguments = ResourceStrategyFitArguments.read(given)
        self._avoidance = ScarceResourceAvoidance.read(session, given)
        self._proportional = Proportional.read(session, given)
        report(session, given)
        self._terms: dict[int, list[Term]] = {}

    def scorers(self) -> list[Scorer]:
        scorers = []
        if self._arguments.weight > 0:
            scorers.append(Scorer(self.name, 1.0, Dependence.NODE, self._score, applies=self._applies))
        if self._avoidance is not None:
            scorers.append(self._avoidance.scorer())
        return scorers

    def filters(self) -> list[Filter]:
        return [] if self._proportional is None else [self._proportional.filter()]

    def _applies(self, class_: TaskClass) -> bool:
        return bool(self._terms_of(class_))

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        return weighted_average(self._terms_of(class_), cells) * (float(_BEST) * self._arguments.weight)

    def _terms_of(self, class_: TaskClass) -> list[Term]:
        terms = self._terms.get(class_.number)
        if terms is None:
            own = self._own_terms(class_)
            terms = self._terms[class_.number] = own if own is not None else self._configured_terms(class_)
        return terms

    def _configured_terms(self, class_: TaskClass) -> list[Term]:
        names = self._session.resources.names
        found = [(d, self._arguments.of(names[d])) for d in np.flatnonzero(class_.request).tolist()]
        return [Term(d, strategy.weight, strategy.most) for d, strategy in found if strategy is not None]

    def _own_terms(self, class_: TaskClass) -> list[Term] | None:
        """What the pod's annotations say; None without them, empty if they are invalid."""
        annotations = class_.spec.pod.metadata.annotations
        strategy = annotations.get(STRATEGY_ANNOTATION)
        if not strategy:
            return None
        weights = _weights(annotations.get(WEIGHTS_ANNOTATION, ""))
        if weights is None:
            self._session.report(
                f"{self.name}: pod {class_.spec.pod.key}: annotation {WEIGHTS_ANNOTATION} must map resources to whole "
                f'numbers, as in {{"cpu": 1}}; such pods get no score'
            )
            return []
        most = {MOST: True, LEAST: False}.get(strategy)
        names = self._session.resources.names
        requested = np.flatnonzero(class_.request).tolist()
        return [Term(d, weights[names[d]], most) for d in requested if names[d] in weights]


def _strategy(given: Arguments, name: str, value: object) -> Strategy:
    """An invalid value falls back to LeastAllocated with weight 1."""
    nested = Arguments(value if isinstance(value, Mapping) else {}, f"{given.owner}: resources.{name}")
    kind, weight = nested.string("type", LEAST), nested.int("weight", 1)
    if kind not in (MOST, LEAST):
        nested.warnings.append(f"{nested.owner}: type must be {MOST} or {LEAST}, keeping {LEAST}")
    nested.unknown(())
    given.warnings += nested.warnings
    return Strategy(kind == MOST, weight if weight > 0 else 1)


def _is_name_or_pattern(given: Arguments, name: str) -> bool:
    if "*" not in name or (name.endswith("*") and name.count("*") == 1 and name != "*"):
        return True
    given.warnings.append(
        f'{given.owner}: resources.{name}: only one "*" at the end of a name is understood, ignored'
    )
    return False


def _weights(text: str) -> dict[str, int] | None:
    try:
        weights = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if weights is None:
        return {}
    if not isinstance(weights, dict):
        return None
    fine = all(isinstance(w, int) and not isinstance(w, bool) and abs(w) < 2**63 for w in weights.values())
    return weights if fine else None
