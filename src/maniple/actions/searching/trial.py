"""A trial: what comes of evicting some chunks for a job.

The victims are evicted, the job is placed, and the victims are placed again, each in its turn, all in one
transaction that is kept or discarded. Used by `search.py`, which decides what to try.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.searching.budget import Allowance
from maniple.actions.searching.feasible import enough_in_total
from maniple.cluster.statuses import Status
from maniple.eviction.chunks import Chunk
from maniple.eviction.room_sums import RoomSums
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.wholes import evict_rest
from maniple.placement.engine import Mask, Placement

DOES_NOT_FIT = "the job does not fit without them"
TAKEN_BACK = "these have their turns before it and take places back: {jobs}"
_NO_TASKS: TaskRows = np.zeros(0, dtype=np.int64)
_RELEASING = int(Status.RELEASING)


class Trial:
    """Trials for the tasks of one job, one after the other. `transaction` is the last one, unless it was discarded.

    `place` places the job in a transaction, on some nodes or (None) any, or changes nothing and returns False.
    With `returning`, victims are placed again, each in its turn; without it, evicted tasks leave. `ahead` are
    pending jobs that come before the job.
    """

    def __init__(
        self,
        session: Session,
        placement: Placement,
        job: int,
        rows: TaskRows,
        reason: str,
        sums: RoomSums,
        allowance: Allowance,
        place: Callable[[Transaction, Mask | None], bool],
        *,
        returning: JobPlacer | None = None,
        ahead: Sequence[int] = (),
    ) -> None:
        self._session = session
        self._placement = placement
        self._reason = reason
        self._sums = sums
        self._allowance = allowance
        self._places = place
        self._returning = returning
        self._ahead = ahead
        self.job = job
        self.rows = rows
        self.transaction = Transaction(session)
        self.job_first = False  # victims are placed after the job, even those with an earlier turn
        self.own_nodes: Mask | None = None  # the only ones that the job may have; None: any
        self.led = False  # victims found places before the job in the last trial
        # Whether all nodes together have as much free as the job requests, without evictions
        self._enough: bool | None = None
        self.faster: list[Chunk] = []  # that came back before the job could be placed, in the last trial

    def of(self, chunks: list[Chunk], *, proposed: bool = False) -> bool:
        """Evict, and place the job and its victims, each in its turn; if the job does not fit, change nothing."""
        others = self._place(chunks, proposed=proposed)
        if others is None:
            return False
        lost = by_job(chunks)
        if chunks and self._returning is not None and self._has_room([chunk.rows for chunk in chunks]):
            for job in others:
                while self._comes_back(job, lost):
                    pass
        together = ((chunk.job, chunk.rows) for chunk in chunks)
        evict_rest(self._session, self.transaction, together, self._reason)
        return True

    def fits(self, chunks: list[Chunk]) -> bool:
        """Whether the job has a place without them; where the victims go after it does not matter."""
        fits = self._place(chunks) is not None
        self.transaction.discard()
        return fits

    def _place(self, chunks: list[Chunk], *, proposed: bool = False) -> Iterator[int] | None:
        """Evict, place the job, and return the victims that come after it.

        Returns None, with nothing changed, if the job does not fit. `proposed`: the sums proposed these chunks.
        A victim with a turn before the job's would take its place back in the next cycle, and the job would
        evict it again: so such a victim may take it back here.
        """
        if not proposed and not self._sums.could(chunks):
            return None
        lost = by_job(chunks)
        self._allowance.spend(len(self.rows) + 2 * sum(len(chunk.rows) for chunk in chunks))
        if chunks:
            self.transaction.evict(rows_of(chunks), self._reason)
        faster: set[int] = set()
        others: Iterator[int] = iter(())
        if self._returning is not None:
            in_turn = self._first_in_line(chunks, lost)
            if in_turn is None:
                return None
            faster, others = in_turn
        if self._fits_without(chunks, faster):
            self.led = bool(faster)
            return others
        leaves = self._session.tasks.status == _RELEASING
        self.faster = [one for one in chunks if one.job in faster and not leaves[one.rows].any()]
        self.transaction.discard()
        return None

    def _fits_without(self, chunks: list[Chunk], faster: set[int]) -> bool:
        """Place the job, while its victims are evicted on trial, without those that took their places back."""
        trace = self._session.trace
        if trace is None or not trace.follows(self.job):
            return self._places(self.transaction, self.own_nodes)
        with trace.inside_trial() as events:
            fits = self._places(self.transaction, self.own_nodes)
        why = "" if fits else self._taken_back(faster) if faster else DOES_NOT_FIT
        trace.trial(self.job, rows_of(chunks), fits, why=why, events=events)
        return fits

    def _taken_back(self, faster: Iterable[int]) -> str:
        return TAKEN_BACK.format(jobs=", ".join(map(self._session.job_key, sorted(faster))))

    def _all_return_first(self, chunks: list[Chunk], lost: Mapping[int, list[TaskRows]]) -> bool:
        """Whether all victims have their turns before the job and take as much again; nothing is changed then.

        Where all nodes together have too little free without evictions, the job cannot fit then, whichever nodes the
        victims take. Here each takes its own, so that none has to be placed.
        """
        session = self._session
        if (session.jobs.queue[[*lost]] == session.jobs.queue[self.job]).any():
            return False
        if self._enough is None:
            self._enough = enough_in_total(session, self.rows, rows_of(chunks))
        if self._enough:
            return False
        line, checkpoint = self._line(lost), self.transaction.checkpoint()
        while (job := line.pop()) is not None and job != self.job:
            if job in lost and self._stays(job):
                line.push(job)  # for what else it has lost
        if (session.tasks.status[rows_of(chunks)] == _RELEASING).any():
            self.transaction.rollback(checkpoint)
            return False
        if (trace := session.traced(self.job)) is not None:
            trace.trial(self.job, rows_of(chunks), False, why=self._taken_back(lost))
        self.faster = list(chunks)
        self.transaction.discard()
        return True

    def _line(self, lost: Iterable[int]) -> JobsByQueue:
        return JobsByQueue(self._session, [self.job, *lost, *self._ahead])

    def _stays(self, job: int) -> bool:
        """Give a victim its own places back, for all that it needs or one task more."""
        session = self._session
        rows = session.groups.to_allocate(job, simulated=True)
        evicted = len(rows) > 0 and bool((session.tasks.status[rows] == _RELEASING).all())
        if not evicted or not session.hooks.is_job_over_capacity(job, rows).schedulable:
            return False
        self.transaction.restore(rows)
        return True

    def _first_in_line(
        self, chunks: list[Chunk], lost: Mapping[int, list[TaskRows]]
    ) -> tuple[set[int], Iterator[int]] | None:
        """Place the evicted victims with a turn before the job's.

        Returns these victims, and those that come after the job; None, with nothing changed, if all of them come
        before it and leave too little.
        """
        queues, own, faster = self._session.jobs.queue, self.job, set[int]()
        victims = list(lost)
        if self.job_first:
            return faster, iter(JobsByQueue(self._session, victims).pop, None)
        if (queues[victims] == queues[own]).all():
            ordered: list[int] = self._session.in_job_order(np.array([*victims, own])).tolist()
            place = ordered.index(own)
            faster = {job for job in ordered[:place] if self._comes_back(job, lost)}
            return faster, iter([*ordered[place + 1 :], *ordered[:place]])
        line = self._line(victims)
        job = line.pop()
        if job != own and self._all_return_first(chunks, lost):
            return None
        while job is not None and job != own:
            if job in lost and self._comes_back(job, lost):
                faster.add(job)
                line.push(job)  # for what else it has lost
            job = line.pop()
        return faster, (job for job in iter(line.pop, None) if job in lost)

    def _comes_back(self, job: int, lost: Mapping[int, list[TaskRows]]) -> bool:
        """Find a victim a place, for all that it needs or one task more; it may also stay where it was."""
        if self._returning is None or not self._has_room(lost[job]):
            return False
        # What it lost need not be what it requests next: an optional sub-group is placed as a whole or not at
        # all.
        rows = self._session.groups.to_allocate(job, simulated=True)
        return len(rows) > 0 and self._returning.allocate(
            self.transaction, job, None, pipeline_only=True, real=False, rows=rows
        )

    def _has_room(self, parts: list[TaskRows]) -> bool:
        """Something is still evicted, and there is a place for a task like it."""
        tasks, classes = self._session.tasks, self._session.classes
        rows = np.concatenate(parts)
        leaving = rows[tasks.status[rows] == _RELEASING]
        numbers = set(tasks.class_of[leaving].tolist())
        return any(self._placement.column(classes[number]).room > 0 for number in numbers)


def by_job(chunks: list[Chunk]) -> dict[int, list[TaskRows]]:
    lost: dict[int, list[TaskRows]] = {}
    for chunk in chunks:
        lost.setdefault(chunk.job, []).append(chunk.rows)
    return lost


def rows_of(chunks: list[Chunk]) -> TaskRows:
    return np.concatenate([_NO_TASKS, *(chunk.rows for chunk in chunks)])


__all__ = ["Trial", "by_job", "rows_of"]
