"""The budget of a search: how much work an action may spend per cycle on trials that sums cannot decide.

Used by `making_room.py`, which gives each job an `Allowance`, and by the default solver, which spends it. A
unit is one task that is evicted or placed on trial; with more than a thousand nodes it counts in proportion,
since every placement looks at all of them. Nothing is timed: the same input gives the same plan.

Half of the budget is common: each job may use up to a quarter of what is left of it, in the order of turns. The
other half is kept for the jobs from one position in the line on, each of which may use half of what is left.
The position is derived from the time of the cycle, so that it differs from cycle to cycle and no job is left
with the remainder forever. Every job may in any case try the one set of victims that sums propose.
"""

from dataclasses import dataclass

from maniple.framework.draws import drawn
from maniple.framework.session import Session

OPTION, DEFAULT = "searchBudget", 4000
_NODES = 1000  # a placement that looks at so many is one unit
_QUARTER, _HALF = 0.25, 0.5
_UNLIMITED = float("inf")


class OutOfBudgetError(Exception):
    """The allowance of a job is used up; nothing is evicted or placed on trial at that point."""


@dataclass(slots=True, eq=False)
class Allowance:
    """What one job's search may spend, and what it has spent."""

    most: float = _UNLIMITED
    nodes: int = 0  # of the cluster
    spent: float = 0.0
    ran_out: bool = False

    def spend(self, tasks: int) -> None:
        """Tasks are about to be evicted or placed on trial. Raises OutOfBudgetError, except on the first trial."""
        cost = tasks * max(1.0, self.nodes / _NODES)
        if self.spent and self.spent + cost > self.most:
            self.ran_out = True
            raise OutOfBudgetError
        self.spent += cost


class Budget:
    """Of one action in one cycle, for so many jobs in line."""

    def __init__(self, session: Session, jobs: int) -> None:
        given = int(session.options.get(OPTION, DEFAULT))
        bounded = session.rules.victims.search_is_bounded and given > 0  # a budget of 0 is none
        total = float(given) if bounded else _UNLIMITED
        self._common = self._kept = total / 2
        # The place in line from which on jobs may use what is kept.
        seconds = int(session.now.timestamp()) if session.now is not None else 0
        self._first = drawn(seconds) % max(jobs, 1)
        self._place = -1
        self._nodes = len(session.nodes)

    def next(self) -> Allowance:
        """For the next job in line."""
        self._place += 1
        more = self._kept * _HALF if self._place >= self._first else 0.0
        return Allowance(self._common * _QUARTER + more, self._nodes)

    def settle(self, used: Allowance) -> None:
        """What a job has spent is gone, of the common half first."""
        common = min(used.spent, self._common * _QUARTER)
        self._common -= common
        if self._place >= self._first:
            self._kept = max(self._kept - (used.spent - common), 0.0)


__all__ = ["DEFAULT", "OPTION", "Allowance", "Budget", "OutOfBudgetError"]
