"""Transactions that restore or move evicted tasks, turn allocations into claims, and share devices.

All of it can be undone.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from maniple.cluster.check import validate
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.devices import gpu_check
from maniple.framework.devices.gpus import Groups
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.operations import Kind, Operation
from maniple.framework.transactions.transaction import Transaction, withdraw
from maniple.objects.meta import Object
from tests.framework.test_transaction import Ledger, state
from tests.kai_support import gpu_node, group, open_session, pod, queue

GPU = "nvidia.com/gpu"
ASKS: list[dict[str, Any]] = [
    {"requests": {"cpu": "1"}},
    {"requests": {GPU: "1", "memory": "1Gi"}},
    {"requests": {"cpu": "1"}, "fraction": "0.5"},
    {"fraction": "0.3", "devices": "2"},
    {"memory": "400"},
]
NODES = 2
Whole = tuple[Any, ...]


@st.composite
def objects(draw: st.DrawFn) -> list[Object]:
    found = [queue("default"), *(gpu_node(f"n{i}", 3) for i in range(NODES))]
    for job in range(draw(st.integers(1, 3))):
        found.append(group(f"g{job}", 2))
        for number in range(draw(st.integers(1, 6))):
            ask = draw(st.sampled_from(ASKS))
            running = draw(st.booleans())
            names = ("x", "y")[: int(ask.get("devices", 1))]
            shares = "fraction" in ask or "memory" in ask
            where: dict[str, Any] = {"on": f"n{draw(st.integers(0, NODES - 1))}"} if running else {}
            where |= {"groups": names} if running and shares else {}
            where |= {"deleted": "2026-01-01T00:00:00Z"} if running and draw(st.integers(0, 4)) == 0 else {}
            found.append(pod(f"g{job}-{number}", group=f"g{job}", **ask, **where))
    return found


def everything(session: Session, ledger: Ledger) -> Whole:
    books = session.gpus
    groups = {
        (node, name): repr(one)
        for node in range(len(session.nodes))
        for name, one in books.groups(node).items()
    }
    devices = [amounts.tolist() for amounts in books.booked()]
    moved = {row: list(places) for row, places in session.moved.items() if places}
    return state(session, ledger), groups, devices, dict(books.groups_of), moved


class Moves(RuleBasedStateMachine):
    """One session and one open transaction on it."""

    @initialize(found=objects())
    def open(self, found: list[Object]) -> None:
        self.session = open_session(*found)
        self.ledger = Ledger(self.session)
        self.session.use([[(PluginOption("ledger", {}, {}), self.ledger)]])
        self.transaction = Transaction(self.session)
        self.marks: list[tuple[int, Whole]] = [(0, self.now())]
        self.retracted = False

    def now(self) -> Whole:
        return everything(self.session, self.ledger)

    def rows(self, mask: Any) -> list[int]:
        return [int(row) for row in np.flatnonzero(mask)]

    @property
    def waiting(self) -> list[int]:
        return self.rows(self.session.tasks.status == Status.PENDING)

    @property
    def active(self) -> list[int]:
        """Tasks that may be evicted: not those that this very transaction placed."""
        status = self.session.tasks.status
        found = ACTIVE_ALLOCATED[status] & (status >= 0)
        for operation in self.transaction.operations:
            if operation.kind not in (Kind.EVICT, Kind.RESTORE):
                found[operation.event.rows] = False
        return self.rows(found)

    @property
    def evicted(self) -> list[int]:
        tasks = self.session.tasks
        mine = np.zeros(len(tasks), dtype=np.bool_)
        for operation in self.transaction.operations:
            if operation.kind is Kind.EVICT:
                mine[operation.event.rows] = True
        return self.rows(mine & tasks.virtual & (tasks.status == Status.RELEASING))

    def place(self, data: st.DataObject, row: int) -> tuple[TaskRows, Any, list[Groups] | None]:
        session, node = self.session, data.draw(st.integers(0, NODES - 1))
        share = session.classes[session.tasks.class_of[row]].share
        if share is None:
            return np.array([row]), np.array([node], dtype=np.intp), None
        names = list(session.gpus.groups(node))
        for _ in range(share.devices):
            names.append(session.gpus.new_name(row, node, names))
        chosen = data.draw(st.permutations(list(dict.fromkeys(names))))[: share.devices]
        return np.array([row]), np.array([node], dtype=np.intp), [tuple(chosen)]

    # -- operations -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), waits=st.booleans())
    def put(self, data: st.DataObject, waits: bool) -> None:
        rows, nodes, groups = self.place(data, data.draw(st.sampled_from(self.waiting)))
        (self.transaction.pipeline if waits else self.transaction.allocate)(rows, nodes, groups)
        assert self.session.tasks.status[rows[0]] == (Status.PIPELINED if waits else Status.ALLOCATED)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.sampled_from(self.active), min_size=1, max_size=3, unique=True))
        self.transaction.evict(np.array(rows), "a better use")
        assert self.session.tasks.virtual[rows].all()

    @precondition(lambda self: self.evicted)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.sampled_from(self.evicted), min_size=1, max_size=3, unique=True))
        self.transaction.restore(np.array(rows))
        assert not self.session.tasks.virtual[rows].any()

    @precondition(lambda self: self.evicted)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.evicted))
        rows, nodes, groups = self.place(data, row)
        before = self.session.nodes.releasing[:3].copy()
        self.transaction.move(rows, nodes, groups)
        assert self.session.tasks.node[row] == nodes[0]
        assert np.array_equal(self.session.nodes.releasing[:3], before)

    @rule(data=st.data())
    def to_pipelined(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.session.jobs.rows.tolist()))
        mine = [
            o.event for o in self.transaction.operations if o.kind is Kind.ALLOCATE and o.event.job == job
        ]
        standing = [event for event in mine if self.session.tasks.status[event.rows[0]] == Status.ALLOCATED]
        self.transaction.to_pipelined(job)
        for event in standing:
            assert (self.session.tasks.status[event.rows] == Status.PIPELINED).all()
            assert (self.session.tasks.node[event.rows] == event.nodes).all()

    def retractable(self) -> list[Operation]:
        """Evictions that nothing was built on."""
        operations, found = self.transaction.operations, []
        for place, one in enumerate(operations):
            later = [row for other in operations[place + 1 :] for row in other.event.rows.tolist()]
            if one.kind is Kind.EVICT and not set(one.event.rows.tolist()) & set(later):
                found.append(one)
        return found

    @precondition(lambda self: self.retractable())
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        found = self.retractable()
        operation = found[data.draw(st.integers(0, len(found) - 1))]
        place = self.transaction.operations.index(operation)
        self.transaction.retract(operation)
        assert (self.session.tasks.status[operation.event.rows] == operation.before).all()
        self.marks = [mark for mark in self.marks if mark[0] <= place]
        self.retracted = True

    # -- undoing and keeping --------------------------------------------------------------------------------------

    @rule()
    def checkpoint(self) -> None:
        self.marks.append((self.transaction.checkpoint(), self.now()))

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        chosen = data.draw(st.integers(0, len(self.marks) - 1))
        mark, before = self.marks[chosen]
        self.transaction.rollback(mark)
        assert self.now() == before
        self.marks = self.marks[: chosen + 1]

    @rule()
    def do_again(self) -> None:
        plan, after = self.transaction.save(), self.now()
        self.transaction.discard()
        assert self.now() == self.marks[0][1]
        self.transaction.replay(plan)
        # Which whole devices are free may depend on the order of things, and a retraction changes that.
        same = slice(3, None) if self.retracted else slice(None)
        assert self.now()[same] == after[same]
        self.marks = self.marks[:1]

    @rule()
    def commit(self) -> None:
        session, operations = self.session, list(self.transaction.operations)
        evicted, bound = len(session.decisions.evicted), len(session.decisions.bound)
        leaving = {
            row
            for one in operations
            if one.kind is Kind.EVICT
            for row in one.event.rows.tolist()
            if session.tasks.virtual[row]
        }
        self.transaction.commit()
        assert {row for row, _ in session.decisions.evicted[evicted:]} == leaving
        for rows, nodes in session.decisions.bound[bound:]:
            assert (session.tasks.node[rows] == nodes).all()
            assert (session.tasks.status[rows] == Status.BINDING).all()
        assert not session.tasks.virtual.any()
        self.marks, self.retracted = [(0, self.now())], False

    # -- always ---------------------------------------------------------------------------------------------------

    @invariant()
    def sums_are_true(self) -> None:
        assert validate(self.session) == []
        assert [line for line in gpu_check.problems(self.session) if "sum to" in line] == []


Moves.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestMoves = Moves.TestCase


# -- one by one --------------------------------------------------------------------------------------------------------


def two_nodes(*pods: Object, strict: bool = False) -> tuple[Session, dict[str, int]]:
    session = open_session(
        queue("default"), group("g", 1), gpu_node("a", 2), gpu_node("b", 2), *pods, strict=strict
    )
    keys = {key.removeprefix("default/"): row for row, key in enumerate(session.cluster.tasks.keys)}
    return session, keys


def at(node: int) -> Any:
    return np.array([node], dtype=np.intp)


def test_a_restored_eviction_has_no_effect_and_a_moved_task_is_evicted_and_promised_its_new_node() -> None:
    session, rows = two_nodes(
        pod("p", {GPU: "1"}, group="g", on="a"), pod("q", {GPU: "1"}, group="g", on="a")
    )
    transaction = Transaction(session)
    transaction.evict(np.array([rows["p"], rows["q"]]), "why")
    transaction.restore(np.array([rows["p"]]))
    transaction.move(np.array([rows["q"]]), at(1))
    transaction.commit()
    assert session.decisions.evicted == [(rows["q"], "why")]
    assert session.decisions.nominated == {rows["q"]: 1}
    assert [Status(session.tasks.status[rows[one]]) for one in "pq"] == [Status.RUNNING, Status.PIPELINED]
    assert session.moved == {rows["q"]: [(0, ())]}


def test_claims_of_what_was_allocated_are_not_bound() -> None:
    session, rows = two_nodes(*(pod(one, {GPU: "1"}, group="g") for one in "pq"))
    transaction = Transaction(session)
    transaction.allocate(np.array([rows["p"], rows["q"]]), np.array([0, 1], dtype=np.intp))
    transaction.to_pipelined(int(session.tasks.job[rows["p"]]))
    transaction.commit()
    assert session.decisions.bound == []
    assert session.decisions.nominated == {}
    assert [Status(session.tasks.status[row]) for row in rows.values()] == [Status.PIPELINED] * 2


def test_a_claim_that_is_evicted_counts_as_held_until_it_is_released() -> None:
    session, rows = two_nodes(pod("p", {GPU: "1"}, group="g"))
    transaction, gpu = Transaction(session), session.gpus.dimension
    transaction.pipeline(np.array([rows["p"]]), at(0))
    assert session.nodes.future_idle()[gpu, 0] == 1000
    transaction.evict(np.array([rows["p"]]), "why")
    assert session.nodes.idle()[gpu, 0] == 1000
    assert session.nodes.future_idle()[gpu, 0] == 2000
    transaction.discard()
    assert session.nodes.idle()[gpu, 0] == session.nodes.future_idle()[gpu, 0] == 2000


def test_evictions_together_are_those_one_by_one_also_where_claims_and_shared_devices_meet() -> None:
    outcomes = []
    for together in (True, False):
        session, rows = two_nodes(
            pod("moves", {GPU: "1"}, group="g", on="a"),
            pod("shares", group="g", fraction="0.5", on="a", groups=("x",)),
            pod("new", group="g", fraction="0.3", devices="2"),
        )
        transaction = Transaction(session)
        transaction.allocate(np.array([rows["new"]]), at(0), [("x", "y")])
        transaction.evict(np.array([rows["moves"], rows["shares"]]), "why")
        transaction.move(np.array([rows["moves"]]), at(0))
        transaction.commit()
        both = np.array([rows["new"], rows["moves"]])
        for some in [both] if together else [both[:1], both[1:]]:
            transaction.evict(some, "why")
        outcomes.append(everything(session, Ledger(session)))
    assert outcomes[0] == outcomes[1]


def test_a_shared_task_that_moves_to_another_device_of_its_node_leaves_the_old_one() -> None:
    session, rows = two_nodes(pod("p", group="g", fraction="0.5", on="a", groups=("x",)))
    transaction, books = Transaction(session), session.gpus
    transaction.evict(np.array([rows["p"]]), "why")
    transaction.move(np.array([rows["p"]]), at(0), [("y",)])
    groups = books.groups(0)
    assert (groups["x"].releasing, groups["y"].used, groups["y"].releasing) == (500, 500, -500)
    assert books.groups_of[rows["p"]] == ("y",)
    assert session.moved[rows["p"]] == [(0, ("x",))]
    transaction.discard()
    assert books.groups_of[rows["p"]] == ("x",)
    assert list(books.groups(0)) == ["x"]


def test_what_a_job_asks_for_next_forgets_evictions_that_were_committed() -> None:
    session, rows = two_nodes(pod("p", {GPU: "1"}, group="g", on="a"), pod("q", {GPU: "1"}, group="g"))
    job = int(session.tasks.job[rows["p"]])
    transaction = Transaction(session)
    transaction.evict(np.array([rows["p"]]), "why")
    asked = session.groups.to_allocate(job, simulated=True).tolist()
    assert asked == [rows["p"]]  # it needs one task, and the older is first
    transaction.commit()
    assert session.groups.to_allocate(job, simulated=True).tolist() == [rows["q"]]


@pytest.mark.parametrize("fraction", ["", "0.5"])
def test_what_was_withdrawn_waits_again(fraction: str) -> None:
    session, rows = two_nodes(pod("p", {"cpu": "1"}, group="g", fraction=fraction))
    transaction, row = Transaction(session), np.array([rows["p"]])
    before = session.nodes.future_idle().copy()
    transaction.pipeline(row, at(0), [("x",)] if fraction else None)
    withdraw(session, row)
    assert np.array_equal(session.nodes.future_idle(), before)
    assert (session.tasks.status[rows["p"]], session.tasks.node[rows["p"]]) == (Status.PENDING, -1)
    assert [line for line in gpu_check.problems(session) if "sum to" in line] == []
