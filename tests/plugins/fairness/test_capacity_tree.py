"""capacity, queues in a tree: what ancestors limit and deserve, and whose turn it is."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.plugins.fairness.capacity import Capacity
from tests.actions.volcano.scenes import cycle
from tests.plugins.fairness.capacity_scenes import (
    GPU,
    amounts,
    child,
    may_reclaim,
    opened,
    room,
    running,
    tree,
    victims,
    work,
)
from tests.plugins.opening import job, names, queue_row, task, tasks
from tests.support import group, node, queue

CPU = {"cpu": "1"}


def ceiling(session: Session, plugin: Capacity, name: str, resource: str = "cpu") -> float:
    return amounts(session, plugin, name, "capability").get(resource, 0)


# -- from the root down -----------------------------------------------------------------------------------------------


def test_the_root_is_not_held_to_what_the_cluster_has_today() -> None:
    session, plugin = tree(child("a"), *work("j", 1, {"cpu": "500"}, of="a"))
    report = plugin.queue_report(queue_row(session, "a"))
    assert np.isinf(report["capability"]).all()
    assert amounts(session, plugin, "a", "capability") == {}  # nothing to tell people
    assert room(session, plugin, "j-0") == 1


def test_of_a_resource_that_no_node_has_there_is_none() -> None:
    session, plugin = tree(child("a"), *work("j", 1, {GPU: "1"}, of="a"))
    assert room(session, plugin, "j-0") == 0
    session, plugin = tree(child("a"), *work("j", 1, {GPU: "1"}, of="a"), total={GPU: "1"})
    assert room(session, plugin, "j-0") == 1


@pytest.mark.parametrize("strict", [False, True])
def test_what_nodes_list_though_they_have_none_of_it_is_not_limited_by_the_root(strict: bool) -> None:
    wanting = work("j", 1, {GPU: "1"}, of="a")
    session, plugin = tree(child("a"), *wanting, total={GPU: "0"}, strict=strict)
    assert room(session, plugin, "j-0") == 1


def test_the_reason_for_what_nodes_list_and_do_not_have_is_the_nodes() -> None:
    plugins = ({"name": "gang"}, {"name": "capacity", "enableHierarchy": True}, {"name": "predicates"})
    objects = [queue("root"), child("a"), *work("j", 1, {GPU: "1"}, of="a")]
    plan = cycle(node("n1", {"cpu": "4", GPU: "0"}), *objects, plugins=plugins)
    (reason,) = [told.reason for told in plan.tasks.values()]
    assert "queue" not in reason
    assert f"Insufficient {GPU}" in reason


def test_a_capability_that_is_not_stated_is_the_parents() -> None:
    session, plugin = tree(
        child("a", capability={"cpu": "4", GPU: "2"}),
        child("b", "a", capability={"cpu": "9"}),
        child("c", "b"),
    )
    assert ceiling(session, plugin, "b") == 4000  # under its parent all the same
    assert ceiling(session, plugin, "b", GPU) == 0  # no node has any
    session, plugin = tree(
        child("a", capability={"cpu": "4", GPU: "2"}),
        child("b", "a", capability={"cpu": "3"}),
        child("c", "b"),
        total={GPU: "8"},
    )
    assert (ceiling(session, plugin, "c"), ceiling(session, plugin, "c", GPU)) == (3000, 2)


def test_a_ceiling_is_what_siblings_are_not_guaranteed() -> None:
    session, plugin = tree(
        child("a", capability={"cpu": "10"}),
        child("b", "a", guarantee={"resource": {"cpu": "4"}}),
        child("c", "a", guarantee={"resource": {"cpu": "3"}}),
        child("d", "a", capability={"cpu": "1"}),
    )
    assert [ceiling(session, plugin, name) for name in "bcd"] == [7000, 6000, 1000]


def test_guarantees_beyond_the_parent_leave_each_child_its_own() -> None:
    session, plugin = tree(
        child("a", capability={"cpu": "6"}),
        child("b", "a", guarantee={"resource": {"cpu": "4"}}),
        child("c", "a", guarantee={"resource": {"cpu": "4"}}),
    )
    assert [ceiling(session, plugin, name) for name in "bc"] == [4000, 4000]


def test_a_guarantee_does_not_lift_a_queue_over_its_parents_capability() -> None:
    session, plugin = tree(
        child("a", capability={"cpu": "6"}), child("b", "a", guarantee={"resource": {"cpu": "9"}})
    )
    assert ceiling(session, plugin, "b") == 6000


def test_jobs_may_ask_for_cpu_and_memory_before_there_is_a_node() -> None:
    session, plugin = tree(
        child("a"),
        group("j", 1, queue="a", phase="Pending", minResources=CPU),
        total={"cpu": "0", "memory": "0"},
    )
    assert plugin.job_enqueueable(job(session, "j")) is Vote.PERMIT


def test_the_root_deserves_what_its_children_do() -> None:
    session, plugin = tree(
        child("a", deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "3"}}),
        child("b", deserved={"cpu": "4"}),
    )
    assert amounts(session, plugin, "a", "deserved") == {"cpu": 3000}  # at least its guarantee
    assert amounts(session, plugin, "root", "deserved") == {"cpu": 7000}


def test_deserved_is_not_cut_to_the_ceiling_in_a_tree() -> None:
    session, plugin = tree(child("a", deserved={"cpu": "9"}, capability={"cpu": "3"}))
    assert amounts(session, plugin, "a", "deserved") == {"cpu": 9000}


def test_what_a_root_with_limits_does_not_name_is_not_limited_unless_strict() -> None:
    objects = [
        queue("root", capability={"cpu": "50"}),
        child("a", guarantee={"resource": {"memory": "1Gi"}}),
        *work("j", 1, {"memory": "1Gi"}, of="a"),
        *work("k", 1, CPU, of="a"),
        *work("l", 1, {GPU: "1"}, of="a"),
    ]
    for strict, expected in ((False, [1, 1, 1]), (True, [0, 1, 0])):
        session, plugin = opened(*objects, tree=True, strict=strict, total={GPU: "8"})
        assert [room(session, plugin, f"{name}-0") for name in "jkl"] == expected
    assert ceiling(session, plugin, "a", "memory") == 0  # not even its guarantee


# -- limits along the path ------------------------------------------------------------------------

SMALL_BRANCH = [child("a", capability={"cpu": "4"}), child("b", "a"), child("c", "a")]


def test_amounts_count_for_all_ancestors() -> None:
    session, plugin = tree(*SMALL_BRANCH, *running("j", 2, CPU, of="b"), *running("k", 1, CPU, of="c"))
    allocated = {name: amounts(session, plugin, name, "allocated")["cpu"] for name in ("root", "a", "b", "c")}
    assert allocated == {"root": 3000, "a": 3000, "b": 2000, "c": 1000}


def test_a_task_needs_room_in_every_queue_above_it() -> None:
    session, plugin = tree(*SMALL_BRANCH, *running("j", 3, CPU, of="b"), *work("k", 2, CPU, of="c"))
    assert room(session, plugin, "k-0", count=2) == 1
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "k-0"), np.zeros(1, dtype=np.intp))
    assert room(session, plugin, "k-1") == 0
    transaction.discard()
    assert room(session, plugin, "k-1") == 1


def test_a_job_needs_room_in_every_queue_above_it() -> None:
    session, plugin = tree(
        *SMALL_BRANCH,
        *running("has", 2, CPU, of="b", minResources={"cpu": "2"}),
        group("first", 1, queue="c", phase="Pending", minResources={"cpu": "2"}),
        group("second", 1, queue="c", phase="Pending", minResources={"cpu": "1"}),
    )
    assert plugin.job_enqueueable(job(session, "first")) is Vote.PERMIT
    plugin.job_enqueued(job(session, "first"))
    assert plugin.job_enqueueable(job(session, "second")) is Vote.REJECT
    assert session.refusals.jobs[job(session, "second")] == [
        "queue resource quota insufficient in queue a above: insufficient cpu"
    ]


def test_elastic_and_kept_amounts_count_for_ancestors() -> None:
    session, plugin = tree(
        *SMALL_BRANCH,
        *running("has", 3, CPU, of="b", minResources={"cpu": "1"}),  # two of them elastic
        group("in", 1, queue="b", minResources={"cpu": "1"}),
        group("new", 1, queue="c", phase="Pending", minResources={"cpu": "2"}),
        group("more", 1, queue="c", phase="Pending", minResources={"cpu": "3"}),
    )
    assert plugin.job_enqueueable(job(session, "new")) is Vote.PERMIT
    assert plugin.job_enqueueable(job(session, "more")) is Vote.REJECT


# -- order ----------------------------------------------------------------------------------------


def standing(session: Session, *queues: str) -> list[str]:
    return sorted(queues, key=lambda name: session.queue_key_order(queue_row(session, name)))


BRANCHES = [
    child("a", deserved={"cpu": "10"}),
    child("b", deserved={"cpu": "10"}),
    child("a1", "a", deserved={"cpu": "1"}),
    child("a2", "a", deserved={"cpu": "9"}),
    child("b1", "b", deserved={"cpu": "10"}),
]


@pytest.mark.parametrize("strict", [False, True])
def test_leaves_go_by_the_branches_below_their_common_ancestor(strict: bool) -> None:
    session, _ = tree(
        *BRANCHES,
        *running("j", 1, CPU, of="a1"),  # a1 stands at 1, its branch at 0.1
        *running("k", 2, CPU, of="b1"),  # b1 and its branch stand at 0.2
        *work("l", 1, CPU, of="a2"),
        strict=strict,
    )
    assert standing(session, "a1", "a2", "b1") == ["a2", "a1", "b1"]


def test_ancestors_shares_follow_tasks_unless_strict() -> None:
    """After `a` got two tasks it is b's turn; in the original all of a's queues would be served first."""
    for strict, expected in ((False, ["b1", "a2"]), (True, ["a2", "b1"])):
        session, _ = tree(
            *BRANCHES,
            *work("j", 2, CPU, of="a1"),
            *work("l", 1, CPU, of="a2"),
            *running("k", 1, CPU, of="b1"),
            strict=strict,
        )
        assert standing(session, "a2", "b1") == ["a2", "b1"]
        transaction = Transaction(session)
        transaction.allocate(tasks(session, "j-0", "j-1"), np.zeros(2, dtype=np.intp))
        assert standing(session, "a2", "b1") == expected
        transaction.discard()
        assert standing(session, "a2", "b1") == ["a2", "b1"]


def test_branches_that_stand_equal_go_by_their_name_unless_strict() -> None:
    objects = [child("a"), child("b"), child("z", "a"), child("y", "b")]
    objects += [*work("j", 1, CPU, of="z"), *work("k", 1, CPU, of="y")]
    session, _ = tree(*objects)
    assert standing(session, "y", "z") == ["z", "y"]
    session, _ = tree(*objects, strict=True)
    assert standing(session, "y", "z") == ["y", "z"]


def test_the_order_of_leaves_has_no_circles() -> None:
    """To the letter a2 < b1 and b1 < a1 by age, and a1 < a2 by share."""
    queues = [
        child("a", deserved={"cpu": "2"}, created="2026-01-05T00:00:00Z"),
        child("b", deserved={"cpu": "2"}, created="2026-01-04T00:00:00Z"),
        child("a1", "a", deserved={"cpu": "2"}, created="2026-01-03T00:00:00Z"),
        child("b1", "b", deserved={"cpu": "2"}, created="2026-01-02T00:00:00Z"),
        child("a2", "a", deserved={"cpu": "1"}, created="2026-01-01T00:00:00Z"),
    ]
    session, _ = tree(
        *queues, *running("j", 1, CPU, of="a2"), *running("k", 1, CPU, of="b1"), *work("l", 1, CPU, of="a1")
    )
    for given in (("a1", "a2", "b1"), ("b1", "a2", "a1"), ("a2", "b1", "a1")):
        assert standing(session, *given) == ["b1", "a1", "a2"]


def test_priority_goes_first_and_leaves_before_queues_with_queues_below_them() -> None:
    session, _ = tree(
        child("a"),
        child("a1", "a"),
        child("b"),
        child("b1", "b", priority=3),
        *work("j", 1, CPU, of="a"),
        *running("k", 9, CPU, of="a1"),
        *running("l", 9, CPU, of="b1"),
    )
    assert standing(session, "a", "a1", "b1") == ["b1", "a1", "a"]


@pytest.mark.parametrize("strict", [False, True])
def test_priority_goes_before_shares_also_strictly(strict: bool) -> None:
    session, _ = tree(
        child("a", deserved={"cpu": "10"}),
        child("b", deserved={"cpu": "10"}, priority=3),
        child("c", deserved={"cpu": "10"}),
        *running("j", 1, CPU, of="a"),
        *running("k", 9, CPU, of="b"),
        *running("l", 5, CPU, of="c"),
        strict=strict,
    )
    assert standing(session, "a", "b", "c") == ["b", "a", "c"]


def test_the_nearest_relatives_are_evicted_first() -> None:
    session, plugin = tree(
        child("a"),
        child("aa", "a"),
        child("aa1", "aa"),
        child("aa2", "aa"),
        child("a1", "a"),
        child("b"),
        *work("asks", 1, CPU, of="aa1"),
        *running("near", 1, CPU, of="aa2"),
        *running("further", 1, CPU, of="a1"),
        *running("far", 1, CPU, of="b"),
    )
    found = victims(session, plugin, "asks-0", "far-0", "near-0", "further-0")
    assert found == ["near-0", "further-0", "far-0"]


def test_queues_side_by_side_have_no_relatives() -> None:
    _, plugin = opened(queue("q"))
    assert not hasattr(plugin, "victim_queue_order")


# -- ancestors and reclaim ------------------------------------------------------------------------

PARENTS = [
    child("a", deserved={"cpu": "4"}),
    child("a1", "a"),
    child("b", deserved={"cpu": "4"}),
    child("b1", "b", deserved={"cpu": "1"}),
    *work("asks", 1, CPU, of="a1"),
]


def test_ancestors_within_the_level_may_deserve_for_a_queue() -> None:
    session, plugin = tree(*PARENTS)
    assert not may_reclaim(session, plugin, "asks-0")
    session, plugin = tree(*PARENTS, arguments={"ancestorReclaimLevel": 1})
    assert may_reclaim(session, plugin, "asks-0")


def test_the_root_deserves_for_nobody() -> None:
    objects = [child("rich", deserved={"cpu": "9"}), child("poor"), *work("asks", 1, CPU, of="poor")]
    session, plugin = tree(*objects, arguments={"ancestorReclaimLevel": 5})
    assert not may_reclaim(session, plugin, "asks-0")


def test_levels_mean_nothing_for_queues_side_by_side() -> None:
    session, plugin = opened(queue("q"), *work("asks", 1, CPU, of="q"), arguments={"ancestorReclaimLevel": 3})
    assert not may_reclaim(session, plugin, "asks-0")


@pytest.mark.parametrize(("level", "parent_has", "expected"), [(0, 2, 1), (1, 2, 0), (1, 6, 2)])
def test_the_victims_ancestor_must_have_too_much_as_well(level: int, parent_has: int, expected: int) -> None:
    """b1 deserves 1 and has 2; its parent deserves 4."""
    session, plugin = tree(
        *PARENTS,
        child("b2", "b", deserved={"cpu": "9"}),
        *running("has", 3 if parent_has > 4 else 2, CPU, of="b1"),
        *running("sibling", parent_has - 2, CPU, of="b2"),
        arguments={"ancestorReclaimLevel": level},
    )
    candidates = [f"has-{i}" for i in range(3 if parent_has > 4 else 2)]
    assert len(victims(session, plugin, "asks-0", *candidates)) == expected


def test_what_is_taken_counts_for_the_ancestors_that_were_looked_at() -> None:
    """Both leaves have far more than they deserve, their parent only 1 more: one victim is all."""
    session, plugin = tree(
        *PARENTS,
        child("b2", "b", deserved={"cpu": "1"}),
        *running("j", 3, CPU, of="b1"),
        *running("k", 2, CPU, of="b2"),
        arguments={"ancestorReclaimLevel": 1},
    )
    assert len(victims(session, plugin, "asks-0", "j-0", "j-1", "k-0", "k-1")) == 1


def test_an_ancestor_that_deserves_nothing_of_it_does_not_protect() -> None:
    session, plugin = tree(
        child("a", deserved={"cpu": "4"}),
        child("a1", "a"),
        child("b", deserved={GPU: "4"}),
        child("b1", "b", deserved={"cpu": "1"}),
        *work("asks", 1, CPU, of="a1"),
        *running("has", 3, CPU, of="b1"),
        arguments={"ancestorReclaimLevel": 1},
    )
    assert victims(session, plugin, "asks-0", "has-0", "has-1", "has-2") == ["has-2", "has-1"]


def relatives(level: int, **asking: Any) -> list[str]:
    session, plugin = tree(
        child("a", deserved={"cpu": "9"}),
        child("aa", "a"),
        child("asking", "aa", **asking),
        child("ab", "a"),
        child("victim", "ab"),
        *work("asks", 1, CPU, of="asking"),
        *running("has", 1, CPU, of="victim"),
        arguments={"ancestorReclaimLevel": level},
    )
    return victims(session, plugin, "asks-0", "has-0")


def test_relatives_that_deserve_nothing_leave_each_other_alone() -> None:
    assert relatives(0) == ["has-0"]
    assert relatives(1) == ["has-0"]  # the ancestor that they share is two levels up
    assert relatives(2) == []
    assert relatives(2, deserved={"cpu": "1"}) == ["has-0"]
    assert relatives(2, deserved={GPU: "1"}) == []


def test_gangs_as_askers_look_at_the_victims_own_queue_only() -> None:
    session, plugin = tree(*PARENTS, *running("has", 2, CPU, of="b1"), arguments={"ancestorReclaimLevel": 1})
    rows = tasks(session, "has-0", "has-1")
    assert names(session, plugin.unified_evictable(task(session, "asks-0"), rows)) == ["has-0"]
