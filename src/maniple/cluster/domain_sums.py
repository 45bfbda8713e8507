"""Sums over the nodes of every domain at once.

Built once per domain tree; used by placement (free slots) and by plugins (what is used). The nodes of all
domains are stored one domain after another in a single list, so that a sum per domain is one pass over it,
whatever the shape of the tree.
"""

from collections.abc import MutableMapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.changes import ChangeLog
from maniple.cluster.domains import NONE, ROOT, DomainTree
from maniple.cluster.resources import Amounts

Domains = NDArray[np.int64]


class DomainSums:
    """A tree as lists of rows: which nodes are in a domain, which domains are below it, where a node is at home."""

    def __init__(self, tree: DomainTree) -> None:
        self.tree = tree
        domains, self._nodes = np.nonzero(tree.members)
        sizes = np.bincount(domains, minlength=len(tree))
        self._filled = np.flatnonzero(sizes)
        self._starts = np.cumsum(sizes)[self._filled] - sizes[self._filled]
        self._below: dict[int, Domains] = {}

    def over(self, values: Amounts) -> Amounts:
        """Of values by node (last axis) the sums by domain."""
        sums = np.zeros((*values.shape[:-1], len(self.tree)), dtype=values.dtype)
        if len(self._starts):
            sums[..., self._filled] = np.add.reduceat(values[..., self._nodes], self._starts, axis=-1)
        return sums

    @cached_property
    def holders(self) -> Domains:
        """Per node the domains that hold it (nodes x most of them), filled up with a number that no domain has."""
        nodes, domains = np.nonzero(self.tree.members.T)
        counts = np.bincount(nodes, minlength=self.tree.members.shape[1])
        held = np.arange(int(counts.max(initial=0))) < counts[:, None]
        holders = np.full(held.shape, len(self.tree), dtype=np.int64)
        holders[held] = domains
        return holders

    def below(self, domain: int) -> Domains:
        """The domain and all those inside it, in the order of rows."""
        found = self._below.get(domain)
        if found is None:
            reached = [domain]
            for row in reached:
                reached += self.tree.children(row)
            found = self._below[domain] = np.array(sorted(reached), dtype=np.int64)
        return found

    def highest_below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of values by domain the highest that the domain or one inside it has."""
        highest = values.copy()
        for rows in self._upwards:
            np.maximum.at(highest, self.tree.parent[rows], highest[rows])
        return highest

    @cached_property
    def _upwards(self) -> list[Domains]:
        """The domains by how far they are from the root, the farthest first, without the root."""
        distance = np.array([len(self.tree.ancestors(row)) for row in range(len(self.tree))])
        return [np.flatnonzero(distance == steps) for steps in range(int(distance.max()), 1, -1)]

    @cached_property
    def tiers(self) -> list[int]:
        """The tiers that there are, the root's among them, the closest first."""
        return sorted(set(self.tree.tier.tolist()))

    @cached_property
    def home(self) -> Domains:
        """Per node its domain of the lowest tier; -1 when it has none there, even if a wider domain holds it."""
        tree = self.tree
        if len(tree) == 1:
            return np.zeros(tree.members.shape[1], dtype=np.int64)
        lowest = (tree.leaf_of != NONE) & (tree.tier[tree.leaf_of] == self.tiers[0])
        return np.where(lowest, tree.leaf_of, NONE)

    @cached_property
    def uniform(self) -> NDArray[np.bool_]:
        """By domain: all its nodes are at home in the same domain, so that nothing tells them apart."""
        return np.array([len(np.unique(self.home[row])) <= 1 for row in self.tree.members], dtype=np.bool_)

    def around(self, nodes: NDArray[np.integer]) -> int:
        """The narrowest domain that holds all these nodes."""
        holding = np.flatnonzero(self.tree.members[1:, nodes].all(axis=1))
        return int(holding[0]) + 1 if len(holding) else ROOT

    def joined(self, a: int, b: int) -> int:
        """The narrowest domain around two; one of them where the other is none."""
        return b if a == NONE else a if b == NONE else self.tree.lowest_common(a, b)


class KeptSums:
    """The sums by domain of values that change on a few nodes at a time, kept up by a log of those nodes."""

    def __init__(self, places: DomainSums, log: ChangeLog) -> None:
        self._places = places
        self._log = log
        self._seen = -1
        self._values: Amounts = np.zeros(0, dtype=np.int64)
        self._sums: Amounts = self._values

    def of(self, values: Amounts, *, afresh: bool = False) -> Amounts:
        """The sums of the values as they are now (rows x nodes). `afresh`: more changed than the log says."""
        if self._seen < 0 or afresh:
            self._values = values.copy()
            self._sums = np.zeros((len(values), len(self._places.tree) + 1), dtype=np.int64)
            self._sums[:, :-1] = self._places.over(values)
        elif self._seen < len(self._log):
            self._update(self._log.since(self._seen), values)
        self._seen = len(self._log)
        return self._sums[:, :-1]

    def _update(self, nodes: NDArray[np.intp], values: Amounts) -> None:
        holders = self._places.holders[nodes]
        for kept, now, sums in zip(self._values, values, self._sums, strict=True):
            more = now[nodes] - kept[nodes]
            kept[nodes] = now[nodes]
            np.add.at(sums, holders, more[:, None])


def sums_of(tree: DomainTree, memory: MutableMapping[object, object]) -> DomainSums:
    """The sums of a tree, remembered for as long as the tree is the same."""
    known = memory.get(DomainSums)
    if not isinstance(known, DomainSums) or known.tree is not tree:
        known = memory[DomainSums] = DomainSums(tree)
    return known
