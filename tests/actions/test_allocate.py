"""KAI's allocate: what a job gets in one cycle, rule by rule."""

from typing import Any

import pytest

from maniple.placement.engine import Placement
from tests.actions.allocate_scenes import (
    LEAVING,
    NOW,
    cycle,
    gang,
    node,
    placed,
    queue,
    reasons,
    waiting,
)
from tests.support import priority_class

ROOT = [queue("q")]
FIRST, SECOND = "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"


def leaving(name: str, on: str, gpus: int = 1) -> list[Any]:
    return gang(name, 1, gpus=gpus, on=[on], deleted=LEAVING)


# -- whole jobs -------------------------------------------------------------------------------------------------------


def test_a_gang_is_bound_whole() -> None:
    plan = cycle(ROOT, node("n1", 2), node("n2", 2), gang("a", 4))
    assert sorted(placed(plan).values()) == ["n1", "n1", "n2", "n2"]


def test_a_gang_that_does_not_fit_whole_leaves_its_room_to_the_next() -> None:
    plan = cycle(ROOT, node("n1", 3), gang("a", 4, created=FIRST), gang("b", 3, created=SECOND))
    assert set(placed(plan)) == {"b-0", "b-1", "b-2"}


def test_a_gang_with_too_few_pods_is_not_tried() -> None:
    plan = cycle(ROOT, node("n1", 8), gang("a", 2, minimum=3))
    assert placed(plan) == {}
    assert not any("Resources were" in one for one in reasons(plan, "a"))


def test_gated_pods_do_not_make_a_gang_ready() -> None:
    gated = gang("a", 2, minimum=3)
    gated += gang("a", 3, schedulingGates=[{"name": "wait"}])[3:]
    assert placed(cycle(ROOT, node("n1", 8), gated)) == {}


def test_jobs_of_a_queue_that_is_not_a_leaf_are_not_served() -> None:
    plan = cycle(queue("q"), queue("below", parent="q"), node("n1", 8), gang("a", 1))
    assert placed(plan) == {}


def test_the_more_important_job_comes_first() -> None:
    plan = cycle(
        ROOT,
        node("n1", 2),
        priority_class("high", 70),
        gang("a", 2, created=FIRST),
        gang("b", 2, created=SECOND, priority="high"),
    )
    assert set(placed(plan)) == {"b-0", "b-1"}


def test_a_job_over_its_queue_s_limit_is_told_so_and_not_looked_at() -> None:
    plan = cycle(queue("q", limit=1), node("n1", 8), gang("a", 2))
    assert placed(plan) == {}
    (reason,) = reasons(plan, "a")
    assert reason.startswith("q has reached its limit of GPUs")


# -- elastic jobs -----------------------------------------------------------------------------------------------------


def test_an_elastic_job_gets_its_minimum_at_once_and_then_one_task_a_turn() -> None:
    """Both queues grow in turns, so that neither is left behind."""
    plan = cycle(
        queue("q"),
        queue("r"),
        node("n1", 6),
        gang("a", 6, minimum=2, created=FIRST),
        gang("b", 6, minimum=2, queue="r", created=SECOND),
    )
    names = [name[0] for name in placed(plan)]
    assert names.count("a") == names.count("b") == 3


def test_extras_that_find_no_place_do_not_undo_the_minimum() -> None:
    plan = cycle(ROOT, node("n1", 3), gang("a", 5, minimum=2))
    assert len(placed(plan)) == 3
    (reason,) = reasons(plan, "a")
    assert reason.startswith(
        "Resources were not found for pod default/a-3 due to: no nodes with enough resources"
    )


def test_a_job_is_whole_before_another_grows() -> None:
    plan = cycle(
        ROOT,
        node("n1", 3),
        gang("a", 3, minimum=1, created=FIRST),
        gang("b", 1, created=SECOND),
    )
    assert set(placed(plan)) == {"a-0", "b-0", "a-1"}


# -- waiting for releases ---------------------------------------------------------------------------------------------


def test_a_gang_of_which_part_has_to_wait_waits_as_a_whole() -> None:
    plan = cycle(ROOT, node("n1", 4), leaving("old", "n1"), gang("a", 4))
    assert placed(plan) == {}
    assert set(waiting(plan)) == {"a-0", "a-1", "a-2", "a-3"}


def test_extras_that_wait_do_not_hold_up_a_job_that_is_whole() -> None:
    plan = cycle(ROOT, node("n1", 2), leaving("old", "n1"), gang("a", 2, minimum=1))
    assert placed(plan) == {"a-0": "n1"}
    assert waiting(plan) == {"a-1": "n1"}


def test_a_node_where_a_task_need_not_wait_is_preferred() -> None:
    plan = cycle(ROOT, node("n1", 1), node("n2", 8), leaving("old", "n1"), gang("a", 1))
    assert placed(plan) == {"a-0": "n2"}


def test_places_that_somebody_claimed_are_not_given_twice() -> None:
    plan = cycle(
        ROOT, node("n1", 1), leaving("old", "n1"), gang("a", 1, created=FIRST), gang("b", 1, created=SECOND)
    )
    assert waiting(plan) == {"a-0": "n1"}
    assert plan.tasks["default/b-0"].status == "Pending"


# -- when a job started -----------------------------------------------------------------------------------------------


def test_a_job_s_start_is_noted() -> None:
    plan = cycle(ROOT, node("n1", 2), gang("a", 2))
    assert list(plan.started.values()) == [NOW]


def test_a_job_that_only_claims_has_not_started() -> None:
    plan = cycle(ROOT, node("n1", 1), leaving("old", "n1"), gang("a", 1))
    assert waiting(plan) == {"a-0": "n1"}
    assert plan.started == {}


def test_a_job_that_grows_has_started_before() -> None:
    plan = cycle(ROOT, node("n1", 2), gang("a", 2, minimum=1, on=["n1"]))
    assert placed(plan) == {"a-1": "n1"}
    assert plan.started == {}


# -- shared devices ---------------------------------------------------------------------------------------------------


def test_parts_of_devices_share_one_where_they_can() -> None:
    half: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}, "gpus": 0}
    plan = cycle(ROOT, node("n1", 2), gang("a", 3, **half))
    groups = [plan.tasks[f"default/a-{number}"].gpu_groups for number in range(3)]
    assert groups[0] == groups[1]
    assert groups[2] != groups[0]
    assert all(len(one) == 1 for one in groups)


def test_a_gang_of_parts_is_placed_whole_or_not_at_all() -> None:
    most: dict[str, Any] = {"annotations": {"gpu-fraction": "0.6"}, "gpus": 0}
    plan = cycle(ROOT, node("n1", 2), gang("a", 3, created=FIRST, **most), gang("b", 2, created=SECOND))
    assert set(placed(plan)) == {"b-0", "b-1"}


# -- reasons ----------------------------------------------------------------------------------------------------------


def test_a_single_task_is_told_what_nodes_lack() -> None:
    full = gang("old", 2, on=["n1", "n2"], created=FIRST)
    plan = cycle(ROOT, node("n1", 1), node("n2", 1), full, gang("a", 1, created=SECOND))
    (reason,) = reasons(plan, "a")
    assert reason.startswith(
        "Resources were not found for pod default/a-0 due to: no nodes with enough resources were"
    )
    assert plan.tasks["default/a-0"].reason.startswith("no nodes with enough resources were found: 2 ")


def test_what_no_node_could_ever_give_is_the_reason() -> None:
    plan = cycle(ROOT, node("n1", 1), gang("a", 1, gpus=2))
    (reason,) = reasons(plan, "a")
    assert reason.startswith(
        "Resources were not found for pod default/a-0 due to: Scheduling conditions were not met"
    )


def test_a_gang_is_told_how_many_places_there_were() -> None:
    (reason,) = reasons(cycle(ROOT, node("n1", 3), gang("a", 4)), "a")
    assert reason.startswith("Resources were found for 3 pods while 4 are required for gang scheduling. ")
    assert (
        "Additional pods cannot be scheduled due to: no nodes with enough resources were found: 1 " in reason
    )


def test_a_sub_group_is_told_by_name() -> None:
    groups = [{"name": "head", "minMember": 1}, {"name": "work", "minMember": 3}]
    job = gang("a", 4, groups=groups, roles=["head", "work", "work", "work"])
    (reason,) = reasons(cycle(ROOT, node("n1", 3), job), "a")
    assert reason.startswith(
        "Resources were found for 2 pods from all sub-groups while sub-group work requires 3 pods for gang scheduling. "
    )


def test_a_job_that_was_served_in_the_end_has_no_reasons() -> None:
    assert reasons(cycle(ROOT, node("n1", 4), gang("a", 4)), "a") == []


@pytest.mark.parametrize("strict", [False, True])
def test_hopeless_gangs_of_a_kind_cost_one_look(monkeypatch: pytest.MonkeyPatch, strict: bool) -> None:
    looks = []
    fill = Placement.fill

    def counted(self: Placement, *arguments: Any) -> Any:
        looks.append(arguments)
        return fill(self, *arguments)

    monkeypatch.setattr(Placement, "fill", counted)
    jobs = [gang(f"job{number}", 4) for number in range(6)]
    plan = cycle(ROOT, node("n1", 0), node("n2", 3), jobs, strict=strict)
    assert placed(plan) == {}
    assert len(looks) == 2  # three of the first gang's tasks had a place, and the fourth had none
    assert {reasons(plan, f"job{number}")[0] for number in range(6)} == {reasons(plan, "job0")[0]}
