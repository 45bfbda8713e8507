"""Whose turn it is among KAI's queues: one test per rule, each with the rules before it silent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.plugins.kai.proportion_order import Room
from tests.plugins.kai.fairness_scenes import UNLIMITED, Scene, job, node, queue

TOP = queue("top", UNLIMITED)
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def pair(a: dict[str, Any], b: dict[str, Any], *jobs: Any, **more: Any) -> Scene:
    return Scene(
        node("n1", 8), TOP, queue("a", parent="top", **a), queue("b", parent="top", **b), jobs, **more
    )


def test_a_queue_above_its_fair_share_in_everything_goes_last() -> None:
    small = {
        "quota": 1,
        "weight": 0,
        "cpu": {"quota": 1000, "overQuotaWeight": 0},
        "memory": {"quota": 1, "overQuotaWeight": 0},
    }
    scene = pair(
        {**small, "priority": 200},
        {"priority": 100},
        job("x", "a", running=2, pending=1),
        job("y", "b", pending=1),
    )
    assert scene.first(("a", "x"), ("b", "y")) == "b"


@pytest.mark.parametrize("plenty", ["gpu", "cpu", "memory"])
def test_above_in_some_resources_only_is_not_above(plenty: str) -> None:
    """Of one resource there is enough, so that rule 1 is silent and the priority decides."""
    small = {
        resource: {"quota": 0, "overQuotaWeight": 0} for resource in ("cpu", "memory") if resource != plenty
    }
    gpus = {"quota": UNLIMITED} if plenty == "gpu" else {"quota": 0, "weight": 0}
    scene = pair(
        {**small, **gpus, "priority": 200},
        {"priority": 100},
        job("x", "a", running=2, pending=1),
        job("y", "b", pending=1),
    )
    assert scene.first(("a", "x"), ("b", "y")) == "a"


def test_a_queue_that_stays_within_its_quota_with_its_next_job_goes_first() -> None:
    scene = pair(
        {"quota": 2, "priority": 100},
        {"quota": 2, "priority": 200},
        job("x", "a", pending=1, gpus=2),
        job("y", "b", pending=1, gpus=3),
    )
    assert scene.first(("a", "x"), ("b", "y")) == "a"
    assert scene.first("a", "b") == "b"  # without jobs both are within


def test_the_higher_priority_goes_first() -> None:
    scene = pair(
        {"priority": 100}, {"priority": 200}, job("x", "a", pending=1), job("y", "b", running=3, pending=1)
    )
    assert scene.first(("a", "x"), ("b", "y")) == "b"


def test_the_priority_is_100_unless_it_is_stated() -> None:
    scene = pair({}, {"priority": 99}, job("x", "a", running=3, pending=1), job("y", "b", pending=1))
    assert scene.first(("a", "x"), ("b", "y")) == "a"


def test_a_queue_that_would_have_what_it_may_not_have_goes_last() -> None:
    """b may have no GPUs and requests a hundredth of one; a has 32 times what it may have, the larger share."""
    scene = pair(
        {"quota": 0.25, "weight": 0},
        {"weight": 0},
        job("x", "a", running=8, pending=1),
        job("y", "b", pending=1, gpus=0, annotations={"gpu-fraction": "0.01"}),
        job("z", "b", pending=1, gpus=0),
    )
    assert scene.account("b").share([0, 0, 1]) < scene.account("a").share(scene.account("a").allocated)
    assert scene.first(("a", "x"), ("b", "y")) == "a"
    assert scene.first(("a", "x"), ("b", "z")) == "b"  # a job without GPUs is no offence


# Both queues want more than there is, so that each is due 4 GPUs.
BACKLOG = (job("more-a", "a", pending=10), job("more-b", "b", pending=10))


def test_the_smaller_dominant_share_with_the_next_job_goes_first() -> None:
    scene = pair(
        {},
        {},
        BACKLOG,
        [job("has-a", "a", running=1), job("x", "a", pending=1, gpus=3)],
        [job("has-b", "b", running=2), job("y", "b", pending=1, gpus=1)],
    )
    assert scene.first("a", "b") == "a"
    assert scene.first(("a", "x"), ("b", "y")) == "b"


def test_of_what_is_unlimited_the_whole_cluster_is_the_measure() -> None:
    scene = pair(
        {"quota": UNLIMITED},
        {"quota": 4},
        job("x", "a", running=2, pending=1),
        job("y", "b", running=2, pending=1),
    )
    # a: 3 of 8, b: 3 of 4
    assert scene.first(("a", "x"), ("b", "y")) == "a"


def test_of_what_a_queue_may_not_have_every_unit_weighs_a_thousand() -> None:
    scene = Scene(node("n1", 0), TOP, queue("a", parent="top", weight=0, limit=UNLIMITED))
    assert scene.account("a").share([0, 0, 50]) == 500


def test_what_victims_have_is_taken_off() -> None:
    scene = pair({}, {}, job("x", "a", running=3), job("y", "b", running=2))
    turn, a, b = scene.session.hooks.queue_turn, scene.queue("a"), scene.queue("b")
    assert turn(b, -1, []) < turn(a, -1, [])
    assert turn(a, -1, [scene.job("x")]) < turn(b, -1, [])


def given_up(scene: Scene, *victims: str) -> float:
    """GPUs that a queue's victims have."""
    return (
        scene.plugin._books._sum_of_victims(scene.queue("a"), [scene.job(name) for name in victims])[2] / 100
    )


def test_victims_add_up_whether_one_after_the_other_or_at_once() -> None:
    scene = pair({}, {}, [job(f"j{n}", "a", running=1, gpus=n) for n in range(1, 5)])
    assert [given_up(scene, *("j1", "j2", "j3")[:count]) for count in (1, 2, 3)] == [1, 3, 6]
    assert given_up(scene, "j4") == 4
    assert given_up(scene, "j3", "j2") == 5
    assert given_up(scene, "j3", "j4", "j1") == 8


def test_victims_are_measured_as_things_are() -> None:
    scene = pair({}, {}, job("x", "a", running=3), job("y", "a", running=2))
    assert given_up(scene, "x") == 3
    transaction = scene.evict("x-0", "x-1")
    assert given_up(scene, "x") == 1
    transaction.discard()
    assert given_up(scene, "x") == 3


def test_an_amount_of_gpu_memory_counts_among_victims_unless_strictly() -> None:
    holds = job("x", "a", running=1, gpus=0, annotations={"gpu-memory": "50"})
    for strict, left in ((False, 0.0), (True, 50.0)):
        scene = pair({}, {}, holds, strict=strict)
        assert scene.plugin._books._has(scene.job("x"))[2] == 50.0 - left


def test_equal_with_their_jobs_the_one_that_has_less_goes_first() -> None:
    scene = pair(
        {"created": YOUNG},
        {"created": OLD},
        BACKLOG,
        [job("has-a", "a", running=1), job("x", "a", pending=1, gpus=2)],
        [job("has-b", "b", running=2), job("y", "b", pending=1, gpus=1)],
        strict=True,
    )
    assert scene.first(("a", "x"), ("b", "y")) == "a"


def test_the_one_that_may_have_less_goes_first() -> None:
    """Nobody has or asks for anything of note; b was promised less."""
    scene = pair({"quota": 4, "created": OLD}, {"quota": 2, "created": YOUNG})
    assert scene.first("a", "b") == "b"


def test_what_is_not_comparable_is_left_to_age() -> None:
    more_gpus = {"quota": 4, "cpu": {"quota": 1000}, "memory": {"quota": 1}}
    more_cpu = {"quota": 2, "cpu": {"quota": 2000}, "memory": {"quota": 1}}
    for strict in (False, True):
        scene = pair({**more_gpus, "created": YOUNG}, {**more_cpu, "created": OLD}, strict=strict)
        one, other = (scene.session.hooks.queue_turn(scene.queue(name), -1, ())[0][:7] for name in "ab")
        assert one == other
    assert scene.first("a", "b") == "b"


def test_strictly_queues_of_one_age_are_not_distinguished() -> None:
    scene = pair({}, {}, strict=True)
    one, other = (scene.session.hooks.queue_turn(scene.queue(name), -1, ()) for name in "ab")
    assert not one < other
    assert not other < one


amounts = st.lists(st.sampled_from([0.0, 1.0, 2.0, float("inf")]), min_size=3, max_size=3)


@given(amounts, amounts)
def test_room_is_smaller_where_nothing_is_larger_and_something_smaller(
    one: list[float], other: list[float]
) -> None:
    less = all(a <= b for a, b in zip(one, other, strict=True)) and one != other
    more = all(a >= b for a, b in zip(one, other, strict=True)) and one != other
    assert (Room(one) < Room(other)) is less
    assert (Room(one) == Room(other)) is (not less and not more)
