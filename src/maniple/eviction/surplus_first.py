"""Victims as profile `volcano` takes them: what jobs can spare first, then whole jobs, as the plugins give them up.

A job above its minimum can lose its surplus: as many tasks as there are too many of, of those the ones on nodes that
help, the last in task order first; where roles differ, plugins say which tasks they are. A job at its minimum is lost
whole or not at all, as is one whose group says so. `SurplusPool` belongs to an action: thousands of jobs may be
victims of which few are taken, so what they have to lose is worked out in columns. `SurplusSequence` belongs to one
search: surplus before whole jobs, since that breaks no gang; queue by queue as the plugins say; inside a queue the job
that would be served last.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ON_NODE
from maniple.eviction.chunks import Chunk, LaidOut, laid_out
from maniple.framework.points import ASK, TaskRows
from maniple.framework.session import Session
from maniple.framework.wholes import is_whole

WHOLE_ONLY = "its job cannot spare it, and cannot be evicted as a whole"
TOGETHER = "its group is evicted whole or not at all (disruptionMode), and some of it may not be evicted"
NO_HELP = "it is on a node that the pod cannot use in any case"
MATES = "pods of its job that would have to go with it are protected"
_HOLDING = np.flatnonzero(ON_NODE)
_ByQueue = dict[int, list[int]]  # places of jobs, in job order, so that the best victim is the last


class SurplusPool:
    """What all jobs that may lose tasks in an action have to lose."""

    def __init__(self, session: Session, candidates: TaskRows) -> None:
        self._session = session
        rows = self._rows = session.in_task_order(candidates)  # job by job
        owners = session.tasks.job[rows]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        found, sizes = owners[starts].astype(np.int64), np.diff(starts, append=len(rows))
        self.jobs = session.in_job_order(found)
        order = np.searchsorted(found, self.jobs)
        self._place = np.full(len(session.jobs.queue), -1)
        self._place[self.jobs] = np.arange(len(self.jobs))
        self.allowed = self._place >= 0  # by job
        self._starts, self._sizes = starts[order].tolist(), sizes[order].tolist()
        # Tasks on nodes that may not be evicted keep a job from being lost whole.
        losable = session.jobs.counts[_HOLDING].sum(axis=0)[self.jobs] <= sizes[order]
        spare = np.minimum(session.spare(self.jobs), sizes[order])
        spare[session.cluster.jobs.evicted_whole[self.jobs]] = 0
        self._gone: dict[int, set[int]] = {}  # by place, tasks that have left
        self._loose: dict[int, TaskRows] = {}  # by place, where plugins say which tasks can be spared
        for place in np.flatnonzero(spare == ASK).tolist():
            self._loose[place] = session.hooks.surplus(int(self.jobs[place]), self.left(place))
            spare[place] = len(self._loose[place])
        self._spare: list[int] = spare.tolist()
        self.surplus = self._by_queue(spare > 0)
        self.losable = self._by_queue(losable)

    def _by_queue(self, some: NDArray[np.bool_]) -> _ByQueue:
        places = np.flatnonzero(some)
        queues = self._session.jobs.queue[self.jobs[places]]
        return {queue: places[queues == queue].tolist() for queue in np.unique(queues).tolist()}

    def left(self, place: int) -> TaskRows:
        """All that a job still has, in task order."""
        start = self._starts[place]
        return self._staying(place, self._rows[start : start + self._sizes[place]])

    def spare(self, place: int) -> tuple[TaskRows, int]:
        """Out of which tasks a job can lose some, in task order, and how many."""
        loose = self._loose.get(place)
        return self.left(place) if loose is None else self._staying(place, loose), self._spare[place]

    def _staying(self, place: int, rows: TaskRows) -> TaskRows:
        gone = self._gone.get(place)
        return rows[[row not in gone for row in rows.tolist()]] if gone else rows

    def can_lose(self, job: int) -> bool:
        """Whether a job has tasks to spare, or can be lost as a whole."""
        place, queue = self._place.item(job), self._session.jobs.queue.item(job)
        return any(place in places.get(queue, ()) for places in (self.surplus, self.losable))

    def drop(self, chunks: Iterable[Chunk]) -> None:
        """Victims that have left."""
        for job, together in groupby(chunks, key=attrgetter("job")):
            place, queue, some = self._place.item(job), self._session.jobs.queue.item(job), list(together)
            rows = [row for chunk in some for row in chunk.rows.tolist()]
            self._gone.setdefault(place, set()).update(rows)
            whole = any(chunk.core for chunk in some)
            self._spare[place] = 0 if whole else self._spare[place] - len(rows)
            if self._spare[place] <= 0:
                _leave(self.surplus.get(queue, []), place)
            if whole:
                _leave(self.losable[queue], place)


def _leave(places: list[int], place: int) -> None:
    position = bisect_left(places, place)
    if position < len(places) and places[position] == place:
        del places[position]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Which victims are candidates for one job: of which queues, on which nodes, and what approves them."""

    queue: int  # that requests room
    queues: Sequence[int]
    helpful: NDArray[np.bool_] | None  # by node: a task that leaves it could make room; None: all nodes
    approve: Callable[[TaskRows], TaskRows]


class SurplusSequence:
    """The chunks that are candidates for one job, in order, computed only as far as needed.

    Plugins are called for them in that order, the later ones together with those before them: what a queue or a
    job may lose is used up by the tasks that are evicted first.
    """

    def __init__(self, session: Session, pool: SurplusPool, selection: Selection, *, surplus: bool) -> None:
        self._session = session
        self._pool = pool
        self._selection = selection
        self._in_line = self._in_order()
        self._coming = self._offered(surplus=surplus)
        self._offers: list[Chunk] = []  # as far as they have come
        self._barred: set[Chunk] = set()
        self._closed: dict[int, int] = {}  # queue -> the place from which on nothing of it goes
        self._start()
        self.allowed = pool.allowed

    def _in_order(self) -> list[int]:
        """The queues, the one that loses tasks first coming first."""
        session, asks = self._session, self._selection.queue
        queues = list(self._selection.queues)
        if len(queues) > 1:
            queues.sort(key=session.queue_key_order, reverse=True)  # the last to be served
            queues.sort(key=lambda queue: session.hooks.victim_queue_order(queue, asks))
        return queues

    def _start(self) -> None:
        self._chunks: list[Chunk] = []
        self._seen = 0  # of the offers
        self._uncut = {chunk.job for chunk in self._barred}  # jobs of which something stays

    @property
    def queues(self) -> int:
        return len(self._in_line)

    def why_not(self, row: int) -> str:
        """Of a task that plugins would give up and that is not offered: why."""
        helpful = self._selection.helpful
        job = int(self._session.tasks.job[row])
        if not self._pool.can_lose(job):
            return TOGETHER if is_whole(self._session, job) else WHOLE_ONLY
        if helpful is not None and not helpful[self._session.tasks.node[row]]:
            return NO_HELP
        return MATES

    def bar(self, chunk: Chunk) -> None:
        """Not this one, nor what cannot go without it."""
        self._barred.add(chunk)
        self._start()

    def close(self, chunk: Chunk) -> None:
        """Of the chunk's queue, nothing from this chunk on."""
        self._closed[int(self._session.jobs.queue[chunk.job])] = self._offers.index(chunk)
        self._start()

    def reopen(self) -> None:
        """All come into question again."""
        self._barred.clear()
        self._closed.clear()
        self._start()

    def first(self, count: int) -> list[Chunk]:
        """The first chunks, as many as there are up to a count."""
        most = count - len(self._chunks)
        while len(self._chunks) < count and (offers := self._next(most)):
            self._chunks += self._approved(offers)
            most *= 2
        return self._chunks[:count]

    def laid_out(self, count: int) -> LaidOut:
        return laid_out(self.first(count))

    def _next(self, count: int) -> list[Chunk]:
        stop = self._seen + count
        self._offers += islice(self._coming, max(stop - len(self._offers), 0))
        offers = self._offers[self._seen : stop]
        self._seen += len(offers)
        return offers

    def _approved(self, offers: list[Chunk]) -> list[Chunk]:
        """Those that no plugin protects, however many are offered at once."""
        if self._barred or self._closed:
            offers = self._open(offers)
        free, at, size = list[Chunk](), 0, len(offers)
        while at < len(offers):
            asked = offers[at : at + size]
            some, judged = self._judged(free, asked)
            free += some
            at += judged
            size = 2 * size if judged == len(asked) else 1
        return free

    def _judged(self, free: list[Chunk], asked: list[Chunk]) -> tuple[list[Chunk], int]:
        """Of the chunks that are asked about, the free ones, and how many were judged.

        A job of which anything is protected is not lost as a whole either. A chunk that stays for the sake of a part
        may have used up with the rest what plugins allow: those after it are asked about again, without it.
        """
        rows = np.concatenate([chunk.rows for chunk in (*self._chunks, *free, *asked)])
        approved_rows = self._selection.approve(rows)
        if len(approved_rows) == len(rows) and not self._uncut:
            return asked, len(asked)
        allowed, found = set(approved_rows.tolist()), list[Chunk]()
        for number, chunk in enumerate(asked, 1):
            approved = sum(row in allowed for row in chunk.rows.tolist())
            if approved < len(chunk.rows):
                self._uncut.add(chunk.job)
            elif not chunk.core or chunk.job not in self._uncut:
                found.append(chunk)
                continue
            if approved:
                return found, number
        return found, len(asked)

    def _open(self, offers: list[Chunk]) -> list[Chunk]:
        queues, end = self._session.jobs.queue, len(self._offers)
        places = range(self._seen - len(offers), self._seen)
        return [
            chunk
            for place, chunk in zip(places, offers, strict=True)
            if chunk not in self._barred and place < self._closed.get(int(queues[chunk.job]), end)
        ]

    # -- before plugins are called --------------------------------------------------------------------------------

    def _offered(self, *, surplus: bool) -> Iterator[Chunk]:
        pool, offered = self._pool, dict[int, TaskRows]()
        for queue in self._in_line if surplus else ():
            for place in reversed(pool.surplus.get(queue, [])):
                job, rows = int(pool.jobs[place]), self._spared(place)
                offered[job] = rows
                for at in range(len(rows)):
                    yield Chunk(job, rows[at : at + 1], core=False)
        for queue in self._in_line:
            for place in reversed(pool.losable.get(queue, [])):
                job, rows = int(pool.jobs[place]), pool.left(place)
                if job in offered:
                    rows = rows[~np.isin(rows, offered[job])]
                if len(rows) and self._any_helps(rows):
                    yield Chunk(job, rows, core=True)

    def _spared(self, place: int) -> TaskRows:
        """What a job can lose that helps, the last in task order first."""
        (rows, count), helpful = self._pool.spare(place), self._selection.helpful
        if helpful is not None:
            rows = rows[helpful[self._session.tasks.node[rows]]]
        return rows[::-1][:count]

    def _any_helps(self, rows: TaskRows) -> bool:
        helpful = self._selection.helpful
        return helpful is None or bool(helpful[self._session.tasks.node[rows]].any())


__all__ = ["Selection", "SurplusPool", "SurplusSequence"]
