"""binpack: the fuller a node would be, the better.

score = 100 x weight x (sum of w_r x (used_r + request_r) / allocatable_r) / (sum of w_r), over the requested
resources r that have a weight. A resource that the node does not have adds nothing but counts in the divisor;
a node that would be more than full in some weighted resource scores 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.score.packing import Term, weighted_average
from maniple.plugins.settings import report

_PREFIX = "binpack.resources."
_BEST = 100


@dataclass(frozen=True, slots=True)
class BinpackArguments:
    """The weight of the whole score, and of each resource in it."""

    weight: int = 1
    resources: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "BinpackArguments":
        given = Arguments(values, Binpack.name)
        weight = given.int("binpack.weight", 1)
        names = [name.strip() for name in given.string("binpack.resources", "").split(",")]
        keys = {name: f"{_PREFIX}{name}" for name in names if name}
        keys |= {"cpu": "binpack.cpu", "memory": "binpack.memory"}
        resources = {name: given.int(key, 1) for name, key in keys.items()}
        report(session, given)
        return cls(
            weight,
            {name: 1 if given_weight < 0 else given_weight for name, given_weight in resources.items()},
        )


class Binpack:
    name = "binpack"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        settings = BinpackArguments.read(session, arguments)
        self._packing = Packing(session, settings, Cells.used, requested)

    def scorers(self) -> list[Scorer]:
        return self._packing.scorers()


def requested(class_: TaskClass) -> list[int]:
    """The resources that a task requests."""
    found: list[int] = np.flatnonzero(class_.request).tolist()
    return found


class Packing:
    """The score, given what counts as in use of a resource, and which resources count for a task."""

    def __init__(
        self,
        session: Session,
        settings: BinpackArguments,
        in_use: Callable[[Cells, int], Amounts],
        counted: Callable[[TaskClass], list[int]],
    ) -> None:
        self._weight = settings.weight
        known = ((session.resources.known(name), weight) for name, weight in settings.resources.items())
        self.weights = {dimension: weight for dimension, weight in known if dimension is not None}
        self._in_use = in_use
        self._counted = counted
        self._terms: dict[int, list[Term]] = {}

    def scorers(self) -> list[Scorer]:
        if self._weight == 0:
            return []
        return [Scorer(Binpack.name, 1.0, Dependence.NODE, self._score, applies=self._applies)]

    def _applies(self, class_: TaskClass) -> bool:
        return sum(term.weight for term in self._terms_of(class_)) > 0

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        # Multiplied in this order, scores that tie in the original tie here too.
        average = weighted_average(self._terms_of(class_), cells, self._in_use)
        return average * float(_BEST * self._weight)

    def _terms_of(self, class_: TaskClass) -> list[Term]:
        terms = self._terms.get(class_.number)
        if terms is None:
            terms = self._terms[class_.number] = [
                Term(dimension, weight, most=True)
                for dimension in self._counted(class_)
                if (weight := self.weights.get(dimension)) is not None
            ]
        return terms
