"""LeastAllocated, MostAllocated, BalancedAllocation: how full a node would be with the task on it.

- least: per resource 100 x (allocatable - requested) / allocatable, 0 if it is exceeded; the mean over CPU
  and memory
- most: per resource 100 x requested / allocatable, at most 100; the mean over CPU and memory
- balanced: 50 + (50 + b(with the task) - b(without)) / 2, where b = 100 x (1 - standard deviation of
  requested / allocatable) over CPU, memory and, for tasks that request them, nvidia.com/gpu; tasks that
  request none of these get no score

With strict rules, a node's capacity is its status: kube-scheduler does not know about oversubscription.

Whole numbers, rounded down at every step as in kube-scheduler; a resource that a node does not have is left
out. Least and most count 100m and 200Mi for containers without requests, balanced counts the real requests.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.criteria import Cells, Dependence, NodeRows, Scorer, Scores, columns
from maniple.framework.session import Session
from maniple.plugins.normalise import HIGHEST

_GPU = "nvidia.com/gpu"
# Up to this capacity, 100 times an amount is a whole number as a float, and no quotient of two rounds up to the next.
_EXACT = 2**46

Mask = NDArray[np.bool_]


class ResourceScores:
    """The three scores, for one session."""

    def __init__(self, session: Session) -> None:
        gpu = session.resources.known(_GPU)
        self._gpu = gpu if gpu is not None and gpu < len(session.nodes.allocatable) else None
        dimensions = [CPU, MEMORY] if self._gpu is None else [CPU, MEMORY, self._gpu]
        offered = session.nodes.allocatable
        self._has = {
            d: offered[d] if session.rules.placing.lent_resources_score else _stated(session, d)
            for d in dimensions
        }
        # A divisor for every node, and whether the resource really exists there.
        self._divisor = {d: np.maximum(self._has[d], 1) for d in dimensions}
        self._there = {d: self._has[d] > 0 for d in dimensions}
        self._main = np.array([self._has[CPU], self._has[MEMORY]])
        self._main_divisors = np.maximum(self._main, 1).astype(np.float64)
        self._whole = bool((self._main > 0).all())  # every node has cpu and memory
        self._huge = bool((self._main > _EXACT).any())
        self._counted = np.maximum((self._main > 0).sum(axis=0), 1)  # by node, how many of the two it has
        self._balances: dict[tuple[int, ...], _Balance] = {}

    def least(self, weight: int) -> Scorer:
        return Scorer("LeastAllocated", weight, Dependence.NODE, self._least, mixes=True)

    def most(self, weight: int) -> Scorer:
        return Scorer("MostAllocated", weight, Dependence.NODE, self._most, mixes=True)

    def balanced(self, weight: int) -> Scorer:
        return Scorer(
            "BalancedAllocation",
            weight,
            Dependence.NODE,
            self._balanced,
            applies=self._asks,
            mixes=True,
        )

    # -- least and most -------------------------------------------------------------------------------------------

    def _least(self, _: TaskClass, cells: Cells) -> Scores:
        free = np.subtract(columns(self._main, cells.rows), _requested(cells))
        return self._mean(np.maximum(free, 0, out=free), cells.rows)

    def _most(self, _: TaskClass, cells: Cells) -> Scores:
        return self._mean(np.minimum(_requested(cells), columns(self._main, cells.rows)), cells.rows)

    def _mean(self, amounts: Amounts, rows: NodeRows | slice) -> Scores:
        """Over the resources that the node has: the share of one that it lacks is zero and does not count."""
        amounts *= HIGHEST
        divisors = columns(self._main_divisors, rows)
        if self._huge:
            shares = (amounts // divisors.astype(np.int64)).astype(np.float64)
        else:
            shares = amounts.astype(np.float64)
            shares /= divisors
            np.floor(shares, out=shares)
        mean: Scores = shares[0] + shares[1]
        mean /= 2.0 if self._whole else self._counted[rows]
        return np.floor(mean, out=mean)

    # -- balanced -------------------------------------------------------------------------------------------------

    def _dimensions(self, class_: TaskClass) -> tuple[int, ...]:
        asks_gpu = self._gpu is not None and class_.request.item(self._gpu) > 0
        return (CPU, MEMORY, self._gpu) if asks_gpu and self._gpu is not None else (CPU, MEMORY)

    def _asks(self, class_: TaskClass) -> bool:
        request = class_.request
        return any(request.item(d) > 0 for d in self._dimensions(class_))

    def _balanced(self, class_: TaskClass, cells: Cells) -> Scores:
        dimensions = self._dimensions(class_)
        balance = self._balances.get(dimensions)
        if balance is None:
            balance = self._balances[dimensions] = _Balance(
                dimensions, [self._divisor[d] for d in dimensions], [self._there[d] for d in dimensions]
            )
        score = balance.gain(cells)
        score += HIGHEST // 2 + HIGHEST  # the half outside the quotient is a whole inside
        score /= 2
        return np.floor(score, out=score)


class _Balance:
    """b over some resources: 100 x (1 - standard deviation of requested / allocatable), rounded down."""

    def __init__(self, dimensions: tuple[int, ...], divisors: list[Amounts], there: list[Mask]) -> None:
        self._dimensions = np.array(dimensions)
        self._divisors = np.array(divisors, dtype=np.float64)
        count, every = np.sum(there, axis=0), range(len(dimensions))
        self._full: Mask = count == len(dimensions)  # nodes that have all of the resources
        self._everywhere = bool(self._full.all())
        # The deviation of two fractions is computed differently from that of three, and rounded differently.
        pairs = [(one, other) for one in every for other in every if one < other and len(every) > 2]
        places = [(pair, (count == 2) & there[pair[0]] & there[pair[1]]) for pair in pairs]
        self._pairs = [(pair, where) for pair, where in places if where.any()]

    def gain(self, cells: Cells) -> Scores:
        """b with the task there, less b without it."""
        rows, extra = cells.rows, cells.extra
        requested, asked = cells.requested_of(self._dimensions), cells.asked(self._dimensions)
        divisors = columns(self._divisors, rows)
        if cells.climbs:
            # Nodes with more and more hypothetical tasks: after one task is before the next.
            steps = (requested + np.arange(np.size(extra) + 1) * asked).astype(np.float64)
            steps /= divisors
            found = self._of(steps, rows)
            climbed: Scores = found[:, 1:] - found[:, :-1]
            return climbed
        if not isinstance(extra, int) or extra:
            requested = requested + extra * asked
        filled = requested + asked
        if filled.shape != requested.shape:  # several classes on the same nodes
            found = self._of(filled / divisors, rows)
            found -= self._of(requested / divisors, rows)
            return found
        # Without the task, and with it.
        fractions = np.empty((len(requested), 2, *requested.shape[1:]))
        fractions[:, 0] = requested
        fractions[:, 1] = filled
        fractions /= divisors[:, None]
        without, with_it = self._of(fractions, rows)
        gain: Scores = with_it - without
        return gain

    def _of(self, fractions: Scores, rows: NodeRows | slice) -> Scores:
        """By the fraction of each resource that is requested, resources on the first axis; they are overwritten."""
        np.minimum(fractions, 1.0, out=fractions)
        pairs = [(_apart(fractions[one], fractions[other]), where) for (one, other), where in self._pairs]
        deviation = _deviation(fractions)
        if not self._everywhere:
            # With one fraction there is no deviation; with fewer than all, each choice of two is a case of
            # its own.
            deviation *= self._full[rows]
            for apart, where in pairs:
                np.copyto(deviation, apart, where=where[rows])
        np.subtract(1.0, deviation, out=deviation)
        deviation *= HIGHEST
        return np.floor(deviation, out=deviation)


def _deviation(fractions: Scores) -> Scores:
    """The standard deviation of two or three fractions, which are overwritten."""
    if len(fractions) == 2:
        return _apart(fractions[0], fractions[1])
    mean = fractions[0] + fractions[1]
    mean += fractions[2]
    mean /= 3
    fractions -= mean
    fractions *= fractions
    variance: Scores = fractions[0] + fractions[1]
    variance += fractions[2]
    variance /= 3
    return np.sqrt(variance, out=variance)


def _apart(one: Scores, other: Scores) -> Scores:
    """The standard deviation of two fractions."""
    deviation = one - other
    deviation /= 2
    return np.abs(deviation, out=deviation)


def _requested(cells: Cells) -> Amounts:
    """CPU and memory that would be requested with the task there, with defaults for unset requests."""
    asked = cells.asked_nonzero()
    extra = cells.extra
    found: Amounts = cells.nonzero() + (
        asked if isinstance(extra, int) and not extra else (extra + 1) * asked
    )
    return found


def _stated(session: Session, dimension: int) -> Amounts:
    """The capacity of a resource in the nodes' status."""
    name, facts = session.resources.names[dimension], session.nodes.facts
    units = [
        session.resources.base_units(dimension, one.status.allocatable.get(name, 0)) for one in facts.objects
    ]
    return np.array(units, dtype=np.int64)
