"""What holds for devices of every kind: undoing is exact, and a format that is written is read back."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.transactions.transaction import Transaction
from maniple.plugins.devices import mig
from maniple.plugins.devices.books import Books, Load
from maniple.plugins.devices.virtual_gpu import ASSIGNED
from maniple.plugins.devices.wire import Record, decode, encode, whole
from tests.plugins.devices.cards import World, card, gpu_node, vgpu
from tests.plugins.opening import task

words = st.text("abcGPU-0123456789[]", min_size=1, max_size=8)
records = st.builds(Record, words, words, st.integers(0, 2**31), st.integers(0, 100))


@given(st.lists(st.lists(records, max_size=3), min_size=1, max_size=3))
def test_what_is_written_is_read_back(containers: list[list[Record]]) -> None:
    found = decode(";".join(encode(containers)))
    assert [list(container) for container in found] == containers


@given(st.text("ab,:;-1[]", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    for container in decode(text):
        for record in container:
            mig.split(record.device)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "99999999999", "٣", " 1"])
def test_what_is_not_a_plain_number_is_none(text: str) -> None:
    assert whole(text) is None


def opened(world: World) -> list[Books]:
    found = []
    for row in range(len(world.session.nodes)):
        devices = world.plugin._devices(0, row)
        assert devices is not None
        found.append(devices.books)
    return found


def state(world: World) -> Any:
    books = [(one.loads, one.held) for one in opened(world)]
    return copy.deepcopy((books, world.session.decisions.annotations))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8))
def test_undoing_restores_every_book(steps: list[tuple[int, bool]]) -> None:
    """Placements and evictions in any order, undone, leave nothing behind; done again they choose the same."""
    running = [
        vgpu(f"r{i}", 1, 100, on="n", notes={ASSIGNED: f"GPU-{i % 2},NVIDIA,100,0:"}) for i in range(6)
    ]
    waiting = [vgpu(f"p{i}", 1, 200 + i) for i in range(6)]
    nodes = [gpu_node("n", card("GPU-0"), card("GPU-1")), gpu_node("m", card("GPU-8"))]
    world = World(*nodes, *running, *waiting, VGPUEnable=True, SchedulePolicy="spread")
    before = state(world)
    transaction = Transaction(world.session)
    for number, evict in dict.fromkeys(steps):
        if evict:
            transaction.evict(np.array([task(world.session, f"r{number}")]), "test")
        else:
            where = [name for name in ("m", "n") if name not in world.refused(f"p{number}")]
            if where:
                world.place(f"p{number}", where[0], transaction)
    after, plan = state(world), transaction.save()
    transaction.discard()
    assert state(world) == before
    transaction.replay(plan)
    assert state(world) == after


def test_a_card_that_is_gone_is_not_missed() -> None:
    world = World(
        gpu_node("n", card("GPU-0")),
        vgpu("r", on="n", notes={ASSIGNED: "GPU-7,NVIDIA,5,0:"}),
        VGPUEnable=True,
    )
    assert opened(world)[0].loads == {"GPU-0": Load()}
    world.evict("r").discard()
    assert opened(world)[0].loads == {"GPU-0": Load()}


def test_verdicts_follow_what_happens_on_other_nodes_too() -> None:
    nodes = [gpu_node(name, card(f"GPU-{name}", shares=1)) for name in ("m", "n")]
    world = World(*nodes, *(vgpu(f"p{i}", 1, 10) for i in range(3)), VGPUEnable=True)
    assert set(world.refused("p0")) == set()
    world.place("p0", "m")
    assert set(world.refused("p1")) == {"m"}
    transaction = Transaction(world.session)
    world.place("p1", "n", transaction)
    assert set(world.refused("p2")) == {"m", "n"}
    transaction.discard()
    assert set(world.refused("p2")) == {"m"}
