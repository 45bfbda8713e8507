"""How full domains would be: binpack, with domains instead of nodes.

Called by network-topology-aware. score = sum of w_r x (used_r + request_r) / allocatable_r, divided by the
sum of w_r, over the requested resources r that have a weight; 0 if that would be more than a domain has, or
if no resource has a weight. Used amounts follow every placement and eviction of the session, since they are
read from the nodes.
"""

from collections.abc import Mapping

import numpy as np

from maniple.cluster.domain_sums import DomainSums, KeptSums
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Scores
from maniple.framework.session import Session


class DomainPacking:
    def __init__(self, session: Session, weights: Mapping[str, int]) -> None:
        self._nodes = session.nodes
        self._places: DomainSums = session.groups.places
        known = ((session.resources.known(name), weight) for name, weight in weights.items())
        # A resource without a dimension is one that no node has.
        height = len(session.nodes.allocatable)
        self._weights = {d: weight for d, weight in known if d is not None and d < height}
        self._dimensions = list(self._weights)
        self._allocatable = self._places.over(session.nodes.allocatable[self._dimensions])
        self._used = KeptSums(self._places, session.changes)

    def scores(self, request: Amounts) -> Scores:
        """By domain, for tasks with this total request."""
        return self.running(request).scores

    def running(self, request: Amounts) -> "RunningPacking":
        """The same, updated while tasks with this request each are placed."""
        asked = [place for place, dimension in enumerate(self._dimensions) if request[dimension] > 0]
        weights = [self._weights[self._dimensions[place]] for place in asked]
        used = self._used.of(self._nodes.requested[self._dimensions])[asked]
        return RunningPacking(weights, request[self._dimensions][asked], used, self._allocatable[asked])


class RunningPacking:
    """By domain, how full one more task would make it."""

    def __init__(self, weights: list[int], request: Amounts, used: Amounts, allocatable: Amounts) -> None:
        self._weights = weights
        self._request: list[int] = request.tolist()
        self._used = used
        self._allocatable = allocatable
        self.scores: Scores = np.zeros(used.shape[1])
        if sum(weights) > 0:
            self._judge(slice(None))

    def take(self, domains: Amounts) -> None:
        """One more task went into each of these domains."""
        for used, asked in zip(self._used, self._request, strict=True):
            used[domains] += asked
        if sum(self._weights) > 0:
            self._judge(domains)

    def _judge(self, domains: Amounts | slice) -> None:
        total, overfull = 0.0, False
        for weight, asked, used, there in zip(
            self._weights, self._request, self._used[:, domains], self._allocatable[:, domains], strict=True
        ):
            wanted = used + asked
            overfull = overfull | (wanted > there)
            total = total + weight * (wanted / np.maximum(there, 1))
        self.scores[domains] = np.where(overfull, 0.0, total / sum(self._weights))
