"""Checks before a search: whether there could be enough at all."""

import pytest

from maniple.actions.searching.feasible import enough_in_total
from tests.actions.allocate_scenes import Bench, gang, node, queue

# Two nodes with 8 CPUs each, of which 6 are in use.
PARTS = [
    queue("q"),
    *(node(name, 2, extra={"cpu": "8"}) for name in ("n1", "n2")),
    gang("old", 2, requests=[{"cpu": "5"}, {"cpu": "1"}], on=["n1", "n2"]),
]


@pytest.mark.parametrize(("each", "enough"), [("5", True), ("5001m", False)])
def test_moving_pods_frees_nothing_in_total(each: str, enough: bool) -> None:
    bench = Bench(PARTS, gang("a", 2, requests=[{"cpu": each}] * 2))
    assert enough_in_total(bench.session, bench.rows("a-0", "a-1")) is enough


def test_what_is_being_released_counts_and_what_is_claimed_does_not() -> None:
    bench = Bench(PARTS, gang("a", 1, requests=[{"cpu": "11"}]), gang("b", 1, requests=[{"cpu": "2"}]))
    assert not enough_in_total(bench.session, bench.rows("a-0"))
    bench.evict("old-1")
    assert enough_in_total(bench.session, bench.rows("a-0"))
    assert bench.place("b", real=False)
    assert not enough_in_total(bench.session, bench.rows("a-0"))


@pytest.mark.parametrize(("asked", "enough"), [("10", True), ("10001m", False)])
def test_pods_that_are_evicted_on_trial_count_as_if_they_were_not(asked: str, enough: bool) -> None:
    little = gang("little", 1, requests=[{"cpu": "9m"}], on=["n1"])
    bench = Bench(PARTS, little, gang("a", 1, requests=[{"cpu": asked}]))
    rows, evicted = bench.rows("a-0"), bench.rows("old-0", "little-0")
    assert enough_in_total(bench.session, rows) is enough
    bench.evict("old-0", "little-0")
    assert enough_in_total(bench.session, rows)
    assert enough_in_total(bench.session, rows, evicted) is enough


def test_what_pods_have_that_request_next_to_nothing_counts_as_free() -> None:
    little = gang("little", 1, requests=[{"cpu": "9m"}], on=["n1"])
    bench = Bench(PARTS, little, gang("a", 1, requests=[{"cpu": "10"}]))
    assert enough_in_total(bench.session, bench.rows("a-0"))


def test_gpus_count_unless_devices_are_shared_since_parts_can_be_moved_together() -> None:
    part = gang("b", 1, requests=[{"cpu": "1"}], annotations={"gpu-fraction": "0.5"})
    bench = Bench(PARTS, gang("a", 1, requests=[{"cpu": "1", "nvidia.com/gpu": "9"}]), part)
    assert not enough_in_total(bench.session, bench.rows("a-0"))
    assert enough_in_total(bench.session, bench.rows("a-0", "b-0"))
