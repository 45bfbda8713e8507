"""Making room for one job after the other by eviction: the loop of reclaim, preempt and consolidation.

Jobs come in the order of the queue tree, each once. What a solver finds is carried out at once; a job that
cannot be served leaves no trace and is remembered, so that jobs that request the same, or more, are skipped
(`signatures.py`). If the search ran out of budget (`budget.py`), or was not begun since the job's namespace had
used up its part, the job's message says so.
"""

from collections.abc import Callable, Iterable

from maniple.actions import words
from maniple.actions.order import JobsByQueue
from maniple.actions.placing.displacing import settled
from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.searching.budget import Allowance, Budget
from maniple.actions.searching.solver import Solver
from maniple.actions.searching.stepwise import StepwiseSolver
from maniple.actions.searching.telling import tell_search
from maniple.actions.searching.terms import Terms
from maniple.actions.signatures import COMPLETE, Constraints, Failures, failures
from maniple.cluster.priorities import NEVER
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement

FAILED_BEFORE = "a job that requests no more found no victims before, and nothing was freed since"
NO_TERMS = "no room can be made for it: its queue is over its quota, or too few GPUs are idle"


class RoomMaking:
    """One action in one session. `by_queue`: a failure says nothing about jobs of other queues."""

    def __init__(self, session: Session, placement: Placement, *, by_queue: bool) -> None:
        self._session = session
        self._rules = session.rules.victims
        self._constraints = Constraints.shared(session, placement)
        self._by_queue = by_queue
        self._failures: dict[int, Failures] = {}
        self._remembers = bool(session.options.get("useSchedulingSignatures", True))
        self._placer = JobPlacer(session, placement)
        self._solver = (
            StepwiseSolver(session, placement)
            if self._rules.added_one_by_one
            else Solver(session, placement, self._constraints)
        )

    def serve(
        self,
        action: str,
        jobs: Iterable[int],
        admits: Callable[[int], bool],
        terms: Callable[[int], Terms | None],
    ) -> None:
        """Serve the jobs, each in its turn.

        `admits`: whether a job is considered at all. `terms`: None if it is already clear that no room can be
        made.
        """
        session = self._session
        jobs = list(jobs)
        if session.trace is not None:
            session.trace.absent(jobs)
        depth = session.configuration.queue_depth.get(action)
        line = JobsByQueue(session, jobs, depth=depth, traced=True)
        budget = Budget(session, jobs)
        ahead: dict[int, list[int]] = {}  # by queue, jobs that had their turn and still wait
        while (job := line.pop()) is not None:
            waiting = ahead.setdefault(int(session.jobs.queue[job]), [])
            asks = self._whole(job) and admits(job) and not self._never_preempts(job)
            if not asks and session.trace is not None and session.trace.follows(job):
                self._tell(session.trace, job)
            allowance = budget.next(job)
            if not asks or not self._served(job, terms, budget, allowance, waiting):
                waiting.append(job)
            if allowance.ran_out:
                session.refusals.of_job(job, words.ran_out(action))
                session.decisions.goes_on_later = True

    def _tell(self, trace: Recorder, job: int) -> None:
        if not self._whole(job):
            why = "it has lost so many pods in this action that the rest is no gang"
        elif self._never_preempts(job):
            why = "preemptionPolicy Never: it does not evict"
        elif self._refused(job):
            why = "it is refused before nodes are considered, so that no eviction helps"
        else:
            why = "its queue may not take from others"
            trace.asked(job, "can_reclaim_resources", False)
        trace.left_out(job, why)

    def _tell_failed_before(self, job: int, terms: Callable[[int], Terms | None]) -> None:
        """Which victims there would be, of a traced job for which no search is needed."""
        session, trace = self._session, self._session.trace
        if trace is not None and trace.follows(job):
            agreed = terms(job) if trace.looks_at_victims(job) else None
            if agreed is not None:
                tell_search(session, trace, job, session.groups.to_allocate(job), agreed)
            trace.search_ended(job, False, FAILED_BEFORE)

    def _whole(self, job: int) -> bool:
        """It has not lost so much to others in this action that what waits of it would be no gang."""
        return self._session.groups.ready(job)

    def _never_preempts(self, job: int) -> bool:
        """Its priority class, or a pod that it would place, says so."""
        session = self._session
        if self._rules.never_preempting_pods_ask:
            return False
        if session.cluster.priorities.never_preempts(session.job_facts(job).priority_class):
            return True
        pods = session.cluster.tasks.pods
        rows = session.groups.to_allocate(job)
        return any(pods[row].spec.preemption_policy == NEVER for row in rows.tolist())

    def _refused(self, job: int) -> bool:
        """A pod is refused before nodes are considered, or there is no domain for it, so that no eviction can help.

        The stepwise solver finds out by itself: as in KAI, such a failure rules out other jobs.
        """
        if self._rules.added_one_by_one:
            return False
        session = self._session
        refused = session.hooks.pre_predicate
        return any(
            refused(session.classes[number]) is not None for number in self._classes(job)
        ) or self._lacks_domains(job)

    def _lacks_domains(self, job: int) -> bool:
        groups, lacks = self._session.groups, self._session.hooks.lacks_domains
        root = groups.root(job)
        parts: list[Group | PodSet] = [root, *root.groups, *groups.of(job)]
        return any(lacks(part) for part in parts if part.wish is not None)

    def _served(
        self,
        job: int,
        terms: Callable[[int], Terms | None],
        budget: Budget,
        allowance: Allowance,
        ahead: list[int],
    ) -> bool:
        known = self._known(job)
        if self._remembers and (effort := known.rules_out(job, allowance.most)) is not None:
            allowance.ran_out = effort < COMPLETE
            if self._session.trace is not None:
                self._tell_failed_before(job, terms)
            return False
        if self._refused(job):
            if (trace := self._session.traced(job)) is not None:
                self._tell(trace, job)
            return False
        if not budget.may_try(job):
            allowance.ran_out = True
            if (trace := self._session.traced(job)) is not None:
                trace.search_ended(job, False, words.NOT_BEGUN)
            return False
        agreed = terms(job)
        if agreed is None and self._session.trace is not None and self._session.trace.follows(job):
            self._session.trace.search_ended(job, False, NO_TERMS)
        transaction = None
        if agreed is not None:
            asked = self._classes(job)
            transaction = self._solved(job, agreed, allowance, ahead)
            budget.settle(job, allowance, asked, served=transaction is not None)
        if transaction is None:
            known.remember(job, allowance.most if allowance.ran_out else COMPLETE)
            return False
        transaction.commit()
        if agreed is not None and not agreed.all_return:  # moves free nothing
            for failed in self._failures.values():
                failed.changed()
        return True

    def _solved(self, job: int, terms: Terms, allowance: Allowance, ahead: list[int]) -> Transaction | None:
        found = self._solver.solve(job, terms, allowance, ahead)
        if found is None or self._rules.new_pods_are_evicted:
            return found
        return settled(self._session, self._placer, found)

    def _classes(self, job: int) -> frozenset[int]:
        """Of the tasks that the job would place next."""
        session = self._session
        return frozenset(session.tasks.class_of[session.groups.to_allocate(job)].tolist())

    def _known(self, job: int) -> Failures:
        queue = int(self._session.jobs.queue[job]) if self._by_queue else -1
        known = self._failures.get(queue)
        if known is None:
            known = self._failures[queue] = failures(self._session, self._constraints)
        return known


__all__ = ["RoomMaking"]
