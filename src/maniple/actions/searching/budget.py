"""The budget of a search: how much work an action may spend per cycle on looking for victims.

Used by `making_room.py` and `volcano/room.py`, which give each job an `Allowance`, and by the default solver, which
spends it. A unit is one task that is evicted or placed on trial; with more than a thousand nodes it counts in
proportion, since every placement looks at all of them. Preparing a search and adding up what victims leave cost
parts of a unit. Nothing is timed: the same input gives the same plan.

Trials that sums cannot decide share one budget. Half of it is common: each job may use up to a quarter of what is
left of it, in the order of turns. A quarter is kept for the jobs from one position in the line on, and a quarter is
divided among the namespaces with jobs in line and kept for the jobs of each from one position among them on; each of
those jobs may use half of what is left. The positions are derived from the time of the cycle, so that they differ
from cycle to cycle and no job is left with the remainder forever.

The one set of victims that sums propose may be tried by any job as long as its namespace has something left of a
second budget, a quarter of the first and divided among the namespaces likewise. So many different jobs of one
namespace make no cycle long, and the jobs of another are served beside them. What serves a job like an earlier one
hardly counts, since nearly everything about it is known.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maniple.framework.draws import drawn
from maniple.framework.session import Session

OPTION, DEFAULT = "searchBudget", 4000
_NODES = 1000  # a placement that looks at so many is one unit
_QUARTER, _HALF = 0.25, 0.5
_LIKE_ANOTHER = 1 / 16  # of the units of a search that served a job like an earlier one
_CLASSES, _CHUNKS = 4, 8  # of a job, and of victims added up: so many are one unit
_UNLIMITED = float("inf")


class OutOfBudgetError(Exception):
    """The allowance of a job is used up; nothing is evicted or placed on trial at that point."""


@dataclass(slots=True, eq=False)
class Allowance:
    """What one job's search may spend, and what it has spent."""

    most: float = _UNLIMITED
    nodes: int = 0  # of the cluster
    spent: float = 0.0  # on trials
    first: float = 0.0  # on the first of them
    prepared: float = 0.0  # spent on what precedes them
    ran_out: bool = False

    def spend(self, tasks: int) -> None:
        """Tasks are about to be evicted or placed on trial. Raises OutOfBudgetError, except on the first trial."""
        cost = tasks * self._weight
        if self.spent and self.spent + cost > self.most:
            self.ran_out = True
            raise OutOfBudgetError
        self.first = self.first or cost
        self.spent += cost

    def prepare(self, classes: int) -> None:
        """A search for tasks of so many classes begins."""
        self.prepared += (1 + classes / _CLASSES) * self._weight

    def add_up(self, chunks: int) -> None:
        """So many chunks were looked at one by one. Those that are looked at all at once are not counted."""
        self.prepared += chunks / _CHUNKS

    @property
    def _weight(self) -> float:
        return max(1.0, self.nodes / _NODES)


@dataclass(slots=True, eq=False)
class _Kept:
    """Units for the jobs from one position in a line on."""

    units: float
    first: int
    place: int = -1

    @property
    def part(self) -> float:
        return self.units * _HALF if self.place >= self.first else 0.0

    def take(self, units: float) -> None:
        if self.place >= self.first:
            self.units = max(self.units - units, 0.0)


@dataclass(slots=True, eq=False)
class _Share:
    """Of one namespace: what is kept for its jobs, and what first trials may cost."""

    kept: _Kept
    tries: float = _UNLIMITED
    later_tries: _Kept = field(default_factory=lambda: _Kept(_UNLIMITED, 0))

    @property
    def may_try(self) -> bool:
        return self.tries > 0 or self.later_tries.part > 0

    def tried(self, units: float) -> None:
        if self.tries > 0:
            self.tries -= units
        else:
            self.later_tries.take(units)


class Budget:
    """Of one action in one cycle, for the jobs in line."""

    def __init__(self, session: Session, jobs: Sequence[int]) -> None:
        given = int(session.options.get(OPTION, DEFAULT))
        bounded = session.rules.victims.search_is_bounded and given > 0  # a budget of 0 is none
        total = float(given) if bounded else _UNLIMITED
        self._number = drawn(int(session.now.timestamp()) if session.now is not None else 0)
        self._common = total / 2
        self._kept = self._from_some_place(total / 4, len(jobs))
        namespaces = [session.job_key(job).partition("/")[0] for job in jobs]
        counts = Counter(namespaces)
        own = total / 4 / max(len(counts), 1)
        shares = {
            name: _Share(self._from_some_place(own, count), own / 2, self._from_some_place(own / 2, count))
            for name, count in counts.items()
        }
        self._share_of = {job: shares[name] for job, name in zip(jobs, namespaces, strict=True)}
        self._nodes = len(session.nodes)
        self._last = -1
        self._known: set[frozenset[int]] = set()  # the classes of jobs that had a search

    def _from_some_place(self, units: float, jobs: int) -> _Kept:
        return _Kept(units, self._number % max(jobs, 1))

    def next(self, job: int) -> Allowance:
        """For the next job in line, or for the same one again."""
        share = self._share_of[job]
        if job != self._last:
            self._last = job
            for kept in (self._kept, share.kept, share.later_tries):
                kept.place += 1
        return Allowance(self._common * _QUARTER + self._kept.part + share.kept.part, self._nodes)

    def may_try(self, job: int) -> bool:
        """Whether a search may begin: the job's namespace has something left."""
        return self._share_of[job].may_try

    def settle(self, job: int, used: Allowance, asked: frozenset[int], *, served: bool) -> None:
        """What a job has spent is gone. `asked`: the classes of the tasks that it was to place."""
        share = self._share_of[job]
        common = min(used.spent, self._common * _QUARTER)
        self._common -= common
        own = min(used.spent - common, share.kept.part)
        share.kept.take(own)
        self._kept.take(used.spent - common - own)
        like_another = served and asked in self._known
        share.tried((used.first + used.prepared) * (_LIKE_ANOTHER if like_another else 1.0))
        self._known.add(asked)


__all__ = ["DEFAULT", "OPTION", "Allowance", "Budget", "OutOfBudgetError"]
