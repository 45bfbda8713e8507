"""The solver of `compat: strict`: KAI's own search, step by step.

Room is sought for the job's first task, then for the first two, and so on, each time starting from the victims
of the step before. A scenario grows victim by victim; after each, the victims on one of the latest victim's
nodes are evicted together, and all tasks to be placed are placed in the order of queues: victims may get their
own places again. KAI takes the nodes in random order; here they come by name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.actions.searching.budget import Allowance
from maniple.actions.searching.feasible import Mask, feasible_nodes
from maniple.actions.searching.filters import ScenarioFilters
from maniple.actions.searching.telling import NO_SCENARIO, tell_search
from maniple.actions.searching.terms import Terms
from maniple.cluster.statuses import ACTIVE_USED, Status, status_set
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.wholes import evict_rest
from maniple.placement.engine import Placement


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Tasks of a victim that joined a scenario together."""

    job: int
    rows: TaskRows


@dataclass(slots=True, eq=False)
class _Scenario:
    recorded: list[_Group]  # from the step before
    potential: list[_Group] = field(default_factory=list)

    def everybody(self) -> dict[int, TaskRows]:
        victims: dict[int, list[TaskRows]] = {}
        for group in (*self.recorded, *self.potential):
            victims.setdefault(group.job, []).append(group.rows)
        return {job: np.concatenate(parts) for job, parts in victims.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    transaction: Transaction
    victims: list[_Group]  # groups with evicted tasks
    gone: TaskRows  # of these, without tasks that simply stayed


class StepwiseSolver:
    """Serves jobs of one action."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._placer = JobPlacer(session, placement)

    def solve(
        self, job: int, terms: Terms, _allowance: Allowance, _ahead: Sequence[int] = ()
    ) -> Transaction | None:
        """A transaction that serves the job, or None.

        `ahead` is not needed: in the simulation all jobs have their turns. The original searches to the end,
        whatever it takes.
        """
        session, trace = self._session, self._session.trace
        if trace is None or not trace.follows(job):
            return self._solved(job, terms)
        tell_search(session, trace, job, session.groups.to_allocate(job), terms)
        found = self._solved(job, terms)
        trace.search_ended(job, found is not None, "" if found is not None else NO_SCENARIO)
        return found

    def _solved(self, job: int, terms: Terms) -> Transaction | None:
        session = self._session
        before = _used(session, job)
        feasible = feasible_nodes(session, job)
        rows = session.groups.to_allocate(job, simulated=True)
        rows = rows[
            session.tasks.status[rows] == Status.PENDING
        ]  # where one has left for good, the original breaks down
        victims: list[_Group] = []
        nodes = feasible.copy()
        for count in range(1, len(rows) + 1):
            with session.groups.narrowed(job, rows[:count], all_needed=True):
                solved = _Part(self, job, rows[:count], terms, nodes).solve(victims)
            if solved is None:
                return None
            victims = solved.victims
            if count < len(rows):
                solved.transaction.discard()
                nodes = feasible.copy()
                nodes[session.tasks.node[solved.gone]] = True
            elif session.groups.satisfied(job) and _used(session, job) > before:
                return solved.transaction
            else:
                solved.transaction.discard()
        return None


def _used(session: Session, job: int) -> int:
    return int(session.jobs.counts[:, job] @ ACTIVE_USED)


class _Part:
    """Some of a job's tasks, which are all of it for the time being."""

    def __init__(
        self, solver: StepwiseSolver, job: int, rows: TaskRows, terms: Terms, feasible: Mask
    ) -> None:
        self._session = solver._session
        self._placement = solver._placement
        self._placer = solver._placer
        self._job = job
        self._rows = rows
        self._terms = terms
        self._feasible = feasible

    def solve(self, recorded: list[_Group]) -> _Solved | None:
        session = self._session
        scenario = _Scenario(recorded)
        filters = ScenarioFilters(session, self._placement, self._job, self._rows, self._feasible)
        for group in recorded:
            filters.add(group.rows)
        line = _VictimLine(session, _line(session, self._terms), recorded)
        while True:
            solved = self._try(scenario) if filters.passes() else None
            if solved is not None:
                return solved
            added = line.next()
            if added is None:
                return None
            if len(added.rows):
                scenario.potential.append(added)
                filters.add(added.rows)

    def _try(self, scenario: _Scenario) -> _Solved | None:
        """Evict and place. Refused or impossible leaves no trace."""
        transaction = Transaction(self._session)
        recorded = [group.rows for group in scenario.recorded]
        if recorded:
            transaction.evict(np.concatenate(recorded), self._terms.reason)
        if scenario.potential:
            return self._try_nodes(scenario, transaction)
        if recorded and self._simulate(transaction, {group.job for group in scenario.recorded}):
            return self._judged(scenario, scenario.recorded, transaction)
        transaction.discard()
        return None

    def _try_nodes(self, scenario: _Scenario, transaction: Transaction) -> _Solved | None:
        tasks = self._session.tasks
        latest = scenario.potential[-1].job
        for node in np.unique(tasks.node[self._session.tasks_of(latest)]).tolist():
            if node < 0:
                continue
            checkpoint = transaction.checkpoint()
            groups = self._on_node(scenario, node)
            victims = [*scenario.recorded, *groups]
            nodes = tasks.node[np.concatenate([_NOBODY, *(group.rows for group in groups)])]
            added = np.unique(nodes[~self._feasible[nodes]])
            if groups:
                transaction.evict(np.concatenate([group.rows for group in groups]), self._terms.reason)
            self._feasible[added] = True
            if self._simulate(transaction, {group.job for group in victims}):
                return self._judged(scenario, victims, transaction)
            self._feasible[added] = False
            transaction.rollback(checkpoint)
        transaction.discard()
        return None

    def _on_node(self, scenario: _Scenario, node: int) -> list[_Group]:
        """All groups of jobs of which some group has a task on the node."""
        on_node = self._session.tasks.node
        there = {group.job for group in scenario.potential if (on_node[group.rows] == node).any()}
        return [group for group in scenario.potential if group.job in there]

    def _simulate(self, transaction: Transaction, victims: set[int]) -> bool:
        """Place the victims where they fit, and the job, each when its turn comes."""
        session, nodes = self._session, self._feasible
        everybody = {*_pending(session), *victims, self._job}
        line, placed = JobsByQueue(session, sorted(everybody)), False
        while (job := line.pop()) is not None:
            if job == self._job:
                placed = self._placed(transaction, nodes)
                if not placed:
                    return False
            elif job in victims:
                self._placer.allocate(transaction, job, nodes, pipeline_only=True, real=False)
        return placed

    def _placed(self, transaction: Transaction, nodes: Mask) -> bool:
        job, trace = self._job, self._session.trace
        place = partial(
            self._placer.allocate, transaction, job, nodes, pipeline_only=True, real=False, rows=self._rows
        )
        if trace is None or not trace.follows(job):
            return place()
        with trace.inside_trial() as events:
            placed = place()
        why = "" if placed else "these pods of the job do not fit without them"
        trace.trial(job, list(transaction.evictions()), placed, why=why, events=events)
        return placed

    def _judged(self, scenario: _Scenario, evicted: list[_Group], transaction: Transaction) -> _Solved | None:
        together = ((group.job, group.rows) for group in evicted)
        evict_rest(self._session, transaction, together, self._terms.reason)
        if not self._terms.accept(ScenarioOutcome(self._job, self._rows, scenario.everybody())):
            if (trace := self._session.traced(self._job)) is not None:
                trace.judged("the plugins do not accept the result", ())
            transaction.discard()
            return None
        status = self._session.tasks.status
        victims = [group for group in evicted if _GONE[status[group.rows]].any()]
        rows = np.concatenate([_NOBODY, *(group.rows for group in victims)])
        return _Solved(transaction, victims, rows[_GONE[status[rows]]])


class _VictimLine:
    """Groups of tasks in victim order. A job that has more to lose goes back in line with the rest."""

    def __init__(self, session: Session, line: JobsByQueue, recorded: Iterable[_Group]) -> None:
        self._session = session
        self._line = line
        self._recorded = np.concatenate([_NOBODY, *(group.rows for group in recorded)])
        self._left: dict[int, TaskRows] = {}

    def next(self) -> _Group | None:
        session = self._session
        while (job := self._line.pop()) is not None:
            own = self._left.get(job)
            if own is None:
                own = np.concatenate([one.rows for one in session.groups.of(job)])
            with session.groups.narrowed(job, own):
                rows, more = session.groups.to_evict(job)
            if np.isin(rows, self._recorded).any():
                self._again(job, own[~np.isin(own, self._recorded)])
                continue
            if more:
                self._again(job, own[~np.isin(own, rows)])
            return _Group(job, rows)
        return None

    def _again(self, job: int, rows: TaskRows) -> None:
        if len(rows):
            self._left[job] = rows
            with self._session.groups.narrowed(job, rows):
                self._line.push(job)


def _line(session: Session, terms: Terms) -> JobsByQueue:
    """Victims in order. Where only some may be touched, KAI takes any; here they are the first in that order."""
    line = JobsByQueue(session, terms.victims(), victims=True)
    if terms.most is None:
        return line
    first = [job for _ in range(terms.most) if (job := line.pop()) is not None]
    return JobsByQueue(session, first, victims=True)


def _pending(session: Session) -> list[int]:
    rows = session.jobs.rows
    some: list[int] = rows[session.jobs.counts[Status.PENDING, rows] > 0].tolist()
    return [job for job in some if session.pending(job)]


_GONE = status_set(Status.RELEASING, Status.PIPELINED)
_NOBODY: TaskRows = np.zeros(0, dtype=np.int64)

__all__ = ["StepwiseSolver"]
