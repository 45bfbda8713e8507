"""A job's tasks that wait for a node, in task order, handed out in runs of equal ones.

A run is as long as the tasks are alike for placement and for the rules of allocation: same class, same role, no nominated node of
their own. What is taken from the sheet is not offered again in this cycle, placed or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
    """The tasks of one job that are still to be looked at."""

    def __init__(self, session: Session, job: int, rows: TaskRows) -> None:
        self.job = job
        self.rows = rows
        self._session = session
        self._classes = session.tasks.class_of[rows]
        self._roles = session.tasks.role[rows]
        self._place = 0

    def __len__(self) -> int:
        return len(self.rows) - self._place

    def run(self) -> Run:
        """The run at the head of the sheet; `take` removes tasks from there."""
        start = self._place
        row = int(self.rows[start])
        class_, role = self._classes[start], self._roles[start]
        nominated = self._session.cluster.tasks.nominated
        if row in nominated:
            stop = start + 1
        else:
            alike = (self._classes[start:] == class_) & (self._roles[start:] == role)
            stop = len(self.rows) if alike.all() else start + int(np.argmin(alike))
            if nominated:
                own = (i for i in range(start, stop) if int(self.rows[i]) in nominated)
                stop = next(own, stop)
        return Run(self._session.classes[class_], int(role), self.rows[start:stop], nominated.get(row, ""))

    def take(self, count: int) -> None:
        self._place += count

    def mixed_roles(self) -> bool:
        """Whether some role has tasks of more than one class."""
        pairs = {*zip(self._roles.tolist(), self._classes.tolist(), strict=True)}
        return len({role for role, _ in pairs}) < len(pairs)


def worksheets(session: Session) -> Iterator[Worksheet]:
    """A sheet per job that has tasks to place: waiting, asking for something, not held by a foreign gate."""
    tasks = session.tasks
    wanted = (tasks.status == Status.PENDING) & ~tasks.best_effort & (~tasks.gated | tasks.admissible)
    for job, rows in by_job(session, np.flatnonzero(wanted)):
        yield Worksheet(session, job, rows)


def by_job(session: Session, rows: TaskRows) -> Iterator[tuple[int, TaskRows]]:
    """Tasks of the session's jobs, job by job, in task order."""
    rows = session.in_task_order(rows[np.isin(session.tasks.job[rows], session.jobs.rows)])
    jobs = session.tasks.job[rows]
    bounds = [*np.flatnonzero(np.diff(jobs, prepend=-1)).tolist(), len(rows)]
    for start, stop in pairwise(bounds):
        yield int(jobs[start]), rows[start:stop]
