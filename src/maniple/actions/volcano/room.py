"""Making room for starving jobs by eviction: shared by preempt and reclaim of profile `volcano`.

A job requests room for all that it lacks at once, and then for one more task at a time while it still starves.
Victims come in the order of `eviction/surplus_first.py`, and are searched for as in the other profiles
(`actions/searching/search.py`); they are not placed again. A job that found no room is remembered by its
request (`actions/signatures.py`), so that a backlog of hopeless jobs costs one search, and trials have a budget
(`actions/searching/budget.py`).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np

from maniple.actions import words
from maniple.actions.searching.budget import Allowance, Budget
from maniple.actions.searching.search import Search
from maniple.actions.searching.terms import SearchTerms
from maniple.actions.searching.trial import Trial
from maniple.actions.signatures import COMPLETE, Constraints, Failures, failures
from maniple.actions.volcano.telling import RoomTerms, tell_failed, tell_surplus
from maniple.eviction.asking import Asking, Demand, demands_of, next_tasks
from maniple.eviction.chunks import Chunk
from maniple.eviction.room_sums import HeldParts, RoomSums
from maniple.eviction.surplus_first import Selection, SurplusPool, SurplusSequence
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Mask, Placement
from maniple.placement.tables import trace_forced, trace_proposal

NO_VICTIMS = "{reason}: evicting every pod that may be evicted would not make room"


class _TaskPlacer:
    """Pipelines tasks class by class, wherever there will be room."""

    def __init__(
        self, session: Session, placement: Placement, demands: list[Demand], terms: RoomTerms
    ) -> None:
        self._session = session
        self._placement = placement
        self._demands = demands
        self._within_limits = terms.within_limits

    @property
    def job(self) -> int:
        return int(self._session.tasks.job[self._demands[0].rows[0]])

    def place(self, transaction: Transaction, nodes: Mask | None = None) -> bool:
        """All of the tasks, on some nodes or any; False, and nothing done, when they do not all fit."""
        if not self._within_limits(self._demands):
            return False
        checkpoint = transaction.checkpoint()
        for demand in self._demands:
            # Each class fits the limits by itself; now those of the classes before it are there, too.
            fits = len(self._demands) == 1 or self._within_limits([demand])
            if not fits or not self._fill(transaction, demand, nodes):
                transaction.rollback(checkpoint)
                return False
        return True

    def _traces(self, rows: TaskRows) -> bool:
        trace = self._session.trace
        return trace is not None and trace.looks_at_tasks(int(self._session.tasks.job[rows[0]]))

    def _fill(self, transaction: Transaction, demand: Demand, nodes: Mask | None) -> bool:
        rows, placement = demand.rows, self._placement
        if nodes is None and placement.take_last(transaction, demand.class_, rows):
            if self._traces(rows):
                trace_forced(self._session, rows)
            return True
        while len(rows):
            proposal = placement.fill(demand.class_, len(rows), nodes)
            if self._traces(rows):
                trace_proposal(self._session, placement, rows, proposal, nodes)
            if proposal is None:
                return False
            transaction.pipeline(rows[: len(proposal)], proposal.nodes)
            rows = rows[len(proposal) :]
        return True


class RoomMaker:
    """Serves starving jobs out of one pool of victims."""

    def __init__(
        self,
        session: Session,
        placement: Placement,
        asking: Asking,
        candidates: TaskRows,
        jobs: Sequence[int],
    ) -> None:
        self._session = session
        self._placement = placement
        self._asking = asking
        self._candidates = candidates
        self._budget = Budget(session, jobs)
        self._constraints = Constraints(session, placement)
        self._failures: dict[tuple[int, bool, bytes], Failures] = {}
        self._requested: dict[frozenset[int], bytes] = {}
        self._held = HeldParts(session)
        self._guess = 1

    def serve(self, job: int, terms: RoomTerms) -> None:
        """Make room for a job as long as it starves."""
        session = self._session
        while session.hooks.job_starving(job) and len(wanted := self._wanted(job)):
            allowance = self._budget.next(job)
            if not self._try(job, wanted, terms, allowance):
                cut_short = allowance.ran_out
                session.decisions.goes_on_later |= cut_short
                told = words.ran_out(terms.reason) if cut_short else NO_VICTIMS.format(reason=terms.reason)
                session.refusals.of_job(job, told)
                break

    def _wanted(self, job: int) -> TaskRows:
        rows = self._asking.tasks(job)
        return next_tasks(self._session, job, rows) if len(rows) else rows

    @cached_property
    def _pool(self) -> SurplusPool:
        return SurplusPool(self._session, self._candidates)

    def _try(self, job: int, wanted: TaskRows, terms: RoomTerms, allowance: Allowance) -> bool:
        session = self._session
        trace = session.traced(job)
        if not terms.queues:
            if trace is not None:
                trace.search_ended(job, False, "there is no other queue that gives up pods")
            return False
        numbers = set(session.tasks.class_of[wanted].tolist())
        for number in numbers:
            if (refused := session.hooks.pre_predicate(session.classes[number])) is not None:
                if trace is not None:
                    trace.asked(job, "pre_predicate", refused, session.classes[number])
                return False
        known = self._known(terms.queue, int(wanted[0]), numbers)
        if (effort := known.rules_out(job, allowance.most)) is not None:
            allowance.ran_out = effort < COMPLETE
            if trace is not None:
                tell_failed(session, trace, job, wanted, terms, self._candidates)
            return False
        if not self._budget.may_try(job):
            allowance.ran_out = True
            if trace is not None:
                trace.search_ended(job, False, words.NOT_BEGUN)
            return False
        served = self._solve(job, wanted, terms, allowance)
        self._budget.settle(job, allowance, frozenset(numbers), served=served)
        if served:
            for failed in self._failures.values():
                failed.changed()
            return True
        known.remember(job, allowance.most if allowance.ran_out else COMPLETE)
        return False

    def _known(self, queue: int, asker: int, classes: set[int]) -> Failures:
        """Failures of jobs for which plugins allow the same victims.

        What plugins allow depends on the queue, the task that requests room and the requested resources.
        """
        session = self._session
        key = (queue, session.tasks.preemptable.item(asker), self._resources(frozenset(classes)))
        known = self._failures.get(key)
        if known is None:
            known = self._failures[key] = failures(session, self._constraints, self._wanted)
        return known

    def _resources(self, classes: frozenset[int]) -> bytes:
        """Which resources any of these classes requests."""
        known = self._requested.get(classes)
        if known is None:
            asked = np.logical_or.reduce([self._session.classes[number].request > 0 for number in classes])
            known = self._requested[classes] = asked.tobytes()
        return known

    def _solve(self, job: int, wanted: TaskRows, terms: RoomTerms, allowance: Allowance) -> bool:
        session, demands = self._session, demands_of(self._session, wanted)
        allowance.prepare(len(demands))
        placer = _TaskPlacer(session, self._placement, demands, terms)
        for sequence in self._sequences(demands, wanted, terms):
            if (trace := session.traced(job)) is not None:
                tell_surplus(session, trace, job, wanted, terms, self._candidates, sequence)
            if self._repeats(demands, terms, placer, sequence):
                return True
            sums = RoomSums(session, self._placement, demands, self._held)
            trial = Trial(session, self._placement, job, wanted, terms.reason, sums, allowance, placer.place)
            accepted = SearchTerms(reason=terms.reason, accept=lambda _: terms.accept())
            search = Search(session, self._placement, trial, accepted, sequence, sums, allowance, self._guess)
            if search.run():
                self._done(search.transaction, search.chunks)
                return True
            if allowance.ran_out:
                break
        return False

    def _done(self, transaction: Transaction, chunks: list[Chunk]) -> None:
        self._guess = max(len(chunks), 1)
        transaction.commit()
        self._pool.drop(chunks)

    # -- one job like the last ------------------------------------------------------------------------------------

    def _repeats(
        self, demands: list[Demand], terms: RoomTerms, placer: _TaskPlacer, victims: SurplusSequence
    ) -> bool:
        """Serve a job with as many victims as the last one took, if these turn out to be just enough.

        None of them could have stayed if there is not one place too many without them and each leaves at least one.
        So where jobs and victims are alike nothing has to be added up.
        """
        (demand, *others), chunks = demands, victims.first(self._guess)
        simple = not others and not self._placement.column(demand.class_).criteria.coupled
        if not simple or len(chunks) < self._guess or not self._leave_places(demand, chunks):
            return False
        transaction = Transaction(self._session)
        transaction.evict(np.concatenate([chunk.rows for chunk in chunks]), terms.reason)
        enough = self._placement.column(demand.class_).room == len(demand.rows)
        if enough and self._repeated(placer, transaction, chunks) and terms.accept():
            self._done(transaction, chunks)
            return True
        transaction.discard()
        return False

    def _repeated(self, placer: _TaskPlacer, transaction: Transaction, chunks: list[Chunk]) -> bool:
        trace, job = self._session.trace, placer.job
        if trace is None or not trace.follows(job):
            return placer.place(transaction)
        with trace.inside_trial() as events:
            placed = placer.place(transaction)
        trace.trial(job, np.concatenate([chunk.rows for chunk in chunks]), placed, events=events)
        return placed

    def _leave_places(self, demand: Demand, chunks: list[Chunk]) -> bool:
        """Whether the first task of each chunk frees a whole request of the demand, on a node open to it."""
        tasks, asked = self._session.tasks, demand.class_.request
        firsts = np.array([chunk.rows[0] for chunk in chunks])
        column = self._placement.column(demand.class_)
        if not column.criteria.all_open and not column.open[tasks.node[firsts]].all():
            return False
        numbers = set(tasks.class_of[firsts].tolist())
        return all(bool((self._session.classes[number].request >= asked).all()) for number in numbers)

    # -- which victims it may take --------------------------------------------------------------------------------

    def _sequences(
        self, demands: list[Demand], wanted: TaskRows, terms: RoomTerms
    ) -> Iterator[SurplusSequence]:
        session, asker = self._session, int(wanted[0])
        approve = partial(terms.approve, asker)
        for helpful in self._reaches(demands):
            selection = Selection(terms.queue, terms.queues, helpful, approve)
            yield SurplusSequence(session, self._pool, selection, surplus=True)
            if any(self._pool.surplus.get(queue) for queue in terms.queues):
                yield SurplusSequence(session, self._pool, selection, surplus=False)

    def _reaches(self, demands: list[Demand]) -> list[Mask | None]:
        """Where victims are looked for, one after the other: on nodes of our own shard, then everywhere."""
        columns = [self._placement.column(demand.class_) for demand in demands]
        everywhere = None
        if not any(column.criteria.all_open for column in columns):
            everywhere = np.logical_or.reduce([column.open for column in columns])
        own = self._placement.own
        if own is None:
            return [everywhere]
        return [own if everywhere is None else own & everywhere, everywhere]


__all__ = ["RoomMaker", "RoomTerms"]
