"""The default solver: make room for a whole job at once, with as few evictions as possible.

Victims come in KAI's order. Sums over nodes (`room_sums.py`) give the least number of victims, and which of
these could stay: the remaining ones are tried first, and where sums are exact no other trial is needed.
Otherwise scenarios are tried, twice as large each time, then halved, then reduced until every victim is needed;
scenarios that sums rule out are not tried. The job and its victims are placed in the order of queues. A
scenario that validators refuse shows which victims to exclude, and the search goes on without them. It ends
when its allowance is used up (`budget.py`).

Invariants: all or nothing; no victim could have stayed; a job loses tasks that it can spare or all that it has;
a job that was served or moved in an action is no victim in it; moved tasks find their places also when the job
is placed first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.searching.budget import Allowance, OutOfBudgetError
from maniple.actions.searching.feasible import enough_in_total
from maniple.actions.searching.rooms import Rooms
from maniple.actions.searching.telling import CANDIDATES, NO_SCENARIO, tell_search
from maniple.actions.searching.terms import SearchTerms, Terms
from maniple.actions.signatures import Constraints
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status, status_set
from maniple.eviction.asking import demands_of
from maniple.eviction.chunks import Chunk, ScenarioOutcome, Victims
from maniple.eviction.room_sums import HeldParts, RoomSums, smallest
from maniple.eviction.victims import VictimPool, VictimSequence
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.wholes import evict_rest
from maniple.placement.engine import Mask, Placement

NOT_ENOUGH = "without all pods that may be evicted there would still not be enough room"
FULL = "all nodes together have less free than the job requests, and moving pods frees nothing"
DOES_NOT_FIT = "the job does not fit without them"
TAKEN_BACK = "these have their turns before it and take places back: {jobs}"
REFUSED = "the job fits, but the result is not accepted"
_AHEAD = 32  # how many jobs ahead of a job are considered in the order of turns
_FEW = 32  # chunks that are gone through one by one when validators object
_LESSONS = 16  # refusals that a search learns from, and as many more as there are queues


class Solver:
    """Serves jobs of one action."""

    def __init__(self, session: Session, placement: Placement, constraints: Constraints) -> None:
        self._session = session
        self._placement = placement
        self._placer = JobPlacer(session, placement)
        self._pool: VictimPool | None = None
        self._differ = False  # not all tasks that have a place are of one class
        self._rooms = Rooms(session, placement, constraints)  # as long as nothing changes
        self._held = HeldParts(session)
        self._many = 0  # chunks to begin with where a few are not enough, going by the last job
        self._guess = 1  # chunks that the next job may need, going by the last one

    def solve(
        self, job: int, terms: Terms, allowance: Allowance, ahead: Sequence[int] = ()
    ) -> Transaction | None:
        """A transaction that serves the job, or None with nothing changed.

        `ahead`: pending jobs of its queue that come before it.
        """
        session = self._session
        rows = session.groups.to_allocate(job)
        if not len(rows):
            return None
        if terms.all_return:
            if not session.hooks.is_job_over_capacity(job, rows).schedulable:
                return None  # the victims would all come back to a queue that is full
            if not enough_in_total(session, rows):
                if (trace := session.traced(job)) is not None:
                    trace.search_ended(job, False, FULL)
                return None
        if self._pool is None:
            self._pool = VictimPool(session, terms.losers.jobs())
            self._differ = len(np.bincount(session.tasks.class_of[self._placed()]).nonzero()[0]) > 1
        pool = self._pool
        jobs = pool.jobs[terms.allowed(pool.jobs)]
        jobs = jobs[jobs != job]
        for some in self._rounds(jobs, terms):
            sequence = VictimSequence(session, pool, some, terms.lets_go)
            demands = demands_of(session, rows)
            allowance.prepare(len(demands))
            sums = RoomSums(session, self._placement, demands, self._held)
            sums.many = self._many
            place = partial(self._places, job, rows)
            if (trace := session.traced(job)) is not None:
                tell_search(session, trace, job, rows, terms, sequence.first(CANDIDATES))
            search = Search(session, self._placement, job, rows, terms, sequence, sums, allowance, place)
            search.returning = self._placer
            search.guess, search.ahead = self._guess, ahead[:_AHEAD]
            if search.told():
                self._guess, self._many = len(search.chunks), sums.many
                self._rooms.forget()
                pool.drop(*search.gone(), job)
                return search.transaction
            if allowance.ran_out:
                break
        return None

    def _places(self, job: int, rows: TaskRows, transaction: Transaction, nodes: Mask | None) -> bool:
        return self._placer.allocate(transaction, job, nodes, pipeline_only=True, real=False, rows=rows)

    def _rounds(self, jobs: JobRows, terms: Terms) -> Iterator[JobRows]:
        """Where all victims have to find other places: first the jobs for which there are such places now. Then all."""
        if terms.all_return and self._differ:
            movable = jobs[self._movable(jobs)]
            if 0 < len(movable) < len(jobs):
                yield movable
        yield jobs

    def _movable(self, jobs: JobRows) -> NDArray[np.bool_]:
        """Jobs with tasks that would all have a place somewhere, each by itself."""
        session, tasks = self._session, self._session.tasks
        there = self._placed()
        class_of = tasks.class_of[there]
        full = self._rooms.are_full(np.bincount(class_of).nonzero()[0].tolist())
        stuck = np.zeros(len(session.jobs.queue), dtype=np.bool_)
        stuck[tasks.job[there[full[class_of]]]] = True
        return ~stuck[jobs]

    def _placed(self) -> TaskRows:
        """The tasks of all jobs that have a place."""
        tasks = self._session.tasks
        return np.flatnonzero((tasks.status >= 0) & ACTIVE_ALLOCATED[tasks.status] & (tasks.job >= 0))


_GONE = status_set(Status.RELEASING, Status.PIPELINED)
_RELEASING = int(Status.RELEASING)


class Search:
    """One job's search. `transaction` and `chunks` are what it found.

    `place` places the job in a transaction, on some nodes or (None) any, or changes nothing and returns False.
    With `returning`, victims are placed again, each in its turn; without it, evicted tasks leave.
    """

    def __init__(
        self,
        session: Session,
        placement: Placement,
        job: int,
        rows: TaskRows,
        terms: SearchTerms,
        sequence: Victims,
        sums: RoomSums,
        allowance: Allowance,
        place: Callable[[Transaction, Mask | None], bool],
    ) -> None:
        self._session = session
        self._placement = placement
        self._places = place
        self._job = job
        self._rows = rows
        self._terms = terms
        self._sequence = sequence
        self._allowance = allowance
        self._sums = sums
        self._objected = False  # a validator, or a victim that came back
        self._faster: list[Chunk] = []  # that came back before the job could be placed, in the last trial
        self._refused: set[int] = set()  # queues of which a chunk was refused by itself
        self._job_first = False  # victims are placed after the job, even those with an earlier turn
        self._own_nodes: Mask | None = None  # the only ones that the job may have; None: any
        self._led = False  # victims found theirs before it in the last trial
        self.guess = 1
        self.ahead: Sequence[int] = ()
        self.returning: JobPlacer | None = None
        self.transaction = Transaction(session)
        self.chunks: list[Chunk] = []
        self._why = NO_SCENARIO  # it failed

    def told(self) -> bool:
        """Whether it succeeds; the result is recorded if the job is traced."""
        found, trace = self.succeeds(), self._session.trace
        if trace is not None and trace.follows(self._job):
            why = (
                ""
                if found
                else "the budget for searching is used up"
                if self._allowance.ran_out
                else self._why
            )
            trace.search_ended(self._job, found, why)
        return found

    def succeeds(self) -> bool:
        try:
            return self._finds() and (not self._terms.all_return or self._lasts())
        except OutOfBudgetError:
            return False
        finally:
            self._allowance.add_up(self._sums.looked_at)

    def _finds(self) -> bool:
        return self._searched() or (self._objected and self._tries_all())

    def _lasts(self) -> bool:
        """Whether the result still holds in the next cycle, when the job is placed first and moved pods after it.

        If not, the search begins again in that order: otherwise jobs would move each other forever.
        """
        if not self._led or self._lasts_in_any_order():
            return True
        self._own_nodes = np.zeros(len(self._session.nodes), dtype=np.bool_)
        self._own_nodes[self._session.tasks.node[self._rows]] = True
        self.transaction.discard()
        self._job_first = True
        lasts = self._would_do(self.chunks)
        self._own_nodes = None
        if lasts:
            self._job_first = False
            return self._try(self.chunks, proposed=True)
        self._sequence.reopen()
        self._refused.clear()
        return self._finds()

    def _lasts_in_any_order(self) -> bool:
        """Whether this is certain without a trial: moved pods are alike, and beside the job's nodes.

        However the job distributes its pods over its nodes, the places that were found for moved pods remain,
        and of pods that are alike it does not matter which one takes which.
        """
        tasks = self._session.tasks
        moved = np.concatenate([_NOBODY, *(chunk.rows for chunk in self.chunks)])
        return (
            "reserve" not in self._session.hooks.answered
            and self._are_alike(self._rows)
            and self._are_alike(moved)
            and not np.isin(tasks.node[moved], tasks.node[self._rows]).any()
            and all(_is_simple(self._session.groups.root(job)) for job in {self._job, *_by_job(self.chunks)})
        )

    def _are_alike(self, rows: TaskRows) -> bool:
        """One class, and whether a pod fits on a node depends on that node alone."""
        numbers = self._session.tasks.class_of[rows]
        if not (numbers == numbers[0]).all():
            return False
        class_ = self._session.classes[numbers[0]]
        return class_.share is None and not self._placement.criteria(class_).cluster_filters

    def _tries_all(self) -> bool:
        """Try more victims where the fewest are not enough, since victims may move into each other's places.

        Only if there are few chunks.
        """
        self._sequence.reopen()
        candidates = self._sequence.first(_FEW + 1)
        if len(candidates) > _FEW:
            return False
        for count in range(1, len(candidates) + 1):
            if self._would_do(candidates[:count]):
                self.chunks = self._reduced(candidates[:count], self._would_do)
                return self._try(self.chunks)
        return False

    def _would_do(self, chunks: list[Chunk]) -> bool:
        would = self._within_limit(chunks) and self._try(chunks) and self._accepts(chunks)
        self.transaction.discard()
        return would

    def _searched(self) -> bool:
        for _ in range(_LESSONS + self._sequence.queues):
            self._faster = []
            size = self._sums.least(self._sequence, self.guess)
            if size is None:
                self._why = NOT_ENOUGH
                return False
            if not self._found(size):
                if self._give_way():
                    continue
                return False
            if self._accepts(self.chunks):
                return True
            self._objected = True
            self._tell_refusal(self.chunks)
            learnt = self._learn(self.chunks)
            self.transaction.discard()
            if not learnt:
                return False
        return False

    def gone(self) -> tuple[list[Chunk], set[int]]:
        """The chunks that do not stay, and the jobs of those that found another place."""
        status = self._session.tasks.status
        states = status[np.concatenate([_NOBODY, *(chunk.rows for chunk in self.chunks)])]
        if (states == _RELEASING).all():
            return self.chunks, set()
        gone = [one for one in self.chunks if _GONE[status[one.rows]].any()]
        return gone, {one.job for one in gone if (status[one.rows] == Status.PIPELINED).any()}

    def _within_limit(self, chunks: list[Chunk]) -> bool:
        most = self._terms.most
        return most is None or len({chunk.job for chunk in chunks}) <= most

    # -- which victims to take ------------------------------------------------------------------------------------

    def _found(self, size: int) -> bool:
        """Find `chunks` with which the job fits, and leave them evicted on trial.

        `size`: fewer than this many of the first chunks are not enough.
        """
        self.chunks = self._sums.needed(self._sequence.first(size))
        if not self._within_limit(self.chunks):
            return False
        if self._try(self.chunks, proposed=True):
            return True
        if self._faster:
            return False
        # Something but amounts stands in the way.
        chosen = self._by_trying(size)
        if chosen is None or not self._within_limit(chosen):
            return False
        self.chunks = chosen
        return self._try(chosen)

    def _by_trying(self, size: int) -> list[Chunk] | None:
        """The first chunks with which the job fits, without those that can stay. `size`: fewer are not enough."""
        low, high = max(size - 1, 0), max(size, 1)
        while not self._fits(chunks := self._sequence.first(high)):
            if self._faster or len(chunks) < high or not self._within_limit(chunks):
                return None
            low, high = high, 2 * high
        count = smallest(lambda count: self._fits(chunks[:count]), low, len(chunks))
        return self._reduced(chunks[:count], self._fits)

    def _reduced(self, chunks: list[Chunk], enough: Callable[[list[Chunk]], bool]) -> list[Chunk]:
        """Without chunks that can stay: in blocks first, one by one last, the most important first."""
        size = len(chunks) // 2
        while size:
            for stop in range(len(chunks), 0, -size):
                some = set(chunks[max(stop - size, 0) : stop])
                rest = [chunk for chunk in chunks if chunk not in some]
                if _whole(chunks, rest) and enough(rest):
                    chunks = rest
            size //= 2
        return chunks

    def _fits(self, chunks: list[Chunk]) -> bool:
        """Whether the job has a place without them; where the victims go after it does not matter."""
        fits = self._place(chunks) is not None
        self.transaction.discard()
        return fits

    # -- trying ---------------------------------------------------------------------------------------------------

    def _try(self, chunks: list[Chunk], *, proposed: bool = False) -> bool:
        """Evict, and place the job and its victims, each in its turn; if the job does not fit, change nothing."""
        others = self._place(chunks, proposed=proposed)
        if others is None:
            return False
        lost = _by_job(chunks)
        if chunks and self.returning is not None and self._has_room([chunk.rows for chunk in chunks]):
            for job in others:
                while self._comes_back(job, lost):
                    pass
        together = ((chunk.job, chunk.rows) for chunk in chunks)
        evict_rest(self._session, self.transaction, together, self._terms.reason)
        return True

    def _place(self, chunks: list[Chunk], *, proposed: bool = False) -> Iterable[int] | None:
        """Evict, place the job, and return the victims that come after it.

        Returns None, with nothing changed, if the job does not fit. `proposed`: the sums proposed these chunks.
        A victim with a turn before the job's would take its place back in the next cycle, and the job would
        evict it again: so such a victim may take it back here.
        """
        if not proposed and not self._sums.could(chunks):
            return None
        self._allowance.spend(len(self._rows) + 2 * sum(len(chunk.rows) for chunk in chunks))
        if chunks:
            self.transaction.evict(np.concatenate([chunk.rows for chunk in chunks]), self._terms.reason)
        faster: set[int] = set()
        others: Iterable[int] = ()
        if self.returning is not None:
            faster, others = self._first_in_line(_by_job(chunks))
        if self._fits_without(chunks, faster):
            self._led = bool(faster)
            return others
        leaves = self._session.tasks.status == _RELEASING
        self._faster = [one for one in chunks if one.job in faster and not leaves[one.rows].any()]
        self.transaction.discard()
        return None

    def _fits_without(self, chunks: list[Chunk], faster: set[int]) -> bool:
        """Place the job, while its victims are evicted on trial, without those that took their places back."""
        trace = self._session.trace
        if trace is None or not trace.follows(self._job):
            return self._places(self.transaction, self._own_nodes)
        with trace.inside_trial() as events:
            fits = self._places(self.transaction, self._own_nodes)
        victims = np.concatenate([_NOBODY, *(chunk.rows for chunk in chunks)])
        why = "" if fits else DOES_NOT_FIT
        if faster and not fits:
            why = TAKEN_BACK.format(jobs=", ".join(map(self._session.job_key, sorted(faster))))
        trace.trial(self._job, victims, fits, why=why, events=events)
        return fits

    def _tell_refusal(self, chunks: list[Chunk]) -> None:
        trace, cause = self._session.trace, self._terms.reason
        if trace is None or not trace.follows(self._job) or not isinstance(cause, EvictionCause):
            return
        lost = {job: np.concatenate(parts) for job, parts in _by_job(chunks).items()}
        outcome = ScenarioOutcome(self._job, self._rows, lost)
        points = [point for point in cause.asked if point.endswith("validator")]
        answers = [one for point in points for one in trace.answers(point, outcome)]
        trace.judged(REFUSED, tuple(answers))

    def _first_in_line(self, lost: Mapping[int, list[TaskRows]]) -> tuple[set[int], Iterable[int]]:
        """Place the evicted victims with a turn before the job's.

        Returns these victims, and those that come after the job.
        """
        queues, own, faster = self._session.jobs.queue, self._job, set[int]()
        victims = list(lost)
        if self._job_first:
            return faster, iter(JobsByQueue(self._session, victims).pop, None)
        if (queues[victims] == queues[own]).all():
            ordered: list[int] = self._session.in_job_order(np.array([*victims, own])).tolist()
            place = ordered.index(own)
            faster = {job for job in ordered[:place] if self._comes_back(job, lost)}
            return faster, [*ordered[place + 1 :], *ordered[:place]]
        line = JobsByQueue(self._session, [own, *victims, *self.ahead])
        while (job := line.pop()) is not None and job != own:
            if job in lost and self._comes_back(job, lost):
                faster.add(job)
                line.push(job)  # for what else it has lost
        return faster, (job for job in iter(line.pop, None) if job in lost)

    def _comes_back(self, job: int, lost: Mapping[int, list[TaskRows]]) -> bool:
        """Find a victim a place, for all that it needs or one task more; it may also stay where it was."""
        if self.returning is None or not self._has_room(lost[job]):
            return False
        # What it lost need not be what it requests next: an optional sub-group is placed as a whole or not at
        # all.
        rows = self._session.groups.to_allocate(job, simulated=True)
        return len(rows) > 0 and self.returning.allocate(
            self.transaction, job, None, pipeline_only=True, real=False, rows=rows
        )

    def _accepts(self, chunks: list[Chunk]) -> bool:
        victims = _by_job(chunks)
        lost = {job: parts[0] if len(parts) == 1 else np.concatenate(parts) for job, parts in victims.items()}
        return self._terms.accept(ScenarioOutcome(self._job, self._rows, lost))

    def _has_room(self, parts: list[TaskRows]) -> bool:
        """Something is still evicted, and there is a place for a task like it."""
        tasks, classes = self._session.tasks, self._session.classes
        rows = np.concatenate([_NOBODY, *parts])
        leaving = rows[tasks.status[rows] == _RELEASING]
        numbers = set(tasks.class_of[leaving].tolist())
        return any(self._placement.column(classes[number]).room > 0 for number in numbers)

    # -- learning -------------------------------------------------------------------------------------------------

    def _give_way(self) -> bool:
        """Exclude victims that would only come back, if that is why the last trial failed."""
        back, self._faster = self._faster, []
        if not back:
            return False
        self._objected = True
        own = self._session.jobs.queue[self._job]
        if self._terms.all_return or self._session.jobs.queue[back[0].job] == own:
            for chunk in back:
                self._sequence.bar(chunk)
            return True
        self._sequence.close(back[0])  # whatever else its queue gives up puts it even further ahead
        return self._sequence.queues > 1

    def _learn(self, chunks: list[Chunk]) -> bool:
        """After a refused scenario, still in place: exclude victims from the next trial. False: nothing helps."""
        if self._terms.all_return:
            status = self._session.tasks.status
            left = [one for one in chunks if (status[one.rows] == _RELEASING).any()]
            if left:
                self._sequence.bar(left[0])
                return True
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


def _by_job(chunks: list[Chunk]) -> dict[int, list[TaskRows]]:
    lost: dict[int, list[TaskRows]] = {}
    for chunk in chunks:
        lost.setdefault(chunk.job, []).append(chunk.rows)
    return lost


def _is_simple(root: Group) -> bool:
    """Whether a job is one pod set that may be placed anywhere."""
    parts: list[Group | PodSet] = [root, *root.pod_sets]
    return len(parts) == 2 and not root.groups and not any(one.wish or one.limit for one in parts)


def _whole(chunks: list[Chunk], rest: list[Chunk]) -> bool:
    """Whether each job that loses its core in the rest loses there all that it would have lost."""
    lost = {chunk.job for chunk in rest if chunk.core}
    stays = set(chunks).difference(rest)
    return not any(chunk.job in lost for chunk in stays)


__all__ = ["Search", "Solver"]
