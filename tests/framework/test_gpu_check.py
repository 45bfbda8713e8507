"""The checks of debug mode see what is wrong with moved tasks and shared devices, and nothing where nothing is."""

import numpy as np
import pytest

from maniple.cluster.check import validate
from maniple.framework.devices.gpu_check import problems
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from tests.kai_support import gpu_node, group, open_session, pod, queue

GPU = "nvidia.com/gpu"


@pytest.fixture
def session() -> Session:
    """One task moved from a to b, another to another device of a, and a third opened one on b."""
    opened = open_session(
        queue("default"),
        group("g", 1),
        gpu_node("a", 3),
        gpu_node("b", 3),
        pod("whole", {GPU: "1"}, group="g", on="a"),
        pod("part", group="g", fraction="0.5", on="a", groups=("x",)),
        pod("new", group="g", fraction="0.7"),
    )
    whole, part, new = (opened.cluster.tasks.index_of(f"default/{one}") for one in ("whole", "part", "new"))
    transaction = Transaction(opened)
    transaction.evict(np.array([whole, part]), "why")
    transaction.move(np.array([whole]), np.array([1], dtype=np.intp))
    transaction.move(np.array([part]), np.array([0], dtype=np.intp), [("y",)])
    transaction.allocate(np.array([new]), np.array([1], dtype=np.intp), [("z",)])
    transaction.commit()
    return opened


def test_where_nothing_is_wrong_nothing_is_said(session: Session) -> None:
    assert validate(session) == []
    assert problems(session) == []


def test_places_that_moved_tasks_still_release_count(session: Session) -> None:
    session.moved.clear()
    assert any("node a: used nvidia.com/gpu" in line for line in validate(session))
    assert any("node a: releasing nvidia.com/gpu" in line for line in validate(session))
    assert any("device x" in line for line in problems(session))


def test_devices_that_groups_take_count(session: Session) -> None:
    session.nodes.used[session.gpus.dimension, 1] -= 1000
    assert any("node b: used nvidia.com/gpu" in line for line in validate(session))


@pytest.mark.parametrize("amount", ["used", "allocated", "releasing"])
def test_a_group_that_is_not_the_sum_of_its_users_is_told(session: Session, amount: str) -> None:
    one = session.gpus.groups(1)["z"]
    setattr(one, amount, getattr(one, amount) + 1)
    assert [line for line in problems(session) if f"node b: device z: {amount} is" in line]


def test_a_device_that_was_given_to_too_many_is_told(session: Session) -> None:
    new = session.cluster.tasks.index_of("default/new")
    assert new is not None
    session.gpus.groups_of[new] = ("z", "z")
    assert "node b: device z was given to more than it has memory for" in problems(session)


def test_more_devices_taken_than_are_shared_is_told(session: Session) -> None:
    session.gpus.groups(1)["z"].allocated = 0
    assert "node b: 0 shared devices take 1 from what is idle" in problems(session)
