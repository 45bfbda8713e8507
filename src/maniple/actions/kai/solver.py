"""The default solver: room for a whole job at once, at the expense of as few as possible.

Victims come in KAI's order. How many of them it takes at least is known from sums (`room_sums.py`), so that nothing is tried that cannot work; where sums say it all, they also say who
can stay. Otherwise scenarios are tried, twice as large each time, then halved, then reduced until nobody can be spared. The job is placed first and the victims after it, where there
is room left. A scenario that validators refuse tells whom to leave alone, and the search goes on without.

What always holds: all or nothing; no victim could have stayed; a job loses tasks that it can spare or all that it has; whoever was served or moved in an action is no victim in it.
"""

import numpy as np

from maniple.actions.kai.allocate_job import JobPlacer
from maniple.actions.kai.terms import Terms
from maniple.cluster.statuses import Status, status_set
from maniple.eviction.asking import demands_of
from maniple.eviction.kai_scenario import Chunk, Outcome
from maniple.eviction.kai_victims import VictimPool, VictimSequence
from maniple.eviction.room_sums import RoomSums, smallest
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.placement.engine import Placement

_LESSONS = 16  # refusals that a search learns from, and as many more as there are queues


class Solver:
    """Serves jobs of one action."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._placer = JobPlacer(session, placement)
        self._pool: VictimPool | None = None

    def solve(self, job: int, terms: Terms) -> Transaction | None:
        """A transaction that serves the job, or None, and nothing done."""
        session = self._session
        if self._pool is None:
            self._pool = VictimPool(session, terms.losers.jobs())
        pool = self._pool
        rows = session.pod_sets.to_allocate(job)
        jobs = pool.jobs[terms.allowed(pool.jobs)]
        sequence = VictimSequence(session, pool, jobs[jobs != job], terms.lets_go)
        search = _Search(session, self._placement, self._placer, job, rows, terms, sequence)
        if not len(rows) or not search.succeeds():
            return None
        pool.drop(*search.gone(), job)
        return search.transaction


_GONE = status_set(Status.RELEASING, Status.PIPELINED)


class _Search:
    """One job's search. `transaction` and `chunks` are what it found."""

    def __init__(
        self,
        session: Session,
        placement: Placement,
        placer: JobPlacer,
        job: int,
        rows: TaskRows,
        terms: Terms,
        sequence: VictimSequence,
    ) -> None:
        self._session = session
        self._placement = placement
        self._placer = placer
        self._job = job
        self._rows = rows
        self._terms = terms
        self._sequence = sequence
        self._sums = RoomSums(session, placement, demands_of(session, rows))
        facts = session.job_facts(job)
        # As long as sums have not been wrong. Where groups have to be near each other, they say little.
        self._plain = self._sums.exact and not facts.groups and facts.level_wish is None
        self._refused: set[int] = set()  # queues of which a chunk was refused by itself
        self.transaction = Transaction(session)
        self.chunks: list[Chunk] = []

    def succeeds(self) -> bool:
        for _ in range(_LESSONS + self._sequence.queues):
            chosen = self._choose()
            if chosen is None or not self._within_limit(chosen):
                return False
            self.chunks = chosen
            if not self._try(chosen):
                if not self._plain:
                    return False
                self._plain = False  # something but amounts stands in the way
                continue
            if self._accepted(chosen):
                return True
            learnt = self._learn(chosen)
            self.transaction.discard()
            if not learnt:
                return False
        return False

    def gone(self) -> tuple[list[Chunk], set[int]]:
        """The chunks that do not stay, and the jobs of those that found another place."""
        status = self._session.tasks.status
        states = status[np.concatenate([_NOBODY, *(chunk.rows for chunk in self.chunks)])]
        if (states == Status.RELEASING).all():
            return self.chunks, set()
        gone = [one for one in self.chunks if _GONE[status[one.rows]].any()]
        return gone, {one.job for one in gone if (status[one.rows] == Status.PIPELINED).any()}

    def _within_limit(self, chunks: list[Chunk]) -> bool:
        most = self._terms.most
        return most is None or len({chunk.job for chunk in chunks}) <= most

    # -- whom to take ---------------------------------------------------------------------------------------------

    def _choose(self) -> list[Chunk] | None:
        """The chunks to evict; None when nobody would make room."""
        size = self._sums.least(self._sequence)
        if size is None or (self._plain and size == 0):
            return None if size is None else []
        if self._plain:
            return self._sums.needed(self._sequence.first(size))
        return self._by_trying(size)

    def _by_trying(self, size: int) -> list[Chunk] | None:
        """The first chunks with which the job fits, without those that can stay. `size`: fewer are not enough."""
        if size == 0 and self._fits([]):
            return []
        low, high = max(size - 1, 0), max(size, 1)
        while not self._fits(chunks := self._sequence.first(high)):
            if len(chunks) < high or not self._within_limit(chunks):
                return None
            low, high = high, 2 * high
        count = smallest(lambda count: self._fits(chunks[:count]), low, len(chunks))
        return self._reduced(chunks[:count])

    def _reduced(self, chunks: list[Chunk]) -> list[Chunk]:
        """Without chunks that can stay: in blocks first, one by one last, the most important first."""
        size = len(chunks) // 2
        while size:
            for stop in range(len(chunks), 0, -size):
                some = set(chunks[max(stop - size, 0) : stop])
                rest = [chunk for chunk in chunks if chunk not in some]
                if _whole(chunks, rest) and self._fits(rest):
                    chunks = rest
            size //= 2
        return chunks

    def _fits(self, chunks: list[Chunk]) -> bool:
        fits = self._try(chunks)
        self.transaction.discard()
        return fits

    # -- trying ---------------------------------------------------------------------------------------------------

    def _try(self, chunks: list[Chunk]) -> bool:
        """Evict and place the job. When that fails nothing is done."""
        if chunks:
            self.transaction.evict(np.concatenate([chunk.rows for chunk in chunks]), self._terms.reason)
        if self._placer.allocate(
            self.transaction, self._job, None, pipeline_only=True, real=False, rows=self._rows
        ):
            return True
        self.transaction.discard()
        return False

    def _accepted(self, chunks: list[Chunk]) -> bool:
        self._bring_back(chunks)
        return self._accepts(chunks)

    def _accepts(self, chunks: list[Chunk]) -> bool:
        victims: dict[int, list[TaskRows]] = {}
        for chunk in chunks:
            victims.setdefault(chunk.job, []).append(chunk.rows)
        lost = {job: parts[0] if len(parts) == 1 else np.concatenate(parts) for job, parts in victims.items()}
        return self._terms.accept(Outcome(self._job, self._rows, lost))

    def _bring_back(self, chunks: list[Chunk]) -> None:
        """Find victims another place, the most important first; they may also stay where they were."""
        lost: dict[int, list[TaskRows]] = {}
        if not self._has_room([chunk.rows for chunk in chunks]):
            return
        for chunk in reversed(chunks):
            lost.setdefault(chunk.job, []).append(chunk.rows)
        for job, parts in lost.items():
            while self._has_room(parts) and self._placer.allocate(
                self.transaction, job, None, pipeline_only=True, real=False
            ):
                pass

    def _has_room(self, parts: list[TaskRows]) -> bool:
        """Something is still evicted, and there is a place for a task like it."""
        tasks, classes = self._session.tasks, self._session.classes
        rows = np.concatenate([_NOBODY, *parts])
        leaving = rows[tasks.status[rows] == Status.RELEASING]
        numbers = set(tasks.class_of[leaving].tolist())
        return any(self._placement.column(classes[number]).room > 0 for number in numbers)

    # -- learning -------------------------------------------------------------------------------------------------

    def _learn(self, chunks: list[Chunk]) -> bool:
        """The scenario was refused, and is still there: whom to leave alone next time. False: nothing helps."""
        if self._terms.all_return:
            status = self._session.tasks.status
            left = [one for one in chunks if (status[one.rows] == Status.RELEASING).any()]
            if left:
                self._sequence.bar(left[0])
            return bool(left)
        if not chunks or not self._accepts([]):
            return False
        count = smallest(lambda count: not self._accepts(chunks[:count]), 0, len(chunks))
        culprit = chunks[count - 1]
        queue = int(self._session.jobs.queue[culprit.job])
        if self._accepts([culprit]) or queue in self._refused:
            self._sequence.close(culprit)  # the queue has given what it may
            return self._sequence.queues > 1  # of one queue alone, fewer chunks are not enough
        self._refused.add(queue)
        self._sequence.bar(culprit)
        return True


_NOBODY: TaskRows = np.zeros(0, dtype=np.int64)


def _whole(chunks: list[Chunk], rest: list[Chunk]) -> bool:
    """Whoever loses its core in the rest loses there all that it would have lost."""
    lost = {chunk.job for chunk in rest if chunk.core}
    stays = set(chunks).difference(rest)
    return not any(chunk.job in lost for chunk in stays)


__all__ = ["Solver"]
