"""gangpreempt and gangreclaim in a network: which domain is cleared, and for which sub-job.

The domain still belongs to the sub-job in the next cycle.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.volcano.gang_scenes import (
    CLASSES,
    CONFORMANCE,
    GANG,
    HARD,
    NODE_ORDER,
    ONE,
    PREDICATES,
    PREEMPTING,
    PRIORITY,
    TOPOLOGY,
    filled,
    high,
    low,
    member,
    part,
    policy,
    preempt,
    racks,
    racks_of,
    running,
    topological,
    waiting,
)
from tests.actions.volcano.scenes import cycle
from tests.plugins.opening import job as job_row
from tests.support import cluster_of, group, hyper_node, pod, queue


def test_a_job_with_a_hard_topology_is_given_one_domain() -> None:
    objects = [*racks(2), *filled(0, "a"), *filled(1, "b"), *high("new", 4, networkTopology=HARD)]
    plan = topological(*objects)
    assert len(plan.pipelined) == 4
    assert len(racks_of(plan)) == 1
    assert {plan.tasks[name].node[:-1] for name in plan.evictions} == racks_of(plan)  # type: ignore[index]


def test_a_domain_that_cannot_be_cleared_is_passed_over() -> None:
    objects = [*racks(2), *filled(0, "a", "high"), *filled(1, "b"), *high("new", 3, networkTopology=HARD)]
    assert racks_of(topological(*objects)) == {"n1"}


def test_no_more_domains_are_tried_than_allowed() -> None:
    objects = [
        *racks(3),
        *filled(0, "a", "high"),
        *filled(1, "b", "high"),
        *filled(2, "c"),
        *high("new", 3, networkTopology=HARD),
    ]
    assert topological(*objects, arguments={"maxDomains": 2}).pipelined == {}
    assert racks_of(topological(*objects, arguments={"maxDomains": 3})) == {"n2"}


@pytest.mark.parametrize("number", [0, -3])
def test_a_number_of_domains_that_is_none_means_eight(number: int) -> None:
    objects = [*racks(10), *high("new", 3, networkTopology=HARD)]
    wide = {**TOPOLOGY, "arguments": {"hypernode.gradient.evict.max-hypernodes": 20}}

    def plan(free: int) -> Plan:
        jobs = [one for i in range(10) for one in filled(i, f"j{i}", "low" if i == free else "high")]
        return preempt(*objects, *jobs, plugins=(*PREEMPTING, wide), arguments={"maxDomains": number})

    assert racks_of(plan(7)) == {"n7"}
    assert plan(8).pipelined == {}


def test_a_hard_topology_without_any_domain_gets_nothing_and_others_get_the_cluster() -> None:
    too_low = {"mode": "hard", "highestTierAllowed": 0}
    objects = [*racks(1), *filled(0, "a")]
    assert topological(*objects, *high("new", 2, networkTopology=too_low)).evictions == []
    assert len(topological(*objects, *high("new", 2)).evictions) == 2


def test_a_job_that_has_no_domain_gets_none_although_its_sub_jobs_may_go_anywhere() -> None:
    policies: dict[str, Any] = {"subGroupPolicy": [policy("w", 2, 1)]}
    too_low = {"mode": "hard", "highestTierAllowed": 0}
    new = [
        group("new", 2, priorityClassName="high", networkTopology=too_low, **policies),
        *part("new", "w", 0, 2),
    ]
    assert topological(*racks(1), *filled(0, "a"), *new).evictions == []


def test_a_hard_topology_that_no_plugin_keeps_evicts_nobody() -> None:
    objects = [*racks(2), *filled(0, "a"), *filled(1, "b"), *high("new", 4, networkTopology=HARD)]
    plan = preempt(*objects)
    assert plan.evictions == []
    assert any("no plugin" in reason for reason in plan.jobs["default/new"].reasons)


def test_each_sub_job_gets_a_domain_of_its_own() -> None:
    zone = hyper_node("zone", 2, member("r0", "HyperNode"), member("r1", "HyperNode"))
    new = [
        group("new", 6, priorityClassName="high", subGroupPolicy=[policy("w", 3, 2, **HARD)]),
        *part("new", "w", 0, 3),
        *part("new", "w", 1, 3),
    ]
    plan = topological(*racks(2), zone, *filled(0, "a"), *filled(1, "b"), *new)
    where = {
        name: {plan.pipelined[f"default/new-{name}-{i}"][:-1] for i in range(3)} for name in ("w0", "w1")
    }
    assert sorted(rack for racks_ in where.values() for rack in racks_) == ["n0", "n1"]


def test_room_is_looked_for_near_the_others_but_not_in_the_original() -> None:
    """One task runs in rack r0; both racks have room, and r1 has more of it."""
    new = [
        group("new", 2, priorityClassName="high", networkTopology={"mode": "soft"}),
        *running("new", 1, "n0a"),
        pod("new-9", ONE, group="new", uid="new-9"),
    ]
    objects = [*racks(2), *low("old", 1, 1, "n0a"), pod("held", ONE, on="n0b"), *new]
    for compat, rack in (("better", {"n0"}), ("strict", {"n1"})):
        plan = topological(*objects, compat=compat)
        assert racks_of(plan) == rack


def test_all_sub_jobs_or_none() -> None:
    new = [
        group("new", 6, priorityClassName="high", subGroupPolicy=[policy("w", 3, 2, **HARD)]),
        *part("new", "w", 0, 3),
        *part("new", "w", 1, 3),
    ]
    plan = topological(*racks(2), *filled(0, "a"), *filled(1, "b", "high"), *new)
    assert plan.evictions == []
    assert plan.pipelined == {}


# -- nominations -----------------------------------------------------------------------------------------------------


def planner(actions: str, compat: str = "better") -> Planner:
    conf = {"actions": actions, "tiers": [{"plugins": [*PREEMPTING, TOPOLOGY]}], "compat": compat}
    return Planner(profile="volcano", conf=conf, options={"debug": True})


def planned(cluster: Cluster, actions: str, compat: str = "better") -> Plan:
    return planner(actions, compat).cycle(cluster)


def after_clearing(compat: str, topology: dict[str, Any]) -> tuple[Plan, Plan]:
    first, cluster = cleared(compat, topology)
    return first, planned(cluster, "allocate", compat)


def cleared(compat: str, topology: dict[str, Any], *others: Object) -> tuple[Plan, Cluster]:
    """A cycle in which only the second rack can be cleared; and the cluster, after both came free and others came."""
    olds = [*filled(0, "a", "high"), *filled(1, "b")]
    cluster = cluster_of(*CLASSES, queue("default"), *racks(2), *olds, *high("new", 4, **topology))
    first = planned(cluster, "gangpreempt", compat)
    for one in olds:
        if one.metadata.name not in ("a", "b"):
            cluster.delete(one)
    for one in others:
        cluster.apply(one)
    for i in range(4):
        promise = {"nominatedNodeName": first.pipelined[f"default/new-{i}"]}
        cluster.apply(pod(f"new-{i}", ONE, group="new", uid=f"new-{i}", status=promise))
    return first, cluster


@pytest.mark.parametrize("topology", [{}, {"networkTopology": HARD}], ids=["anywhere", "in one rack"])
def test_what_was_cleared_for_a_job_is_still_its_own_in_the_next_cycle(topology: dict[str, Any]) -> None:
    first, second = after_clearing("better", topology)
    assert racks_of(first) == {"n1"}
    assert second.binds == first.pipelined


def test_in_the_original_it_is_forgotten_and_the_search_begins_anew() -> None:
    first, second = after_clearing("strict", {"networkTopology": HARD})
    assert racks_of(first) == {"n1"}
    assert {name[:-1] for name in second.binds.values()} == {"n0"}


def test_a_nomination_that_missed_is_forgotten_for_good() -> None:
    intruder = pod("intruder", ONE, on="n1a")
    _, cluster = cleared("better", {"networkTopology": HARD}, intruder)
    allocating = planner("allocate")
    session = allocating.session(cluster)
    assert {name[:-1] for name in allocating.frozen(session).binds.values()} == {"n0"}
    assert nominated(session) == []
    assert nominated(planner("enqueue").session(cluster)) == []


def nominated(session: Session) -> list[str]:
    """The domains that are kept for the parts of a job at the end of a cycle."""
    shape = session.groups.root(job_row(session, "new"))
    return [session.domains.names[one.nominated] for one in shape.members if one.nominated >= 0]


@pytest.mark.parametrize(("compat", "kept"), [("better", ["r0"]), ("strict", [])])
def test_nominations_outlive_the_cycle_but_not_in_the_original(compat: str, kept: list[str]) -> None:
    objects = [*CLASSES, queue("default"), *racks(1), *filled(0, "a"), *high("new", 4, networkTopology=HARD)]
    cluster = cluster_of(*objects)
    assert nominated(planner("gangpreempt", compat).session(cluster)) == ["r0"]
    assert nominated(planner("enqueue", compat).session(cluster)) == kept


def test_nothing_is_nominated_where_nobody_went() -> None:
    objects = [*CLASSES, queue("default"), *racks(1), *high("new", 4, networkTopology=HARD)]
    preempting = planner("gangpreempt")
    session = preempting.session(cluster_of(*objects))
    assert len(preempting.frozen(session).pipelined) == 4
    assert nominated(session) == []


# -- properties ------------------------------------------------------------------------------------------------------


@st.composite
def crowded(draw: st.DrawFn) -> list[Object]:
    """Racks filled by jobs of two queues and two priorities, and gangs that would like to be there."""
    count = draw(st.integers(1, 3))
    objects: list[Object] = [*racks(count), queue("q1"), queue("q2"), *CLASSES]
    free = [f"n{i}{side}" for i in range(count) for side in "ab" for _ in range(2)]
    number = 0
    while free and draw(st.integers(0, 9)) > 0:
        size = min(draw(st.integers(1, 4)), len(free))
        job, name = f"r{number}", draw(st.sampled_from(["q1", "q2"]))
        priority = draw(st.sampled_from(["low", "high"]))
        objects.append(
            group(job, draw(st.integers(0, size)), queue=name, phase="Running", priorityClassName=priority)
        )
        objects += [pod(f"{job}-{i}", ONE, group=job, uid=f"{job}-{i}", on=free.pop()) for i in range(size)]
        number += 1
    for i in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 5))
        asked = {"cpu": draw(st.sampled_from(["1", "2"])), "memory": "1Gi"}
        topology: dict[str, Any] = {"networkTopology": HARD} if draw(st.booleans()) else {}
        name, priority = draw(st.sampled_from(["q1", "q2"])), draw(st.sampled_from(["low", "high"]))
        objects.append(
            group(f"w{i}", draw(st.integers(1, size)), queue=name, priorityClassName=priority, **topology)
        )
        objects += waiting(f"w{i}", size, asked)
    return objects


ACTIONS = "allocate, gangreclaim, gangpreempt"
ALL = (PRIORITY, GANG, CONFORMANCE, {"name": "proportion"}, PREDICATES, NODE_ORDER, TOPOLOGY)


@given(crowded())
@settings(max_examples=100, deadline=None)
def test_gangs_are_lost_whole_or_keep_their_minimum_and_nobody_goes_in_vain(objects: list[Object]) -> None:
    plan = cycle(*objects, actions=ACTIONS, plugins=ALL)  # every sum is checked in there
    jobs = {plan.tasks[name].job for name in plan.evictions}
    for job in jobs:
        assert job is not None
        before = sum(1 for name, task in plan.tasks.items() if task.job == job)
        left = sum(1 for task in plan.tasks.values() if task.job == job and task.status == "Running")
        assert left == 0 or left >= plan.jobs[job].minimum or before < plan.jobs[job].minimum
    if plan.evictions:
        assert plan.pipelined
    for name, one in plan.jobs.items():
        there = [task.node for task in plan.tasks.values() if task.job == name and task.status == "Pipelined"]
        if there:
            assert len(there) + one.ready >= one.minimum


@given(crowded(), st.randoms(use_true_random=False), st.sampled_from(["better", "strict"]))
@settings(max_examples=60, deadline=None)
def test_the_same_objects_in_another_order_give_the_same_plan(
    objects: list[Object], chance: Any, compat: str
) -> None:
    shuffled = list(objects)
    chance.shuffle(shuffled)
    first, second = (
        cycle(*these, actions=ACTIONS, plugins=ALL, compat=compat) for these in (objects, shuffled)
    )
    assert (first.binds, first.pipelined, first.evictions) == (
        second.binds,
        second.pipelined,
        second.evictions,
    )
