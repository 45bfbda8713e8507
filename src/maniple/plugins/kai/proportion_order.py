"""The order of queues, for KAI's proportion.

The first difference decides; the smaller goes first:
1. a queue above its fair share of everything is last;
2. one that stays within its quota with its next job is first;
3. the higher priority;
4. one that would have some of what it may not have is last;
5. the smaller dominant share, with its next job and without its victims;
6. the same as things are;
7. the one that may have less, if it may have no more of anything;
8. with strict rules, the older. Otherwise the session's own order follows, which is total.
"""

from collections.abc import Sequence

from maniple.framework.points import Key
from maniple.plugins.kai.counting import Amount
from maniple.plugins.kai.queue_accounts import Account, fits, minus, plus

# The parts of the key, as a trace names them.
PARTS = (
    "above its fair share of everything",
    "over its quota with its next job",
    "priority, negated",
    "over a limit with its next job",
    "dominant share with its next job",
    "dominant share",
    "what it may have",
    "created",
)


class Room:
    """What a queue may have, in a partial order where incomparable ones count as equal."""

    __slots__ = ("amount",)

    def __init__(self, amount: Amount) -> None:
        self.amount = amount

    def __lt__(self, other: "Room") -> bool:
        return self.amount != other.amount and fits(self.amount, other.amount)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Room) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]  # equality is not transitive

    def __repr__(self) -> str:
        return "(" + ", ".join(f"{amount:g}" for amount in self.amount) + ")"


def turn(
    account: Account, request: Sequence[float] | None, given_up: Sequence[float] | None, *, older_first: bool
) -> Key:
    """The sort key of a queue; `request` is that of its next job, `given_up` what its victims have."""
    allocated = account.allocated
    with_job = plus(allocated, request) if request is not None else allocated
    out_of_bounds = any(with_job[resource] > 0 for resource in account.closed) if account.closed else False
    after = minus(with_job, given_up) if given_up is not None else with_job
    key = (
        account.is_above_share(),
        not fits(with_job, account.quota),
        -account.priority,
        out_of_bounds,
        account.share(after),
        account.share(allocated),
        Room(account.allocatable),
    )
    return (*key, account.created) if older_first else key


__all__ = ["PARTS", "Room", "turn"]
