"""Topology-aware preemption: how many nodes are tried, which victims cost least, and which come back."""

from typing import Any

import pytest

from maniple.eviction.volcano.least_cost import CandidateLimits
from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.answers import planned
from tests.actions.volcano.scenes import cycle
from tests.support import group, node, pod, priority_class, queue

BOTH = pytest.mark.parametrize("compat", ["better", "strict"])
ON = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}


def preempted(objects: list[Object], *, compat: str = "better", **arguments: Any) -> Plan:
    given = {"preempt": {**ON, **arguments}}
    return planned(
        objects, "priority", "gang", "predicates", actions="preempt", compat=compat, arguments=given
    )


def victim(name: str, on: str, cpu: str = "1", priority: int = 0, started: str = "") -> list[Object]:
    """A job of one task that is less important than the preemptor, and may be evicted."""
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


@pytest.mark.parametrize(("compat", "expected"), [("better", []), ("strict", ["default/v"])])
def test_the_limit_of_the_queue_is_looked_at_until_the_end_but_not_in_the_original(
    compat: str, expected: list[str]
) -> None:
    """The queue may take nothing, whatever is evicted."""
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
        simulated_allocatable=lambda *_: 0,
    )
    assert plan.evictions == expected


@BOTH
def test_the_task_is_promised_the_node(compat: str) -> None:
    objects = [*nodes(1, "1"), *victim("v", "n1"), *asking()]
    assert [*preempted(objects, compat=compat).nominations.values()] == ["n1"]


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


# -- what is checked again while victims leave on trial --------------------------------------------------------------


def tried(objects: list[Object], *plugins: dict[str, Any], compat: str, **more: Any) -> list[str]:
    """The tasks that preempt evicts with priority, gang and further plugins."""
    plan = cycle(
        *objects,
        actions="preempt",
        plugins=({"name": "priority"}, {"name": "gang"}, *plugins),
        configurations=[{"name": "preempt", "arguments": ON}],
        compat=compat,
        **more,
    )
    return sorted(plan.evictions)


def only_alone(cpu: str = "1", ports: list[Any] | None = None, **more: Any) -> list[Object]:
    """A preemptor that requires a node without pods of the victims' kind, or a port."""
    *others, _ = asking()
    container = {
        "name": "main",
        "image": "work:1",
        "resources": {"requests": {"cpu": cpu}},
        "ports": ports or [],
    }
    return [*others, pod("new-0", group="new", priority=1000, containers=[container], **more)]


@pytest.mark.parametrize(("compat", "expected"), [("better", []), ("strict", ["default/v"])])
def test_a_port_that_stays_taken_is_not_seen_in_the_original(compat: str, expected: list[str]) -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    taking = [{"name": "main", "image": "work:1", "ports": port}]
    stays = pod("stays", on="n1", uid="stays", containers=taking)
    objects = [*nodes(1, "1"), *victim("v", "n1"), stays, *only_alone(ports=port)]
    assert tried(objects, {"name": "predicates"}, compat=compat) == expected


@BOTH
@pytest.mark.parametrize(
    "switches",
    [
        {"enablePreemptable": True, "enabledAllocatable": False},
        {"enablePreemptable": False, "enabledAllocatable": True},
        {"enablePreemptable": False, "enabledAllocatable": False},
    ],
)
def test_that_an_unwelcome_neighbour_leaves_is_heard_with_either_switch(
    compat: str, switches: dict[str, bool]
) -> None:
    """There is room enough, but not beside that pod.

    In the original, predicates is not notified with both switches off.
    """
    away = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    there = [group("v", 0, phase="Running"), pod("v", {"cpu": "1"}, group="v", on="n1", labels={"app": "x"})]
    where = node("n1", {"cpu": "4"}, labels={"kubernetes.io/hostname": "n1"})
    evicted = tried(
        [where, *there, *only_alone(affinity=affinity)], {"name": "predicates", **switches}, compat=compat
    )
    deaf = compat == "strict" and not any(switches.values())
    assert evicted == ([] if deaf else ["default/v"])


@pytest.mark.parametrize(("compat", "expected"), [("better", []), ("strict", ["default/v"])])
@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_whether_the_queue_is_open_is_not_looked_at_in_the_original(
    plugin: str, compat: str, expected: list[str]
) -> None:
    _, *others = asking()
    objects = [*nodes(1, "1"), *victim("v", "n1"), queue("default", state="Closed"), *others]
    assert tried(objects, {"name": plugin}, compat=compat) == expected


@pytest.mark.parametrize(("compat", "expected"), [("better", ["c"]), ("strict", ["a", "b"])])
def test_in_the_original_the_last_to_leave_counts_as_the_most_important(
    compat: str, expected: list[str]
) -> None:
    """Jobs decide which pods leave first, and pods of a more important job may have a lower priority themselves."""
    classes = [priority_class("low", 10), priority_class("middle", 20)]
    first = [
        group("a", 0, phase="Running", priorityClassName="low"),
        pod("a", {"cpu": "1"}, group="a", on="n1", uid="a", priority=1),
        group("b", 0, phase="Running", priorityClassName="middle"),
        pod("b", {"cpu": "1"}, group="b", on="n1", uid="b", priority=0),
    ]
    objects = [*nodes(2, "2"), *classes, *first, *victim("c", "n2", cpu="2", priority=1), *asking("2")]
    assert tried(objects, compat=compat) == [f"default/{name}" for name in expected]


@BOTH
def test_a_victim_that_has_not_started_is_younger_than_any_that_has(compat: str) -> None:
    started = victim("a", "n1", started="2026-01-01T00:00:00Z")
    objects = [*nodes(2, "1"), *started, *victim("b", "n2"), *asking()]
    assert tried(objects, compat=compat) == ["default/b"]


@BOTH
def test_nodes_of_another_shard_are_tried_only_where_ours_do_not_help(compat: str) -> None:
    objects = [*nodes(2, "1"), *victim("cheap", "n1"), *victim("dear", "n2", priority=9), *asking()]
    soft = {"shard": {"mode": "soft", "nodes": ["n2"]}}
    assert tried(objects, compat=compat, options=soft) == ["default/dear"]
