"""A topology's domains as one tree under a root, with sums over their nodes and their order for a job.

Made by the topology plugin from the cluster's levels. The root represents all nodes that have every label of
the topology.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.levels import OUTSIDE, KaiTopology
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import NodeRows

ROOT_NAME = "root"
ROOT_LEVEL = -1
Domains = NDArray[np.int64]
Chosen = NDArray[np.bool_]
Ratios = NDArray[np.float64]


class LevelTree:
    """Domains by number; the root is the last."""

    def __init__(self, topology: KaiTopology) -> None:
        self.name = topology.name
        self.levels = topology.levels
        self.root = len(topology)
        self.level = np.append(topology.level, ROOT_LEVEL)
        self.parent = np.append(np.where(topology.parent == OUTSIDE, self.root, topology.parent), self.root)
        self.ids = [*(topology.id(domain) for domain in range(self.root)), ROOT_NAME]
        by_id = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        self._rank_of_id = np.argsort(by_id)
        self._at = {one: np.flatnonzero(self.level == one) for one in range(ROOT_LEVEL, len(self.levels))}
        self._domain_of = topology.domain_of
        leaf = topology.domain_of[-1] if self.levels else np.zeros(0, dtype=np.int32)
        order = np.argsort(leaf, kind="stable")
        self._members = order[
            leaf[order] != OUTSIDE
        ]  # nodes of the topology, grouped by their narrowest domain
        self._leaves, self._starts = np.unique(leaf[self._members], return_index=True)
        self._all = np.sort(self._members)
        self._nodes: dict[int, NodeRows] = {}  # by domain, computed on demand

    # -- nodes ----------------------------------------------------------------------------------------------------

    def inside(self, nodes: NodeRows) -> NodeRows:
        """Those that have every label."""
        if len(nodes) == self._domain_of.shape[1]:
            return self._all
        some: NodeRows = nodes[self._domain_of[0, nodes] != OUTSIDE] if self.levels else nodes[:0]
        return some

    def nodes(self, domain: int, among: NodeRows) -> NodeRows:
        """Those of some nodes of the topology that are in the domain."""
        level = int(self.level[domain])
        if level == ROOT_LEVEL:
            return among
        if among is not self._all:
            some: NodeRows = among[self._domain_of[level, among] == domain]
            return some
        if domain not in self._nodes:
            self._nodes[domain] = np.flatnonzero(self._domain_of[level] == domain)
        return self._nodes[domain]

    def domains(self, nodes: NodeRows, level: int) -> Domains:
        """The domains of a level that contain these nodes of the topology."""
        if level == ROOT_LEVEL:
            return np.array([self.root] if len(nodes) else [], dtype=np.int64)
        return np.unique(self._domain_of[level, nodes])

    def by_node(self, values: Ratios, level: int, size: int, default: float) -> Ratios:
        """Values by domain, spread over all nodes by their domain of a level; the default for nodes outside."""
        spread = np.full(size, default)
        domains = self._domain_of[level]
        spread[domains != OUTSIDE] = values[domains[domains != OUTSIDE]]
        return spread

    # -- domains --------------------------------------------------------------------------------------------------

    def at(self, level: int) -> Domains:
        return self._at[level]

    def common(self, nodes: NodeRows, deepest: int) -> int:
        """The narrowest domain, no deeper than a level, that contains all these nodes of the topology."""
        found = self.root
        for level in range(deepest + 1 if len(nodes) else 0):
            held = self._domain_of[level, nodes]
            # An empty label value makes a domain, but not one that nodes have in common.
            if (held != held[0]).any() or not self.ids[held[0]].rpartition(".")[2]:
                break
            found = int(held[0])
        return found

    def below(self, domains: Domains | list[int]) -> Chosen:
        """By domain: whether it is one of these, or inside one."""
        chosen = np.zeros(self.root + 1, dtype=np.bool_)
        chosen[domains] = True
        for level in range(len(self.levels)):
            rows = self._at[level]
            chosen[rows] |= chosen[self.parent[rows]]
        return chosen

    def sums(self, values: Amounts) -> Amounts:
        """Of values by node (rows x nodes) the sums by domain."""
        sums = np.zeros((len(values), self.root + 1), dtype=values.dtype)
        if len(self._members):
            sums[:, self._leaves] = np.add.reduceat(values[:, self._members], self._starts, axis=1)
            for level in range(len(self.levels) - 1, -1, -1):
                rows = self._at[level]
                np.add.at(sums.T, self.parent[rows], sums[:, rows].T)
        return sums

    def order(self, ratios: Ratios) -> Domains:
        """By domain its index among those of its level: siblings together, the fullest first, then by name."""
        place = np.zeros(self.root + 1, dtype=np.int64)
        for level in range(len(self.levels)):
            rows = self._at[level]
            sorted_ = np.lexsort((self._rank_of_id[rows], -ratios[rows], place[self.parent[rows]]))
            place[rows[sorted_]] = np.arange(len(rows))
        return place
