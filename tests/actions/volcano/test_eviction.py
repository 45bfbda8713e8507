"""reclaim and preempt: which tasks are evicted, for which jobs, and that no eviction is in vain."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.scenes import cycle
from tests.support import group, node, pod, priority_class, queue

ONE = {"cpu": "1", "memory": "1Gi"}
FIRST: tuple[dict[str, Any], ...] = ({"name": "priority"}, {"name": "gang"}, {"name": "conformance"})
SECOND: tuple[dict[str, Any], ...] = (
    {"name": "drf"},
    {"name": "predicates"},
    {"name": "proportion"},
    {"name": "nodeorder"},
)


def evict(*objects: Object, actions: str, compat: str = "better") -> Plan:
    return cycle(
        *objects, actions=actions, tiers=[{"plugins": list(FIRST)}, {"plugins": list(SECOND)}], compat=compat
    )


def running(job: str, count: int, on: str, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", ONE, group=job, uid=f"{job}-{i}", on=on, **fields) for i in range(count)]


def waiting(job: str, count: int, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", ONE, group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def victims(plan: Plan) -> dict[str, int]:
    """How many tasks each job loses."""
    return dict(Counter(name.removeprefix("default/").rpartition("-")[0] for name in plan.evictions))


def in_two_queues(minimum: int, **fields: Any) -> list[Object]:
    """Four nodes full of jobs of four tasks in one queue; a gang of four in another."""
    jobs = [f"old{i}" for i in range(4)]
    return [
        *(node(f"n{i}", {"cpu": "4"}) for i in range(4)),
        queue("mine"),
        queue("theirs"),
        *(
            group(job, minimum, queue="theirs", phase="Running", created=f"2026-01-0{i + 1}T00:00:00Z")
            for i, job in enumerate(jobs)
        ),
        *(one for i, job in enumerate(jobs) for one in running(job, 4, f"n{i}")),
        group("new", 4, queue="mine"),
        *waiting("new", 4, **fields),
    ]


def test_a_starving_queue_gets_room_for_its_whole_gang() -> None:
    plan = evict(*in_two_queues(minimum=1), actions="allocate, reclaim")
    assert len(plan.pipelined) == 4
    assert len(plan.evictions) == 4
    assert plan.binds == {}


def test_surplus_goes_before_whole_gangs() -> None:
    loose = [
        group("loose", 1, queue="theirs", phase="Running"),
        node("n9", {"cpu": "4"}),
        *running("loose", 4, "n9"),
    ]
    three = [one for one in in_two_queues(minimum=4) if not one.metadata.name.startswith("new")]
    plan = evict(
        *three, *loose, group("new", 3, queue="mine"), *waiting("new", 3), actions="allocate, reclaim"
    )
    assert victims(plan) == {"loose": 3}


def test_a_gang_is_lost_whole_and_surplus_is_spared_where_the_gang_gives_enough() -> None:
    loose = [
        group("loose", 1, queue="theirs", phase="Running"),
        node("n9", {"cpu": "4"}),
        *running("loose", 4, "n9"),
    ]
    assert victims(evict(*in_two_queues(minimum=4), actions="allocate, reclaim")) == {
        "old3": 4
    }  # the youngest
    plan = evict(*in_two_queues(minimum=4), *loose, actions="allocate, reclaim")
    assert list(victims(plan).values()) == [4]


def test_the_original_breaks_gangs_where_it_is_asked_to_be_strict() -> None:
    plan = evict(*in_two_queues(minimum=4), actions="allocate, reclaim", compat="strict")
    assert len(plan.evictions) == 4
    assert set(victims(plan)) == {"old0"} or len(victims(plan)) > 1


def test_a_queue_is_not_pushed_below_what_it_deserves() -> None:
    """Two queues deserve half each: a third gang of four would take more than that."""
    objects = in_two_queues(minimum=1)
    for name in ("new2", "new3"):
        objects += [group(name, 4, queue="mine"), *waiting(name, 4)]
    plan = evict(*objects, actions="allocate, reclaim")
    assert len(plan.pipelined) == 8
    assert len(plan.evictions) == 8


def test_nobody_is_evicted_for_a_gang_that_would_not_fit_anyway() -> None:
    objects = [one for one in in_two_queues(minimum=1) if one.metadata.name != "new"]
    plan = evict(*objects, group("new", 9, queue="mine"), *waiting("new", 9)[4:], actions="allocate, reclaim")
    assert plan.evictions == []
    assert plan.pipelined == {}
    assert any("reclaim" in reason for reason in plan.jobs["default/new"].reasons)


def test_room_that_is_being_released_is_used_before_anybody_is_evicted() -> None:
    leaving = running("gone", 4, "n9", deleted="2026-01-01T00:00:00Z")
    objects = [
        *in_two_queues(minimum=1),
        node("n9", {"cpu": "4"}),
        group("gone", 1, queue="theirs"),
        *leaving,
    ]
    plan = evict(*objects, actions="reclaim")
    assert plan.evictions == []
    assert set(plan.pipelined.values()) == {"n9"}


@pytest.mark.parametrize(
    "protected",
    [{"annotations": {"volcano.sh/preemptable": "false"}}, {"priorityClassName": "system-node-critical"}],
)
def test_protected_tasks_are_never_victims(protected: dict[str, Any]) -> None:
    plan = evict(
        node("n1", {"cpu": "2"}),
        queue("mine"),
        queue("theirs"),
        group("old", 1, queue="theirs", phase="Running"),
        *running("old", 2, "n1", **protected),
        group("new", 1, queue="mine"),
        *waiting("new", 1),
        actions="allocate, reclaim",
    )
    assert plan.evictions == []


def test_queues_that_do_not_let_go_keep_what_they_have() -> None:
    objects = [one for one in in_two_queues(minimum=1) if one.metadata.name != "theirs"]
    plan = evict(*objects, queue("theirs", reclaimable=False), actions="allocate, reclaim")
    assert plan.evictions == []


def test_a_pod_that_must_not_preempt_does_not_ask() -> None:
    plan = evict(*in_two_queues(minimum=1, preemptionPolicy="Never"), actions="allocate, reclaim, preempt")
    assert plan.evictions == []


# -- preempt ---------------------------------------------------------------------------------------------------------


SIZE = {1: {"cpu": "1", "memory": "1Gi"}, 4: {"cpu": "4", "memory": "4Gi"}}


def in_one_queue(minimum: int) -> list[Object]:
    return [
        *(node(f"n{i}", {"cpu": "4"}) for i in range(4)),
        queue("default"),
        priority_class("low", 10),
        priority_class("high", 100),
        *(
            group(f"low{i}", minimum, phase="Running", priorityClassName="low", minResources=SIZE[minimum])
            for i in range(4)
        ),
        *(one for i in range(4) for one in running(f"low{i}", 4, f"n{i}", priority=10)),
    ]


def test_the_more_important_gang_takes_room_from_the_less_important() -> None:
    objects = [
        *in_one_queue(minimum=4),
        group("top", 4, priorityClassName="high"),
        *waiting("top", 4, priority=100),
    ]
    plan = evict(*objects, actions="allocate, preempt")
    assert len(plan.pipelined) == 4
    assert list(victims(plan).values()) == [4]


@pytest.mark.parametrize(("compat", "phase"), [("better", "Inqueue"), ("strict", "Pending")])
def test_a_job_that_can_preempt_is_let_in_at_the_door_of_a_full_queue(compat: str, phase: str) -> None:
    top = group("top", 4, phase="Pending", priorityClassName="high", minResources=SIZE[4])
    peer = group("peer", 4, phase="Pending", priorityClassName="low", minResources=SIZE[4])
    objects = [*in_one_queue(minimum=4), top, peer, *waiting("top", 4, priority=100), *waiting("peer", 4)]
    plan = evict(*objects, actions="enqueue, allocate, preempt", compat=compat)
    assert plan.jobs["default/top"].phase == phase
    assert plan.jobs["default/peer"].phase == "Pending"


def test_equals_do_not_evict_each_other() -> None:
    objects = [
        *in_one_queue(minimum=1),
        group("peer", 4, priorityClassName="low"),
        *waiting("peer", 4, priority=10),
    ]
    assert cycle(*objects, actions="allocate, preempt", plugins=FIRST).evictions == []


def test_ten_are_not_evicted_where_one_suffices() -> None:
    plan = evict(
        node("n1", {"cpu": "10"}),
        queue("default"),
        priority_class("low", 10),
        priority_class("high", 100),
        *(group(f"low{i}", 1, phase="Running", priorityClassName="low") for i in range(10)),
        *(pod(f"low{i}", ONE, group=f"low{i}", on="n1", priority=10) for i in range(10)),
        group("top", 1, priorityClassName="high"),
        *waiting("top", 1, priority=100),
        actions="allocate, preempt",
    )
    assert len(plan.evictions) == 1


def test_a_task_that_needs_a_whole_node_gets_the_victims_of_one_node_only() -> None:
    plan = evict(
        *(node(f"n{i}", {"cpu": "4"}) for i in range(3)),
        queue("default"),
        priority_class("low", 10),
        priority_class("high", 100),
        *(group(f"low{i}", 1, phase="Running", priorityClassName="low") for i in range(12)),
        *(pod(f"low{i}", ONE, group=f"low{i}", on=f"n{i % 3}", priority=10) for i in range(12)),
        group("top", 1, priorityClassName="high"),
        pod("top-0", {"cpu": "4", "memory": "1Gi"}, group="top", priority=100),
        actions="allocate, preempt",
    )
    (chosen,) = plan.pipelined.values()
    assert {plan.tasks[name].node for name in plan.evictions} == {chosen}
    assert len(plan.evictions) == 4


def test_a_victim_that_frees_only_what_is_short_is_taken() -> None:
    plan = evict(
        node("n1", {"cpu": "8", "nvidia.com/gpu": "1"}),
        queue("default"),
        priority_class("low", 10),
        priority_class("high", 100),
        group("low", 1, phase="Running", priorityClassName="low"),
        pod("low-0", {"nvidia.com/gpu": "1"}, group="low", on="n1", priority=10),
        group("top", 1, priorityClassName="high"),
        pod("top-0", {"cpu": "4", "nvidia.com/gpu": "1"}, group="top", priority=100),
        actions="allocate, preempt",
    )
    assert plan.evictions == ["default/low-0"]


def test_victims_that_help_only_together_are_found_and_nobody_else_goes() -> None:
    victims_of = {"gpu": {"nvidia.com/gpu": "1"}, "cpu": {"cpu": "8"}}
    plan = evict(
        *(node(f"n{i}", {"cpu": "8", "nvidia.com/gpu": "1"}) for i in range(3)),
        queue("default"),
        priority_class("low", 10),
        priority_class("high", 100),
        *(
            group(f"{kind}{i}", 1, phase="Running", priorityClassName="low")
            for i in range(3)
            for kind in victims_of
        ),
        *(
            pod(f"{kind}{i}-0", asked, group=f"{kind}{i}", on=f"n{i}", priority=10)
            for i in range(3)
            for kind, asked in victims_of.items()
        ),
        group("top", 1, priorityClassName="high"),
        pod("top-0", {"cpu": "8", "nvidia.com/gpu": "1"}, group="top", priority=100),
        actions="allocate, preempt",
    )
    (chosen,) = plan.pipelined.values()
    number = chosen.removeprefix("n")
    assert sorted(plan.evictions) == [f"default/cpu{number}-0", f"default/gpu{number}-0"]


# -- properties ------------------------------------------------------------------------------------------------------


@st.composite
def crowded(draw: st.DrawFn) -> list[Object]:
    """Nodes filled by jobs of two queues and two priorities, and gangs that would like to be there."""
    size = draw(st.integers(1, 4))
    objects: list[Object] = [node(f"n{i}", {"cpu": "4"}) for i in range(size)]
    objects += [queue("q1"), queue("q2"), priority_class("low", 10), priority_class("high", 100)]
    free = [f"n{i}" for i in range(size) for _ in range(4)]
    for number in range(draw(st.integers(0, 16))):
        if not free:
            break
        count = min(draw(st.integers(1, 4)), len(free))
        job, minimum = f"r{number}", draw(st.integers(0, count))
        name = draw(st.sampled_from(["q1", "q2"]))
        objects.append(
            group(
                job,
                minimum,
                queue=name,
                phase="Running",
                priorityClassName=draw(st.sampled_from(["low", "high"])),
            )
        )
        objects += [pod(f"{job}-{i}", ONE, group=job, uid=f"{job}-{i}", on=free.pop()) for i in range(count)]
    for i in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 5))
        asked = {"cpu": draw(st.sampled_from(["1", "2", "4"])), "memory": "1Gi"}
        objects.append(
            group(
                f"w{i}",
                draw(st.integers(1, count)),
                queue=draw(st.sampled_from(["q1", "q2"])),
                priorityClassName=draw(st.sampled_from(["low", "high"])),
            )
        )
        objects += [pod(f"w{i}-{k}", asked, group=f"w{i}", uid=f"w{i}-{k}") for k in range(count)]
    return objects


def survivors(plan: Plan, job: str) -> int:
    return sum(1 for task in plan.tasks.values() if task.job == job and task.status in ("Running", "Binding"))


@given(crowded())
@settings(max_examples=150, deadline=None)
def test_victims_are_whole_gangs_or_surplus_and_none_can_be_spared(objects: list[Object]) -> None:
    plan = evict(*objects, actions="allocate, backfill, reclaim, preempt")  # every sum is checked in there
    losers = {plan.tasks[name].job for name in plan.evictions}
    for job in losers:
        assert job is not None
        left = survivors(plan, job)
        assert left == 0 or left >= plan.jobs[job].minimum
    if plan.evictions:
        assert plan.pipelined
    spared = {name for name, task in plan.tasks.items() if task.status == "Running"}
    for name in plan.pipelined:
        assert name not in spared


@given(crowded(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_same_objects_in_another_order_give_the_same_plan(objects: list[Object], chance: Any) -> None:
    shuffled = list(objects)
    chance.shuffle(shuffled)
    first = evict(*objects, actions="allocate, backfill, reclaim, preempt")
    second = evict(*shuffled, actions="allocate, backfill, reclaim, preempt")
    assert (first.binds, first.pipelined, sorted(first.evictions)) == (
        second.binds,
        second.pipelined,
        sorted(second.evictions),
    )
