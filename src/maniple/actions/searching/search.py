"""The search for the victims of one job.

Sums over nodes (`room_sums.py`) give the least number of victims, and which of these could stay: the remaining ones
are tried first, and where sums are exact no other trial is needed. Otherwise scenarios are tried (`trial.py`), twice
as large each time, then halved, then reduced until every victim is needed; scenarios that sums rule out are not
tried. A scenario that validators refuse shows which victims to exclude, and the search goes on without them. It ends
when its allowance is used up (`budget.py`).
"""

from collections.abc import Callable

import numpy as np

from maniple.actions.searching.budget import Allowance, OutOfBudgetError
from maniple.actions.searching.telling import NO_SCENARIO
from maniple.actions.searching.terms import SearchTerms
from maniple.actions.searching.trial import Trial, by_job, rows_of
from maniple.cluster.statuses import Status, status_set
from maniple.eviction.chunks import Chunk, ScenarioOutcome, Victims
from maniple.eviction.room_sums import RoomSums, smallest
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement

NOT_ENOUGH = "without all pods that may be evicted there would still not be enough room"
REFUSED = "the job fits, but the result is not accepted"
_FEW = 32  # chunks that are gone through one by one when validators object
_LESSONS = 16  # refusals that a search learns from, and as many more as there are queues
_GONE = status_set(Status.RELEASING, Status.PIPELINED)
_RELEASING = int(Status.RELEASING)


class Search:
    """One job's search. `transaction` and `chunks` are what it found. `guess`: so many chunks may do."""

    def __init__(
        self,
        session: Session,
        placement: Placement,
        trial: Trial,
        terms: SearchTerms,
        sequence: Victims,
        sums: RoomSums,
        allowance: Allowance,
        guess: int = 1,
    ) -> None:
        self._session = session
        self._placement = placement
        self._trial = trial
        self._job, self._rows = trial.job, trial.rows
        self._terms = terms
        self._sequence = sequence
        self._sums = sums
        self._allowance = allowance
        self._guess = guess
        self._objected = False  # a validator, or a victim that came back
        self._refused: set[int] = set()  # queues of which a chunk was refused by itself
        self.chunks: list[Chunk] = []
        self._why = NO_SCENARIO  # it failed

    @property
    def transaction(self) -> Transaction:
        return self._trial.transaction

    def run(self) -> bool:
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
        if not self._trial.led or self._lasts_in_any_order():
            return True
        self._trial.own_nodes = np.zeros(len(self._session.nodes), dtype=np.bool_)
        self._trial.own_nodes[self._session.tasks.node[self._rows]] = True
        self._trial.transaction.discard()
        self._trial.job_first = True
        lasts = self._would_do(self.chunks)
        self._trial.own_nodes = None
        if lasts:
            self._trial.job_first = False
            return self._trial.of(self.chunks, proposed=True)
        self._sequence.reopen()
        self._refused.clear()
        return self._finds()

    def _lasts_in_any_order(self) -> bool:
        """Whether this is certain without a trial: moved pods are alike, and beside the job's nodes.

        However the job distributes its pods over its nodes, the places that were found for moved pods remain,
        and of pods that are alike it does not matter which one takes which.
        """
        tasks = self._session.tasks
        moved = rows_of(self.chunks)
        return (
            "reserve" not in self._session.hooks.answered
            and self._are_alike(self._rows)
            and self._are_alike(moved)
            and not np.isin(tasks.node[moved], tasks.node[self._rows]).any()
            and all(_is_simple(self._session.groups.root(job)) for job in {self._job, *by_job(self.chunks)})
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
                return self._trial.of(self.chunks)
        return False

    def _would_do(self, chunks: list[Chunk]) -> bool:
        would = self._within_limit(chunks) and self._trial.of(chunks) and self._accepts(chunks)
        self._trial.transaction.discard()
        return would

    def _searched(self) -> bool:
        for _ in range(_LESSONS + self._sequence.queues):
            self._trial.faster = []
            size = self._sums.least(self._sequence, self._guess)
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
            self._trial.transaction.discard()
            if not learnt:
                return False
        return False

    def gone(self) -> tuple[list[Chunk], set[int]]:
        """The chunks that do not stay, and the jobs of those that found another place."""
        status = self._session.tasks.status
        states = status[rows_of(self.chunks)]
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
        if self._trial.of(self.chunks, proposed=True):
            return True
        if self._trial.faster:
            return False
        # Something but amounts stands in the way.
        chosen = self._by_trying(size)
        if chosen is None or not self._within_limit(chosen):
            return False
        self.chunks = chosen
        return self._trial.of(chosen)

    def _by_trying(self, size: int) -> list[Chunk] | None:
        """The first chunks with which the job fits, without those that can stay. `size`: fewer are not enough."""
        low, high = max(size - 1, 0), max(size, 1)
        while not self._trial.fits(chunks := self._sequence.first(high)):
            if self._trial.faster or len(chunks) < high or not self._within_limit(chunks):
                return None
            low, high = high, 2 * high
        count = smallest(lambda count: self._trial.fits(chunks[:count]), low, len(chunks))
        return self._reduced(chunks[:count], self._trial.fits)

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

    def _accepts(self, chunks: list[Chunk]) -> bool:
        victims = by_job(chunks)
        lost = {job: parts[0] if len(parts) == 1 else np.concatenate(parts) for job, parts in victims.items()}
        return self._terms.accept(ScenarioOutcome(self._job, self._rows, lost))

    def _tell_refusal(self, chunks: list[Chunk]) -> None:
        trace, cause = self._session.trace, self._terms.reason
        if trace is None or not trace.follows(self._job) or not isinstance(cause, EvictionCause):
            return
        lost = {job: np.concatenate(parts) for job, parts in by_job(chunks).items()}
        outcome = ScenarioOutcome(self._job, self._rows, lost)
        points = [point for point in cause.asked if point.endswith("validator")]
        answers = [one for point in points for one in trace.answers(point, outcome)]
        trace.judged(REFUSED, tuple(answers))

    # -- learning -------------------------------------------------------------------------------------------------

    def _give_way(self) -> bool:
        """Exclude victims that would only come back, if that is why the last trial failed."""
        back, self._trial.faster = self._trial.faster, []
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


def _is_simple(root: Group) -> bool:
    """Whether a job is one pod set that may be placed anywhere."""
    parts: list[Group | PodSet] = [root, *root.pod_sets]
    return len(parts) == 2 and not root.groups and not any(one.wish or one.limit for one in parts)


def _whole(chunks: list[Chunk], rest: list[Chunk]) -> bool:
    """Whether each job that loses its core in the rest loses there all that it would have lost."""
    lost = {chunk.job for chunk in rest if chunk.core}
    stays = set(chunks).difference(rest)
    return not any(chunk.job in lost for chunk in stays)


__all__ = ["Search"]
