"""backfill, rule by rule: which tasks, in which order, and what is not looked at."""

from typing import Any

import pytest

from maniple.framework.reasons import Reason
from maniple.objects.meta import Object
from tests.actions.volcano.answers import planned
from tests.actions.volcano.scenes import GANG, bound, cycle
from tests.networks import hard, rack
from tests.support import group, node, pod, priority_class, queue

FILTERS = (GANG, {"name": "predicates"})
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def idle(job: str, count: int = 1, **fields: Any) -> list[Object]:
    """Tasks without requests."""
    return [pod(f"{job}-{i}", group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def test_only_tasks_that_ask_for_nothing_are_placed() -> None:
    objects = [node("n1"), queue("default"), group("a"), *idle("a"), pod("a-9", {"cpu": "1"}, group="a")]
    assert bound(cycle(*objects, actions="backfill", plugins=FILTERS)) == {"a-0"}
    assert bound(cycle(*objects, actions="allocate", plugins=FILTERS)) == {"a-9"}


def test_jobs_that_wait_for_admission_or_are_not_valid_and_gated_tasks_are_left_alone() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("waits", phase="Pending"),
        *idle("waits"),
        group("invalid", 2),
        *idle("invalid"),
        group("gated"),
        *idle("gated", schedulingGates=[{"name": "example.com/wait"}]),
        actions="backfill",
        plugins=FILTERS,
    )
    assert plan.binds == {}


def test_a_node_that_owes_resources_takes_tasks_that_ask_for_none() -> None:
    plan = cycle(
        node("n1", {"cpu": "1"}),
        queue("default"),
        pod("big", {"cpu": "4"}, on="n1"),
        group("a"),
        *idle("a"),
        actions="backfill",
        plugins=FILTERS,
    )
    assert plan.binds == {"default/a-0": "n1"}


def test_neither_what_a_queue_has_used_up_nor_what_it_may_take_is_looked_at() -> None:
    objects = [node("n1"), queue("default"), group("a"), *idle("a")]
    plan = planned(
        objects,
        "gang",
        "proportion",
        actions="backfill",
        overused=lambda *_: True,
        allocatable=lambda *_: 0,
    )
    assert plan.binds == {"default/a-0": "n1"}


def test_places_for_pods_are_counted_without_predicates_too() -> None:
    objects = [node("n1", {"pods": "1"}), queue("default"), group("a"), *idle("a", 2)]
    plan = cycle(*objects, actions="backfill", plugins=(GANG,))
    assert len(plan.binds) == 1
    assert plan.tasks["default/a-1"].reason == "0/1 nodes are unavailable: 1 Insufficient pods"


@pytest.mark.parametrize(("compat", "count"), [("better", 0), ("strict", 1)])
def test_a_queue_that_is_not_open_gets_nothing_except_in_the_original(compat: str, count: int) -> None:
    objects = [node("n1"), queue("default", state="Closed"), group("a"), *idle("a")]
    plan = cycle(*objects, actions="backfill", plugins=FILTERS, compat=compat)
    assert len(plan.binds) == count
    assert ("is not open" in plan.tasks["default/a-0"].reason) == (count == 0)


@pytest.mark.parametrize(("compat", "count"), [("better", 0), ("strict", 1)])
@pytest.mark.parametrize("roles", [{}, {"minTaskMember": {"": 2}}])
def test_a_gang_for_which_there_are_too_few_places_gets_none_except_in_the_original(
    compat: str, count: int, roles: dict[str, Any]
) -> None:
    """One place for a pod, and two that have to run together."""
    objects = [node("n1", {"pods": "1"}), queue("default"), group("a", 2, **roles), *idle("a", 2)]
    plan = cycle(*objects, actions="backfill", plugins=FILTERS, compat=compat)
    assert len(plan.binds) == count
    if compat == "better":
        assert "the gang needs 2" in plan.tasks["default/a-0"].reason


@pytest.mark.parametrize(("compat", "spread"), [("better", {"b1"}), ("strict", {"a1", "b1"})])
def test_a_hard_topology_is_kept_except_in_the_original(compat: str, spread: set[str]) -> None:
    """Rack a has one place left, rack b two."""
    objects = [
        node("a1", {"pods": "1"}),
        node("b1", {"pods": "2"}),
        rack("a", "a1"),
        rack("b", "b1"),
        queue("default"),
        group("g", 2, networkTopology=hard(1)),
        *idle("g", 2),
    ]
    plugins = (*FILTERS, {"name": "network-topology-aware"})
    plan = cycle(*objects, actions="backfill", plugins=plugins, compat=compat)
    assert set(plan.binds.values()) == spread


@pytest.mark.parametrize(("places", "bound"), [(2, 0), (3, 2)])
def test_a_gang_of_which_a_part_is_on_nodes_gets_all_that_it_lacks_or_nothing(
    places: int, bound: int
) -> None:
    runs = pod("a-9", {"cpu": "1"}, group="a", on="n1", uid="a-9")
    objects = [node("n1", {"pods": str(places)}), queue("default"), group("a", 3), *idle("a", 2), runs]
    assert len(cycle(*objects, actions="backfill", plugins=FILTERS).binds) == bound


@pytest.mark.parametrize(("compat", "bound"), [("better", {}), ("strict", {"default/a-0": "n1"})])
def test_a_task_behind_a_gate_that_asks_for_nothing_counts_for_its_gang_in_the_original(
    compat: str, bound: dict[str, str]
) -> None:
    held = pod("held", group="a", uid="held", schedulingGates=[{"name": "x"}])
    objects = [node("n1"), queue("default"), group("a", 2), *idle("a"), held]
    assert planned(objects, "gang", actions="backfill", compat=compat).binds == bound


@pytest.mark.parametrize(("compat", "bound"), [("better", 1), ("strict", 2)])
def test_what_a_pod_avoids_that_was_placed_just_now_is_not_seen_in_the_original(
    compat: str, bound: int
) -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    objects = [
        node("n1", labels={"kubernetes.io/hostname": "n1"}),
        queue("default"),
        group("first", created=OLD),
        pod("shy", group="first", affinity=apart),
        group("second", created=NEW),
        pod("loud", group="second", labels={"app": "x"}),
    ]
    assert len(planned(objects, "gang", "predicates", actions="backfill", compat=compat).binds) == bound


def test_a_queue_is_served_to_the_end_before_the_next() -> None:
    """There are two places; the older queue's jobs get both although queues would take turns elsewhere."""
    plan = cycle(
        node("n1", {"pods": "2"}),
        queue("q1", created=OLD),
        queue("q2", created=NEW),
        *(group(name, queue="q1") for name in ("a", "b")),
        group("c", queue="q2"),
        *(one for name in ("a", "b", "c") for one in idle(name)),
        actions="backfill",
        plugins=FILTERS,
    )
    assert bound(plan) == {"a-0", "b-0"}


def test_jobs_go_by_job_order_and_tasks_by_task_order() -> None:
    objects = [
        node("n1", {"pods": "2"}),
        queue("default"),
        priority_class("high", 10),
        group("a", created=OLD),
        *idle("a"),
        group("b", created=NEW, priorityClassName="high"),
        *idle("b", 2),
        pod("b-2", group="b", priority=5),
    ]
    plan = cycle(*objects, actions="backfill", plugins=({"name": "priority"}, *FILTERS))
    assert list(plan.binds) == ["default/b-2", "default/b-0"]


def test_what_keeps_a_task_from_being_considered_is_told() -> None:
    objects = [node("n1"), queue("default"), group("a"), *idle("a")]
    plan = planned(objects, "gang", actions="backfill", pre_predicate=lambda *_: Reason("no such volume"))
    assert plan.binds == {}
    assert plan.tasks["default/a-0"].reason == "no such volume"


def crowded(*more: Object) -> list[Object]:
    return [
        node("n1", {"pods": "1"}),
        queue("default"),
        priority_class("high", 10),
        group("old", 0, phase="Running"),
        *idle("old", on="n1"),
        group("new", priorityClassName="high"),
        *idle("new"),
        *more,
    ]


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_tasks_that_wait_for_a_place_are_placed_anew(compat: str) -> None:
    """preempt has the task wait for the place of another; since then a place has come up elsewhere."""
    plugins = ({"name": "priority"}, *FILTERS)
    alone = cycle(*crowded(), actions="preempt", plugins=plugins, compat=compat)
    assert alone.pipelined == {"default/new-0": "n1"}
    plan = cycle(*crowded(node("n2")), actions="preempt, backfill", plugins=plugins, compat=compat)
    assert plan.pipelined == {}
    assert plan.binds == {"default/new-0": "n2"}


@pytest.mark.parametrize("compat", ["better", "strict"])
def test_a_place_that_is_still_being_left_is_waited_for(compat: str) -> None:
    """A node takes no more pods than it has places, and one that is on its way out has its place until it is gone."""
    plugins = ({"name": "priority"}, *FILTERS)
    plan = cycle(*crowded(), actions="preempt, backfill", plugins=plugins, compat=compat)
    assert plan.evictions == ["default/old-0"]
    assert plan.binds == {}
    assert plan.pipelined == {"default/new-0": "n1"}
    assert plan.tasks["default/new-0"].status == "Pipelined"
