"""What the search for devices may cost in a cycle, in units of work.

Used by `dynamic_resources.py`, which opens an account for each set of claims that pods wait for, and by
`device_search.py`, which spends from it. Units are counted and no time is measured: the same input gives the same
plan. In long searches a unit takes up to about a microsecond. The account covers all nodes. When it is empty, the
nodes that are left have no verdict in this cycle, and the pod waits for one of them.

Half of the budget is guaranteed, in equal shares: to each namespace with such pods, and there to each of its
different sets of claims, so that neither many claims nor hard ones cost another namespace its share. The other half
is common: in the order of turns, each set may take a quarter of what is left. On top of that, each pod brings what
it takes to look at a node again after another pod took devices there; otherwise a large gang could not be placed.

Not only the search takes time, so the number of sets is bounded as well: of a namespace with more of them than its
share, others have their turn in every `period`. A turn lasts for a while, or statuses would change all the time.

What is known from an earlier cycle is paid for like everything else, although no search is needed for it. So a plan
does not depend on what happens to be remembered.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

TOTAL = 500_000  # up to a thousand nodes; beyond, in proportion
PER_POD = 200
MOST_SETS = 400  # of claims, of all namespaces together
LEAST_SETS = 20  # of one namespace, however many there are
_NODES = 1000
_QUARTER = 0.25


class OutOfWorkError(Exception):
    """The account is empty."""


class Charged(Protocol):
    """What is paid for once in a cycle, by the first search that needs it."""

    @property
    def work(self) -> int: ...


@dataclass(slots=True, eq=False)
class WorkAccount:
    """What is left to the search for one set of claims, on all nodes together."""

    left: float
    _budget: "DeviceBudget"
    _topped_up: bool = False

    @property
    def empty(self) -> bool:
        return self._topped_up and not self.left

    def affords(self, units: int) -> bool:
        if units > self.left and not self._topped_up:
            self._topped_up = True
            self.left += self._budget.part_of_common()
        return units <= self.left

    def price(self, charged: Iterable[Charged]) -> int:
        """Units for what has not been paid for in this cycle."""
        return sum(one.work for one in charged if one not in self._budget.paid)

    def pay(self, charged: Iterable[Charged]) -> None:
        """Pay for all of it. Raises OutOfWorkError: then it has paid for none, and is empty."""
        unpaid = [one for one in charged if one not in self._budget.paid]
        units = sum(one.work for one in unpaid)
        if not self.affords(units):
            self.left = 0
            raise OutOfWorkError
        self.left -= units
        self._budget.paid.update(unpaid)


class DeviceBudget:
    """Of one cycle. `waiting`: pods by namespace and by the key of their set of claims; `period` counts up."""

    def __init__(self, nodes: int, waiting: Mapping[str, Mapping[Hashable, int]], period: int = 0) -> None:
        total = TOTAL * max(1.0, nodes / _NODES)
        self._common = total / 2
        self._namespaces = max(len(waiting), 1)
        self._guaranteed = total / 2
        self._shares: dict[Hashable, float] = {}
        self.most_sets = max(MOST_SETS // self._namespaces, LEAST_SETS)
        self._later: set[Hashable] = set()
        for pods in waiting.values():
            keys = self._whose_turn_it_is([*pods], period)
            self._later.update(pods)
            for key in keys:
                share = self._guaranteed / self._namespaces / len(keys) + PER_POD * pods[key]
                self._shares[key] = self._shares.get(key, 0.0) + share
        self._later -= self._shares.keys()
        self._accounts: dict[Hashable, WorkAccount] = {}
        self.paid: set[Charged] = set()

    def _whose_turn_it_is(self, keys: list[Hashable], period: int) -> list[Hashable]:
        if len(keys) <= self.most_sets:
            return keys
        first = period * self.most_sets % len(keys)
        return [*keys[first:], *keys[:first]][: self.most_sets]

    def comes_later(self, key: Hashable) -> bool:
        """Whether pods wait for this set of claims, and it is not its turn."""
        return key in self._later

    def account(self, key: Hashable) -> WorkAccount:
        """Of a set of claims; one that no pod waits for, such as that of a pod to be moved, has no share."""
        if key not in self._accounts:
            self._accounts[key] = WorkAccount(self._shares.get(key, 0.0), self)
        return self._accounts[key]

    def part_of_common(self) -> float:
        part = self._common * _QUARTER
        self._common -= part
        return part
