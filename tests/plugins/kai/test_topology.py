"""KAI's topology plugin: which node sets are tried, in what order, and what nodes are worth inside them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from maniple.plugins.kai.topology import Topology
from tests.actions.allocate_scenes import Bench, cycle, gang, node, placed, queue, reasons, topology

ROOT = [queue("q")]
NET = topology("net", "zone", "rack")


def wish(required: str = "", preferred: str = "", name: str = "net") -> dict[str, str]:
    return {"topology": name, "requiredTopologyLevel": required, "preferredTopologyLevel": preferred}


def hosts(**racks: tuple[int, ...]) -> list[Any]:
    """Nodes by rack (`z1_r2` is rack r2 of zone z1), with so many GPUs each; named after the rack and a number."""
    made = []
    for place, sizes in racks.items():
        zone, _, rack = place.partition("_")
        labels = {"zone": zone, "rack": rack} if rack else {"zone": zone}
        made += [node(f"{place.replace('_', '-')}-{n}", gpus, labels=labels) for n, gpus in enumerate(sizes)]
    return made


class Sets(Bench):
    """The node sets for a job, or for one of its pod sets."""

    def of(self, job: str, *, pod_set: str = "", among: tuple[str, ...] = ()) -> list[list[str]]:
        session, row = self.session, self.job(job)
        names = session.nodes.facts.names
        group: Any = session.groups.root(row)
        if pod_set:
            group = next(one for one in session.groups.of(row) if one.name == pod_set)
        session.hooks.pre_job_allocation(row)
        rows = session.groups.to_allocate(row)
        nodes = np.flatnonzero(np.isin(names, among)) if among else np.arange(len(names))
        return [
            [names[one] for one in part]
            for part in session.hooks.subset_nodes(group, rows, session.refusals, nodes)
        ]

    def told(self, job: str) -> list[str]:
        return self.session.refusals.jobs.get(self.job(job), [])

    def scores(self) -> Mapping[str, float]:
        plugin = next(one for _, one in self.session.plugins if isinstance(one, Topology))
        names = self.session.nodes.facts.names
        return {
            name: value for name, value in zip(names, plugin._scores[""], strict=True) if np.isfinite(value)
        }


# -- what is asked for ------------------------------------------------------------------------------------------------


def test_without_a_constraint_all_nodes_are_one_set() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z1_r2=(1,)), node("loose", 1), gang("a", 1))
    assert scene.of("a") == [["loose", "z1-r1-0", "z1-r2-0"]]


def test_a_topology_that_is_not_there_is_the_reason() -> None:
    scene = Sets(ROOT, hosts(z1_r1=(1,)), gang("a", 1, wish=wish("rack", name="other")))
    assert scene.of("a") == []
    assert scene.told("a") == ["Requested topology other does not exist"]


@pytest.mark.parametrize(("required", "preferred"), [("row", ""), ("zone", "row")])
def test_a_level_that_is_not_there_is_the_reason(required: str, preferred: str) -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z2_r1=(1,)), gang("a", 1, wish=wish(required, preferred)))
    assert scene.of("a") == []
    (reason,) = scene.told("a")
    assert "has no level 'row'" in reason


def test_a_constraint_without_a_level_is_an_error() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z2_r1=(1,)), gang("a", 1, wish=wish()))
    assert scene.of("a") == []
    assert "names no level" in scene.told("a")[0]


def test_a_constraint_that_names_no_topology_is_none() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,)), node("loose", 1), gang("a", 1, wish=wish("rack", name="")))
    assert scene.of("a") == [["loose", "z1-r1-0"]]


def test_where_nothing_is_to_be_placed_all_nodes_are_one_set() -> None:
    groups = [{"name": one, "minMember": 1, "topologyConstraint": wish("rack")} for one in ("x", "y")]
    job = gang("a", 2, groups=groups, roles=["x", "y"], on=["z1-r1-0"])
    scene = Sets(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(2,)), node("loose", 1), job)
    row, nodes = scene.job("a"), np.arange(3)
    pod_set = next(one for one in scene.session.groups.of(row) if one.name == "x")
    none = np.zeros(0, dtype=np.int64)
    (only,) = scene.session.hooks.subset_nodes(pod_set, none, scene.session.refusals, nodes)
    assert only.tolist() == [0, 1, 2]


def test_nodes_that_lack_a_label_are_outside() -> None:
    scene = Sets(
        ROOT, NET, hosts(z1_r1=(2,), z2=(2,)), node("loose", 2), gang("a", 1, wish=wish("zone")), strict=False
    )
    assert scene.of("a") == [["z1-r1-0"]]


def test_a_rack_of_another_zone_is_another_rack() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z2_r1=(1,)), gang("a", 2, wish=wish("rack")))
    assert scene.of("a") == []


# -- a required level -------------------------------------------------------------------------------------------------


def test_the_domain_that_would_be_fullest_comes_first() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(6,), z1_r2=(4,), z1_r3=(4,)), gang("a", 3, wish=wish("rack")))
    assert scene.of("a") == [["z1-r2-0"], ["z1-r3-0"], ["z1-r1-0"]]


def test_siblings_stay_together_the_fuller_zone_first() -> None:
    nodes = hosts(z1_r1=(2,), z1_r2=(8,), z2_r1=(3,), z2_r2=(3,))
    scene = Sets(ROOT, NET, nodes, gang("a", 2, wish=wish("rack")))
    assert scene.of("a") == [["z2-r1-0"], ["z2-r2-0"], ["z1-r1-0"], ["z1-r2-0"]]


def test_domains_without_room_for_all_are_not_tried() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(2, 1), z1_r2=(2,), z2_r1=(1, 1, 1)), gang("a", 3, wish=wish("rack")))
    assert sorted(scene.of("a")) == [["z1-r1-0", "z1-r1-1"], ["z2-r1-0", "z2-r1-1", "z2-r1-2"]]


def test_room_is_counted_node_by_node() -> None:
    """Three GPUs are free in each rack, but a task wants two on one node."""
    scene = Sets(ROOT, NET, hosts(z1_r1=(3,), z1_r2=(1, 1, 1)), gang("a", 1, gpus=2, wish=wish("rack")))
    assert scene.of("a") == [["z1-r1-0"]]


def test_what_is_being_released_counts_as_free() -> None:
    old = gang("old", 1, on=["z1-r1-0"], deleted="2026-01-01T00:00:00Z")
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z1_r2=(0,)), old, gang("a", 1, wish=wish("rack")))
    assert scene.of("a") == [["z1-r1-0"]]


def test_what_is_claimed_does_not() -> None:
    old = gang("old", 1, on=["z1-r1-0"], deleted="2026-01-01T00:00:00Z")
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z1_r2=(1,)), old, gang("b", 1), gang("a", 1, wish=wish("rack")))
    scene.transaction.pipeline(scene.rows("b-0"), np.array([0]))
    assert scene.of("a") == [["z1-r2-0"]]


def test_tasks_of_different_kinds_are_compared_by_their_sums() -> None:
    """One asks for a GPU, the other for none: nobody counts how many of them go into a node."""
    requests = [{"cpu": "1", "memory": "1G", "nvidia.com/gpu": "2"}, {"cpu": "60", "memory": "1G"}]
    nodes = hosts(z1_r1=(1, 1), z1_r2=(1,))
    scene = Sets(ROOT, NET, nodes, gang("a", 2, requests=requests, wish=wish("rack")))
    assert scene.of("a") == [["z1-r1-0", "z1-r1-1"]]


@pytest.mark.parametrize("everybody", [True, False])
def test_any_resource_that_only_some_ask_for_makes_tasks_of_different_kinds(everybody: bool) -> None:
    """By sums the two nodes have room for both. Node by node there is room for none of them."""
    fpga = {"cpu": "1", "memory": "1G", "example.com/fpga": "2"}
    other = fpga if everybody else {"cpu": "1", "memory": "1G"}
    labels = {"zone": "z1", "rack": "r1"}
    nodes = [node(f"n{n}", 0, labels=labels, extra={"example.com/fpga": "1"}) for n in range(2)]
    scene = Sets(ROOT, NET, nodes, hosts(z1_r2=(0,)), gang("a", 2, requests=[fpga, other], wish=wish("rack")))
    assert scene.of("a") == ([] if everybody else [["n0", "n1"]])


def test_the_largest_of_tasks_of_one_kind_is_counted() -> None:
    requests = [{"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "1", "nvidia.com/gpu": "3"}]
    scene = Sets(ROOT, NET, hosts(z1_r1=(4,), z1_r2=(6,)), gang("a", 2, requests=requests, wish=wish("rack")))
    assert scene.of("a") == [["z1-r2-0"]]


def test_tasks_that_ask_for_nothing_fit_anywhere() -> None:
    nodes = hosts(z1_r1=(0,), z1_r2=(0,))
    scene = Sets(ROOT, NET, nodes, gang("a", 5, requests=[{}] * 5, wish=wish("rack")))
    assert len(scene.of("a")) == 2


def test_parts_of_devices_need_a_device_each() -> None:
    half: dict[str, Any] = {"annotations": {"gpu-fraction": "0.5"}, "gpus": 0}
    scene = Sets(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(3,)), gang("a", 3, wish=wish("rack"), **half))
    assert scene.of("a") == [["z1-r2-0"]]


def test_further_tasks_join_those_that_are_there() -> None:
    job = gang("a", 3, minimum=1, on=["z1-r2-0"], wish=wish("rack"))
    scene = Sets(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(4,)), job)
    assert scene.of("a") == [["z1-r2-0"]]


def test_a_pod_set_joins_only_its_own() -> None:
    groups = [
        {"name": "x", "minMember": 1, "topologyConstraint": wish("rack")},
        {"name": "y", "minMember": 1, "topologyConstraint": wish("rack")},
    ]
    job = gang("a", 3, groups=groups, roles=["x", "y", "y"], on=["z1-r2-0"])
    scene = Sets(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(4,)), job)
    assert scene.of("a", pod_set="y") == [["z1-r1-0"], ["z1-r2-0"]]


def test_only_nodes_of_the_given_set_are_used() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(2, 2), z1_r2=(2,)), gang("a", 1, wish=wish("rack")))
    assert scene.of("a", among=("z1-r1-1", "z1-r2-0")) == [["z1-r2-0"], ["z1-r1-1"]]


# -- the common domain ------------------------------------------------------------------------------------------------


def test_nothing_is_tried_where_the_common_domain_is_too_small() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z1_r2=(1,)), gang("a", 3, wish=wish("rack")))
    assert scene.of("a") == []
    assert scene.told("a") == [
        "topology net, requirement rack couldn't be satisfied for job <default/a>: "
        "not enough resources in z1 to allocate the job"
    ]


def test_the_whole_topology_is_called_the_cluster() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z2_r2=(1,)), gang("a", 3, wish=wish("rack")))
    assert scene.of("a") == []
    assert scene.told("a")[0].endswith(": not enough resources in the cluster to allocate the job")


def test_a_wide_level_is_fulfilled_inside_a_narrow_domain() -> None:
    """All nodes are in one rack, the job asks for one zone. The original finds no zone then."""
    scene = [ROOT, NET, hosts(z1_r1=(1, 1)), gang("a", 2, wish=wish("zone"))]
    assert Sets(*scene).of("a") == [["z1-r1-0", "z1-r1-1"]]
    assert Sets(*scene, strict=True).of("a") == []


def test_different_parts_of_devices_are_refused_only_by_the_original() -> None:
    parts = gang("a", 2, gpus=0, wish=wish("rack"), annotations={"gpu-fraction": "0.5"})
    parts[2].metadata.annotations["gpu-fraction"] = "0.3"
    scene = [ROOT, NET, hosts(z1_r1=(2,), z1_r2=(0,)), parts]
    assert Sets(*scene).of("a") == [["z1-r1-0"]]
    assert Sets(*scene, strict=True).of("a") == []


# -- a preferred level ------------------------------------------------------------------------------------------------


def test_narrow_domains_come_before_wide_ones() -> None:
    nodes = hosts(z1_r1=(2,), z1_r2=(3,), z2_r1=(9,))
    scene = Sets(ROOT, NET, nodes, gang("a", 2, wish=wish("zone", "rack")))
    assert scene.of("a") == [
        ["z1-r1-0"],
        ["z1-r2-0"],
        ["z2-r1-0"],
        ["z1-r1-0", "z1-r2-0"],
        ["z2-r1-0"],
    ]


def test_a_preference_for_a_wider_level_than_the_required_one_adds_no_sets() -> None:
    nodes = hosts(z1_r1=(2,), z1_r2=(3,), z2_r1=(9,))
    scene = Sets(ROOT, NET, nodes, gang("a", 2, wish=wish("rack", "zone")))
    assert scene.of("a") == [["z1-r1-0"], ["z1-r2-0"], ["z2-r1-0"]]


def test_a_preference_alone_may_be_given_up_altogether() -> None:
    scene = Sets(
        ROOT, NET, hosts(z1_r1=(1,), z1_r2=(1,), z2_r1=(1,)), gang("a", 3, wish=wish(preferred="rack"))
    )
    assert scene.of("a") == [["z1-r1-0", "z1-r2-0", "z2-r1-0"]]


def test_the_common_domain_is_no_narrower_than_the_preferred_level() -> None:
    """All nodes are in one rack of one zone; the zone is what is preferred, and it is what is found."""
    scene = Sets(ROOT, NET, hosts(z1_r1=(1, 1)), gang("a", 2, wish=wish(preferred="zone")), strict=True)
    assert scene.of("a")[0] == ["z1-r1-0", "z1-r1-1"]
    assert scene.scores() == {"z1-r1-0": 10.0, "z1-r1-1": 10.0}


def test_nodes_of_roomier_domains_are_worth_more_in_ten_steps() -> None:
    nodes = hosts(z1_r1=(3,), z1_r2=(2,), z1_r3=(4,))
    scene = Sets(ROOT, NET, nodes, gang("a", 6, wish=wish("zone", "rack")))
    scene.of("a")
    assert scene.scores() == {"z1-r2-0": 3.0, "z1-r1-0": 6.0, "z1-r3-0": 10.0}


def test_a_job_that_fits_no_rack_begins_in_the_roomiest() -> None:
    nodes = hosts(z1_r1=(3,), z1_r2=(2,), z1_r3=(4,))
    plan = cycle(ROOT, NET, nodes, gang("a", 6, wish=wish("zone", "rack")))
    assert sorted(placed(plan).values()) == ["z1-r1-0"] * 2 + ["z1-r3-0"] * 4


def test_a_preference_of_the_job_holds_for_its_pod_sets() -> None:
    groups = [{"name": "x", "minMember": 3}, {"name": "y", "minMember": 2}]
    nodes = hosts(z1_r1=(3,), z1_r2=(2,), z1_r3=(4,))
    job = gang("a", 5, groups=groups, roles=["x", "x", "x", "y", "y"], wish=wish("zone", "rack"))
    where = placed(cycle(ROOT, NET, nodes, job))
    assert {where[f"a-{number}"] for number in range(3)} == {"z1-r3-0"}


def test_what_nodes_are_worth_ends_with_the_job() -> None:
    first = gang("a", 2, wish=wish("zone", "rack"), created="2026-01-01T00:00:00Z")
    second = gang("b", 1, created="2026-01-01T01:00:00Z")
    plan = cycle(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(5,)), node("loose", 1), first, second)
    assert placed(plan)["b-0"] == "loose"  # the fullest node, and none is ruled out


# -- reasons ----------------------------------------------------------------------------------------------------------


def test_a_job_is_reported_how_far_each_domain_goes() -> None:
    scene = Sets(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(1,)), gang("a", 3, wish=wish("rack")))
    assert scene.of("a") == []
    assert scene.told("a") == [
        "node-group z1.r1 can allocate only 2 of 3 required pods",
        "node-group z1.r2 can allocate only 1 of 3 required pods",
        "topology net, requirement rack couldn't be satisfied for job <default/a>",
    ]


def test_a_job_of_different_tasks_is_reported_what_domains_lack() -> None:
    requests = [{"cpu": "1", "nvidia.com/gpu": "2"}, {"cpu": "1"}]
    scene = Sets(ROOT, NET, hosts(z1_r1=(1,), z1_r2=(1,)), gang("a", 2, requests=requests, wish=wish("rack")))
    assert scene.of("a") == []
    assert scene.told("a")[0] == "node-group(s) didn't have enough resources: GPUs"


def test_a_sub_group_is_named() -> None:
    groups = [{"name": "x", "minMember": 3, "topologyConstraint": wish("rack")}]
    job = gang("a", 3, groups=groups, roles=["x"] * 3)
    plan = cycle(ROOT, NET, hosts(z1_r1=(2,), z1_r2=(1,)), job)
    assert reasons(plan, "a")[-1].endswith("for job <default/a>, subgroup x")


def test_a_domain_that_was_tried_in_vain_is_no_reason_when_another_served() -> None:
    nodes = hosts(z1_r1=(2,), z1_r2=(4,))
    plan = cycle(ROOT, NET, nodes, gang("a", 2, wish=wish("rack"), nodeSelector={"rack": "r2"}))
    assert set(placed(plan).values()) == {"z1-r2-0"}
    assert reasons(plan, "a") == []


@pytest.mark.parametrize("running", [1, 2, 3])
def test_a_job_grows_in_its_rack_however_many_of_its_tasks_run_there(running: int) -> None:
    """Also where there are as many tasks as nodes."""
    scene = Sets(
        ROOT,
        NET,
        hosts(z1_r1=(8,), z1_r2=(1,)),
        gang("a", 4, 1, on=["z1-r1-0"] * running, wish=wish("rack")),
    )
    assert scene.of("a") == [["z1-r1-0"]]


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        (wish("rack"), False),
        (wish("row"), True),
        (wish("rack", name="other"), True),
        (wish("shelf", name="unused"), True),
        (wish(preferred="rack"), False),
    ],
)
def test_no_room_is_made_where_there_is_no_domain(asked: dict[str, str], lacks: bool) -> None:
    full = hosts(z1_r1=(0,))
    scene = Sets(ROOT, NET, topology("unused", "shelf"), full, gang("a", 1, wish=asked))
    group = scene.session.groups.root(scene.job("a"))
    assert scene.session.hooks.lacks_domains(group) is lacks
