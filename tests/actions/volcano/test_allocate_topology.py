"""allocate with HyperNodes and sub-jobs: rule by rule."""

from typing import Any

import pytest

from maniple.cluster.domains import NONE
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.volcano.scenes import PLAIN, bound, cycle
from tests.networks import ONE, SOFT, four_racks, hard, nodes, policy, rack, spine, two_racks
from tests.support import cluster_of, group, node, pod, priority_class, queue

TWO = {"cpu": "2", "memory": "2Gi"}
LEAVING = "2026-01-01T00:00:00Z"
TOPOLOGY: tuple[dict[str, Any], ...] = (*PLAIN, {"name": "network-topology-aware"})
# Nothing but the topology has a say in which node is taken.
BARE: tuple[dict[str, Any], ...] = (
    {"name": "gang"},
    {"name": "predicates"},
    {"name": "network-topology-aware"},
)


def gang(job: str, count: int, requests: dict[str, str] | None = None, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", requests or TWO, group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def part(
    job: str, value: str, count: int, requests: dict[str, str] | None = None, **fields: Any
) -> list[Object]:
    """Tasks of one sub-group."""
    name = f"{job}-{value}"
    return [
        pod(f"{name}{i}", requests or TWO, group=job, uid=f"{name}{i}", labels={"part": value}, **fields)
        for i in range(count)
    ]


def planned(*objects: Object, plugins: tuple[dict[str, Any], ...] = TOPOLOGY, **conf: Any) -> Plan:
    return cycle(queue("default"), *objects, plugins=plugins, **conf)


def racks_of(plan: Plan, job: str = "") -> dict[str, int]:
    """How many of a job's tasks were bound in each rack, by the first letter of the node."""
    found: dict[str, int] = {}
    for name, on in plan.binds.items():
        if name.startswith(f"default/{job}"):
            found[on[0]] = found.get(on[0], 0) + 1
    return found


def why(plan: Plan, task: str) -> str:
    return plan.tasks[f"default/{task}"].reason


# -- a job in one domain -----------------------------------------------------------------------------------------------


def test_a_hard_job_stays_in_one_domain() -> None:
    plan = planned(*two_racks(), group("g", 2, networkTopology=hard(1)), *gang("g", 2))
    assert sorted(racks_of(plan).values()) == [2]


def test_a_hard_job_that_no_domain_holds_waits_and_says_how_much_room_there_is() -> None:
    plan = planned(*two_racks(), group("g", 3, networkTopology=hard(1)), *gang("g", 3))
    assert plan.binds == {}
    assert all("no HyperNode up to tier 1 has room for the 3 tasks" in why(plan, f"g-{i}") for i in range(3))
    assert "the roomiest is 'a', for 2" in why(plan, "g-0")


def test_a_wider_tier_is_tried_when_no_closer_one_holds_the_job() -> None:
    plan = planned(*four_racks(), group("g", 3, networkTopology=hard(2)), *gang("g", 3))
    assert racks_of(plan) in ({"a": 2, "b": 1}, {"a": 1, "b": 2})


def test_a_closer_tier_wins_even_where_a_wider_one_would_be_fuller() -> None:
    plan = planned(*four_racks(), group("g", 2, networkTopology=hard(3)), *gang("g", 2))
    assert racks_of(plan) == {"a": 2}


def test_the_fuller_domain_is_taken_and_of_equals_the_first_by_name() -> None:
    old = (group("old", 1), pod("old-0", ONE, group="old", on="b1"))
    wanted = (group("g", 2, networkTopology=hard(1)), *gang("g", 2, ONE))
    assert racks_of(planned(*two_racks(cpu=4), *wanted)) == {"a": 2}
    assert racks_of(planned(*two_racks(cpu=4), *old, *wanted)) == {"b": 2}


def test_a_soft_job_is_as_close_as_possible_and_no_closer() -> None:
    assert racks_of(planned(*two_racks(), group("g", 2, networkTopology=SOFT), *gang("g", 2))) == {"a": 2}
    outside = planned(*two_racks(), *nodes("x1"), group("g", 5, networkTopology=SOFT), *gang("g", 5))
    assert racks_of(outside) == {"a": 2, "b": 2, "x": 1}


@pytest.mark.parametrize(("compat", "count"), [("better", 2), ("strict", 0)])
@pytest.mark.parametrize("topology", [SOFT, hard(1)])
def test_a_job_whose_extras_fit_nowhere_gets_its_minimum_except_in_the_original(
    topology: dict[str, Any], compat: str, count: int
) -> None:
    objects = [
        *nodes("a1", "a2"),
        rack("a", "a1", "a2"),
        group("g", 2, networkTopology=topology),
        *gang("g", 3),
    ]
    assert len(planned(*objects, compat=compat).binds) == count


def test_a_domain_that_holds_the_extras_too_is_better_than_a_closer_one_that_does_not() -> None:
    plan = planned(*four_racks(), group("g", 2, networkTopology=hard(2)), *gang("g", 3))
    assert sum(racks_of(plan).values()) == 3


def test_a_tier_goes_by_name() -> None:
    named = {"mode": "hard", "highestTierName": "rack"}
    assert planned(*two_racks(), group("g", 3, networkTopology=named), *gang("g", 3)).binds == {}
    assert len(planned(*two_racks(), group("g", 2, networkTopology=named), *gang("g", 2)).binds) == 2


def test_inside_a_wide_domain_tasks_gather_in_racks() -> None:
    plan = planned(*four_racks(), group("g", 6, networkTopology=hard(3)), *gang("g", 6), plugins=BARE)
    assert sorted(racks_of(plan).values()) == [2, 2, 2]


def test_inside_a_wide_domain_tasks_follow_one_another_into_a_rack() -> None:
    """By name alone the nodes would be taken in turns."""
    plan = planned(
        *nodes("n1", "n2", "n3", "n4", "n5", "n6"),
        rack("odd", "n1", "n3", "n5"),
        rack("even", "n2", "n4", "n6"),
        spine("s", "odd", "even"),
        group("g", 4, networkTopology=hard(2)),
        *gang("g", 4),
        plugins=BARE,
    )
    assert set(plan.binds.values()) == {"n1", "n3", "n5", "n2"}


def test_what_already_runs_keeps_the_rest_near() -> None:
    running = [pod("g-0", TWO, group="g", on="c1")]
    more = [pod(f"g-{i}", TWO, group="g", uid=f"{i}") for i in (1, 2)]
    near = planned(*four_racks(), group("g", 2, networkTopology=hard(1)), *running, *more)
    assert racks_of(near) == {"c": 1}
    assert why(near, "g-2")
    wider = planned(*four_racks(), group("g", 2, networkTopology=hard(2)), *running, *more)
    assert racks_of(wider) == {"c": 1, "d": 1}


def test_a_job_that_is_too_far_apart_already_is_not_made_worse() -> None:
    running = [pod("g-0", TWO, group="g", on="a1"), pod("g-1", TWO, group="g", on="b1")]
    plan = planned(*two_racks(), group("g", 3, networkTopology=hard(1)), *running, pod("g-2", TWO, group="g"))
    assert plan.binds == {}
    assert why(plan, "g-2") == "its pods are in HyperNode 's' (tier 2), which is wider than tier 1"


def test_a_job_that_runs_outside_the_network_gets_no_more_than_it_has_there() -> None:
    running = [pod("g-0", TWO, group="g", on="x1")]
    objects = (
        *two_racks(),
        *nodes("x1"),
        group("g", 2, networkTopology=hard(2)),
        *running,
        pod("g-1", TWO, group="g"),
    )
    plan = planned(*objects)
    assert plan.binds == {}
    assert why(plan, "g-1") == "its pods are in no HyperNode up to tier 2"


def test_extras_stay_near_and_are_handed_out_in_turns() -> None:
    plan = planned(
        *two_racks(cpu=4),
        group("g", 1, networkTopology=hard(1), created="2026-01-01T00:00:00Z"),
        group("h", 1, networkTopology=hard(1), created="2026-01-02T00:00:00Z"),
        *gang("g", 6, ONE),
        *gang("h", 6, ONE),
    )
    # Both begin in the fullest rack; what is left of it they share.
    assert racks_of(plan, "g") == {"a": 4}
    assert racks_of(plan, "h") == {"a": 4}
    assert all(why(plan, f"{job}-{i}") for job in "gh" for i in (4, 5))


def test_a_gang_pipelined_into_a_domain_keeps_it_for_the_cycle() -> None:
    leaving = [pod(f"old-{i}", TWO, group="old", on=f"a{i}", deleted=LEAVING) for i in (1, 2)]
    plan = planned(
        *nodes("a1", "a2"),
        rack("a", "a1", "a2"),
        group("old", 1),
        *leaving,
        group("g", 2, networkTopology=hard(1), created="2026-01-01T00:00:00Z"),
        group("h", 2, networkTopology=hard(1), created="2026-01-02T00:00:00Z"),
        *gang("g", 2),
        *gang("h", 2),
    )
    assert plan.binds == {}
    assert set(plan.pipelined) == {"default/g-0", "default/g-1"}
    assert why(plan, "h-0")


def test_a_role_that_fails_in_one_domain_is_tried_again_in_the_next() -> None:
    """The first rack is the fuller one and has room by number, but not for the big task and the small ones together."""
    plan = planned(
        *nodes("a1", cpu=4),
        *nodes("a2", cpu=1),
        *nodes("b1", cpu=4),
        *nodes("b2", cpu=2),
        rack("a", "a1", "a2"),
        rack("b", "b1", "b2"),
        group("g", 3, networkTopology=hard(1)),
        pod("g-0", {"cpu": "4"}, group="g", role="w", uid="0"),
        pod("g-1", {"cpu": "1"}, group="g", role="w", uid="1"),
        pod("g-2", {"cpu": "1"}, group="g", role="w", uid="2"),
        plugins=BARE,
        configurations=[{"name": "allocate", "arguments": {"predicateErrorCacheEnable": False}}],
    )
    assert racks_of(plan) == {"b": 3}


def test_causes_of_the_closest_trial_name_its_domain() -> None:
    """Three tasks that are not alike: each finds a slot, but there are two nodes."""
    plan = planned(
        *nodes("a1", "a2", cpu=3),
        rack("a", "a1", "a2"),
        group("g", 3, networkTopology=hard(1)),
        *(pod(f"g-{i}", {"cpu": "2", "memory": f"{i}Mi"}, group="g", uid=f"{i}") for i in range(3)),
        plugins=BARE,
    )
    assert plan.binds == {}
    assert why(plan, "g-2") == "In hyperNode a: 0/2 nodes are unavailable: 2 Insufficient cpu"
    assert "2 more can be placed, but the gang needs 3 pods" in why(plan, "g-0")
    assert why(plan, "g-1")


def test_a_domain_without_the_resources_is_told_as_such() -> None:
    wanted = (group("g", 2, networkTopology=hard(1), minResources={"cpu": "99"}), *gang("g", 2))
    assert (
        why(planned(*two_racks(), *wanted), "g-0")
        == "no HyperNode up to tier 1 has enough resources for the job"
    )


def test_jobs_that_wait_leave_their_room_to_the_next() -> None:
    plan = planned(
        *two_racks(),
        group("g", 3, networkTopology=hard(1), created="2026-01-01T00:00:00Z"),
        group("h", 2, networkTopology=hard(1), created="2026-01-02T00:00:00Z"),
        *gang("g", 3),
        *gang("h", 2),
    )
    assert bound(plan) == {"h-0", "h-1"}


def test_a_queue_that_is_full_refuses_topology_jobs_too() -> None:
    plan = cycle(
        queue("default", capability={"cpu": "2"}),
        *two_racks(),
        group("g", 2, networkTopology=hard(1)),
        *gang("g", 2),
        plugins=TOPOLOGY,
    )
    assert plan.binds == {}
    assert "queue 'default'" in why(plan, "g-1")


# -- sub-groups --------------------------------------------------------------------------------------------------------


def test_each_sub_group_in_a_rack_and_the_job_below_a_spine() -> None:
    plan = planned(
        *four_racks(),
        group("g", 4, networkTopology=hard(2), subGroupPolicy=[policy(size=2, networkTopology=hard(1))]),
        *part("g", "x", 2),
        *part("g", "y", 2),
    )
    assert {name: on[0] for name, on in plan.binds.items() if "-x" in name}.keys() == {
        "default/g-x0",
        "default/g-x1",
    }
    assert racks_of(plan, "g-x") == {"a": 2}
    assert racks_of(plan, "g-y") == {"b": 2}


def test_a_job_with_a_sub_group_that_fits_nowhere_takes_nothing() -> None:
    plan = planned(
        *four_racks(),
        group("g", 5, networkTopology=hard(3), subGroupPolicy=[policy(size=1, networkTopology=hard(1))]),
        *part("g", "x", 2),
        *part("g", "y", 3),
    )
    assert len(plan.binds) == 0
    assert all(outcome.reason for outcome in plan.tasks.values())


def test_a_trial_that_failed_ties_nobody_down() -> None:
    """Below s the first sub-group takes the only rack that would do for the second; below t there are two."""
    plan = planned(
        *four_racks(),
        rack("a", "a1", "a2"),
        rack("b", "b1"),
        group("g", 4, networkTopology=hard(2), subGroupPolicy=[policy(size=2, networkTopology=hard(1))]),
        *part("g", "x", 2),
        *part("g", "y", 2, {"cpu": "1500m"}),
    )
    assert racks_of(plan) == {"c": 2, "d": 2}


def test_sub_groups_that_the_job_needs_come_first() -> None:
    """Without that the four sub-groups of the first policy would take all there is."""
    plan = planned(
        *two_racks(),
        group(
            "g",
            3,
            networkTopology=hard(2),
            subGroupPolicy=[
                policy("one", size=1, least=2, networkTopology=hard(1)),
                policy("two", key="pair", size=2, least=1, networkTopology=hard(1)),
            ],
        ),
        *(part("g", f"m{i}", 1)[0] for i in range(4)),
        *(pod(f"g-w{i}", TWO, group="g", uid=f"w{i}", labels={"pair": "w"}) for i in range(2)),
    )
    assert len(plan.binds) == 4
    assert {"g-w0", "g-w1"} <= bound(plan)


def test_a_job_is_not_ready_before_its_policies_have_their_sub_groups() -> None:
    one_rack = (*nodes("a1", "a2"), rack("a", "a1", "a2"))
    wanted = (
        group("g", 2, subGroupPolicy=[policy(size=1, least=3)]),
        *part("g", "x", 1),
        *part("g", "y", 1),
        *part("g", "z", 1),
    )
    assert planned(*one_rack, *wanted).binds == {}
    assert len(planned(*one_rack, *nodes("b1"), *wanted).binds) == 3


def test_policies_without_a_topology_need_no_hyper_nodes_and_no_plugin() -> None:
    plan = planned(
        *nodes("n1", "n2"),
        group("g", 2, subGroupPolicy=[policy(size=2, least=1)]),
        *part("g", "x", 1),
        *part("g", "y", 2),
        plugins=PLAIN,
    )
    assert bound(plan) == {"g-y0", "g-y1"}
    assert why(plan, "g-x0")


def test_a_sub_group_gets_its_size_or_nothing_and_then_one_more_at_a_time() -> None:
    plan = planned(
        *nodes("n1", cpu=14),
        group("g", 1, subGroupPolicy=[policy(size=3)], created="2026-01-01T00:00:00Z"),
        group("h", 1, created="2026-01-02T00:00:00Z"),
        *part("g", "x", 4),
        *part("g", "y", 2),
        *gang("h", 4),
    )
    # g-x gets three at once, then h catches up, and the last goes to the older job; g-y can never be whole
    assert len([name for name in bound(plan) if name.startswith("g-x")]) == 4
    assert not any(name.startswith("g-y") for name in bound(plan))
    assert len([name for name in bound(plan) if name.startswith("h")]) == 3


def test_more_important_sub_groups_come_first() -> None:
    plan = planned(
        *nodes("n1"),
        group("g", 1, subGroupPolicy=[policy()]),
        *part("g", "x", 1),
        *part("g", "y", 1, priority=10),
    )
    assert bound(plan) == {"g-y0"}


def test_sub_groups_come_by_their_number() -> None:
    plan = planned(
        *nodes("n1"), group("g", 1, subGroupPolicy=[policy()]), *part("g", "10", 1), *part("g", "9", 1)
    )
    assert bound(plan) == {"g-90"}


def test_a_policy_without_keys_takes_its_selector_as_one_group_and_nobody_in_strict_mode() -> None:
    """Quirk 23: in the original all tasks stay in one sub-job of minimum 1, and may be split over racks."""
    chosen = policy("all", key="", size=2, least=1, networkTopology=hard(1))
    objects = (*two_racks(), group("g", 2, subGroupPolicy=[chosen]), *gang("g", 2))
    assert racks_of(planned(*objects)) == {"a": 2}
    strict = planned(*objects, compat="strict")
    assert strict.binds == {}
    assert "policy 'all' has 0 sub-groups and needs 1" in "".join(strict.jobs["default/g"].reasons)


# -- from cycle to cycle -----------------------------------------------------------------------------------------------


def conf(plugins: tuple[dict[str, Any], ...] = TOPOLOGY, **more: Any) -> dict[str, Any]:
    return {"actions": "allocate", "tiers": [{"plugins": list(plugins)}], **more}


def test_what_a_cycle_decided_binds_the_next_one() -> None:
    planner = Planner(profile="volcano", conf=conf(), options={"debug": True})
    cluster = cluster_of(
        queue("default"),
        *four_racks(),
        group("g", 1, networkTopology=hard(1)),
        pod("g-0", TWO, group="g", uid="0"),
    )
    plan = planner.cycle(cluster)
    assert plan.binds == {"default/g-0": "a1"}
    cluster.apply(pod("g-0", TWO, group="g", uid="0", on="a1"))
    for i in (1, 2):
        cluster.apply(pod(f"g-{i}", TWO, group="g", uid=f"{i}"))
    plan = planner.cycle(cluster)
    assert plan.binds == {"default/g-1": "a2"}
    assert why(plan, "g-2")


def test_a_decision_that_was_never_carried_out_binds_nobody() -> None:
    planner = Planner(profile="volcano", conf=conf(), options={"debug": True})
    cluster = cluster_of(
        queue("default"), *two_racks(), group("g", 2, networkTopology=hard(1)), *gang("g", 2)
    )
    assert racks_of(planner.cycle(cluster)) == {"a": 2}
    cluster.apply(group("other", 1))
    cluster.apply(pod("other-0", ONE, group="other", on="a1"))
    assert racks_of(planner.cycle(cluster)) == {"b": 2}


# -- nominations -------------------------------------------------------------------------------------------------------


def nominated(planner: Planner, *objects: Object, domain: str) -> tuple[Session, Plan]:
    """A cycle of a job that eviction cleared a domain for in the cycle before."""
    from maniple.cluster import snapshot

    cluster = cluster_of(queue("default"), *objects)
    session = Session(
        snapshot.take(cluster), planner.configuration, rules=planner.rules, actions=(), now=None, options={}
    )
    row = cluster.jobs.index_of("default/g")
    assert row is not None
    for one in session.groups.root(row).members:
        session.groups.nominate(one, session.domains.index[domain])
    session = planner.session(cluster)
    return session, planner.frozen(session)


def cleared(on: str) -> dict[str, Any]:
    return {"status": {"nominatedNodeName": on}}


@pytest.mark.parametrize("topology", [{"networkTopology": hard(1)}, {"networkTopology": hard(2)}, {}])
def test_what_was_cleared_for_a_job_is_taken_as_it_stands(topology: dict[str, Any]) -> None:
    """Left to itself the job would go to rack a."""
    session, plan = nominated(
        Planner(profile="volcano", conf=conf(), options={"debug": True}),
        *two_racks(),
        group("g", 2, **topology),
        pod("g-0", TWO, group="g", uid="0", **cleared("b2")),
        pod("g-1", TWO, group="g", uid="1", **cleared("b1")),
        domain="b",
    )
    assert plan.binds == {"default/g-0": "b2", "default/g-1": "b1"}
    assert session.groups.nominated == set()


@pytest.mark.parametrize(
    "second",
    [
        {},  # not nominated
        cleared("a1"),  # outside the domain
        cleared("gone"),
        {**cleared("b2"), "nodeSelector": {"never": "there"}},
        cleared("b1"),  # where the first one is
    ],
)
def test_a_nomination_that_misses_is_forgotten_for_all_tasks(second: dict[str, Any]) -> None:
    selector = "nodeSelector" in second
    session, plan = nominated(
        Planner(profile="volcano", conf=conf(), options={"debug": True}),
        *two_racks(),
        group("g", 2 if not selector else 1, networkTopology=hard(1)),
        pod("g-0", TWO, group="g", uid="0", **cleared("b1")),
        pod("g-1", TWO, group="g", uid="1", **second),
        domain="b",
    )
    assert plan.binds["default/g-0"] == "a1"
    assert session.groups.root(0).members[0].nominated == NONE


def test_a_nomination_holds_beyond_the_minimum() -> None:
    _, plan = nominated(
        Planner(profile="volcano", conf=conf(), options={"debug": True}),
        *two_racks(),
        group("g", 1, networkTopology=hard(1)),
        pod("g-0", TWO, group="g", uid="0", **cleared("b1")),
        pod("g-1", TWO, group="g", uid="1", **cleared("b2")),
        domain="b",
    )
    assert len(plan.binds) == 2


def test_a_domain_that_is_gone_was_never_cleared() -> None:
    planner = Planner(profile="volcano", conf=conf(), options={"debug": True})
    cluster = cluster_of(
        queue("default"), *two_racks(), group("g", 1), pod("g-0", TWO, group="g", **cleared("b1"))
    )
    from maniple.cluster import snapshot

    session = Session(
        snapshot.take(cluster), planner.configuration, rules=planner.rules, actions=(), now=None, options={}
    )
    session.groups.nominate(session.groups.root(0).members[0], session.domains.index["b"])
    cluster.delete(rack("b"))
    assert planner.cycle(cluster).binds == {"default/g-0": "b1"}  # as for any nominated pod


# -- what stops a job --------------------------------------------------------------------------------------------------


def test_a_hard_topology_that_nobody_keeps_makes_a_job_wait_unless_the_original_is_wanted() -> None:
    objects = (*two_racks(), group("g", 3, networkTopology=hard(1)), *gang("g", 3))
    plan = planned(*objects, plugins=PLAIN)
    assert plan.binds == {}
    assert "no plugin is configured that keeps it" in plan.jobs["default/g"].reasons[0]
    assert len(planned(*objects, plugins=PLAIN, compat="strict").binds) == 3


def test_the_same_when_only_its_switch_is_off() -> None:
    off = (*PLAIN, {"name": "network-topology-aware", "enabledHyperNodeGradient": False})
    objects = (*two_racks(), group("g", 2, networkTopology=hard(1)), *gang("g", 2))
    assert planned(*objects, plugins=off).binds == {}


def test_a_soft_wish_needs_no_plugin() -> None:
    plan = planned(*two_racks(), group("g", 3, networkTopology=SOFT), *gang("g", 3), plugins=PLAIN)
    assert len(plan.binds) == 3


def test_a_tier_name_that_nobody_has_makes_a_job_wait_unless_the_original_is_wanted() -> None:
    named = {"mode": "hard", "highestTierName": "nobody"}
    objects = (*two_racks(), group("g", 3, networkTopology=named), *gang("g", 3))
    plan = planned(*objects)
    assert plan.binds == {}
    assert plan.jobs["default/g"].reasons == ["no HyperNode has the tier name 'nobody'"]
    strict = planned(*objects, compat="strict")
    assert len(strict.binds) == 3
    assert any("nobody" in warning for warning in strict.warnings)


BROKEN = (*nodes("x1", "x2"), rack("x", "x1", "x2"), spine("p", "x"), spine("q", "x"))


def test_a_broken_hyper_node_stops_only_jobs_that_need_it() -> None:
    """Quirk 28: x has two parents."""
    small = (group("small", 2, networkTopology=hard(1)), *gang("small", 2))
    large = (group("large", 3, networkTopology=hard(1)), *gang("large", 3))
    plan = planned(*two_racks(), *BROKEN, *small, *large)
    assert len(racks_of(plan, "small")) == 1
    assert racks_of(plan, "large") == {}
    assert "HyperNode 'x' is left out: HyperNode q: HyperNode 'x' is already a member of 'p'" in why(
        plan, "large-0"
    )


def test_in_strict_mode_it_stops_all_jobs_with_a_topology_and_no_other() -> None:
    plan = planned(
        *two_racks(),
        *BROKEN,
        group("hard", 1, networkTopology=hard(1)),
        group("soft", 1, networkTopology=SOFT),
        group("part", 1, subGroupPolicy=[policy(networkTopology=hard(1))]),
        group("plain", 1),
        *gang("hard", 1),
        *gang("soft", 1),
        *part("part", "x", 1),
        *gang("plain", 1),
        compat="strict",
    )
    assert bound(plan) == {"plain-0"}
    assert "wait until these HyperNodes are repaired: x" in plan.jobs["default/soft"].reasons[0]


def test_a_job_that_runs_in_a_broken_hyper_node_waits_and_names_it() -> None:
    running = [pod("g-0", TWO, group="g", on="x1")]
    plan = planned(*two_racks(), *BROKEN, group("g", 2, networkTopology=hard(2)), *running, *gang("g", 2)[1:])
    assert plan.binds == {}
    assert "HyperNode 'x' is left out" in why(plan, "g-1")


# -- the rest of the world ---------------------------------------------------------------------------------------------


def test_other_jobs_are_served_as_ever_between_them() -> None:
    plan = planned(
        *two_racks(),
        priority_class("high", 9),
        group("plain", 2, priorityClassName="high"),
        group("g", 2, networkTopology=hard(1)),
        *gang("plain", 2),
        *gang("g", 2),
    )
    assert len(plan.binds) == 4
    assert len(racks_of(plan, "g")) == 1


def test_a_domain_without_nodes_holds_nobody() -> None:
    plan = planned(*nodes("n1"), rack("r", "gone"), group("g", 1, networkTopology=hard(1)), *gang("g", 1))
    assert plan.binds == {}
    assert why(plan, "g-0")


def test_gates_are_admitted_once_however_many_domains_are_tried() -> None:
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    gated: dict[str, Any] = {"schedulingGates": [{"name": gate}], "annotations": {gate: "true"}}
    plan = planned(
        *four_racks(),
        group("g", 4, networkTopology=hard(2)),
        *gang("g", 3),
        pod("g-9", TWO, group="g", uid="9", **gated),
    )
    assert plan.admitted == ["default/g-9"]


def test_spread_and_affinity_hold_inside_a_domain() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    hosts = [
        node(name, {"cpu": "8"}, labels={"kubernetes.io/hostname": name}) for name in ("a1", "b1", "b2", "c1")
    ]
    plan = planned(
        *hosts,
        rack("a", "a1"),
        rack("b", "b1", "b2"),
        rack("c", "c1"),
        group("g", 2, networkTopology=hard(1)),
        *gang("g", 2, ONE, labels={"app": "g"}, affinity=apart),
    )
    assert sorted(plan.binds.values()) == ["b1", "b2"]


def test_a_session_without_such_jobs_has_no_shapes_to_keep() -> None:
    planner = Planner(profile="volcano", conf={"actions": "allocate", "tiers": [{"plugins": [*TOPOLOGY]}]})
    cluster = cluster_of(queue("default"), *two_racks(), group("g", 1), *gang("g", 1))
    assert planner.session(cluster).groups.shaped == {}
