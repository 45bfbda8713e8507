"""How answers combine: each rule by its sentence, and the points that name them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from maniple.framework import combine
from maniple.framework.combine import Vote
from maniple.framework.configuration.loading import KAI_SWITCHES, VOLCANO_SWITCHES, PluginOption
from maniple.framework.points import POINTS, Capacity, Hooks, Purpose
from tests.support import cluster_of, open_session


def says(*answers: Any) -> list[Callable[..., Any]]:
    return [lambda *_, answer=answer: answer for answer in answers]


def rows(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def test_order_goes_by_the_first_difference() -> None:
    key = combine.order([says(1), says(0, 5)], None)
    assert key(7) == (1, 0, 5)


def test_all_and_any() -> None:
    assert combine.all_of([says(True), says(True)], None)(1)
    assert not combine.all_of([says(True), says(False)], None)(1)
    assert combine.all_of([], None)(1)
    assert combine.any_of([says(False), says(True)], None)(1)
    assert not combine.any_of([], None)(1)


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], True),
        ([[Vote.ABSTAIN], [Vote.ABSTAIN]], True),
        ([[Vote.PERMIT, Vote.REJECT]], False),
        ([[Vote.ABSTAIN, Vote.PERMIT], [Vote.REJECT]], True),
        ([[Vote.ABSTAIN], [Vote.REJECT]], False),
        ([[Vote.REJECT], [Vote.PERMIT]], False),
    ],
)
def test_votes_are_settled_by_the_first_tier_that_permits(tiers: list[list[Vote]], expected: bool) -> None:
    assert combine.votes([says(*tier) for tier in tiers], True)(1) is expected


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], False),
        ([[], [True]], True),
        ([[True, False]], False),
        ([[True], [False]], True),
        ([[False], [True]], False),
    ],
)
def test_starving_is_for_the_first_tier_that_has_a_say(tiers: list[list[bool]], expected: bool) -> None:
    assert combine.first_tier_all([says(*tier) for tier in tiers], False)(1) is expected


def test_first_answer_first_plugin_and_the_least() -> None:
    assert combine.first([says(None, "a"), says("b")], None)(1) == "a"
    assert combine.first([says(None)], "none")(1) == "none"
    assert combine.first_registered([says(None), says("b")], "c")(1) is None
    assert combine.first_registered([], "c")(1) == "c"
    assert combine.minimum([says(5), says(3)], None)("queue", 8) == 3
    assert combine.minimum([says(9)], None)("queue", 8) == 8
    assert combine.minimum([], None)("queue", 8) == 8
    assert combine.minimum([says(-1)], None)("queue", 8) == 0


def test_everybody_is_told_and_lists_sums_and_mappings_grow() -> None:
    told: list[str] = []
    combine.call_all([[lambda x: told.append(f"a{x}")], [lambda x: told.append(f"b{x}")]], None)(1)
    assert told == ["a1", "b1"]
    assert combine.collected([says([1, 2]), says([3])], None)() == [1, 2, 3]
    assert combine.total([says(1.5), says(2)], 0.0)() == 3.5
    assert combine.merged([says({"a": 1, "b": 1}), says({"b": 2})], None)() == {"a": 1, "b": 2}


def test_the_first_tier_that_names_victims_wins() -> None:
    ask = combine.union_by_tier([says(rows(), rows()), says(rows(4, 2), rows(2, 3)), says(rows(9))], None)
    assert ask(rows()).tolist() == [2, 3, 4]


def test_partitions_split_every_part_so_far() -> None:
    def halves(whole: list[int]) -> list[list[int]]:
        return [whole[: len(whole) // 2], whole[len(whole) // 2 :]]

    assert combine.partitions([[halves], [halves]], None)([1, 2, 3, 4]) == [[1], [2], [3], [4]]
    assert combine.partitions([], None)([1, 2]) == [[1, 2]]


# -- victims: behaviour/volcano.md 3.3 and B8 ------------------------------------------------------------------------

CANDIDATES = rows(1, 2, 3)


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], []),
        ([[rows(3, 1), rows(1, 2)]], [1]),  # the intersection keeps the order of the earlier list
        ([[rows(3, 1), rows(1, 3)]], [3, 1]),
        ([[rows(1)], [rows(2, 3)]], [1]),  # the second tier is not asked
        ([[None, rows(2)]], [2]),  # abstaining is not refusing
        ([[None], [rows(2)]], [2]),
    ],
)
def test_victims_by_tier(tiers: list[list[Any]], expected: list[int]) -> None:
    for rule in (combine.victims, combine.victims_of_any_tier):
        assert rule([says(*tier) for tier in tiers], None)(0, CANDIDATES).tolist() == expected


@pytest.mark.parametrize("first", [[rows()], [rows(), rows(1)], [rows(1), rows(2)]])
def test_whom_a_tier_protects_a_later_one_gives_up_only_in_strict_mode(first: list[Any]) -> None:
    tiers = [says(*first), says(rows(3))]
    assert combine.victims_of_any_tier(tiers, None)(0, CANDIDATES).tolist() == [3]
    assert combine.victims(tiers, None)(0, CANDIDATES).tolist() == []


def test_an_intersection_that_ran_empty_starts_afresh_only_in_strict_mode() -> None:
    tiers = [says(rows(1), rows(2), rows(3))]
    assert combine.victims_of_any_tier(tiers, None)(0, CANDIDATES).tolist() == [3]
    assert combine.victims(tiers, None)(0, CANDIDATES).tolist() == []


# -- points ----------------------------------------------------------------------------------------------------------


def test_every_switch_of_a_point_is_one_of_the_file() -> None:
    switches = {point.switch for point in POINTS.values() if point.switch}
    assert switches <= set(VOLCANO_SWITCHES) | set(KAI_SWITCHES)
    # The first changes how drf, capacity and nodegroup work; no plugin of Volcano's answers the points of the others.
    assert set(VOLCANO_SWITCHES) - switches == {
        "enableHierarchy",
        "enabledClusterOrder",
        "enableReservedNodes",
        "enableTargetJob",
    }


def test_answers_of_nobody() -> None:
    hooks = Hooks({})
    assert hooks.job_ready(0)
    assert hooks.job_pipelined(0)
    assert hooks.job_enqueueable(0)
    assert not hooks.job_starving(0)
    assert not hooks.overused(0)
    assert hooks.preemptive(0, CANDIDATES)
    assert hooks.job_valid(0) is None
    assert hooks.preemptable(0, CANDIDATES).tolist() == []
    assert hooks.hyper_node_gradient_for_job(0, 3, Purpose.ALLOCATE) == [[3]]
    assert hooks.job_lack(0) == 0
    assert hooks.is_job_over_capacity(0, CANDIDATES) == Capacity()
    assert not hooks.can_reclaim_resources(0)
    assert not hooks.filters()
    assert not hooks.scorers()


class Opinionated:
    name = "opinionated"

    def overused(self, _queue: int) -> bool:
        return True

    def job_valid(self, _job: int) -> str:
        return "no"


def test_a_switch_turns_an_answer_off_and_points_without_one_are_always_asked() -> None:
    session = open_session(cluster_of())
    session.use([[(PluginOption("opinionated", {"enabledOverused": False}), Opinionated())]])
    assert not session.hooks.overused(0)
    assert session.hooks.job_valid(0) == "no"
    session.use([[(PluginOption("opinionated"), Opinionated())]])
    assert session.hooks.overused(0)
