"""A job's pending tasks, those that it needs first and then in task order, in runs of equal tasks.

The tasks of a run are alike for placement and for the rules of allocation: same class, same role, all or none
of them gated, no nominated node of their own. What is taken from the sheet is not offered again in this cycle,
placed or not. A job that is placed by sub-jobs has a sheet for each of them (`JobSheet`); `restore` puts back
what a dry run took.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.eviction.asking import needed_by_roles
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

Key = tuple[Any, ...]


@dataclass(slots=True, eq=False)
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
        self._mixed: bool | None = None

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
            ""
            if first in self._session.groups.unpinned
            else self._session.cluster.tasks.nominated.get(first, ""),
        )

    def left(self) -> TaskRows:
        """All tasks that are left."""
        return self._rows[self._place :]

    def runs(self) -> list[TaskRows]:
        """All tasks that are left, those of each run together."""
        ends = [self._place, *self._ends[self._run :]]
        return [self._rows[start:end] for start, end in pairwise(ends)]

    def mark(self) -> tuple[int, int]:
        return self._run, self._place

    def restore(self, mark: tuple[int, int]) -> None:
        """Back to how the sheet was when it was marked."""
        self._run, self._place = mark

    def take(self, count: int) -> None:
        self._place += count
        if self._place == self._ends[self._run]:
            self._run += 1

    def singles(self, most: int) -> TaskRows:
        """The first tasks of the sheet, `most` at most, that are runs of their own and of one role."""
        tasks, rows = self._session.tasks, self._rows[self._place : self._place + most]
        ends = self._ends[self._run : self._run + len(rows)]
        alone = [end == self._place + number + 1 for number, end in enumerate(ends)]
        rows = rows[: alone.index(False) if False in alone else len(alone)]
        nominated, role = self._session.cluster.tasks.nominated, tasks.role[rows]
        other = (role != role[:1]) | tasks.gated[rows]
        if nominated:
            other |= np.isin(rows, list(nominated))
        return rows[: int(other.argmax())] if other.any() else rows

    def classes(self) -> list[TaskClass]:
        """Of the tasks that are left."""
        numbers = np.unique(self._session.tasks.class_of[self.left()]).tolist()
        return [self._session.classes[number] for number in numbers]

    def mixed_roles(self) -> bool:
        """Whether some role has tasks of more than one class."""
        if len(self._ends) == 1:
            return False
        if self._mixed is None:
            tasks = self._session.tasks
            pairs = {*zip(tasks.role[self._rows].tolist(), tasks.class_of[self._rows].tolist(), strict=True)}
            self._mixed = len({role for role, _ in pairs}) < len(pairs)
        return self._mixed


class JobSheet:
    """A job's sub-jobs that have tasks left: those that the job needs first, then in the order of sub-jobs."""

    def __init__(self, session: Session, shape: Group, sheet: Worksheet) -> None:
        self.job = shape.job
        self.shape = shape
        self._session = session
        self._sheets = _by_pod_set(session, shape, sheet)
        self._required = _required(session, shape) if shape.split else frozenset()
        self._turns = [(self._key(one), one.number) for one in shape.members if one in self._sheets]
        heapify(self._turns)

    def __len__(self) -> int:
        """Sub-jobs that still get a turn."""
        return len(self._turns)

    def __getitem__(self, one: PodSet) -> Worksheet:
        return self._sheets[one]

    def pod_sets(self) -> list[PodSet]:
        return [self.shape.pod_sets[number] for _, number in self._turns]

    def pop(self) -> PodSet:
        return self.shape.pod_sets[heappop(self._turns)[1]]

    def push(self, one: PodSet) -> None:
        heappush(self._turns, (self._key(one), one.number))

    def _key(self, one: PodSet) -> Key:
        return (one not in self._required, *self._session.groups.order(one))

    def mark(self) -> Any:
        return list(self._turns), {row: sheet.mark() for row, sheet in self._sheets.items()}

    def restore(self, mark: Any) -> None:
        turns, marks = mark
        self._turns = list(turns)
        for row, place in marks.items():
            self._sheets[row].restore(place)


def _by_pod_set(session: Session, shape: Group, sheet: Worksheet) -> dict[PodSet, Worksheet]:
    if not shape.split:
        return {shape.members[0]: sheet}
    rows = sheet.left()
    own = np.concatenate([one.rows for one in shape.members])
    numbers = np.repeat([one.number for one in shape.members], [len(one.rows) for one in shape.members])
    by_row = np.argsort(own)
    numbers = numbers[by_row[np.searchsorted(own, rows, sorter=by_row)]]
    order = np.argsort(numbers, kind="stable")
    parts = _parts(session, rows[order], numbers[order])
    return {shape.pod_sets[number]: Worksheet(session, shape.job, own, ends) for number, own, ends in parts}


def _required(session: Session, shape: Group) -> frozenset[PodSet]:
    """The first sub-jobs that bring every policy to the number that the job needs."""
    have = dict.fromkeys(shape.least, 0)
    lacking = []
    for one in shape.members:
        if not session.groups.is_ready(one):
            lacking.append(one)
        elif one.policy in have:
            have[one.policy] += 1
    required = set()
    for one in sorted(lacking, key=session.groups.order):
        if have.get(one.policy, 0) < shape.least.get(one.policy, 0):
            have[one.policy] += 1
            required.add(one)
    return frozenset(required)


def worksheets(session: Session) -> Iterator[Worksheet]:
    """A sheet per admitted job that has tasks to place: pending, with a request, without a foreign scheduling gate."""
    tasks = session.tasks
    wanted = (tasks.status == Status.PENDING) & ~tasks.best_effort & (~tasks.gated | tasks.admissible)
    wanted &= session.are_admitted()[tasks.job]
    rows = _ordered(session, np.flatnonzero(wanted))
    if session.rules.gangs.needed_pods_first:
        rows = _needed_first(session, rows)
    for job, own, ends in _parts(session, rows, tasks.job[rows]):
        yield Worksheet(session, job, own, ends)


def _needed_first(session: Session, rows: TaskRows) -> TaskRows:
    """Inside each job, tasks for which pods were evicted, then those that its roles lack, then the others.

    Otherwise tasks that the gang can do without may take the room, and the gang is not whole for lack of it.
    """
    owners = session.tasks.job[rows]
    later = np.full(len(rows), 2, dtype=np.int8)
    divided = [job for job in np.unique(owners).tolist() if session.job_facts(job).role_minimums]
    for job in divided:
        lacking = list(needed_by_roles(session, job, rows[owners == job]))
        later[np.isin(rows, lacking)] = 1
    if session.cluster.tasks.nominated:
        later[np.isin(rows, list(session.cluster.tasks.nominated))] = 0
    if (later == 2).all():
        return rows
    # Jobs stay where they are: `rows` has each job's tasks together.
    turns = np.cumsum(np.diff(owners, prepend=owners[:1]) != 0)
    return rows[np.lexsort((later, turns))]


def _parts(
    session: Session, rows: TaskRows, owners: NDArray[Any]
) -> Iterator[tuple[int, TaskRows, list[int]]]:
    """Tasks by owner, already grouped in that way, each with the positions where runs end."""
    tasks, nominated = session.tasks, session.cluster.tasks.nominated
    columns = [owners, tasks.class_of[rows], tasks.role[rows], tasks.gated[rows]]
    if nominated:
        # A task with a nominated node is a run of its own: no other task shares its number.
        columns.append(np.where(np.isin(rows, list(nominated)), rows, -1))
    ends, first = _changes(*columns), 0
    for start, stop in pairwise([0, *_changes(owners)]):
        last = bisect_left(ends, stop) + 1
        yield int(owners[start]), rows[start:stop], [end - start for end in ends[first:last]]
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
