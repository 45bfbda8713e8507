"""Which jobs request room, and for which tasks: shared by reclaim and preempt.

A starving job requests room for the tasks that it lacks to reach its minimum, all at once; one at its minimum
that still starves requests room for one more task at a time. Pods that must not preempt request none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.priorities import NEVER
from maniple.cluster.statuses import Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

_PENDING = int(Status.PENDING)


@dataclass(slots=True, eq=False)
class Demand:
    """Tasks of one class that have to be placed."""

    class_: TaskClass
    rows: TaskRows


def starving_jobs(session: Session) -> list[int]:
    """Admitted, valid jobs that lack something."""
    hooks = session.hooks
    waiting = session.jobs.counts[Status.PENDING] > 0
    return [
        job
        for job in session.jobs.rows.tolist()
        if waiting[job]
        and not session.is_waiting(job)
        and hooks.job_valid(job) is None
        and hooks.job_starving(job)
    ]


class Asking:
    """The waiting tasks of starving jobs, in task order, without those that are gated."""

    def __init__(self, session: Session, jobs: list[int]) -> None:
        self._session = session
        tasks, pods = session.tasks, session.cluster.tasks.pods
        rows = np.flatnonzero((tasks.status == Status.PENDING) & ~tasks.gated)
        rows = session.in_task_order(rows[np.isin(tasks.job[rows], jobs)])
        self._meek = {row for row in rows.tolist() if pods[row].spec.preemption_policy == NEVER}
        of_job = tasks.job[rows]
        starts = np.searchsorted(of_job, jobs).tolist()
        stops = np.searchsorted(of_job, jobs, side="right").tolist()
        self._rows = {job: rows[a:b] for job, a, b in zip(jobs, starts, stops, strict=True)}

    def tasks(self, job: int) -> TaskRows:
        """Those that still wait and may preempt."""
        rows = self.with_meek(job)
        return rows[~np.isin(rows, list(self._meek))] if self._meek else rows

    def with_meek(self, job: int) -> TaskRows:
        """Those that still wait, also the ones that must not preempt."""
        rows = self._rows[job]
        waiting: TaskRows = rows[self._session.tasks.status[rows] == _PENDING]
        return waiting

    def is_meek(self, task: int) -> bool:
        return task in self._meek


def next_tasks(session: Session, job: int, rows: TaskRows) -> TaskRows:
    """The tasks to request room for next: those that bring the job to its minimum, or one."""
    missing = session.jobs.minimum.item(job) - session.ready(job) - session.pipelined(job)
    if missing <= 1 or "job_pipelined" not in session.hooks.answered:
        return rows[:1]
    minimums = session.job_facts(job).role_minimums
    if not minimums:
        return rows[:missing]
    needed = list(needed_by_roles(session, job, rows))
    others = [row for row in rows.tolist() if row not in set(needed)]
    chosen = [*needed, *others[: max(missing - len(needed), 0)]]
    return rows[np.isin(rows, chosen)]


def needed_by_roles(session: Session, job: int, rows: TaskRows) -> Iterator[int]:
    """Of waiting tasks in order, the first of each role that bring it to its minimum."""
    tasks, names = session.tasks, session.cluster.tasks.roles
    own = session.tasks_of(job)
    there = own[np.isin(tasks.status[own], THERE)]
    for name, least in session.job_facts(job).role_minimums.items():
        role = names.index(name) if name in names else -1
        have = int((tasks.role[there] == role).sum())
        yield from rows[tasks.role[rows] == role][: max(least - have, 0)].tolist()


# Tasks in these statuses count as members of their gang.
THERE = [
    Status.ALLOCATED,
    Status.BINDING,
    Status.BOUND,
    Status.RUNNING,
    Status.SUCCEEDED,
    Status.PIPELINED,
]


def demands_of(session: Session, rows: TaskRows) -> list[Demand]:
    """Tasks by class, in the order in which the classes come."""
    classes = session.tasks.class_of[rows]
    numbers = dict.fromkeys(classes.tolist())
    if len(numbers) == 1:
        return [Demand(session.classes[classes[0]], rows)]
    return [Demand(session.classes[number], rows[classes == number]) for number in numbers]
