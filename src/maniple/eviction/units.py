"""Units: what is evicted together. Tasks that a job can lose, or all of a job.

A job above its minimum can lose its surplus: as many as there are too many of, of those the ones on nodes that help, the last in task order first;
where roles differ, plugins say which tasks they are. A job at its minimum is lost whole or not at all. `UnitPool` hands units out in victim order: surplus before whole jobs, since that breaks no gang; queue by queue as the plugins say; inside a
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
    """What a job has left to lose: so many out of some tasks, and the rest together."""

    job: int
    place: int  # in job order
    queue: int
    rows: TaskRows  # all of them, in task order
    loose: TaskRows  # out of these may go ...
    extra: int  # ... so many
    losable: bool

    def lose(self, rows: TaskRows) -> None:
        if len(rows) == len(self.rows):
            self.rows = self.loose = rows[:0]
            return
        gone = set(rows.tolist())
        self.rows = _without(self.rows, gone)
        self.loose = _without(self.loose, gone)


def _without(rows: TaskRows, gone: set[int]) -> TaskRows:
    """The tasks of one job that are left. There are few: a set beats sorting."""
    return rows[[row not in gone for row in rows.tolist()]]


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
            self._spare[place] = self._at(place).extra
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
            rows = given.rows[start : start + size]
            loose = self._session.hooks.surplus(job, rows) if spare == ASK else rows
            extra = len(loose) if spare == ASK else spare
            queue, losable = self._session.jobs.queue.item(job), self._losable.item(place)
            victim = self._victims[job] = _Victim(job, place, queue, rows, loose, extra, losable)
        return victim

    @property
    def has_surplus(self) -> bool:
        return any(self._surplus.values())

    def take(
        self, asking: int, queues: Sequence[int], most: int, helpful: NDArray[np.bool_] | None = None
    ) -> Unit | None:
        """The next unit for a job of the asking queue, out of these queues: up to `most` surplus tasks, or a whole job.

        `helpful`: by node, whether a task that goes from there could make room; of surplus, those are taken.
        """
        queue = self._first(asking, [q for q in queues if self._surplus.get(q)]) if most else None
        if queue is not None:
            return self._take_surplus(self._surplus[queue].pop(), most, helpful)
        queue = self._first(asking, [q for q in queues if self._whole.get(q)])
        if queue is None:
            return None
        place = self._whole[queue].pop()
        victim = self._at(place)
        unit = Unit(victim.job, victim.rows, whole=True)
        victim.lose(unit.rows)
        return unit

    def _take_surplus(self, place: int, most: int, helpful: NDArray[np.bool_] | None) -> Unit:
        victim = self._at(place)
        order, count = np.arange(len(victim.loose)), min(most, victim.extra)
        if helpful is not None:
            helps = helpful[self._session.tasks.node[victim.loose]]
            order = np.argsort(helps, kind="stable")  # those that help come last
            count = min(count, max(int(helps.sum()), 1))
        unit = Unit(victim.job, victim.loose[np.sort(order[len(order) - count :])], whole=False)
        victim.lose(unit.rows)
        victim.extra -= count
        self._enter(victim)
        return unit

    def put_back(self, units: Iterable[Unit]) -> None:
        """Units that are not evicted after all."""
        for unit in units:
            victim = self._victims[unit.job]
            self._leave(victim)
            victim.rows = self._in_order(victim, victim.rows, unit.rows)
            if not unit.whole:
                victim.loose = self._in_order(victim, victim.loose, unit.rows)
                victim.extra += len(unit.rows)
            self._enter(victim)

    def _in_order(self, victim: _Victim, *parts: TaskRows) -> TaskRows:
        """Tasks of a job in task order again."""
        given = self._candidates
        start, size = given.starts.item(victim.place), given.sizes.item(victim.place)
        rows = given.rows[start : start + size]
        return rows[np.isin(rows, np.concatenate(parts))]

    def _lists(self, victim: _Victim) -> dict[int, list[int]] | None:
        """Where a job stands: with those that have surplus, with those that can only be lost whole, or nowhere."""
        if victim.extra:
            return self._surplus
        return self._whole if len(victim.rows) and victim.losable else None

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
