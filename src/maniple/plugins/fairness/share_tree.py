"""The tree of hierarchical dominant resource fairness: branches named by queues' paths, jobs as leaves.

Called by drf. The amount of a branch is the sum over its children, where children that can still grow are
scaled down to the least dominant share among them, so that a branch is not penalised for one greedy child. A
leaf is saturated by a resource that it has some of, if it has all that it requests, or requests more and the
cluster has run out; what it has none of does not count. A branch is saturated if all its children are. Every
value is computed from integers, so undoing a change restores the same bits.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.plugins.fairness.water_filling import Vectors

Standing = tuple[bool, float]


class Branch:
    """An inner node; `jobs` are the rows of its direct leaves."""

    def __init__(self, parent: "Branch | None", weight: float, height: int) -> None:
        self.parent = parent
        self.weight = weight
        self.branches: dict[str, Branch] = {}
        self.jobs: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.allocated: Vectors = np.zeros(height, dtype=np.float64)
        self.share = 0.0
        self.saturated = False

    @property
    def standing(self) -> Standing:
        """The key of a branch: those that can still grow first, then the smaller share by weight."""
        return self.saturated, self.share / self.weight


class ShareTree:
    """`allocated` and `request` are resources x jobs; the owner changes `allocated` and reports it by
    `changed`."""

    def __init__(self, total: Amounts, allocated: Amounts, request: Amounts) -> None:
        self._offered = total > 0
        self._total = total
        self._scale = total[self._offered][:, None].astype(np.float64)
        self._allocated = allocated
        self._request = request
        self._in_use = np.zeros_like(total)
        self._demanding = np.zeros(len(total), dtype=np.bool_)
        self.root = Branch(None, 1.0, len(total))
        self._branches = [self.root]  # each after its parent

    def place(self, path: Sequence[str], weights: Sequence[float], jobs: NDArray[np.int64]) -> list[Branch]:
        """Add jobs below a path, creating missing branches; returns the branches from below the root down."""
        branch, passed = self.root, []
        for name, weight in zip(path, weights, strict=True):
            if name not in branch.branches:
                branch.branches[name] = Branch(branch, max(weight, 1.0), len(self._total))
                self._branches.append(branch.branches[name])
            branch = branch.branches[name]
            passed.append(branch)
        branch.jobs = np.concatenate([branch.jobs, jobs])
        self._in_use = self._in_use + self._allocated[:, jobs].sum(axis=1)
        return passed

    def refresh(self) -> None:
        """Compute the whole tree."""
        self._demanding = self._offered & (self._in_use < self._total)
        for branch in reversed(self._branches):
            self._measure(branch)

    def changed(self, branch: Branch, amounts: Amounts) -> None:
        """The allocated amount of a job on this branch changed; its column is updated already."""
        self._in_use = self._in_use + amounts
        demanding = self._offered & (self._in_use < self._total)
        if not np.array_equal(demanding, self._demanding):
            self.refresh()
            return
        while True:
            self._measure(branch)
            if branch.parent is None:
                return
            branch = branch.parent

    def _measure(self, branch: Branch) -> None:
        children = list(branch.branches.values())
        leaves = self._allocated[:, branch.jobs]
        allocated = np.column_stack([leaves, *(child.allocated for child in children)])
        shares = self._shares(allocated)
        branches = np.array([child.saturated for child in children], dtype=np.bool_)
        saturated = np.concatenate([self._are_saturated(branch.jobs), branches])
        grows = (shares > 0) & ~saturated
        least = float(shares[grows].min(initial=1.0))
        scale = (shares > 0).astype(np.float64)
        scale[grows] = least / shares[grows]
        branch.allocated = (allocated * scale).sum(axis=1)
        branch.share = float(self._shares(branch.allocated[:, None])[0])
        branch.saturated = bool(saturated.all())

    def _shares(self, allocated: NDArray[np.float64] | Amounts) -> Vectors:
        """The dominant share of each column."""
        return np.asarray((allocated[self._offered] / self._scale).max(axis=0, initial=0.0))

    def _are_saturated(self, jobs: NDArray[np.int64]) -> NDArray[np.bool_]:
        allocated, request = self._allocated[:, jobs], self._request[:, jobs]
        held = (allocated > 0) & (request > 0)
        return np.asarray((held & ((allocated >= request) | ~self._demanding[:, None])).any(axis=0))
