"""allocate: what a job gets in one cycle, rule by rule."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from tests.actions.volcano.scenes import GANG, PLAIN, bound, cycle, on_node
from tests.support import group, node, pod, priority_class, queue

ONE = {"cpu": "1", "memory": "1Gi"}
LEAVING = "2026-01-01T00:00:00Z"


def tasks(job: str, count: int, requests: dict[str, str] | None = None, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", requests or ONE, group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def test_a_gang_is_bound_whole() -> None:
    plan = cycle(node("n1", {"cpu": "4"}), queue("default"), group("a", 3), *tasks("a", 3))
    assert bound(plan) == {"a-0", "a-1", "a-2"}
    assert plan.jobs["default/a"].ready == 3


def test_a_gang_that_does_not_fit_whole_takes_nothing_and_says_why() -> None:
    plan = cycle(node("n1", {"cpu": "2"}), queue("default"), group("a", 3), *tasks("a", 3))
    assert plan.binds == {}
    assert plan.nodes["n1"].used == {}
    assert plan.jobs["default/a"].phase == "Inqueue"
    assert "1 Insufficient cpu" in plan.tasks["default/a-2"].reason


def test_every_waiting_task_of_a_tried_job_has_a_reason() -> None:
    plan = cycle(node("n1", {"cpu": "2"}), queue("default"), group("a", 3), *tasks("a", 5))
    assert all(outcome.reason for outcome in plan.tasks.values() if outcome.status == "Pending")


def test_a_gang_that_failed_leaves_its_room_to_the_next() -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        queue("default"),
        group("a", 3, created="2026-01-01T00:00:00Z"),
        group("b", 2, created="2026-01-02T00:00:00Z"),
        *tasks("a", 3),
        *tasks("b", 2),
    )
    assert bound(plan) == {"b-0", "b-1"}


def test_extras_of_elastic_jobs_are_handed_out_in_turns() -> None:
    """Both reach their minimum first; then the room that is left is shared instead of going to the first."""
    plan = cycle(
        node("n1", {"cpu": "6"}),
        queue("default"),
        group("a", 1, created="2026-01-01T00:00:00Z"),
        group("b", 1, created="2026-01-02T00:00:00Z"),
        *tasks("a", 6),
        *tasks("b", 6),
    )
    assert plan.jobs["default/a"].ready == plan.jobs["default/b"].ready == 3


def test_without_gang_a_job_takes_what_it_can_get() -> None:
    plugins = tuple(plugin for plugin in PLAIN if plugin is not GANG)
    plan = cycle(node("n1", {"cpu": "2"}), queue("default"), group("a", 3), *tasks("a", 3), plugins=plugins)
    assert len(plan.binds) == 2


def test_the_more_important_job_is_served_first() -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        queue("default"),
        priority_class("high", 100),
        group("a", 2, created="2026-01-01T00:00:00Z"),
        group("b", 2, created="2026-01-02T00:00:00Z", priorityClassName="high"),
        *tasks("a", 2),
        *tasks("b", 2),
    )
    assert bound(plan) == {"b-0", "b-1"}


def test_equal_queues_take_turns() -> None:
    plan = cycle(
        node("n1", {"cpu": "4"}),
        queue("q1"),
        queue("q2"),
        *(group(f"a{i}", 1, queue="q1") for i in range(4)),
        *(group(f"b{i}", 1, queue="q2") for i in range(4)),
        *(pod(f"a{i}", ONE, group=f"a{i}") for i in range(4)),
        *(pod(f"b{i}", ONE, group=f"b{i}") for i in range(4)),
    )
    assert {name[0] for name in bound(plan)} == {"a", "b"}
    assert len(plan.binds) == 4
    assert plan.queues["q1"].allocated["cpu"] == plan.queues["q2"].allocated["cpu"] == 2000


# -- roles -----------------------------------------------------------------------------------------------------------


def test_each_role_reaches_its_own_minimum() -> None:
    plan = cycle(
        node("n1", {"cpu": "3"}),
        queue("default"),
        group("a", 3, minTaskMember={"ps": 1, "worker": 2}),
        pod("a-ps", ONE, group="a", role="ps"),
        *(pod(f"a-w{i}", ONE, group="a", role="worker") for i in range(4)),
    )
    assert len(plan.binds) == 3
    assert "a-ps" in bound(plan)


def test_a_job_whose_role_lacks_pods_is_not_tried() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a", 2, minTaskMember={"ps": 1, "worker": 1}),
        *(pod(f"a-w{i}", ONE, group="a", role="worker") for i in range(3)),
    )
    assert plan.binds == {}
    assert plan.jobs["default/a"].reasons


def test_a_failed_role_is_not_tried_task_by_task_but_others_are() -> None:
    plan = cycle(
        node("n1", {"cpu": "4"}),
        queue("default"),
        group("a", 2),
        *(pod(f"a-big{i}", {"cpu": "9"}, group="a", role="big", uid=f"1{i}") for i in range(3)),
        *(pod(f"a-small{i}", ONE, group="a", role="small", uid=f"2{i}") for i in range(2)),
    )
    assert bound(plan) == {"a-small0", "a-small1"}
    assert "Insufficient cpu" in plan.tasks["default/a-big0"].reason


def test_a_node_that_refused_a_role_is_not_asked_again_for_it() -> None:
    """Volcano's error cache: tasks of one role count as alike even where they are not."""
    objects = (
        node("n1", {"cpu": "2"}),
        node("n2", {"cpu": "8"}),
        queue("default"),
        group("a", 2),
        pod("a-0", {"cpu": "4"}, group="a", role="w", uid="0"),
        pod("a-1", {"cpu": "1"}, group="a", role="w", uid="1"),
        pod("a-2", {"cpu": "1"}, group="a", role="other", uid="2"),
    )
    emptiest = (*PLAIN[:-1], {"name": "nodeorder", "arguments": {"balancedresource.weight": 0}})
    off = [{"name": "allocate", "arguments": {"predicateErrorCacheEnable": False}}]
    assert cycle(*objects, plugins=emptiest).binds["default/a-1"] == "n2"
    assert cycle(*objects, plugins=emptiest, configurations=off).binds["default/a-1"] == "n1"


# -- releasing resources, nominations, shards ------------------------------------------------------------------------


def test_a_gang_waits_on_resources_that_are_being_released() -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        queue("default"),
        group("old", 1),
        pod("old-0", {"cpu": "2"}, group="old", on="n1", deleted=LEAVING),
        group("a", 2),
        *tasks("a", 2),
    )
    assert plan.binds == {}
    assert plan.pipelined == {"default/a-0": "n1", "default/a-1": "n1"}


def test_idle_nodes_come_before_releasing_ones() -> None:
    plan = cycle(
        node("n1", {"cpu": "64"}),
        node("n2", {"cpu": "1"}),
        queue("default"),
        group("old", 1),
        pod("old-0", {"cpu": "64"}, group="old", on="n1", deleted=LEAVING),
        group("a", 1),
        *tasks("a", 1),
    )
    assert plan.binds == {"default/a-0": "n2"}


def test_what_is_pipelined_for_one_job_is_not_given_to_another() -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        queue("default"),
        group("old", 1),
        pod("old-0", {"cpu": "2"}, group="old", on="n1", deleted=LEAVING),
        group("a", 2, created="2026-01-01T00:00:00Z"),
        group("b", 1, created="2026-01-02T00:00:00Z"),
        *tasks("a", 2),
        *tasks("b", 1),
    )
    assert set(plan.pipelined) == {"default/a-0", "default/a-1"}
    assert "Insufficient cpu" in plan.tasks["default/b-0"].reason


def test_a_nominated_node_is_tried_first_and_then_the_others() -> None:
    nodes = (node("n1", {"cpu": "64"}), node("n2", {"cpu": "2"}))
    nominated = {"nominatedNodeName": "n2"}
    fits = cycle(*nodes, queue("default"), group("a", 1), pod("a-0", ONE, group="a", status=nominated))
    assert fits.binds == {"default/a-0": "n2"}
    too_big = cycle(
        *nodes, queue("default"), group("a", 1), pod("a-0", {"cpu": "4"}, group="a", status=nominated)
    )
    assert too_big.binds == {"default/a-0": "n1"}


@pytest.mark.parametrize(
    ("mode", "expected"), [("hard", {"n1"}), ("soft", {"n1", "n2"}), ("none", {"n1", "n2"})]
)
def test_a_shard_keeps_to_its_own_nodes_or_prefers_them(mode: str, expected: set[str]) -> None:
    plan = cycle(
        node("n1", {"cpu": "2"}),
        node("n2", {"cpu": "64"}),
        queue("default"),
        *(group(f"a{i}", 1) for i in range(4)),
        *(pod(f"a{i}", ONE, group=f"a{i}") for i in range(4)),
        options={"shard": {"mode": mode, "name": "s", "nodes": ["n1"]}},
    )
    assert set(plan.binds.values()) == expected or mode == "none"
    if mode == "soft":
        assert len(on_node(plan, "n1")) == 2
    if mode == "hard":
        assert "node isn't in scheduler node shard" in "".join(t.reason for t in plan.tasks.values())


# -- admission -------------------------------------------------------------------------------------------------------


def test_a_job_not_yet_admitted_waits_for_enqueue_if_that_is_configured() -> None:
    objects = (
        node("n1"),
        queue("default"),
        group("a", 1, phase="Pending", minResources={"cpu": "999"}),
        *tasks("a", 1),
    )
    refused = cycle(*objects, actions="enqueue, allocate")
    assert refused.binds == {}
    assert refused.jobs["default/a"].phase == "Pending"
    assert refused.jobs["default/a"].reasons
    assert bound(cycle(*objects, actions="allocate")) == {"a-0"}


def test_gated_tasks_are_left_alone() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a", 1),
        *tasks("a", 1, schedulingGates=[{"name": "example.com/wait"}]),
    )
    assert plan.binds == {}
    assert plan.tasks["default/a-0"].status == "Gated"


def test_jobs_of_a_queue_that_does_not_exist_are_not_served() -> None:
    plan = cycle(node("n1"), queue("default"), group("a", 1, queue="nowhere"), *tasks("a", 1))
    assert plan.binds == {}
    assert "nowhere" in plan.tasks["default/a-0"].reason
