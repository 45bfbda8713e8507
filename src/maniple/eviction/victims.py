"""Chunks of victims in eviction order, for the default solver of the `kai` profile.

`VictimPool` belongs to an action: for each leaf queue the jobs that may lose tasks, the one that would be
served last first, cut into chunks as they are reached. A job's surplus is evicted before its core, and once the
surplus is gone the job is ordered like jobs without surplus. `VictimSequence` belongs to one search: the chunks
of all candidate queues, merged in the order of queues given what each has lost so far, without those that the
search has ruled out. It is computed only as far as needed; searches among the same jobs share it until one of
them has found victims.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import Status
from maniple.eviction.chunks import Chunk, LaidOut, Pieces, Places, laid_out
from maniple.framework.points import JobRows, Key, TaskRows
from maniple.framework.session import Session

_UNASKED = -1
_FEW = 64  # chunks up to which each is looked at by itself


@dataclass(slots=True, eq=False)
class _Merged:
    """The first chunks of all queues in order, and how it goes on from there."""

    places: dict[int, int]  # by leaf, how many of its chunks were looked at
    given_up: dict[int, dict[int, None]]  # by leaf, the jobs with chunks that were taken
    chunks: list[Chunk] = field(default_factory=list)
    # By queue, the root being -1: those below it that have something to give up, the first to do so last.
    lines: dict[int, list[tuple[Key, int]]] = field(default_factory=dict)
    siblings: Counter[int] = field(default_factory=Counter)  # by parent
    # Where there is only one queue: from which of its places on chunks were looked at, and which were taken.
    taken: list[tuple[int, list[bool]]] = field(default_factory=list)


class _Leaf:
    """The chunks of one queue."""

    def __init__(self, session: Session, pieces: Pieces, jobs: list[int]) -> None:
        self._session = session
        self._pieces = pieces
        self._waiting = jobs  # in job order, so that the next victim is the last; a core that is left is ~job
        self._cores: dict[int, TaskRows] = {}
        self._keys: dict[int, Key] = {}  # by entry; a position does not change while the entry is in line
        self._chunks: list[Chunk] = []
        # The chunks so far, as columns: their jobs, their tasks one after the other, and where each chunk
        # begins.
        self._owners: JobRows = np.zeros(0, dtype=np.int64)
        self._rows: TaskRows = np.zeros(0, dtype=np.int64)
        self._starts: Places = np.zeros(1, dtype=np.int64)

    def at(self, place: int) -> Chunk | None:
        found = self.between(place, place + 1)
        return found[0] if found else None

    def between(self, start: int, stop: int) -> list[Chunk]:
        """The chunks at these places, as far as there are any."""
        while len(self._chunks) < stop and self._waiting:
            self._cut(self._waiting.pop())
        return self._chunks[start:stop]

    def owners(self, start: int, stop: int) -> JobRows:
        """The jobs of the chunks at these positions."""
        self._lay_out()
        return self._owners[start:stop]

    def laid_out(self, places: Places) -> LaidOut:
        self._lay_out()
        starts = self._starts[places]
        sizes = self._starts[places + 1] - starts
        ends = sizes.cumsum()
        if (sizes == 1).all():
            return self._rows[starts], ends
        return self._rows[(starts - ends + sizes).repeat(sizes) + np.arange(sizes.sum())], ends

    def _lay_out(self) -> None:
        more = self._chunks[len(self._owners) :]
        if more:
            self._owners = np.concatenate([self._owners, [one.job for one in more]])
            self._rows = np.concatenate([self._rows, *(one.rows for one in more)])
            sizes = np.array([len(one.rows) for one in more], dtype=np.int64)
            self._starts = np.concatenate([self._starts, self._starts[-1] + sizes.cumsum()])

    def place(self, chunk: Chunk) -> int:
        return self._chunks.index(chunk)

    def _cut(self, entry: int) -> None:
        session = self._session
        if entry < 0:
            self._chunks.append(Chunk(~entry, self._cores.pop(~entry), core=True))
            return
        spare, core = self._pieces.of(entry)
        if not spare:
            if len(core):
                self._chunks.append(Chunk(entry, core, core=True))
            return
        self._chunks += [Chunk(entry, rows, core=False) for rows in spare]
        if len(core):
            with session.groups.narrowed(entry, core):
                key = self._keys[~entry] = session.job_key_order(entry)
            self._cores[entry] = core
            self._waiting.insert(bisect_left(self._waiting, key, key=self._key), ~entry)

    def _key(self, entry: int) -> Key:
        known = self._keys.get(entry)
        if known is None:
            known = self._keys[entry] = self._session.job_key_order(entry)
        return known

    def drop(self, gone: set[Chunk], jobs: set[int]) -> None:
        """Chunks that have left, and jobs that are no victims any more."""
        stays = [one not in gone and one.job not in jobs for one in self._chunks]
        if len(self._owners):
            self._lay_out()
            places = np.flatnonzero(stays)
            self._rows, ends = self.laid_out(places)
            self._owners, self._starts = self._owners[places], np.append(0, ends)
        self._chunks = list(compress(self._chunks, stays))
        if jobs:
            self._waiting = [entry for entry in self._waiting if (~entry if entry < 0 else entry) not in jobs]


class VictimPool:
    """The chunks of all jobs that may have to give way in an action. Jobs that only claim a place are no victims."""

    def __init__(self, session: Session, jobs: JobRows) -> None:
        self._session = session
        settled = session.jobs.counts[Status.PIPELINED, jobs] == 0
        ordered = session.in_job_order(jobs[settled])
        queues, pieces = session.jobs.queue[ordered], Pieces(session, ordered)
        self.jobs = ordered
        self._members = set(ordered.tolist())
        # What searches have merged so far, by the jobs that came into question and the places from which on queues
        # were closed; and which of these jobs may go
        self.merged: dict[tuple[Any, ...], tuple[_Merged, NDArray[np.int8]]] = {}
        self.leaves = {
            queue: _Leaf(session, pieces, ordered[queues == queue].tolist())
            for queue in np.unique(queues).tolist()
        }

    def drop(self, chunks: Iterable[Chunk], moved: Iterable[int], served: int) -> None:
        """Victims that have left, and jobs that have been moved or served: their turn is over."""
        self.merged.clear()
        gone, over = set(chunks), self._members.intersection((*moved, served))
        owners = {one.job for one in gone} | over
        for queue in {int(self._session.jobs.queue[job]) for job in owners}:
            if queue in self.leaves:
                self.leaves[queue].drop(gone, over)
        if over:
            self._members -= over
            for job in over:
                self.jobs = self.jobs[self.jobs != job]


class VictimSequence:
    """The chunks that come into question for one job, in order."""

    def __init__(
        self, session: Session, pool: VictimPool, jobs: JobRows, lets_go: Callable[[int], bool] | None
    ) -> None:
        self._session = session
        self._pool = pool
        self.allowed = np.zeros(len(session.jobs.queue), dtype=np.bool_)  # by job
        self.allowed[jobs] = True
        self._lets_go = lets_go
        queues = np.flatnonzero(np.bincount(session.jobs.queue[jobs])) if len(jobs) else jobs
        self._leaves = {queue: pool.leaves[queue] for queue in queues.tolist()}
        self._barred: set[Chunk] = set()
        self._uncut: set[int] = (
            set()
        )  # jobs that must not lose their core, since something else of them stays
        self._closed: dict[int, int] = {}  # queue -> how many of its chunks may be taken
        self._again = True  # merge when the next chunks are asked for: by then what was tried is undone
        self._merged: _Merged
        self._answers: NDArray[np.int8]  # of `lets_go`, by job

    def _begin(self) -> None:
        """Continue what an earlier search merged from the same jobs, if this one would merge it alike."""
        if self._barred:
            self._start()
            return
        key = (self.allowed.tobytes(), *sorted(self._closed.items()))
        known = self._pool.merged.get(key)
        if known is not None and self._lets_go is not None:
            answers = known[1]
            asked = np.flatnonzero(answers != _UNASKED).tolist()
            if any(self._lets_go(job) != (answers.item(job) == 1) for job in asked):
                known = None
        if known is None:
            self._answers = np.full(len(self.allowed), _UNASKED, dtype=np.int8)
            self._start()
            self._pool.merged[key] = self._merged, self._answers
        else:
            self._merged, self._answers = known

    @property
    def queues(self) -> int:
        return len(self._leaves)

    def bar(self, chunk: Chunk) -> None:
        """Not this one, nor what cannot go without it."""
        self._barred.add(chunk)
        self._uncut.add(chunk.job)
        self._again = True

    def reopen(self) -> None:
        """All chunks are candidates again."""
        self._barred.clear()
        self._uncut.clear()
        self._closed.clear()
        self._again = True

    def close(self, chunk: Chunk) -> None:
        """Of the chunk's queue, nothing from this chunk on."""
        queue = int(self._session.jobs.queue[chunk.job])
        self._closed[queue] = self._leaves[queue].place(chunk)
        self._again = True

    def first(self, count: int) -> list[Chunk]:
        """The first chunks, as many as there are up to a count."""
        if self._again:
            self._begin()
            self._again = False
        if len(self._leaves) == 1:
            self._take_from_one(count)
        while len(self._merged.chunks) < count and self._take():
            pass
        return self._merged.chunks[:count]

    def _take_from_one(self, count: int) -> None:
        """The same where there is no choice of queues."""
        ((queue, leaf),) = self._leaves.items()
        chunks, place, last = self._merged.chunks, self._merged.places[queue], self._closed.get(queue)
        step = count - len(chunks)
        while len(chunks) < count:
            stop, step = place + step, 2 * step
            more = leaf.between(place, stop if last is None else min(stop, last))
            if not more:
                break
            if len(more) > _FEW:
                going = self._going(more, leaf.owners(place, place + len(more))).tolist()
            else:
                going = [self._may_go(one) for one in more]
            chunks += compress(more, going)
            self._merged.taken.append((place, going))
            place += len(more)
        self._merged.places[queue] = place

    def laid_out(self, count: int) -> LaidOut:
        """The tasks of the first chunks, one chunk after the other, and where those of each end."""
        chunks = self.first(count)
        if len(self._leaves) == 1 and chunks:
            (leaf,) = self._leaves.values()
            taken = [place + np.flatnonzero(going) for place, going in self._merged.taken]
            return leaf.laid_out(np.concatenate(taken)[:count])
        return laid_out(chunks)

    # -- merging --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """From the first chunk on, at this search's own discretion."""
        self._merged = _Merged(
            places=dict.fromkeys(self._leaves, 0), given_up={one: {} for one in self._leaves}
        )
        if len(self._leaves) == 1:
            return
        tree = self._session.queue_tree
        paths = [tree.path(queue) for queue in self._leaves]
        parents = {queue: tree.parent(queue) for path in paths for queue in path}
        self._merged.siblings = Counter(parents.values())
        for queue in sorted(parents, key=lambda queue: -len(tree.path(queue))):
            self._enter(queue)

    def _enter(self, queue: int) -> None:
        """Put a queue in line under its parent, if it has something to give up."""
        live = self._head(queue) is not None if queue in self._leaves else self._merged.lines.get(queue)
        if live:
            above = self._session.queue_tree.parent(queue)
            key = self._turn(queue) if self._merged.siblings[above] > 1 else ()
            insort(self._merged.lines.setdefault(above, []), (key, queue))

    def _turn(self, queue: int) -> Key:
        leaf = self._next_leaf(queue)
        head = self._head(leaf)
        assert head is not None
        victims = list(self._merged.given_up[leaf] | {head.job: None})
        return (*self._session.hooks.queue_turn(queue, -1, victims), *self._session.queue_tie(queue))

    def _next_leaf(self, queue: int) -> int:
        """Below a queue that has something to give up: the leaf that is next."""
        while queue not in self._leaves:
            queue = self._merged.lines[queue][-1][1]
        return queue

    def _take(self) -> bool:
        """One chunk more; False when there is none."""
        if len(self._leaves) == 1 or not self._merged.lines.get(-1):
            return False
        queue = self._next_leaf(-1)
        chunk = self._head(queue)
        assert chunk is not None
        self._merged.chunks.append(chunk)
        self._merged.places[queue] += 1
        self._merged.given_up[queue][chunk.job] = None
        path = self._session.queue_tree.path(queue)
        for one in path:
            self._merged.lines[self._session.queue_tree.parent(one)].pop()
        for one in path:
            self._enter(one)
        return True

    def _head(self, queue: int) -> Chunk | None:
        """The next chunk of a leaf that may be taken."""
        leaf, last = self._leaves[queue], self._closed.get(queue)
        while (place := self._merged.places[queue]) != last:
            chunk = leaf.at(place)
            if chunk is None or self._may_go(chunk):
                return chunk
            self._merged.places[queue] += 1
        return None

    def _going(self, chunks: list[Chunk], owners: JobRows) -> NDArray[np.bool_]:
        """Which of many chunks may be taken."""
        going: NDArray[np.bool_] = self.allowed[owners]
        if self._uncut:
            for place in np.flatnonzero(going & np.isin(owners, list(self._uncut))).tolist():
                going[place] = self._may_go(chunks[place])
        if self._lets_go is not None:
            for job in owners[going & (self._answers[owners] == _UNASKED)].tolist():
                self._answers[job] = self._lets_go(job)
            going &= self._answers[owners] == 1
        return going

    def _may_go(self, chunk: Chunk) -> bool:
        job = chunk.job
        if not self.allowed.item(job) or chunk in self._barred or (chunk.core and job in self._uncut):
            return False
        if self._lets_go is None:
            return True
        known = self._answers.item(job)
        if known == _UNASKED:
            known = self._answers[job] = self._lets_go(job)
        return known == 1


__all__ = ["VictimPool", "VictimSequence"]
