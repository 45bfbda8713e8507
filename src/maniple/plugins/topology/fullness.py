"""How full the domains around a node would be, the closer ones counting more.

Called by network-topology-aware, for tasks without a topology: they fill domains one after the other, so that
whole ones stay free for tasks that need them. Sum over tiers of fading^(tier - 1) x how full the domain of
that tier would be (1 if the node is in none), divided by the sum of the fading weights. Tiers between the
lowest and the highest that no HyperNode has count like those that do not contain the node.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.framework.session import Session
from maniple.plugins.topology.packing import DomainPacking, RunningPacking


class Fullness:
    def __init__(self, session: Session, packing: DomainPacking, fading: float) -> None:
        self._session = session
        self._packing = packing
        self._fading = fading

    def score(self, class_: TaskClass, cells: Cells) -> Scores:
        rows = cells.node_rows()
        return self.steps(class_, rows).shift(np.ones(len(rows), dtype=np.bool_))

    def steps(self, class_: TaskClass, rows: NodeRows) -> "FullnessSteps":
        """Nodes in the same domains have the same score; there are far fewer such sets than nodes."""
        weights, chains, chain_of = self._chains
        return FullnessSteps(self._packing.running(class_.request), weights, chains, chain_of[rows])

    @cached_property
    def _chains(self) -> tuple[list[float], Domains, NDArray[np.intp]]:
        """The weight of every tier; the sets of domains that hold nodes (tiers x sets), and each node's set."""
        tree, tiers = self._session.domains, self._session.groups.places.tiers
        every = range(tiers[0], tiers[-1] + 1)
        holders = np.full((len(every), len(self._session.nodes)), NONE, dtype=np.int64)
        for place, tier in enumerate(every):
            rows = np.flatnonzero(tree.tier == tier)
            if len(rows):
                members = tree.members[rows]
                holders[place] = np.where(members.any(axis=0), rows[members.argmax(axis=0)], NONE)
        chains, chain_of = np.unique(holders, axis=1, return_inverse=True)
        return [self._weight(tier) for tier in every], chains, chain_of.reshape(-1)

    def _weight(self, tier: int) -> float:
        # Tier 0 counts more than tier 1; with a fading of 0 its weight would be infinite.
        weight: float = self._fading ** (tier - 1 if self._fading > 0 else max(tier - 1, 0))
        return weight


class FullnessSteps:
    """The same, while tasks of a class are placed one by one."""

    def __init__(
        self, packing: RunningPacking, weights: list[float], chains: Domains, chain_of: NDArray[np.intp]
    ) -> None:
        self._packing = packing
        self._weights = weights
        self._chains = chains
        self._chain_of = chain_of

    def shift(self, _candidates: NDArray[np.bool_]) -> Scores:
        full = np.append(self._packing.scores, 1.0)  # the last is for nodes in no domain of a tier
        scores = np.zeros(self._chains.shape[1])
        for weight, domains in zip(self._weights, self._chains, strict=True):
            scores += weight * full[domains]
        shifted: Scores = (scores / sum(self._weights))[self._chain_of]
        return shifted

    def take(self, place: int) -> None:
        domains = self._chains[:, self._chain_of[place]]
        self._packing.take(domains[domains != NONE])
