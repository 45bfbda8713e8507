"""GPUs: what nodes have, how queues count them, and the accounting of shared devices.

The latter case by case, against the documented rules.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.devices.gpu_facts import MIXED, NONE, SINGLE, UNIT, mig_units
from maniple.framework.devices.gpus import GpuBooks
from maniple.framework.session import Session
from maniple.objects.meta import Object
from tests.kai_support import claim, device_slice, gpu_node, group, open_session, pod, queue
from tests.support import node

GPU = "nvidia.com/gpu"
STATUSES = (Status.RUNNING, Status.RELEASING, Status.PIPELINED)


def session_of(*objects: Object, strict: bool = False) -> Session:
    return open_session(queue("default"), group("g"), *objects, strict=strict)


def class_of(session: Session, name: str) -> TaskClass:
    row = session.cluster.tasks.index_of(f"default/{name}")
    assert row is not None
    class_: TaskClass = session.classes[session.tasks.class_of[row]]
    return class_


def books_of(*nodes: Object) -> GpuBooks:
    return session_of(*nodes).gpus


# -- nodes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "memory", "synced"),
    [
        ("81920", 81900, True),
        ("100", 100, True),
        ("1048575", 1048500, True),
        (str(80 * 2**30), 81900, True),
        ("", 100, False),
        ("a lot", 100, False),
        ("²", 100, False),
        ("9" * 30, 100, False),
        ("99", 100, False),
    ],
)
def test_the_memory_of_a_device(label: str, memory: int, synced: bool) -> None:
    books = books_of(gpu_node("n", memory=None, labels={"nvidia.com/gpu.memory": label} if label else {}))
    assert (books.memory.tolist(), books.synced.tolist()) == ([memory], [synced])


@pytest.mark.parametrize(("label", "count"), [("3", 3), ("0", 0), ("three", 4), ("²", 4), ("9" * 30, 4)])
def test_the_label_says_how_many_devices_there_are(label: str, count: int) -> None:
    assert books_of(gpu_node("n", labels={"nvidia.com/gpu.count": label})).count.tolist() == [count]


def test_without_a_label_there_are_as_many_devices_as_are_offered() -> None:
    books = books_of(gpu_node("n", 2), device_slice("s", "n", 3))
    assert (books.count.tolist(), books.whole.tolist(), books.dra.tolist()) == ([5], [5], [3])


MIG, STRATEGY = "node-role.kubernetes.io/mig-enabled", "nvidia.com/mig.strategy"


@pytest.mark.parametrize(
    ("labels", "slices", "enabled", "strategy"),
    [
        ({}, {}, False, NONE),
        ({STRATEGY: "single"}, {}, False, NONE),
        ({MIG: "true", STRATEGY: "single"}, {}, True, SINGLE),
        ({MIG: "1", STRATEGY: "mixed"}, {}, True, MIXED),
        ({MIG: "T"}, {}, True, NONE),
        ({MIG: "yes", STRATEGY: "mixed"}, {}, False, NONE),
        ({MIG: "true", STRATEGY: "other"}, {}, True, NONE),
        ({STRATEGY: "mixed"}, {"nvidia.com/mig-1g.5gb": "2"}, True, MIXED),
        ({MIG: "false", STRATEGY: "mixed"}, {"nvidia.com/mig-1g.5gb": "2"}, False, NONE),
    ],
)
def test_which_nodes_hand_out_slices(
    labels: dict[str, str], slices: dict[str, str], enabled: bool, strategy: int
) -> None:
    books = books_of(gpu_node("n", labels=labels, allocatable=slices))
    assert (books.mig_enabled.tolist(), books.mig.tolist()) == ([enabled], [strategy])


def test_which_nodes_have_cpus_only_and_which_hand_out_gpus_by_claims() -> None:
    books = books_of(
        node("a"),
        gpu_node("b", 1),
        node("c"),
        device_slice("s", "c", 2),
        node("d", labels={MIG: "true"}),
        gpu_node("e", 1),
        device_slice("t", "e", 2),
    )
    assert books.cpu_only.tolist() == [True, False, False, False, False]
    assert (books.dra > 0).tolist() == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("nvidia.com/mig-1g.5gb", 1),
        ("nvidia.com/mig-7g.80gb", 7),
        ("nvidia.com/mig-1g.5gb.me", 0),
        ("nvidia.com/mig-g.5gb", 0),
        ("nvidia.com/mig-²g.5gb", 0),
        ("nvidia.com/gpu", 0),
        ("cpu", 0),
    ],
)
def test_the_units_of_a_slice(name: str, units: int) -> None:
    assert mig_units(name) == units


# -- quota -------------------------------------------------------------------------------------------------------------


def test_what_tasks_count_with_before_their_node_is_known() -> None:
    uses = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    session = session_of(
        gpu_node("n", memory=2000),
        gpu_node("m", memory=1000),
        node("cpus", labels={"nvidia.com/gpu.memory": "200"}),
        claim("c", count=2),
        pod("cpu", {"cpu": "2", "memory": "1Gi"}, group="g"),
        pod("whole", {GPU: "3"}, group="g"),
        pod("part", group="g", fraction="0.29", devices="3"),
        pod("memory", group="g", memory="500", devices="2"),
        pod("slices", {"nvidia.com/mig-2g.10gb": "3"}, group="g"),
        pod("claims", {GPU: "1"}, group="g", spec=uses),
    )

    def gpus(name: str) -> float:
        return float(session.gpus.asked(class_of(session, name))[2])

    assert session.gpus.asked(class_of(session, "cpu")).tolist() == [2000, 2**30, 0]
    assert (gpus("whole"), gpus("part"), gpus("slices"), gpus("claims")) == (3, 0.87, 6, 3)
    assert gpus("memory") == 1.0  # half of the smallest device, twice


def test_to_the_letter_the_smallest_device_has_100_mib() -> None:
    objects = [gpu_node("n", memory=2000), pod("p", group="g", memory="500")]
    assert [
        session.gpus.asked(class_of(session, "p"))[2]
        for session in (session_of(*objects), session_of(*objects, strict=True))
    ] == [0.25, 5]


def test_what_tasks_count_with_on_a_node() -> None:
    session = session_of(
        gpu_node("a", memory=1000),
        gpu_node("b", memory=3000),
        pod("part", group="g", fraction="0.3", on="b", groups=("x",)),
        pod("memory", group="g", memory="1000", devices="2", on="b", groups=("x", "y")),
        pod("waits", group="g", memory="1000"),
    )
    books = session.gpus
    memory = class_of(session, "memory")
    assert [float(books.accepted(memory, place)[2]) for place in (0, 1)] == [2.0, 0.68]
    assert float(books.accepted(class_of(session, "part"), 1)[2]) == 0.3
    rows = np.array([session.cluster.tasks.index_of(f"default/{one}") for one in ("part", "memory", "waits")])
    assert books.of_tasks(rows)[2].tolist() == [0.3, 0.68, 1.0]


@pytest.mark.parametrize(
    ("part", "memory", "need"),
    [("0.5", 1000, 500), ("0.29", 100, 28), ("0.333", 81900, 27272), ("1", 1000, 1000), ("0.01", 50, 1)],
)
def test_the_memory_that_a_part_takes_is_cut_off_below(part: str, memory: int, need: int) -> None:
    session = session_of(gpu_node("n", memory=memory), pod("p", group="g", fraction=part))
    assert session.gpus.need(class_of(session, "p"), 0) == need


# -- the rules of the books, as they are told --------------------------------------------------------------------------


@dataclass
class Told:
    """A node's devices by the rules, word for word."""

    devices: int  # that the node is said to have
    idle: int
    used: int = 0
    releasing: int = 0
    used_memory: dict[str, int] = field(default_factory=dict)
    allocated_memory: dict[str, int] = field(default_factory=dict)
    releasing_memory: dict[str, int] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)

    @property
    def in_use(self) -> int:
        return self.used + sum(memory > 0 for memory in self.used_memory.values())

    def whole(self, status: Status, sign: int) -> None:
        self.used += sign
        if status is Status.RELEASING:
            self.idle -= sign
            self.releasing += sign
        elif status is Status.PIPELINED:
            self.releasing -= sign
        else:
            self.idle -= sign

    def add(self, name: str, m: int, status: Status) -> None:
        for table in (self.used_memory, self.allocated_memory, self.releasing_memory):
            table.setdefault(name, 0)
        self.used_memory[name] += m
        if status is Status.RELEASING:
            self.releasing_memory[name] += m
            self.allocated_memory[name] += m
            if self.used_memory[name] == self.releasing_memory[name]:
                if name not in self.marked:
                    self.marked.add(name)
                    self.releasing += 1
                if self.devices < self.idle + self.in_use:
                    self.idle -= 1
        elif status is Status.PIPELINED:
            self.releasing_memory[name] -= m
            if self.used_memory[name] - m == self.releasing_memory[name] + m:
                self.releasing -= 1
        else:
            self.allocated_memory[name] += m
            if self.used_memory[name] <= m and self.devices < self.idle + self.in_use:
                self.idle -= 1
            if name in self.marked:
                self.releasing -= 1
                self.marked.remove(name)

    def remove(self, name: str, m: int, status: Status) -> None:
        self.used_memory[name] -= m
        used = self.used_memory[name]
        if status is Status.RELEASING:
            self.releasing_memory[name] -= m
            self.allocated_memory[name] -= m
            if used <= 0:
                if self.devices >= self.idle + self.in_use:
                    self.idle += 1
                if name in self.marked:
                    self.releasing -= 1
                    self.marked.remove(name)
        elif status is Status.PIPELINED:
            self.releasing_memory[name] += m
            releasing = self.releasing_memory[name]
            if used + m == releasing - m or (used == 0 and releasing == 0):
                self.releasing += 1
        else:
            self.allocated_memory[name] -= m
            if used <= 0 and self.devices >= self.idle + self.in_use:
                self.idle += 1
            if used != 0 and self.releasing_memory[name] == used and name not in self.marked:
                self.releasing += 1
                self.marked.add(name)


PARTS = ("0.2", "0.3", "0.5", "1")
OBJECTS = [pod(part, group="g", fraction=part) for part in PARTS]
Step = tuple[str, str, Status]  # a part or "" for a whole device, a group, how it counts


def compare(session: Session, told: Told) -> None:
    books, nodes = session.gpus, session.nodes
    dimension = books.dimension
    assert dimension is not None
    assert int(nodes.idle()[dimension, 0]) == told.idle * UNIT
    assert int(nodes.releasing[dimension, 0] - nodes.pipelined[dimension, 0]) == told.releasing * UNIT
    for name, one in books.groups(0).items():
        assert one.used == told.used_memory[name]
        assert one.allocated == told.allocated_memory[name]
        assert one.releasing == told.releasing_memory[name]
        assert one.marked is (name in told.marked)


def carry_out(session: Session, told: Told, step: Step, sign: int) -> None:
    part, name, status = step
    books, nodes = session.gpus, session.nodes
    if not part:
        told.whole(status, sign)
        if status is Status.PIPELINED:
            nodes.pipelined[books.dimension, 0] += sign * UNIT
            return
        nodes.used[books.dimension, 0] += sign * UNIT
        nodes.releasing[books.dimension, 0] += sign * UNIT * (status is Status.RELEASING)
        return
    class_ = class_of(session, part)
    (told.add if sign > 0 else told.remove)(name, books.need(class_, 0), status)
    (books.add if sign > 0 else books.remove)(0, class_, (name,), status)


steps = st.tuples(st.sampled_from([*PARTS, ""]), st.sampled_from("xyz"), st.sampled_from(STATUSES))


@given(st.data(), st.sampled_from(["", "2", "3", "4"]))
def test_to_the_letter_the_books_follow_the_rules(data: st.DataObject, label: str) -> None:
    labels = {"nvidia.com/gpu.count": label} if label else {}
    session = session_of(gpu_node("n", 3, labels=labels), *OBJECTS, strict=True)
    told = Told(int(label or 3), 3)
    there: list[Step] = []
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()) and there:
            carry_out(session, told, there.pop(data.draw(st.integers(0, len(there) - 1))), -1)
        else:
            there.append(data.draw(steps))
            carry_out(session, told, there[-1], +1)
        compare(session, told)


@given(st.data(), st.sampled_from(["", "2", "4"]))
def test_a_device_is_idle_unless_somebody_has_a_part_of_it(data: st.DataObject, label: str) -> None:
    """Whatever is claimed besides, and whatever the label says of how many there are."""
    labels = {"nvidia.com/gpu.count": label} if label else {}
    session = session_of(gpu_node("n", 3, labels=labels), *OBJECTS)
    told, there = Told(3, 3), list[Step]()
    for _ in range(data.draw(st.integers(1, 25))):
        if data.draw(st.booleans()) and there:
            carry_out(session, told, there.pop(data.draw(st.integers(0, len(there) - 1))), -1)
        else:
            there.append(data.draw(steps))
            carry_out(session, told, there[-1], +1)
        whole = sum(not part and status is not Status.PIPELINED for part, _, status in there)
        shared = {name for part, name, status in there if part and status is not Status.PIPELINED}
        assert int(session.nodes.idle()[session.gpus.dimension, 0]) == (3 - whole - len(shared)) * UNIT


def test_a_task_of_which_no_device_is_known_leaves_without_a_trace() -> None:
    """It runs with a part of a GPU, and of which is not recorded."""
    session = session_of(gpu_node("n", 3), *OBJECTS)
    session.gpus.add(0, class_of(session, "0.5"), (), Status.RUNNING)
    session.gpus.remove(0, class_of(session, "0.5"), (), Status.RUNNING)
    assert session.gpus.groups(0) == {}
    assert session.gpus.shared.tolist() == [0]


@given(st.data())
def test_what_was_saved_comes_back_bit_for_bit_whatever_whole_tasks_did_since(data: st.DataObject) -> None:
    session = session_of(gpu_node("n", 3), *OBJECTS)
    told = Told(3, 3)
    for step in data.draw(st.lists(steps, max_size=6)):
        carry_out(session, told, step, +1)
    saved, groups = session.gpus.save(0), repr(session.gpus.groups(0))
    before = [devices.tolist() for devices in session.gpus.booked()]
    used, releasing = session.nodes.used.copy(), session.nodes.releasing.copy()
    later = data.draw(st.lists(steps, max_size=6))
    for step in later:
        carry_out(session, told, step, +1)
    session.gpus.restore(saved)
    assert repr(session.gpus.groups(0)) == groups
    assert [devices.tolist() for devices in session.gpus.booked()] == before
    for step in later:
        if not step[0]:
            carry_out(session, told, step, -1)
    assert np.array_equal(session.nodes.used, used)
    assert np.array_equal(session.nodes.releasing, releasing)


@given(st.lists(steps.filter(lambda step: step[0] != "" and step[2] is not Status.PIPELINED), max_size=5))
def test_a_session_opens_with_what_pods_hold(found: list[Step]) -> None:
    held = [
        pod(
            f"held-{number}",
            group="g",
            fraction=part,
            on="n",
            groups=(name,),
            deleted="2026-01-01T00:00:00Z" if status is Status.RELEASING else "",
        )
        for number, (part, name, status) in enumerate(found)
    ]
    session, told = session_of(gpu_node("n", 3), *held), Told(3, 3)
    for number, (part, name, status) in enumerate(found):
        told.add(name, session.gpus.need(class_of(session, f"held-{number}"), 0), status)
        assert part
    if found:
        compare(session, told)


# -- what fits -------------------------------------------------------------------------------------------------------


def fitting(*held: Object, asks: Object) -> tuple[list[str], list[bool]]:
    """Groups that have the part once others have left, and for each of x, y whether it has it now."""
    session = session_of(gpu_node("n", 2), *held, asks)
    class_ = class_of(session, asks.metadata.name)
    books = session.gpus
    return books.fitting_groups(class_, 0), [books.fits_now(class_, 0, name) for name in "xy"]


HALF = pod("asks", group="g", fraction="0.5")


def on_x(name: str, part: str, **more: Any) -> Object:
    return pod(name, group="g", fraction=part, on="n", groups=("x",), **more)


def test_a_group_with_room_fits_now() -> None:
    assert fitting(on_x("a", "0.5"), asks=HALF) == (["x"], [True, False])


def test_a_group_without_room_does_not_fit() -> None:
    assert fitting(on_x("a", "0.6"), asks=HALF) == ([], [False, False])


def test_a_group_of_which_somebody_leaves_fits_later() -> None:
    left = on_x("b", "0.5", deleted="2026-01-01T00:00:00Z")
    assert fitting(on_x("a", "0.5"), left, asks=HALF) == (["x"], [False, False])


def test_a_group_that_everybody_leaves_is_no_group_to_join() -> None:
    left = on_x("a", "0.3", deleted="2026-01-01T00:00:00Z")
    assert fitting(left, asks=HALF) == ([], [True, False])


def test_a_group_that_was_only_promised_does_not_fit_now() -> None:
    session = session_of(gpu_node("n", 2), HALF)
    class_, books = class_of(session, "asks"), session.gpus
    books.add(0, class_, ("x",), Status.PIPELINED)
    assert (books.fitting_groups(class_, 0), books.fits_now(class_, 0, "x")) == (["x"], False)


def fits(asks: Object, free: int, *held: Object, strict: bool = False) -> bool:
    session = session_of(gpu_node("n", 3), *held, asks, strict=strict)
    class_ = class_of(session, asks.metadata.name)
    return bool(session.gpus.fits(class_, np.array([0]), np.array([free * UNIT]))[0])


def test_whole_devices_and_groups_together_have_to_suffice() -> None:
    several = pod("asks", group="g", fraction="0.5", devices="3")
    x, y = on_x("a", "0.5"), pod("b", group="g", fraction="0.5", on="n", groups=("y",))
    assert not fits(several, 2)
    assert fits(several, 3)
    assert fits(several, 1, x, y)
    assert not fits(several, 0, x, y)


def test_more_memory_than_a_device_has_fits_nowhere_except_whole_multiples_to_the_letter() -> None:
    fine, more, twice = (pod("asks", group="g", memory=memory) for memory in ("1000", "1001", "2000"))
    assert [fits(one, 3) for one in (fine, more, twice)] == [True, False, False]
    assert [fits(one, 3, strict=True) for one in (fine, more, twice)] == [True, False, True]


# -- sums --------------------------------------------------------------------------------------------------------------


def test_sums_count_whole_devices_slices_and_what_is_left_of_shared_ones() -> None:
    gone = "2026-01-01T00:00:00Z"
    session = session_of(
        gpu_node("a", 4, memory=1000, allocatable={"nvidia.com/mig-2g.10gb": "3"}),
        gpu_node("b", 2, memory=3000),
        pod("w", {GPU: "1"}, group="g", on="a", deleted=gone),
        pod("s", {"nvidia.com/mig-2g.10gb": "1"}, group="g", on="a", deleted=gone),
        pod("p", group="g", fraction="0.3", on="a", groups=("x",)),
        pod("q", group="g", fraction="0.2", on="a", groups=("x",), deleted=gone),
        pod("r", group="g", fraction="0.4", on="a", groups=("y",), deleted=gone),
        pod("m", group="g", memory="1000", on="b", groups=("z",)),
    )
    idle, releasing = session.gpus.idle_sum(), session.gpus.releasing_sum()
    # a: one whole device, two slices of two, half of x and 0.6 of y; b: one whole, 0.66 of z
    assert idle.tolist() == pytest.approx([1 + 4 + 0.5 + 0.6, 1 + 0.66])
    # a: the whole one, y as a whole, a slice of two, and 0.2 of x
    assert releasing.tolist() == pytest.approx([1 + 1 + 2 + 0.2, 0])


def test_what_is_used_of_a_group() -> None:
    session = session_of(gpu_node("n"), on_x("a", "0.3"), on_x("b", "0.2"))
    assert session.gpus.portion_used(0, "x") == 0.5
    assert session.gpus.portion_used(0, "y") == 0


def test_a_device_that_a_task_opens_has_a_name_of_its_own() -> None:
    session = session_of(pod("a", group="g", uid="u"), pod("b", group="g"))
    rows = [session.cluster.tasks.index_of(f"default/{one}") for one in "ab"]
    names: list[str] = []
    for row in (rows[0], rows[0], rows[1], rows[1]):
        assert row is not None
        names.append(session.gpus.new_name(row, 0, names))
    assert len(set(names)) == 4


def test_a_device_that_a_task_leaves_does_not_lend_its_name_to_the_next() -> None:
    session = session_of(
        gpu_node("n"), gpu_node("o"), pod("a", group="g", uid="u", fraction="0.5", on="n", groups=("u-0",))
    )
    row = session.cluster.tasks.index_of("default/a")
    assert row is not None
    assert session.gpus.new_name(row, 0) == "u-1"
    assert session.gpus.new_name(row, 1) == "u-1"
