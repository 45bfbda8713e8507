"""How full a node would be, resource by resource, as a weighted average.

Shared by binpack and resource-strategy-fit. Cells are nodes with hypothetical tasks on them (see
framework/criteria.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, Scores

Counted = Callable[[Cells, int], Amounts]


@dataclass(frozen=True, slots=True)
class Term:
    """One resource: most=True scores what would be used, most=False what would be left, None nothing."""

    dimension: int
    weight: int
    most: bool | None


def weighted_average(terms: Sequence[Term], cells: Cells, counted: Counted = Cells.used) -> Scores:
    """`counted`: what is in use of a resource, hypothetical tasks included.

    Between 0 and 1, if weights are positive; 0 if a node would be more than full in a weighted resource. A
    resource of which the node has none adds 0 but its weight counts.
    """
    total: Scores = np.zeros(np.shape(cells.pods()), dtype=np.float64)
    overfull = np.zeros(total.shape, dtype=np.bool_)
    for term in terms:
        if term.weight == 0 or term.most is None:
            continue
        allocatable = cells.allocatable(term.dimension)
        used = counted(cells, term.dimension) + int(cells.class_.request[term.dimension])
        offered = allocatable != 0
        overfull |= offered & (used > allocatable)
        part = (used if term.most else allocatable - used) * float(term.weight)
        total += np.where(offered, part / np.where(offered, allocatable, 1), 0.0)
    weights = sum(term.weight for term in terms)
    if weights > 0:
        total /= weights
    return np.where(overfull, 0.0, total)
