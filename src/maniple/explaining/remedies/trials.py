"""Trials: the cluster is changed, a cycle is planned, and the cluster is put back as it was.

A *full* trial is a cycle like any other. Most waiting jobs of a large backlog have no chance, with or without the
change, and cost nearly all of the time: a *narrow* trial passes over those that found no place before and, by sums
over the nodes, find none now, and over those that come later than the job. Plugins see their demand all the same.
Allocate decides what others take of the room that there is, and only the job itself goes on to the actions after it,
unless it has started. Such a trial screens; a full trial proves. Where jobs and nodes are few, every trial is a full
one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.cluster import Cluster
from maniple.cluster.statuses import READY, Status, status_set
from maniple.explaining.remedies.edits import Raw, created, edited, new_nodes
from maniple.explaining.remedies.rivals import pass_over
from maniple.explaining.remedies.values import Change
from maniple.explaining.what_if import own_memory
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.objects.checks import FieldError
from maniple.objects.core import Node
from maniple.objects.meta import Object
from maniple.planner import Clock, Plan, Planner

_THERE = READY | status_set(Status.PIPELINED)
_PIPELINED = int(Status.PIPELINED)
_WORDS = [status.word for status in Status if _THERE[status]]
_PLACING = "allocate"
_FEW = 20_000  # waiting jobs times nodes up to which a narrow trial saves nothing worth having


class BudgetSpentError(Exception):
    """No further trial is paid for."""


@dataclass(slots=True)
class Budget:
    """How much a search may cost: cycles, and seconds on the caller's clock.

    A trial is begun only if one as long as the longest of its sort still fits. `few`: up to so many waiting jobs times
    nodes, every trial is full.
    """

    cycles: int = 400
    few: int = _FEW
    seconds: float | None = None
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one trial ended."""

    starts: bool
    full: bool  # no job was passed over, and no action left out
    placed: frozenset[str] = frozenset()  # keys of jobs that got nodes, or claims to some
    # by node that the job, and those that had their turn before it, got: which part of it
    filled: Mapping[str, float] = field(default_factory=dict)
    evictions: tuple[str, ...] = ()  # pods that leave for the job


class Trials:
    """What-if cycles for one job of one cluster."""

    def __init__(
        self,
        planner: Planner,
        cluster: Cluster,
        job: str,
        now: datetime | None,
        budget: Budget,
        plan: Plan | None = None,
    ) -> None:
        """`plan`: that of the cluster as it is, if it is known; otherwise a cycle is planned to begin with."""
        self._planner, self._cluster, self._job, self._now = planner, cluster, job, now
        self._budget = budget
        self._began = self._time()
        self._longest = {True: 0.0, False: 0.0}  # trial: full, narrow
        self.cycles = self.full = 0
        self._known: dict[bytes, Outcome] = {}  # of full trials, by their changes
        waiting = np.count_nonzero(cluster.jobs.counts[Status.PENDING])
        self.always_full = bool(waiting * len(cluster.nodes.objects) <= budget.few)
        # Something was found that only a full trial can prove: narrow ones leave time for it.
        self.keeps_reserve = False
        self.base: Outcome = self.run((), full=True) if plan is None else self._planned(plan)

    def run(
        self,
        changes: Sequence[Change],
        *,
        full: bool = False,
        alone: bool = False,
        keep: Collection[str] = (),
    ) -> Outcome:
        """Plan a cycle with some changes. `alone`: no other job is served; `keep`: jobs never to be passed over.

        Raises BudgetSpentError. A change that makes an object invalid does not start the job.
        """
        key, full = msgspec.json.encode(changes), full or (self.always_full and not alone)
        if not alone and key in self._known:
            return self._known[key]
        self._pay(full)
        begun = self._time()
        narrow = None if full else _Narrow(self._job, None if alone else self._served_before(keep))
        try:
            with self._changed(changes):
                session = self._planner.session(
                    self._cluster,
                    self._now,
                    opened=narrow.opened if narrow is not None else None,
                    goes_on=narrow.goes_on if narrow is not None else None,
                )
                outcome = self._outcome(session, full=narrow is None or not narrow.passed)
        except FieldError:
            outcome = Outcome(starts=False, full=full)
        if outcome.full:
            self._known[key] = outcome
        self._longest[full] = max(self._longest[full], self._time() - begun)
        return outcome

    def _served_before(self, keep: Collection[str]) -> Collection[str]:
        return self.base.placed.union(keep)

    def _pay(self, full: bool) -> None:
        budget = self._budget
        spent = self.cycles >= budget.cycles
        if budget.seconds is not None and self.cycles:
            reserve = self._longest[True] if self.keeps_reserve and not full else 0.0
            spent |= self._time() - self._began + self._longest[full] + reserve > budget.seconds
        if spent:
            raise BudgetSpentError
        self.cycles += 1
        self.full += full

    def _time(self) -> float:
        return self._budget.clock() if self._budget.clock is not None else 0.0

    # -- how it ended -------------------------------------------------------------------------------------------------

    def _outcome(self, session: Session, *, full: bool) -> Outcome:
        row = self._cluster.jobs.index_of(self._job)
        starts = row is not None and starts_now(session, row)
        tasks, keys = session.tasks, self._cluster.jobs.keys
        placed = [rows for rows, _ in (*session.decisions.bound, *session.decisions.held)]
        claimed = np.flatnonzero(tasks.status == _PIPELINED)
        rows = np.concatenate([claimed, *placed]).astype(np.int64)
        jobs = np.unique(tasks.job[rows]).tolist()
        leaving = [
            session.task_key(task)
            for task, why in session.decisions.evicted
            if isinstance(why, EvictionCause) and why.actor == row
        ]
        return Outcome(
            starts,
            full,
            frozenset(keys[job] for job in jobs if job >= 0),
            self._filled(
                session, np.concatenate([claimed, *_until(placed, tasks.job, row)]).astype(np.int64)
            ),
            tuple(leaving),
        )

    @staticmethod
    def _filled(session: Session, rows: TaskRows) -> dict[str, float]:
        """By node that tasks got: which part of it they take, of the resource of which that is most."""
        nodes, places = np.unique(session.tasks.node[rows], return_inverse=True)
        taken = np.zeros((len(session.resources), len(nodes)), dtype=np.int64)
        np.add.at(taken.T, places, session.requests(rows).T)
        parts = (taken / np.maximum(session.nodes.allocatable[:, nodes], 1)).max(axis=0, initial=0.0)
        return dict(zip(map(session.node_name, nodes.tolist()), parts.tolist(), strict=True))

    def _planned(self, plan: Plan) -> Outcome:
        """The outcome without any change, from a plan that was made."""
        cluster = self._cluster
        row = cluster.jobs.index_of(self._job)
        tasks = (
            cluster.tasks.index_of(pod)
            for placed in (plan.binds, plan.held, plan.pipelined)
            for pod in placed
        )
        jobs = {int(cluster.tasks.job[task]) for task in tasks if task is not None}
        group = plan.group(cluster.jobs.name(row)) if row is not None else None
        starts = False
        if row is not None and group is not None:
            minimum = max(cluster.jobs.facts[row].minimum, 1)
            starts = group.count(*_WORDS) >= minimum and group.satisfied
        return Outcome(starts, True, frozenset(cluster.jobs.keys[job] for job in jobs if job >= 0))

    # -- the cluster with changes -------------------------------------------------------------------------------------

    @contextmanager
    def _changed(self, changes: Sequence[Change]) -> Iterator[None]:
        """The cluster with changes, for as long as it lasts. What plugins remember of the cycle is forgotten."""
        planner, cluster = self._planner, self._cluster
        problems = planner.problems
        after, before, made, gone = _carried_out(changes, self.find)
        with own_memory(cluster):
            try:
                planner.delete(cluster, gone)
                # What is new goes through admission, as it would in a file.
                planner.apply(cluster, [*after, *made])
                yield
            finally:
                planner.delete(cluster, made)
                planner.apply(cluster, [*before, *gone])
                planner.problems = problems

    def find(self, kind: str, api_group: str, key: str) -> Object | None:
        """The object of the cluster that a change is about."""
        cluster = self._cluster
        if kind == "Pod":
            row = cluster.tasks.index_of(key)
            return cluster.tasks.pods[row] if row is not None else None
        if kind == "Node":
            row = cluster.nodes.index_of(key)
            return cluster.nodes.objects.get(row) if row is not None else None
        if kind == "Queue":
            row = cluster.queues.index_of(key)
            items = cluster.queues.all_of(row) if row is not None and row in cluster.queues.said else []
        elif kind == "PodGroup":
            jobs = cluster.jobs
            items = [jobs.objects[one] for one in jobs.rows_named(key) if one in jobs.objects]
        else:
            same = (kept for type_, kept in cluster.others.items() if type_.kind == kind)
            items = [kept[key] for kept in same if key in kept]
        return next((one for one in items if one.api_group == api_group), None)


class _Narrow:
    """The course of a narrow trial: which jobs are passed over, and when it may end.

    `passed`: something was left out.
    """

    def __init__(self, job: str, kept: Collection[str] | None) -> None:
        self._job, self._kept = job, kept
        self.passed = False

    def opened(self, session: Session) -> None:
        self.passed = pass_over(session, self._job, self._kept) > 0

    def goes_on(self, session: Session, action: str) -> bool:
        if action != _PLACING:
            return True
        row = session.cluster.jobs.index_of(self._job)
        if row is not None and starts_now(session, row):
            self.passed = True
            return False
        self.passed |= pass_over(session, self._job, None) > 0
        return True


Find = Callable[[str, str, str], Object | None]
Lists = tuple[list[Object], list[Object], list[Object | Raw], list[Object]]


def _carried_out(changes: Sequence[Change], find: Find) -> Lists:
    """The objects that are changed, after and before, those that are created, and those that are deleted."""
    edits: dict[tuple[str, str, str], list[Change]] = {}
    after, before, made, gone = list[Object](), list[Object](), list[Object | Raw](), list[Object]()
    for change in changes:
        for key in change.objects:
            name = (change.kind, change.api_group, key)
            if change.operation == "set":
                edits.setdefault(name, []).append(change)
            elif change.operation == "delete":
                found = find(*name)
                if found is not None:
                    gone.append(found)
    for name, several in edits.items():
        found = find(*name)
        if found is not None:
            before.append(found)
            after.append(edited(found, several))
    for change in (one for one in changes if one.operation == "create"):
        like = find(change.kind, change.api_group, change.like)
        if like is not None:
            # A copy is made of the object as it is after the other changes.
            like = edited(like, edits.get((change.kind, change.api_group, change.like), ()))
        if isinstance(like, Node):
            made += new_nodes(change, like)
        elif like is not None or not change.like:
            raw = _manifest(like) if like is not None else None
            made += [created(change, key, raw) for key in change.objects]
    return after, before, made, gone


def _manifest(item: Object) -> Raw:
    """A pod as a plain object; of other kinds but nodes there are no copies."""
    return {"apiVersion": "v1", "kind": item.kind, **msgspec.to_builtins(item)}


def _until(placed: list[TaskRows], job_of: NDArray[np.int32], job: int | None) -> list[TaskRows]:
    """Of tasks in the order in which they were placed, those up to the last ones of a job, if there are any."""
    own = [place for place, rows in enumerate(placed) if (job_of[rows] == job).any()]
    return placed[: own[-1] + 1] if own else placed


def starts_now(session: Session, job: int) -> bool:
    """Whether a job has its minimum at the end of a session, on nodes or claiming them: all roles, all pod sets."""
    if job not in session.cluster.jobs.facts or job not in session.jobs.rows:
        return False
    counts, facts = session.jobs.counts[:, job], session.job_facts(job)
    if int(counts[_THERE].sum()) < facts.minimum or not counts[_THERE].any():
        return False
    groups = session.groups
    if any(groups.count(one, _THERE) < one.minimum for one in groups.of(job)):
        return False
    rows = session.tasks_of(job)
    roles = session.tasks.role[rows[_THERE[session.tasks.status[rows]]]]
    for role, minimum in facts.role_minimums.items():
        number = session.cluster.tasks.known_role(role)
        if minimum and (number is None or np.count_nonzero(roles == number) < minimum):
            return False
    return bool(session.hooks.job_ready(job) or session.hooks.job_pipelined(job))
