"""How full domains would be: binpack, with a domain in the place of a node.

Called by network-topology-aware. score = sum of w_r x (used_r + request_r) / allocatable_r, divided by the sum of w_r, over the requested resources r that
have a weight; 0 where that would be more than a domain has, or where no resource has a weight. What is used follows every placement and
eviction of the session, since it is read off the nodes.
"""

from collections.abc import Mapping

import numpy as np

from maniple.cluster.domain_sums import DomainSums
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Scores
from maniple.framework.session import Session


class DomainPacking:
    def __init__(self, session: Session, weights: Mapping[str, int]) -> None:
        self._nodes = session.nodes
        self._places: DomainSums = session.sub_jobs.places
        known = ((session.resources.known(name), weight) for name, weight in weights.items())
        # A resource that the session's books do not have is one that no node has.
        height = len(session.nodes.allocatable)
        self._weights = {d: weight for d, weight in known if d is not None and d < height}
        self._allocatable = self._places.over(session.nodes.allocatable)

    def scores(self, request: Amounts) -> Scores:
        """By domain, for tasks that ask for so much together."""
        terms = [(d, weight) for d, weight in self._weights.items() if request[d] > 0]
        total, weights = np.zeros(len(self._places.tree)), sum(weight for _, weight in terms)
        if weights <= 0:
            return total
        overfull = np.zeros(len(total), dtype=np.bool_)
        used = self._places.over(self._nodes.requested[[d for d, _ in terms]])
        for (dimension, weight), taken in zip(terms, used, strict=True):
            wanted, there = taken + int(request[dimension]), self._allocatable[dimension]
            overfull |= wanted > there
            total += weight * (wanted / np.maximum(there, 1))
        return np.where(overfull, 0.0, total / weights)
