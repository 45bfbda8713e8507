"""The order of queues in the capacity plugin, as keys: the next to be served, and the next to reclaim from.

Called by capacity. Two leaves of the tree are compared by their branches just below their common ancestor:
the smaller share first, then the one that deserves something. Equal branches are ordered by their age and
name, so that the order has no cycles; in the original the leaves' own age decides, even where that makes one.
"""

from typing import Any

from maniple.plugins.fairness.capacity_account import CapacityAccount


def standing(account: CapacityAccount) -> tuple[Any, ...]:
    """The key of a queue among siblings; the smaller goes first."""
    return -account.priority, account.share, account.best_effort


def standing_in_tree(account: CapacityAccount, *, deep_ties: bool) -> tuple[Any, ...]:
    """The key of a queue in a tree; the smaller goes first, and leaves before inner queues.

    `deep_ties`: equal branches are distinguished by their identity.
    """
    alone = account.inner or not account.above
    branches = (
        (account,) if alone else account.path[-2::-1]
    )  # from just below the root down to the queue itself
    if not deep_ties:
        return -account.priority, account.inner, _Branches(branches)
    standings = tuple([(branch.share, branch.best_effort, *branch.tie) for branch in branches])
    return -account.priority, account.inner, standings


def victim_standing(account: CapacityAccount, asking: CapacityAccount) -> int:
    """The key for victims; the smaller is taken first: the preemptor's nearest relatives."""
    depth = 0
    for ours, theirs in zip(reversed(account.above), reversed(asking.above), strict=False):
        if ours is not theirs:
            break
        depth += 1
    return -max(depth - 1, 0)


class _Branches:
    """Equal if the branches below the common ancestor are, whatever is further down."""

    __slots__ = ("_standings",)

    def __init__(self, branches: tuple[CapacityAccount, ...]) -> None:
        self._standings = [(id(branch), (branch.share, branch.best_effort)) for branch in branches]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Branches) and self._compared(other) == 0

    def __lt__(self, other: "_Branches") -> bool:
        return self._compared(other) < 0

    __hash__ = None  # type: ignore[assignment]  # equality is not transitive

    def __repr__(self) -> str:
        return str([standing for _, standing in self._standings])

    def _compared(self, other: "_Branches") -> int:
        for (branch, ours), (another, theirs) in zip(self._standings, other._standings, strict=False):
            if branch != another:
                return (ours > theirs) - (ours < theirs)
        return 0
