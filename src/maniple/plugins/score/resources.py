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
from maniple.framework.criteria import EVERY_NODE, Cells, Dependence, NodeRows, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.score.normalise import HIGHEST

_GPU = "nvidia.com/gpu"

Mask = NDArray[np.bool_]


class ResourceScores:
    """The three scores, for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        gpu = session.resources.known(_GPU)
        self._gpu = gpu if gpu is not None and gpu < len(session.nodes.allocatable) else None
        dimensions = [CPU, MEMORY] if self._gpu is None else [CPU, MEMORY, self._gpu]
        offered = session.nodes.allocatable
        self._has = {d: _stated(session, d) if session.strict else offered[d] for d in dimensions}
        # A divisor for every node, and where the resource is really there.
        self._divisor = {d: np.maximum(self._has[d], 1) for d in dimensions}
        self._there = {d: self._has[d] > 0 for d in dimensions}
        self._everywhere = {d: bool(self._there[d].all()) for d in dimensions}
        self._balances: dict[tuple[int, ...], _Balance] = {}

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

    def _dimensions(self, class_: TaskClass) -> tuple[int, ...]:
        asks_gpu = self._gpu is not None and class_.request[self._gpu] > 0
        return (CPU, MEMORY, self._gpu) if asks_gpu and self._gpu is not None else (CPU, MEMORY)

    def _asks(self, class_: TaskClass) -> bool:
        return any(class_.request[d] > 0 for d in self._dimensions(class_))

    def _balanced(self, class_: TaskClass, cells: Cells) -> Scores:
        dimensions = self._dimensions(class_)
        balance = self._balances.get(dimensions)
        if balance is None:
            balance = self._balances[dimensions] = self._balance(dimensions)
        after = balance.of(cells, 1)
        if not isinstance(cells.extra, np.ndarray):
            before = balance.now(cells.rows) if cells.extra == 0 else balance.of(cells, 0)
        elif after.ndim == 2 and np.array_equal(cells.extra, np.arange(after.shape[1])):
            # Before the second task is after the first.
            before = np.concatenate([balance.now(cells.rows), after[:, :-1]], axis=1)
        else:
            before = balance.of(cells, 0)
        return HIGHEST // 2 + np.floor((HIGHEST // 2 + after - before) / 2)

    def _balance(self, dimensions: tuple[int, ...]) -> "_Balance":
        divisors = [self._divisor[d].astype(np.float64) for d in dimensions]
        return _Balance(self._session, dimensions, divisors, [self._there[d] for d in dimensions])


class _Balance:
    """100 x (1 - standard deviation of requested / allocatable) over some resources, rounded down."""

    def __init__(
        self, session: Session, dimensions: tuple[int, ...], divisors: list[Scores], there: list[Mask]
    ) -> None:
        self._session = session
        self._dimensions = dimensions
        self._divisors = divisors
        # The deviation of two fractions is worked out in another way than that of three, and rounded otherwise.
        count = np.sum(there, axis=0)
        every = range(len(dimensions))
        pairs = [(one, other) for one in every for other in every if one < other]
        counted = [(pair, (count == 2) & there[pair[0]] & there[pair[1]]) for pair in pairs]
        self._full: Mask = count == len(dimensions)
        self._everywhere = bool(self._full.all())
        self._pairs = [(pair, where) for pair, where in counted if where.any()] if len(every) > 2 else []
        self._now: Scores = np.zeros(len(count))
        self._seen = -1

    def now(self, rows: NodeRows | slice) -> Scores:
        """Of nodes as they are. It is the same for tasks of all classes, and kept."""
        changes = self._session.changes
        if self._seen < len(changes):
            changed = EVERY_NODE if self._seen < 0 else changes.since(self._seen)
            self._now[changed] = self._judge(self._fractions(changed, self._session.nodes.requested), changed)
            self._seen = len(changes)
        now: Scores = self._now[rows]
        return now

    def of(self, cells: Cells, more: int) -> Scores:
        """With the tasks that are imagined there, and so many more."""
        rows, asked = cells.rows, cells.class_.request
        extra = cells.extra + more
        nodes = cells.nodes
        fractions = []
        for dimension, divisor in zip(self._dimensions, self._divisors, strict=True):
            requested = nodes.requested[dimension][rows] + extra * int(asked[dimension])
            fractions.append(np.minimum(requested / divisor[rows], 1.0))
        return self._judge(fractions, rows)

    def _fractions(self, rows: NodeRows | slice, requested: Amounts) -> list[Scores]:
        parts = zip(self._dimensions, self._divisors, strict=True)
        return [np.minimum(requested[d][rows] / divisor[rows], 1.0) for d, divisor in parts]

    def _judge(self, fractions: list[Scores], rows: NodeRows | slice) -> Scores:
        deviation = _deviation(fractions)
        if not self._everywhere:
            # With one fraction there is no deviation; with fewer than all, each choice of two is a case of its own.
            kept = np.where(self._full[rows], deviation, 0.0)
            for (one, other), where in self._pairs:
                kept = np.where(where[rows], np.abs((fractions[one] - fractions[other]) / 2), kept)
            deviation = kept
        return np.floor((1 - deviation) * HIGHEST)


def _stated(session: Session, dimension: int) -> Amounts:
    """What the nodes say that they have of a resource."""
    name, facts = session.resources.names[dimension], session.nodes.facts
    units = [
        session.resources.base_units(dimension, one.status.allocatable.get(name, 0)) for one in facts.objects
    ]
    return np.array(units, dtype=np.int64)


def _deviation(fractions: Sequence[Scores]) -> Scores:
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    mean = (fractions[0] + fractions[1] + fractions[2]) / 3
    first, second, third = (fraction - mean for fraction in fractions)
    return np.sqrt((first * first + second * second + third * third) / 3)
