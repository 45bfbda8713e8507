"""LeastAllocated, MostAllocated, BalancedAllocation: how full a node would be with the task on it.

least     per resource 100 x (allocatable - requested) / allocatable, 0 when it is exceeded; the mean over cpu and memory
most      per resource 100 x requested / allocatable, at most 100; the mean over cpu and memory
balanced  50 + (50 + b(with the task) - b(without)) / 2, where b = 100 x (1 - standard deviation of requested / allocatable) over
          cpu, memory and, for tasks that ask for them, nvidia.com/gpu; tasks that ask for none of these get no score

Strictly, a node has what its status says: kube-scheduler's books know nothing of what it lends beyond that.

Whole numbers, rounded down at every step as kube-scheduler does; a resource that a node does not have is left out. Least and
most count 100m and 200Mi for containers that state nothing, balanced counts what is stated.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.criteria import Cells, Dependence, NodeRows, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.normalise import HIGHEST

_GPU = "nvidia.com/gpu"

Fractions = NDArray[np.float64]


class ResourceScores:
    """The three scores, for one session."""

    def __init__(self, session: Session) -> None:
        gpu = session.resources.known(_GPU)
        self._gpu = gpu if gpu is not None and gpu < len(session.nodes.allocatable) else None
        dimensions = [CPU, MEMORY] if self._gpu is None else [CPU, MEMORY, self._gpu]
        offered = session.nodes.allocatable
        self._has = {d: _stated(session, d) if session.strict else offered[d] for d in dimensions}
        # A divisor for every node, and where the resource is really there.
        self._divisor = {d: np.maximum(self._has[d], 1) for d in dimensions}
        self._there = {d: self._has[d] > 0 for d in dimensions}
        self._everywhere = {d: bool(self._there[d].all()) for d in dimensions}

    def least(self, weight: int) -> Scorer:
        return Scorer("LeastAllocated", weight, Dependence.NODE, self._least)

    def most(self, weight: int) -> Scorer:
        return Scorer("MostAllocated", weight, Dependence.NODE, self._most)

    def balanced(self, weight: int) -> Scorer:
        return Scorer("BalancedAllocation", weight, Dependence.NODE, self._balanced, applies=self._asks)

    # -- least and most -------------------------------------------------------------------------------------------

    def _least(self, class_: TaskClass, cells: Cells) -> Scores:
        shares = []
        for dimension, requested in self._requested(class_, cells):
            free = np.maximum(self._has[dimension][cells.rows] - requested, 0)
            shares.append(free * HIGHEST // self._divisor[dimension][cells.rows])
        return self._mean(shares, cells.rows)

    def _most(self, class_: TaskClass, cells: Cells) -> Scores:
        shares = []
        for dimension, requested in self._requested(class_, cells):
            taken = np.minimum(requested, self._has[dimension][cells.rows])
            shares.append(taken * HIGHEST // self._divisor[dimension][cells.rows])
        return self._mean(shares, cells.rows)

    @staticmethod
    def _requested(class_: TaskClass, cells: Cells) -> Sequence[tuple[int, Amounts]]:
        """What would be requested with the task there, where stating nothing counts as something."""
        return (
            (CPU, cells.nonzero_cpu() + class_.spec.nonzero_cpu),
            (MEMORY, cells.nonzero_memory() + class_.spec.nonzero_memory),
        )

    def _mean(self, shares: Sequence[Amounts], rows: NodeRows | slice) -> Scores:
        """Over the resources that the node has: the share of one that it lacks is zero and does not count."""
        total = shares[0] + shares[1]
        if self._everywhere[CPU] and self._everywhere[MEMORY]:
            return (total // 2).astype(np.float64)
        counted = self._there[CPU][rows].astype(np.int64) + self._there[MEMORY][rows]
        mean: Scores = (total // np.maximum(counted, 1)).astype(np.float64)
        return mean

    # -- balanced -------------------------------------------------------------------------------------------------

    def _dimensions(self, class_: TaskClass) -> list[int]:
        asks_gpu = self._gpu is not None and class_.request[self._gpu] > 0
        return [CPU, MEMORY, self._gpu] if asks_gpu and self._gpu is not None else [CPU, MEMORY]

    def _asks(self, class_: TaskClass) -> bool:
        return any(class_.request[d] > 0 for d in self._dimensions(class_))

    def _balanced(self, class_: TaskClass, cells: Cells) -> Scores:
        before, after, there = [], [], []
        for dimension in self._dimensions(class_):
            requested = cells.requested(dimension)
            divisor = self._divisor[dimension][cells.rows]
            before.append(np.minimum(requested / divisor, 1.0))
            after.append(np.minimum((requested + int(class_.request[dimension])) / divisor, 1.0))
            there.append(None if self._everywhere[dimension] else self._there[dimension][cells.rows])
        gain = balance(after, there) - balance(before, there)
        return HIGHEST // 2 + np.floor((HIGHEST // 2 + gain) / 2)


def _stated(session: Session, dimension: int) -> Amounts:
    """What the nodes say that they have of a resource."""
    name, facts = session.resources.names[dimension], session.nodes.facts
    units = [
        session.resources.base_units(dimension, one.status.allocatable.get(name, 0)) for one in facts.objects
    ]
    return np.array(units, dtype=np.int64)


def balance(fractions: Sequence[Fractions], there: Sequence[NDArray[np.bool_] | None]) -> Scores:
    """100 x (1 - standard deviation), rounded down. `there` is where a fraction counts, None for everywhere."""
    if all(mask is None for mask in there):
        return _rounded(_deviation(fractions))
    present = [np.ones(1, dtype=np.bool_) if mask is None else mask for mask in there]
    count = sum(mask.astype(np.int64) for mask in present)
    deviation = np.zeros(np.broadcast_shapes(*(f.shape for f in fractions)))
    # With one fraction there is no deviation; with fewer than all, each choice of two is a case of its own.
    for one in range(len(fractions)):
        for other in range(one + 1, len(fractions)):
            pair = (count == 2) & present[one] & present[other]
            deviation = np.where(pair, _deviation([fractions[one], fractions[other]]), deviation)
    if len(fractions) > 2:
        deviation = np.where(count == len(fractions), _deviation(fractions), deviation)
    return _rounded(deviation)


def _deviation(fractions: Sequence[Fractions]) -> Fractions:
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    mean = sum(fractions[1:], fractions[0]) / len(fractions)
    squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
    return np.sqrt(sum(squares[1:], squares[0]) / len(fractions))


def _rounded(deviation: Fractions) -> Scores:
    return np.floor((1 - deviation) * HIGHEST)
