"""A job's tasks that wait for a node, in task order, handed out in runs of equal ones.

A run is as long as the tasks are alike for placement and for the rules of allocation: same class, same role, no nominated node of
their own. What is taken from the sheet is not offered again in this cycle, placed or not.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive tasks that are alike."""

    class_: TaskClass
    role: int
    rows: TaskRows
    nominated: str = ""

    def __len__(self) -> int:
        return len(self.rows)


class Worksheet:
    """The tasks of one job that are still to be looked at. `ends` are the places where runs end."""

    def __init__(self, session: Session, job: int, rows: TaskRows, ends: Sequence[int]) -> None:
        self.job = job
        self._rows = rows
        self._session = session
        self._ends = ends
        self._run = 0
        self._place = 0

    def __len__(self) -> int:
        return len(self._rows) - self._place

    def run(self) -> Run:
        """What is left of the run at the head of the sheet; `take` removes tasks from there."""
        rows = self._rows[self._place : self._ends[self._run]]
        tasks, first = self._session.tasks, int(rows[0])
        return Run(
            self._session.classes[tasks.class_of[first]],
            int(tasks.role[first]),
            rows,
            self._session.cluster.tasks.nominated.get(first, ""),
        )

    def take(self, count: int) -> None:
        self._place += count
        if self._place == self._ends[self._run]:
            self._run += 1

    def mixed_roles(self) -> bool:
        """Whether some role has tasks of more than one class."""
        if len(self._ends) == 1:
            return False
        tasks = self._session.tasks
        pairs = {*zip(tasks.role[self._rows].tolist(), tasks.class_of[self._rows].tolist(), strict=True)}
        return len({role for role, _ in pairs}) < len(pairs)


def worksheets(session: Session) -> Iterator[Worksheet]:
    """A sheet per job that has tasks to place: waiting, asking for something, not held by a foreign gate."""
    tasks = session.tasks
    wanted = (tasks.status == Status.PENDING) & ~tasks.best_effort & (~tasks.gated | tasks.admissible)
    rows = _ordered(session, np.flatnonzero(wanted))
    # A task with a nominated node is a run of its own: nobody else shares the number given to it here.
    alone = np.full(len(tasks), -1, dtype=np.int64)
    nominated = [row for row in session.cluster.tasks.nominated if row < len(alone)]
    alone[nominated] = nominated
    ends = _changes(tasks.job[rows], tasks.class_of[rows], tasks.role[rows], alone[rows])
    first = 0
    for start, stop in pairwise([0, *_changes(tasks.job[rows])]):
        last = bisect_left(ends, stop) + 1
        own = [end - start for end in ends[first:last]]
        yield Worksheet(session, int(tasks.job[rows[start]]), rows[start:stop], own)
        first = last


def by_job(session: Session, rows: TaskRows) -> Iterator[tuple[int, TaskRows]]:
    """Tasks of the session's jobs, job by job, in task order."""
    rows = _ordered(session, rows)
    for start, stop in pairwise([0, *_changes(session.tasks.job[rows])]):
        yield int(session.tasks.job[rows[start]]), rows[start:stop]


def _ordered(session: Session, rows: TaskRows) -> TaskRows:
    return session.in_task_order(rows[np.isin(session.tasks.job[rows], session.jobs.rows)])


def _changes(*columns: NDArray[Any]) -> list[int]:
    """Where stretches of equal entries end."""
    size = len(columns[0])
    differs = np.zeros(max(size - 1, 0), dtype=np.bool_)
    for column in columns:
        differs |= column[1:] != column[:-1]
    return [*(np.flatnonzero(differs) + 1).tolist(), size] if size else []
