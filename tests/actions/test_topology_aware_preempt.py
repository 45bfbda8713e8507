"""Topology-aware preemption: how many nodes are tried out, whose victims cost least, and who comes back."""

from typing import Any

import pytest

from maniple.eviction.least_cost import CandidateLimits
from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.answers import planned
from tests.support import group, node, pod, priority_class, queue

BOTH = pytest.mark.parametrize("compat", ["better", "strict"])
ON = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}


def preempted(objects: list[Object], *, compat: str = "better", **arguments: Any) -> Plan:
    given = {"preempt": {**ON, **arguments}}
    return planned(
        objects, "priority", "gang", "predicates", actions="preempt", compat=compat, arguments=given
    )


def victim(name: str, on: str, cpu: str = "1", priority: int = 0, started: str = "") -> list[Object]:
    """A job of one task that matters less than the one that asks, and may be lost."""
    status = {"startTime": started} if started else {}
    return [
        group(name, 0, phase="Running"),
        pod(name, {"cpu": cpu}, group=name, on=on, uid=name, priority=priority, status=status),
    ]


def asking(cpu: str = "1") -> list[Object]:
    return [
        queue("default"),
        priority_class("high", 1000),
        group("new", priorityClassName="high"),
        pod("new-0", {"cpu": cpu}, group="new", priority=1000),
    ]


def nodes(count: int, cpu: str) -> list[Object]:
    return [node(f"n{i}", {"cpu": cpu}) for i in range(1, count + 1)]


@pytest.mark.parametrize(
    ("limits", "among", "expected"),
    [
        ((10, 1, 100), 5, 1),  # a tenth, but at least one
        ((10, 1, 100), 200, 20),
        ((10, 1, 100), 5000, 100),  # and at most a hundred
        ((10, 50, 100), 200, 50),
        ((10, 50, 100), 7, 7),  # never more than there are
        ((100, 1, 3), 10, 3),
        ((0, 0, 100), 10, 0),
    ],
)
def test_how_many_nodes_are_tried_out(limits: tuple[int, int, int], among: int, expected: int) -> None:
    assert CandidateLimits(*limits).count(among) == expected


@BOTH
def test_no_more_candidates_are_found_than_the_limits_allow(compat: str) -> None:
    """The second node would cost less, but one candidate is enough."""
    objects = [*nodes(2, "1"), *victim("dear", "n1", priority=9), *victim("cheap", "n2"), *asking()]
    assert preempted(objects, compat=compat, maxCandidateNodesAbsolute=1).evictions == ["default/dear"]
    assert preempted(objects, compat=compat, maxCandidateNodesAbsolute=2).evictions == ["default/cheap"]


@pytest.mark.parametrize(("cheap", "expected"), [("n12", "v12"), ("n13", "v11")])
def test_by_default_a_tenth_of_the_nodes_is_enough(cheap: str, expected: str) -> None:
    """Twenty nodes, of which one costs nothing: it is found if it is the second candidate, but not as the third."""
    numbers = range(11, 31)
    objects = [*(node(f"n{i}", {"cpu": "1"}) for i in numbers), *asking()]
    for i in numbers:
        objects += victim(f"v{i}", f"n{i}", priority=0 if f"n{i}" == cheap else 9)
    given = {"preempt": {"enableTopologyAwarePreemption": True}}
    plan = planned(objects, "priority", "gang", actions="preempt", arguments=given)
    assert plan.evictions == [f"default/{expected}"]


@BOTH
def test_the_least_important_of_the_highest_victims_is_best(compat: str) -> None:
    """One at 5 costs more than three at 4."""
    three = [one for i in range(3) for one in victim(f"c{i}", "n2", priority=4)]
    objects = [*nodes(2, "3"), *victim("a", "n1", cpu="3", priority=5), *three, *asking("3")]
    assert sorted(preempted(objects, compat=compat).evictions) == ["default/c0", "default/c1", "default/c2"]


@BOTH
def test_then_the_smallest_sum_of_priorities(compat: str) -> None:
    """On both nodes the highest is 5; each victim also counts for itself."""
    dear = [*victim("a0", "n1", priority=5), *victim("a1", "n1", priority=5)]
    cheap = [*victim("b0", "n2", priority=5), *victim("b1", "n2", priority=1)]
    objects = [*nodes(2, "2"), *dear, *cheap, *asking("2")]
    assert sorted(preempted(objects, compat=compat).evictions) == ["default/b0", "default/b1"]


@BOTH
def test_so_that_one_victim_costs_less_than_two_even_if_theirs_is_below_zero(compat: str) -> None:
    two = [*victim("a0", "n1", priority=5), *victim("a1", "n1", priority=-9)]
    objects = [*nodes(2, "2"), *two, *victim("b", "n2", cpu="2", priority=5), *asking("2")]
    assert preempted(objects, compat=compat).evictions == ["default/b"]


@BOTH
def test_then_the_node_whose_most_important_victims_started_last(compat: str) -> None:
    """Of each node's victims the earliest start counts."""
    early, late = "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z"
    later = "2026-02-01T00:00:00Z"
    first = [*victim("a0", "n1", started=early), *victim("a1", "n1", started=late)]
    second = [*victim("b0", "n2", started=later), *victim("b1", "n2", started=later)]
    objects = [*nodes(2, "2"), *first, *second, *asking("2")]
    assert sorted(preempted(objects, compat=compat).evictions) == ["default/b0", "default/b1"]


@BOTH
def test_then_the_first_by_name(compat: str) -> None:
    objects = [*nodes(3, "1"), *(one for i in (1, 2, 3) for one in victim(f"v{i}", f"n{i}")), *asking()]
    assert preempted(objects, compat=compat).pipelined == {"default/new-0": "n1"}


@BOTH
def test_whoever_is_not_needed_comes_back_the_most_important_first(compat: str) -> None:
    """The small one is the first to leave and does not make room enough; once the big one has left too it can stay."""
    objects = [
        *nodes(1, "5"),
        *victim("small", "n1", cpu="1", priority=1),
        *victim("big", "n1", cpu="4", priority=2),
        *asking("4"),
    ]
    assert preempted(objects, compat=compat).evictions == ["default/big"]


@BOTH
def test_a_node_that_needs_no_victim_is_no_candidate(compat: str) -> None:
    objects = [*nodes(2, "1"), *victim("v", "n2"), *asking()]
    plan = preempted(objects, compat=compat)
    assert plan.evictions == ["default/v"]
    assert plan.pipelined == {"default/new-0": "n2"}


@BOTH
def test_the_limit_of_the_queue_is_looked_at_until_the_end(compat: str) -> None:
    """Quirk 12, done better in both modes: the queue may take nothing, whoever leaves."""
    objects = [*nodes(1, "1"), *victim("v", "n1"), *asking()]
    given = {"preempt": ON}
    plan = planned(
        objects,
        "priority",
        "gang",
        actions="preempt",
        compat=compat,
        arguments=given,
        allocatable=lambda *_: 0,
    )
    assert plan.evictions == []


@BOTH
def test_the_task_is_promised_the_node(compat: str) -> None:
    objects = [*nodes(1, "1"), *victim("v", "n1"), *asking()]
    session = preempted(objects, compat=compat).session
    assert [session.node_name(where) for where in session.nominated.values()] == ["n1"]


@BOTH
def test_within_a_job_each_task_that_gets_a_place_is_followed_by_the_next(compat: str) -> None:
    objects = [
        *nodes(1, "2"),
        queue("default"),
        group("a", 3),
        *(
            pod(f"small-{i}", {"cpu": "1"}, group="a", on="n1", uid=f"small-{i}", priority=1)
            for i in range(2)
        ),
        *(pod(f"big-{i}", {"cpu": "1"}, group="a", uid=f"big-{i}", priority=9) for i in range(2)),
    ]
    plan = planned(objects, "priority", actions="preempt", compat=compat, arguments={"preempt": ON})
    assert sorted(plan.evictions) == ["default/small-0", "default/small-1"]
    assert sorted(plan.pipelined) == ["default/big-0", "default/big-1"]
