"""Units: what is evicted together. Tasks that a job can lose, or all of a job.

A job above its minimum can lose its surplus, the last in task order first. A job at its minimum is lost whole or not at all. `UnitPool`
hands units out in victim order: surplus before whole jobs, since it costs nobody a gang; queue by queue as the plugins say; inside a
queue the job that would be served last.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from maniple.cluster.statuses import ON_NODE
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

_HOLDING = np.flatnonzero(ON_NODE)


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    job: int
    rows: TaskRows
    whole: bool


class _Job:
    """What a victim job has left to lose: tasks that it can do without, and the others, which go together."""

    __slots__ = ("core", "key", "losable", "queue", "spare")

    def __init__(self, session: Session, job: int, rows: TaskRows, holding: int) -> None:
        self.queue = int(session.jobs.queue[job])
        self.key = session.job_key_order(job)
        self.spare = session.hooks.surplus(job, rows)
        self.core = _without(rows, self.spare)
        # Tasks on nodes that may not be evicted keep the job from being lost whole.
        self.losable = holding <= len(rows)


class UnitPool:
    """The units of all jobs that may lose tasks in an action."""

    def __init__(self, session: Session, candidates: TaskRows) -> None:
        self._session = session
        holding: list[int] = session.jobs.counts[_HOLDING].sum(axis=0).tolist()
        rows = _by_job(session, candidates)
        self._jobs = {job: _Job(session, job, own, holding[job]) for job, own in rows}
        # per queue, sorted so that the best victim is the last
        self._surplus: dict[int, list[tuple[Any, int]]] = {}
        self._whole: dict[int, list[tuple[Any, int]]] = {}
        for job, victim in self._jobs.items():
            lists = self._lists(victim)
            if lists is not None:
                lists.setdefault(victim.queue, []).append((victim.key, job))
        for listed in (*self._surplus.values(), *self._whole.values()):
            listed.sort()

    @property
    def has_surplus(self) -> bool:
        return any(self._surplus.values())

    def take(self, asking: int, queues: Iterable[int], most: int) -> Unit | None:
        """The next unit for a job of the asking queue, out of these queues: up to `most` surplus tasks, or a whole job."""
        queues = tuple(queues)
        queue = self._first(asking, [q for q in queues if most and self._surplus.get(q)])
        if queue is not None:
            _, job = self._surplus[queue].pop()
            return self._take_surplus(job, most)
        queue = self._first(asking, [q for q in queues if self._whole.get(q)])
        if queue is None:
            return None
        _, job = self._whole[queue].pop()
        victim = self._jobs[job]
        unit, victim.core = Unit(job, victim.core, whole=True), victim.core[:0]
        return unit

    def _take_surplus(self, job: int, most: int) -> Unit:
        victim = self._jobs[job]
        left = max(len(victim.spare) - most, 0)
        unit, victim.spare = Unit(job, victim.spare[left:], whole=False), victim.spare[:left]
        self._enter(job)
        return unit

    def put_back(self, units: Iterable[Unit]) -> None:
        """Units that are not evicted after all."""
        for unit in units:
            victim = self._jobs[unit.job]
            self._leave(unit.job)
            if unit.whole:
                victim.core = unit.rows
            else:
                victim.spare = np.concatenate([victim.spare, unit.rows])
            self._enter(unit.job)

    def _lists(self, victim: _Job) -> dict[int, list[tuple[Any, int]]] | None:
        """Where a job stands: with those that have surplus, with those that can only be lost whole, or nowhere."""
        if len(victim.spare):
            return self._surplus
        return self._whole if len(victim.core) and victim.losable else None

    def _enter(self, job: int) -> None:
        victim = self._jobs[job]
        lists = self._lists(victim)
        if lists is not None:
            insort(lists.setdefault(victim.queue, []), (victim.key, job))

    def _leave(self, job: int) -> None:
        victim = self._jobs[job]
        for lists in (self._surplus, self._whole):
            listed = lists.get(victim.queue, [])
            place = bisect_left(listed, (victim.key, job))
            if place < len(listed) and listed[place][1] == job:
                del listed[place]

    def _first(self, asking: int, queues: list[int]) -> int | None:
        """Of these queues, the one whose tasks go first."""
        if len(queues) < 2:
            return queues[0] if queues else None
        session = self._session
        queues.sort(key=session.queue_key_order, reverse=True)  # the last to be served
        return min(queues, key=lambda queue: session.hooks.victim_queue_order(queue, asking))


def _without(rows: TaskRows, some: TaskRows) -> TaskRows:
    """The others. Mostly the last ones are taken out, which needs no search."""
    if not len(some):
        return rows
    kept = len(rows) - len(some)
    if np.array_equal(rows[kept:], some):
        return rows[:kept]
    return rows[~np.isin(rows, some)]


def _by_job(session: Session, rows: TaskRows) -> Iterable[tuple[int, TaskRows]]:
    rows = session.in_task_order(rows)
    jobs = session.tasks.job[rows]
    bounds = [*np.flatnonzero(np.diff(jobs, prepend=-1)).tolist(), len(rows)]
    for start, stop in pairwise(bounds):
        yield int(jobs[start]), rows[start:stop]
