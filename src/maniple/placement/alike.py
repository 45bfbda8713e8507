"""Classes of which every node says the same, so that what keeps tasks from being placed is worked out once.

In a backlog where no two jobs request the same, most differ in amounts that make no difference: on a full node, 4 cores
are as much too many as 5. Used by `judging.py`, as long as no node changes.
"""

from bisect import bisect_left
from collections.abc import Hashable

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.placement.criteria import Criteria, CriteriaTable


class AlikeClasses:
    """Compares what classes request with what nodes will have left, as they are now."""

    def __init__(self, free: Amounts, gpus: int | None) -> None:
        self._free = free
        # Dimensions that a node may lack though nothing of them is requested
        self._always = {CPU, MEMORY, gpus}
        self._levels: dict[int, list[int]] = {}  # by dimension, the amounts that some node has left
        self._first: int | None = None  # the first class: for it alone, sorting amounts is not worth it

    def key(self, class_: TaskClass, table: CriteriaTable) -> Hashable:
        """Equal for classes of which every node says the same; at least for the class itself."""
        if self._first is None:
            self._first = class_.number
        if class_.number == self._first or not table.shares(class_):
            return class_.number
        criteria = table.of(class_)
        if not by_amounts(class_, criteria):
            return class_.number
        ranks = [
            (dimension, amount > 0, bisect_left(self._levels_of(dimension), amount))
            for dimension, amount in enumerate(class_.request.tolist())
            if amount > 0 or dimension in self._always
        ]
        return (id(criteria), class_.best_effort, *ranks)  # the table keeps criteria that are shared

    def _levels_of(self, dimension: int) -> list[int]:
        known = self._levels.get(dimension)
        if known is None:
            known = self._levels[dimension] = np.unique(self._free[dimension]).tolist()
        return known


def by_amounts(class_: TaskClass, criteria: Criteria) -> bool:
    """Whether nothing but the criteria and amounts says which nodes take a task."""
    return (
        class_.share is None
        and not class_.spec.pod.spec.resource_claims
        and not criteria.cluster_filters
        and all(one.counts_pods for one in criteria.node_filters)
    )
