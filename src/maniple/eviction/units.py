"""Units: what is evicted together. Tasks that a job can lose, or all of a job.

A job above its minimum can lose its surplus, the last in task order first. A job at its minimum is lost whole or not at all. `UnitPool`
hands units out in victim order: surplus before whole jobs, since it costs nobody a gang; queue by queue as the plugins say; inside a
queue the job that would be served last. Thousands of jobs may be victims of which few are taken: what they have to lose is worked out in
columns, and a job gets an entry of its own when it is first taken from.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ON_NODE
from maniple.framework.points import ASK, JobRows, TaskRows
from maniple.framework.session import Session

_HOLDING = np.flatnonzero(ON_NODE)


@dataclass(slots=True, eq=False)
class Unit:
    job: int
    rows: TaskRows
    whole: bool


@dataclass(slots=True, eq=False)
class _Victim:
    """What a job has left to lose: tasks that it can do without, and the others, which go together."""

    job: int
    place: int  # in job order
    queue: int
    spare: TaskRows
    core: TaskRows
    losable: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Tasks job by job, inside a job in task order; jobs in job order."""

    jobs: JobRows
    rows: TaskRows
    starts: NDArray[np.int64]  # of each job in `rows`
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, session: Session, rows: TaskRows) -> "_Candidates":
        rows = session.in_task_order(rows)
        owners = session.tasks.job[rows]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        found, sizes = owners[starts].astype(np.int64), np.diff(starts, append=len(rows))
        jobs = session.in_job_order(found)
        order = np.searchsorted(found, jobs)
        return cls(jobs, rows, starts[order], sizes[order])


class UnitPool:
    """The units of all jobs that may lose tasks in an action."""

    def __init__(self, session: Session, candidates: TaskRows) -> None:
        self._session = session
        given = self._candidates = _Candidates.of(session, candidates)
        self._victims: dict[int, _Victim] = {}  # by job, those that were taken from
        # Tasks on nodes that may not be evicted keep a job from being lost whole.
        self._losable = session.jobs.counts[_HOLDING].sum(axis=0)[given.jobs] <= given.sizes
        spare = session.spare(given.jobs)
        self._spare = np.minimum(spare, given.sizes)
        for place in np.flatnonzero(spare == ASK).tolist():
            self._spare[place] = len(self._at(place).spare)
        # per queue, in job order, so that the best victim is the last
        self._surplus = self._by_queue(self._spare > 0)
        self._whole = self._by_queue((self._spare == 0) & self._losable)

    def _by_queue(self, some: NDArray[np.bool_]) -> dict[int, list[int]]:
        places = np.flatnonzero(some)
        queues = self._session.jobs.queue[self._candidates.jobs[places]]
        return {queue: places[queues == queue].tolist() for queue in np.unique(queues).tolist()}

    def _at(self, place: int) -> _Victim:
        """The entry of a job."""
        given = self._candidates
        job = given.jobs.item(place)
        victim = self._victims.get(job)
        if victim is None:
            start, size, spare = given.starts.item(place), given.sizes.item(place), self._spare.item(place)
            rows, kept = given.rows[start : start + size], size - spare
            if spare == ASK:
                some = self._session.hooks.surplus(job, rows)
                others = rows[~np.isin(rows, some)]
            else:
                some, others = rows[kept:], rows[:kept]
            queue, losable = self._session.jobs.queue.item(job), self._losable.item(place)
            victim = self._victims[job] = _Victim(job, place, queue, some, others, losable)
        return victim

    @property
    def has_surplus(self) -> bool:
        return any(self._surplus.values())

    def take(self, asking: int, queues: Sequence[int], most: int) -> Unit | None:
        """The next unit for a job of the asking queue, out of these queues: up to `most` surplus tasks, or a whole job."""
        queue = self._first(asking, [q for q in queues if self._surplus.get(q)]) if most else None
        if queue is not None:
            return self._take_surplus(self._surplus[queue].pop(), most)
        queue = self._first(asking, [q for q in queues if self._whole.get(q)])
        if queue is None:
            return None
        place = self._whole[queue].pop()
        victim = self._at(place)
        unit, victim.core = Unit(victim.job, victim.core, whole=True), victim.core[:0]
        return unit

    def _take_surplus(self, place: int, most: int) -> Unit:
        victim = self._at(place)
        left = max(len(victim.spare) - most, 0)
        unit, victim.spare = Unit(victim.job, victim.spare[left:], whole=False), victim.spare[:left]
        self._enter(victim)
        return unit

    def put_back(self, units: Iterable[Unit]) -> None:
        """Units that are not evicted after all."""
        for unit in units:
            victim = self._victims[unit.job]
            self._leave(victim)
            if unit.whole:
                victim.core = unit.rows
            else:
                victim.spare = np.concatenate([victim.spare, unit.rows])
            self._enter(victim)

    def _lists(self, victim: _Victim) -> dict[int, list[int]] | None:
        """Where a job stands: with those that have surplus, with those that can only be lost whole, or nowhere."""
        if len(victim.spare):
            return self._surplus
        return self._whole if len(victim.core) and victim.losable else None

    def _enter(self, victim: _Victim) -> None:
        lists = self._lists(victim)
        if lists is not None:
            insort(lists.setdefault(victim.queue, []), victim.place)

    def _leave(self, victim: _Victim) -> None:
        for lists in (self._surplus, self._whole):
            listed = lists.get(victim.queue, [])
            position = bisect_left(listed, victim.place)
            if position < len(listed) and listed[position] == victim.place:
                del listed[position]

    def _first(self, asking: int, queues: list[int]) -> int | None:
        """Of these queues, the one whose tasks go first."""
        if len(queues) < 2:
            return queues[0] if queues else None
        session = self._session
        queues.sort(key=session.queue_key_order, reverse=True)  # the last to be served
        return min(queues, key=lambda queue: session.hooks.victim_queue_order(queue, asking))
