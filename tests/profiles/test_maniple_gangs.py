"""Maniple's own profile: which pods and jobs it schedules; gangs of both systems are placed whole, in order."""

from typing import Any

import pytest

from tests.plugins.maniple.scenes import (
    GPU,
    bound,
    claims,
    cycle,
    evicted,
    gang,
    kai_queue,
    names,
    node,
    pod,
    volcano_queue,
    why,
)
from tests.support import hyper_node, make, priority_class, topology

Q = volcano_queue("q")
LEAVING = "2026-01-01T00:00:00Z"


# -- what is ours ---------------------------------------------------------------------------------------------------


def test_pods_of_other_schedulers_are_left_to_them_unless_their_names_are_asked_for() -> None:
    parts = [
        node("n1"),
        Q,
        gang("a", "q", 1, scheduler="volcano"),
        gang("b", "q", 1, kai=True, scheduler="kai-scheduler"),
        gang("c", "q", 1),
    ]
    assert bound(cycle(*parts)).keys() == {"c-0"}
    both = cycle(*parts, schedulerName=["volcano", "kai-scheduler"])
    assert bound(both).keys() == {"a-0", "b-0"}


@pytest.mark.parametrize("kai", [False, True])
def test_what_pods_of_other_schedulers_hold_is_no_jobs(kai: bool) -> None:
    theirs = gang("a", "q", 2, kai=kai, on="n1", scheduler="someone-else")
    plan = cycle(node("n1"), Q, theirs)
    assert plan.queues["q"].allocated.get(GPU, 0) == 0
    assert plan.nodes["n1"].used[GPU] == 2


@pytest.mark.parametrize("kai", [False, True])
def test_a_job_that_names_no_queue_is_in_the_default_one(kai: bool) -> None:
    assert bound(cycle(node("n1"), volcano_queue("default"), gang("a", "", 1, kai=kai)))
    assert bound(cycle(node("n1"), kai_queue("lab"), gang("a", "", 1, kai=kai), defaultQueue="lab"))


def test_objects_of_another_node_pool_are_not_there() -> None:
    label = {"kai.scheduler/node-pool": "a100"}
    parts = [node("n1"), node("n2", labels=label), Q, gang("a", "q", 9, 1)]
    assert set(bound(cycle(*parts)).values()) == {"n1"}


@pytest.mark.parametrize("kai", [False, True])
def test_a_volcano_queue_takes_jobs_of_both_systems(kai: bool) -> None:
    assert bound(cycle(node("n1"), Q, gang("a", "q", 2, kai=kai))).keys() == names("a", 2)
    assert bound(cycle(node("n1"), kai_queue("q"), gang("a", "q", 2, kai=kai))).keys() == names("a", 2)


def test_roots_of_both_systems_are_one() -> None:
    """Volcano's `root` is no queue of its own: what is below it stands beside queues that name no parent."""
    plan = cycle(
        node("n1"),
        volcano_queue("root"),
        volcano_queue("q", parent="root"),
        gang("a", "q", 1),
    )
    assert bound(plan)


@pytest.mark.parametrize("kai", [False, True])
def test_pods_behind_a_gate_are_not_placed(kai: bool) -> None:
    gated = gang("a", "q", 1, kai=kai, schedulingGates=[{"name": "wait"}])
    plan = cycle(node("n1"), Q, gated)
    assert not bound(plan)


# -- whole or not at all --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kai", [False, True])
def test_a_gang_is_placed_whole_or_not_at_all(kai: bool) -> None:
    assert bound(cycle(node("n1"), Q, gang("a", "q", 8, kai=kai))).keys() == names("a", 8)
    plan = cycle(node("n1"), Q, gang("a", "q", 9, kai=kai))
    assert not bound(plan)
    assert "Insufficient nvidia.com/gpu" in why(plan, "a")


def test_a_gang_that_lacks_pods_waits() -> None:
    assert not bound(cycle(node("n1"), Q, gang("a", "q", 2, 3)))


def test_beyond_its_minimum_a_job_grows_by_one_task_at_a_time_and_others_have_their_turn() -> None:
    plan = cycle(node("n1"), Q, gang("a", "q", 8, 2), gang("b", "q", 8, 2, kai=True))
    assert {"a-0", "a-1", "b-0", "b-1"} <= bound(plan).keys()


def test_every_role_has_its_minimum() -> None:
    roles = ["ps", "worker", "worker", "worker"]
    parts = {"minTaskMember": {"ps": 1, "worker": 2}}
    whole = gang("a", "q", 4, 3, roles=roles, group=parts)
    assert len(bound(cycle(node("n1", 3), Q, whole))) == 3
    large = [{GPU: "4"}, *[{GPU: "1"}] * 3]
    assert not bound(cycle(node("n1", 3), Q, gang("a", "q", 4, 3, roles=roles, group=parts, each=large)))
    last = gang("a", "q", 4, 3, roles=roles[::-1], group=parts)
    assert bound(cycle(node("n1", 3), Q, last)).keys() == {"a-0", "a-1", "a-3"}


def test_sub_groups_of_a_kai_job_each_have_their_minimum() -> None:
    groups = {"subGroups": [{"name": "x", "minMember": 2}, {"name": "y", "minMember": 2}]}
    job = gang("a", "q", 4, kai=True, roles=["x", "x", "y", "y"], group=groups)
    assert bound(cycle(node("n1", 4), Q, job)).keys() == names("a", 4)
    assert not bound(cycle(node("n1", 3), Q, job))


def policies(tier: int | None = None) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "name": "slices",
        "subGroupSize": 2,
        "minSubGroups": 2,
        "matchLabelKeys": ["slice"],
    }
    if tier is not None:
        policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    return {"subGroupPolicy": [policy]}


def sliced(tier: int | None = None) -> list[Any]:
    job = gang("a", "q", 4, 4, group=policies(tier), roles=["w"] * 4)
    slices = [pod(f"a-{n}", {GPU: "1"}, annotations={"scheduling.k8s.io/group-name": "a"}, labels={"slice": f"{n // 2}"}) for n in range(4)]  # fmt: skip
    return [job[0], *slices]


def test_sub_groups_of_a_volcano_job_each_have_their_size() -> None:
    assert bound(cycle(node("n1", 4), Q, *sliced())).keys() == names("a", 4)
    assert not bound(cycle(node("n1", 3), Q, *sliced()))


def test_tasks_that_ask_for_nothing_do_not_wait_behind_those_that_find_no_place() -> None:
    each = [{GPU: "1"}, {GPU: "8"}, {}, {}]
    plan = cycle(node("n1"), Q, gang("a", "q", 4, 1, each=each))
    assert bound(plan).keys() == {"a-0", "a-2", "a-3"}


def test_tasks_that_ask_for_nothing_are_not_placed_before_their_gang() -> None:
    plan = cycle(node("n1"), Q, gang("a", "q", 2, each=[{GPU: "9"}, {}]))
    assert not bound(plan)


# -- idle and leaving -----------------------------------------------------------------------------------------------


def leaving(name: str, on: str, gpus: int) -> Any:
    return pod(name, {GPU: str(gpus)}, on=on, deleted=LEAVING)


def test_what_is_idle_comes_before_what_is_being_released() -> None:
    """Packing would prefer the fuller node."""
    plan = cycle(node("n1"), node("n2"), Q, leaving("old", "n1", 8), gang("a", "q", 1))
    assert bound(plan) == {"a-0": "n2"}


def test_a_gang_that_has_to_wait_for_part_of_its_places_claims_all_of_them() -> None:
    plan = cycle(node("n1"), Q, leaving("old", "n1", 4), gang("a", "q", 6))
    assert not bound(plan)
    assert claims(plan).keys() == names("a", 6)


# -- order ----------------------------------------------------------------------------------------------------------


def test_in_a_queue_the_higher_priority_goes_first_then_the_older() -> None:
    parts = [node("n1", 1), Q, priority_class("high", 90)]
    late, early = "2026-01-01T02:00:00Z", "2026-01-01T01:00:00Z"
    older = cycle(*parts, gang("a", "q", 1, created=late), gang("b", "q", 1, kai=True, created=early))
    assert bound(older).keys() == {"b-0"}
    higher = cycle(
        *parts, gang("a", "q", 1, created=late, priority="high"), gang("b", "q", 1, kai=True, created=early)
    )
    assert bound(higher).keys() == {"a-0"}


def test_a_job_that_lacks_its_minimum_goes_before_one_that_wants_more() -> None:
    early, late = "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"
    plan = cycle(
        node("n1", 2), Q, gang("a", "q", 2, 1, on=["n1"], created=early), gang("b", "q", 1, created=late)
    )
    assert bound(plan).keys() == {"b-0"}


# -- close together -------------------------------------------------------------------------------------------------


def members(*nodes: str) -> list[dict[str, Any]]:
    return [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in nodes]


RACKS = [hyper_node("r1", 1, *members("n1", "n2")), hyper_node("r2", 1, *members("n3", "n4"))]
NODES = [node(f"n{number}", 4) for number in range(1, 5)]


def near(mode: str = "hard", tier: int = 1) -> dict[str, Any]:
    return {"networkTopology": {"mode": mode, "highestTierAllowed": tier}}


def test_a_volcano_job_gets_one_hypernode() -> None:
    busy = pod("other", {GPU: "3"}, on="n1", scheduler="default-scheduler")
    plan = cycle(*NODES, *RACKS, Q, busy, gang("a", "q", 8, group=near()))
    assert set(bound(plan).values()) == {"n3", "n4"}


def test_a_job_that_no_hypernode_can_take_waits_and_says_so() -> None:
    plan = cycle(*NODES, *RACKS, Q, gang("a", "q", 9, group=near()))
    assert not bound(plan)
    assert "no HyperNode of tier 1 or below has room for 9 pods together" in why(plan, "a")


def test_a_soft_hypernode_constraint_keeps_no_job_waiting() -> None:
    assert len(bound(cycle(*NODES, *RACKS, Q, gang("a", "q", 9, group=near("soft"))))) == 9


def test_a_constraint_holds_when_room_is_made_and_only_there_pods_are_evicted() -> None:
    """The youngest go first: of n4, n1, n3 and n2, in this order. What is on n1 does not help."""
    hours = {"n4": 4, "n1": 3, "n3": 2, "n2": 1}
    old = [
        gang(f"on-{name}", "w", 4, on=name, created=f"2026-01-01T0{hour}:00:00Z")
        for name, hour in hours.items()
    ]
    plan = cycle(*NODES, *RACKS, volcano_queue("v"), volcano_queue("w"), old, gang("a", "v", 6, group=near()))
    assert set(claims(plan).values()) == {"n3", "n4"}
    assert evicted(plan) == names("on-n3", 4) | names("on-n4", 4)


def test_parts_of_a_volcano_job_get_a_hypernode_each() -> None:
    plan = cycle(*[node(f"n{number}", 1) for number in range(1, 5)], *RACKS, Q, *sliced(1))
    rack = {"n1": 1, "n2": 1, "n3": 2, "n4": 2}
    placed = bound(plan)
    assert rack[placed["a-0"]] == rack[placed["a-1"]] != rack[placed["a-2"]] == rack[placed["a-3"]]


def test_a_kai_job_gets_one_domain_of_its_topology() -> None:
    nodes = [node(f"n{number}", 4, labels={"rack": f"r{number // 2}"}) for number in range(4)]
    wish = {"topologyConstraint": {"topology": "net", "requiredTopologyLevel": "rack"}}
    parts = [*nodes, topology("net", "rack"), Q]
    plan = cycle(*parts, gang("a", "q", 8, kai=True, group=wish))
    assert set(bound(plan).values()) in ({"n0", "n1"}, {"n2", "n3"})
    assert not bound(cycle(*parts, gang("a", "q", 9, kai=True, group=wish)))


# -- nodes ----------------------------------------------------------------------------------------------------------


def test_gpus_are_packed() -> None:
    """Also where the rest of the node is the fuller for it."""
    busy = gang("old", "q", 1, gpus=1, on="n2", asked={"cpu": "60", "memory": "10Gi"})
    assert bound(cycle(node("n1"), node("n2"), Q, busy, gang("a", "q", 1))) == {"a-0": "n2"}


def test_tasks_without_gpus_are_spread() -> None:
    busy = gang("old", "q", 1, gpus=0, on="n1", asked={"cpu": "50"})
    plan = cycle(node("n1", 0), node("n2", 0), Q, busy, gang("a", "q", 1, gpus=0))
    assert bound(plan) == {"a-0": "n2"}


def test_a_stated_preference_comes_before_packing() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    prefers = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]
        }
    }
    busy = gang("old", "q", 1, gpus=7, on="n2")
    plan = cycle(node("n1", labels={"disk": "ssd"}), node("n2"), Q, busy, gang("a", "q", 1, affinity=prefers))
    assert bound(plan) == {"a-0": "n1"}


def test_filters_of_kube_scheduler_that_kai_lacks_hold_for_kai_jobs() -> None:
    """Topology spread."""
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]
    job = gang("a", "q", 4, kai=True, labels={"app": "x"}, topologySpreadConstraints=spread)
    placed = list(bound(cycle(*nodes, Q, job)).values())
    assert sorted(placed) == ["n1", "n1", "n2", "n2"]


SHARED = {"nvidia.com/gpu.memory": "16000", "nvidia.com/gpu.count": "2"}


@pytest.mark.parametrize("kai", [False, True])
def test_gpus_are_shared_by_jobs_of_both_systems(kai: bool) -> None:
    half = {"gpu-fraction": "0.5"}
    parts = [node("n1", 2, labels=SHARED), Q]
    other = gang("b", "q", 2, kai=not kai, gpus=0, notes=half)
    plan = cycle(*parts, gang("a", "q", 2, kai=kai, gpus=0, notes=half), other)
    assert len(bound(plan)) == 4
    assert not bound(cycle(*parts, gang("a", "q", 5, kai=kai, gpus=0, notes=half)))


@pytest.mark.parametrize("kai", [False, True])
def test_who_shares_a_device_is_known_from_the_pods_label(kai: bool) -> None:
    half = {"gpu-fraction": "0.5"}
    held = {"runai-gpu-group": "device-7"}
    old = gang("old", "q", 1, kai=kai, gpus=0, notes=half, on="n1", labels=held)
    plan = cycle(node("n1", 2, labels=SHARED), Q, old, gang("a", "q", 1, kai=True, gpus=0, notes=half))
    assert plan.tasks["default/a-0"].gpu_groups == ("device-7",)


def test_a_device_that_is_opened_for_sharing_needs_a_second_place_for_a_pod() -> None:
    half = {"gpu-fraction": "0.5"}
    for places, fits in (("2", True), ("1", False)):
        full = node("n1", 2, labels=SHARED, more={"pods": places})
        assert bool(bound(cycle(full, Q, gang("a", "q", 1, gpus=0, notes=half)))) is fits


def test_slices_count_as_gpus_in_quotas() -> None:
    mig = "nvidia.com/mig-3g.20gb"
    labels = {"nvidia.com/mig.strategy": "mixed"}
    sliced_node = node("n1", 0, labels=labels, more={mig: "4"})
    plan = cycle(
        sliced_node,
        node("n2"),
        kai_queue("k", limit=6.0),
        gang("a", "k", 3, 1, kai=True, gpus=0, asked={mig: "1"}),
    )
    assert len(bound(plan)) == 2
    assert "a limit of 6 of nvidia.com/gpu: 6 is allocated" in why(plan, "a")


def test_filters_of_kai_for_gpus_hold_for_volcano_jobs() -> None:
    """Whole devices are not to be had where they are cut into slices."""
    mixed = node("n1", 4, labels={"nvidia.com/mig.strategy": "mixed"}, more={"nvidia.com/mig-1g.5gb": "7"})
    plan = cycle(mixed, Q, gang("a", "q", 1))
    assert not bound(plan)
    assert "MigStrategy='mixed'" in why(plan, "a")


def test_devices_of_claims_are_handed_out_and_written_down() -> None:
    slice_ = make(
        "resource.k8s.io/v1", "ResourceSlice", "s1",
        spec={"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
              "devices": [{"name": "gpu-0"}]},
    )  # fmt: skip
    class_ = make("resource.k8s.io/v1", "DeviceClass", "gpu.example.com", spec={"selectors": []})
    request = {"name": "one", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}
    claim = make(
        "resource.k8s.io/v1", "ResourceClaim", "c1", namespace="default", uid="c1",
        labels={"kai.scheduler/queue": "q"}, spec={"devices": {"requests": [request]}},
    )  # fmt: skip
    wants = [{"name": "gpu", "resourceClaimName": "c1"}]
    plan = cycle(node("n1", 0), slice_, class_, claim, Q, gang("a", "q", 1, gpus=0, resourceClaims=wants))
    assert bound(plan) == {"a-0": "n1"}
    assert plan.claims["default/c1"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"


# -- jobs without pods ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("into", "why_not"),
    [
        ("nowhere", "queue 'nowhere' does not exist; create it, or name another queue"),
        ("q", "waits for its pods: it needs 2 and none are there"),
    ],
)
def test_a_job_without_pods_is_reported_what_it_waits_for(into: str, why_not: str) -> None:
    group = make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "empty",
        namespace="default",
        spec={"queue": into, "minMember": 2},
    )
    plan = cycle(node("n1"), Q, group)
    assert any(why_not in reason for reason in plan.jobs["default/empty"].reasons)
