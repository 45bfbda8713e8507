"""The order of queues in the capacity plugin, as keys: whose turn is first, and from whom to take first.

Called by capacity. Two leaves of the tree are compared by the branches that they are on just below
their common ancestor: the smaller share first, then the one that deserves something. Branches that
stand equal go by their age and name, so that the order has no circles; in the original the leaves' own
age decides, also where that makes one.
"""

from typing import Any

from maniple.plugins.fairness.capacity_account import CapacityAccount


def standing(account: CapacityAccount) -> tuple[Any, ...]:
    """Of queues side by side; the smaller goes first."""
    return -account.priority, account.share, account.best_effort


def standing_in_tree(account: CapacityAccount, *, deep_ties: bool) -> tuple[Any, ...]:
    """The smaller goes first. Queues that have queues below them stand behind those that have none.

    `deep_ties`: branches that compare equal are told apart by what identifies them.
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
    """The smaller is taken first: the nearest relatives of the asker."""
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

    def _compared(self, other: "_Branches") -> int:
        for (branch, ours), (another, theirs) in zip(self._standings, other._standings, strict=False):
            if branch != another:
                return (ours > theirs) - (ours < theirs)
        return 0
