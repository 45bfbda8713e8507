"""Transactions: everything can be undone bit for bit, redone, merged and committed, and sums stay correct."""

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from maniple.cluster.check import validate
from maniple.cluster.snapshot import JobState, NodeState, TaskState
from maniple.cluster.statuses import PREEMPTABLE, Status
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.operations import Kind
from maniple.framework.transactions.transaction import SavedPlan, Transaction, bind_allocated, withdraw
from maniple.objects.meta import Object
from tests.support import cluster_of, group, node, open_session, pod, queue

SIZES: list[dict[str, str]] = [{}, {"cpu": "1"}, {"cpu": "2", "memory": "3Gi"}, {"nvidia.com/gpu": "1"}]
WHERE = ["n0", "n1", "n2", "gone"]


@st.composite
def objects(draw: st.DrawFn) -> list[Object]:
    """Three nodes and a few gangs, of which some tasks run, wait, are leaving, are finished or are gated."""
    found = [queue("default"), *(node(f"n{i}", {"nvidia.com/gpu": "4"}) for i in range(3))]
    for job in range(draw(st.integers(1, 3))):
        found.append(group(f"g{job}", draw(st.integers(0, 3))))
        found += [draw(pods(f"g{job}-{number}", f"g{job}")) for number in range(draw(st.integers(1, 8)))]
    return [*found, *(pod(f"alone-{i}", {"cpu": "1"}, on=WHERE[i]) for i in range(draw(st.integers(0, 2))))]


@st.composite
def pods(draw: st.DrawFn, name: str, job: str) -> Object:
    size, state = draw(st.sampled_from(SIZES)), draw(st.integers(0, 9))
    if state < 5:
        return pod(name, size, group=job)
    if state == 5:
        return pod(name, size, group=job, schedulingGates=[{"name": "wait"}])
    if state == 6:
        return pod(name, size, group=job, on="n0", deleted="2026-01-01T00:00:00Z")
    phase = draw(st.sampled_from(["Running", "Pending", "Running", "Succeeded", "Failed"]))
    return pod(name, size, group=job, on=draw(st.sampled_from(WHERE)), phase=phase)


class Ledger:
    """A plugin that books events; its books have to come back just as the session's own."""

    name = "ledger"

    def __init__(self, session: Session) -> None:
        self.jobs = np.zeros_like(session.jobs.allocated)
        self.nodes = np.zeros_like(session.nodes.used)

    def on_allocate(self, event: Event) -> None:
        self._book(event, 1)

    def on_deallocate(self, event: Event) -> None:
        self._book(event, -1)

    def _book(self, event: Event, sign: int) -> None:
        if event.job >= 0:
            self.jobs[:, event.job] += event.class_.request * len(event.rows) * sign
        for place in event.nodes[event.nodes >= 0].tolist():
            self.nodes[:, place] += event.class_.request * sign


State = dict[str, tuple[str, tuple[int, ...], bytes]]


def state(session: Session, ledger: Ledger) -> State:
    """Every array of the session, as bytes; except jobs' versions, which only ever move on."""
    parts: dict[str, NodeState | TaskState | JobState]
    parts = {"nodes": session.nodes, "tasks": session.tasks, "jobs": session.jobs}
    arrays = {
        f"{part}.{field.name}": getattr(owner, field.name)
        for part, owner in parts.items()
        for field in fields(owner)
        if isinstance(getattr(owner, field.name), np.ndarray) and field.name != "version"
    }
    arrays |= {"ledger.jobs": ledger.jobs, "ledger.nodes": ledger.nodes}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


class Transactions(RuleBasedStateMachine):
    """One session, one open transaction on it, and at times a second one inside the first."""

    @initialize(found=objects())
    def open(self, found: list[Object]) -> None:
        self.session = open_session(cluster_of(*found))
        self.ledger = Ledger(self.session)
        self.session.use([[(PluginOption("ledger", {}, {}), self.ledger)]])
        self.allocated_before = self.session.jobs.allocated.copy()
        self.outer = Transaction(self.session)
        self.inner: Transaction | None = None
        self.marks: list[tuple[int, State]] = []  # checkpoints of the outer one that still hold

    def now(self) -> State:
        return state(self.session, self.ledger)

    @property
    def current(self) -> Transaction:
        return self.outer if self.inner is None else self.inner

    def waiting(self) -> dict[tuple[int, int], list[int]]:
        """Tasks that may be placed, by job and class."""
        tasks, found = self.session.tasks, dict[tuple[int, int], list[int]]()
        wanted = (tasks.status == Status.PENDING) & ~tasks.gated & (tasks.job >= 0)
        for row in np.flatnonzero(wanted).tolist():
            found.setdefault((int(tasks.job[row]), int(tasks.class_of[row])), []).append(row)
        return found

    def victims(self) -> list[int]:
        status = self.session.tasks.status
        return [row for row in np.flatnonzero(status >= 0).tolist() if PREEMPTABLE[status[row]]]

    # -- operations -----------------------------------------------------------------------------------------------

    def some(self, data: st.DataObject) -> tuple[TaskRows, Any]:
        rows = data.draw(st.sampled_from(sorted(self.waiting().items())))[1]
        chosen = rows[: data.draw(st.integers(1, len(rows)))]
        places = data.draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
        return np.array(chosen), np.array(places, dtype=np.intp)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def allocate(self, data: st.DataObject) -> None:
        rows, places = self.some(data)
        self.current.allocate(rows, places)
        assert (self.session.tasks.status[rows] == Status.ALLOCATED).all()
        assert (self.session.tasks.node[rows] == places).all()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def allocate_each(self, data: st.DataObject) -> None:
        waiting = self.waiting()
        job = data.draw(st.sampled_from(sorted({job for job, _ in waiting})))
        rows = [row for (owner, _), some in waiting.items() if owner == job for row in some]
        chosen = data.draw(st.lists(st.sampled_from(rows), min_size=1, max_size=4, unique=True))
        places = data.draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
        before = len(self.current)
        self.current.allocate_each(np.array(chosen), np.array(places, dtype=np.intp))
        assert len(self.current) == before + len(chosen)
        assert (self.session.tasks.status[chosen] == Status.ALLOCATED).all()
        assert self.session.tasks.node[chosen].tolist() == places

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def pipeline(self, data: st.DataObject) -> None:
        rows, places = self.some(data)
        idle = self.session.nodes.idle()
        self.current.pipeline(rows, places)
        assert (self.session.tasks.status[rows] == Status.PIPELINED).all()
        assert np.array_equal(self.session.nodes.idle(), idle)

    @precondition(lambda self: self.victims())
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.sampled_from(self.victims()), min_size=1, max_size=3, unique=True))
        idle = self.session.nodes.idle()
        self.current.evict(np.array(rows), "a better use")
        assert (self.session.tasks.status[rows] == Status.RELEASING).all()
        assert np.array_equal(self.session.nodes.idle(), idle)

    # -- undoing --------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.inner is None)
    @rule()
    def checkpoint(self) -> None:
        self.marks.append((self.outer.checkpoint(), self.now()))

    @precondition(lambda self: self.inner is None and self.marks)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        chosen = data.draw(st.integers(0, len(self.marks) - 1))
        mark, before = self.marks[chosen]
        self.outer.rollback(mark)
        assert self.now() == before
        assert len(self.outer) == mark
        self.marks = self.marks[: chosen + 1]

    @precondition(lambda self: self.inner is None)
    @rule()
    def discard_and_do_again(self) -> None:
        plan, after = self.outer.save(), self.now()
        self.outer.discard()
        before = self.now()
        self.outer.replay(plan)
        assert self.now() == after
        self.outer.discard()
        assert self.now() == before
        self.outer.replay(plan)

    # -- one in the other -----------------------------------------------------------------------------------------

    @precondition(lambda self: self.inner is None)
    @rule()
    def begin_inner(self) -> None:
        self.inner, self.before_inner = Transaction(self.session), self.now()

    @precondition(lambda self: self.inner is not None)
    @rule()
    def discard_inner(self) -> None:
        assert self.inner is not None
        self.inner.discard()
        self.inner = None
        assert self.now() == self.before_inner

    @precondition(lambda self: self.inner is not None)
    @rule()
    def merge_inner(self) -> None:
        assert self.inner is not None
        before, total = self.now(), len(self.outer) + len(self.inner)
        self.outer.merge(self.inner)
        assert (len(self.inner), len(self.outer)) == (0, total)
        self.inner = None
        assert self.now() == before

    # -- for good -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.inner is None)
    @rule()
    def commit(self) -> None:
        tasks, session = self.session.tasks, self.session
        done = self.outer.operations
        allocated = [o.event.rows.tolist() for o in done if o.kind is Kind.ALLOCATE]
        evicted = [r for o in done if o.kind is Kind.EVICT for r in o.event.rows.tolist()]
        bound_before, evicted_before = len(session.decisions.bound), len(session.decisions.evicted)
        self.outer.commit()
        self.marks = []
        assert [rows.tolist() for rows, _ in session.decisions.bound[bound_before:]] == allocated
        assert session.decisions.evicted[evicted_before:] == [(row, "a better use") for row in evicted]
        for rows, places in session.decisions.bound[bound_before:]:
            assert (tasks.status[rows] == Status.BINDING).all()
            assert (tasks.node[rows] == places).all()
        assert len(self.outer) == 0

    @precondition(lambda self: self.inner is None)
    @rule()
    def leave_open(self) -> None:
        """An action ends with its operations neither committed nor undone: they hold for the rest of the cycle."""
        self.outer = Transaction(self.session)
        self.marks = []

    @precondition(lambda self: self.inner is None and not len(self.outer))
    @rule()
    def bind_what_was_left(self) -> None:
        tasks = self.session.tasks
        for job in self.session.jobs.rows.tolist():
            bind_allocated(self.session, job)
        assert not ((tasks.status == Status.ALLOCATED) & np.isin(tasks.job, self.session.jobs.rows)).any()
        bound = [row for rows, _ in self.session.decisions.bound for row in rows.tolist()]
        assert len(bound) == len(set(bound))
        self.marks.clear()  # it happened outside of the transaction, whose checkpoints know nothing of it

    @precondition(lambda self: self.inner is None and not len(self.outer))
    @rule()
    def withdraw_what_was_left(self) -> None:
        withdraw(self.session, np.flatnonzero(self.session.tasks.status == Status.PIPELINED))
        assert not self.session.nodes.pipelined.any()
        self.marks.clear()  # it happened outside of the transaction, whose checkpoints know nothing of it

    # -- always ---------------------------------------------------------------------------------------------------

    @invariant()
    def sums_are_true(self) -> None:
        assert validate(self.session) == []

    @invariant()
    def plugins_were_told_everything(self) -> None:
        tasks, expected = self.session.tasks, self.session.jobs.allocated - self.allocated_before
        for row in np.flatnonzero((tasks.status == Status.PIPELINED) & (tasks.job >= 0)).tolist():
            expected[:, tasks.job[row]] += self.session.classes[tasks.class_of[row]].request
        assert np.array_equal(self.ledger.jobs, expected)


Transactions.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTransactions = Transactions.TestCase


def test_undoing_tells_plugins_the_reverse() -> None:
    cluster = cluster_of(
        node("n"), queue("default"), group("g"), *(pod(f"p{i}", {"cpu": "1"}, group="g") for i in range(3))
    )
    session = open_session(cluster)
    ledger = Ledger(session)
    session.use([[(PluginOption("ledger", {}, {}), ledger)]])
    transaction = Transaction(session)
    transaction.allocate(np.array([0, 1, 2]), np.zeros(3, dtype=np.intp))
    assert ledger.nodes[0].tolist() == [3000]
    saved: SavedPlan = transaction.save()
    transaction.discard()
    assert not ledger.nodes.any()
    transaction.replay(saved)
    assert ledger.nodes[0].tolist() == [3000]
