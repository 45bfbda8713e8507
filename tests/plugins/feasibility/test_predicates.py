"""The plugin: which filters it has, whom they concern, what its arguments do."""

import pytest

from maniple.framework.criteria import Dependence
from maniple.plugins.feasibility.predicates import Predicates
from tests.plugins.asking import Raw, World, node, other, pod, where
from tests.plugins.feasibility.reference import ZONE
from tests.plugins.feasibility.storage import claim, claiming, csi_node, storage_class

ORDER = [
    "PodCount",
    "NodeUnschedulable",
    "NodeConditions",
    "NodeAffinity",
    "TaintToleration",
    "NodePorts",
    "InterPodAffinity",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "VolumeBinding",
    "VolumeBinding of waiting claims",
    "DynamicResources",
]


def test_filters_come_in_volcano_s_order() -> None:
    assert list(World([node("a")]).filters) == ORDER


@pytest.mark.parametrize(
    ("argument", "gone"),
    [
        ("predicate.NodeAffinityEnable", {"NodeAffinity"}),
        ("predicate.NodePortsEnable", {"NodePorts"}),
        ("predicate.TaintTolerationEnable", {"TaintToleration"}),
        ("predicate.PodAffinityEnable", {"InterPodAffinity"}),
        ("predicate.NodeVolumeLimitsEnable", {"NodeVolumeLimits"}),
        ("predicate.VolumeZoneEnable", {"VolumeZone"}),
        ("predicate.PodTopologySpreadEnable", {"PodTopologySpread"}),
        ("predicate.VolumeBindingEnable", {"VolumeBinding", "VolumeBinding of waiting claims"}),
        ("predicate.CacheEnable", set()),
    ],
)
@pytest.mark.parametrize("value", [False, "false"])
def test_each_filter_but_the_first_three_can_be_turned_off(
    argument: str, gone: set[str], value: bool | str
) -> None:
    world = World([node("a")], {argument: value})
    assert set(ORDER) - set(world.filters) == gone
    assert world.session.warnings == []


def test_arguments_that_change_nothing_are_accepted() -> None:
    given = {
        "predicate.CacheEnable": True,
        "predicate.DynamicResourceAllocationEnable": False,
        "volumebinding.bindTimeoutSeconds": 30,
        "volumebinding.weight": 5,
        "volumebinding.shape": [{"utilization": 0, "score": 10}],
        "dynamicresources.filterTimeoutSeconds": 3,
    }
    world = World([node("a")], given)
    assert list(world.filters) == ORDER
    assert world.session.warnings == []


def test_a_misspelt_argument_is_reported_with_the_nearest_name() -> None:
    (warning,) = World([node("a")], {"predicate.NodePortEnable": False}).session.warnings
    assert "predicate.NodePortEnable" in warning
    assert "predicate.NodePortsEnable" in warning


def test_a_value_of_the_wrong_type_is_reported_and_the_default_stays() -> None:
    world = World([node("a")], {"predicate.NodePortsEnable": 3})
    assert "NodePorts" in world.filters
    assert len(world.session.warnings) == 1


def test_a_turned_off_filter_does_not_rule_pods_out_beforehand() -> None:
    objects = [node("a"), claiming("p", "missing")]
    assert "VolumeZone" in World(objects).refusal("p")
    assert "VolumeBinding" in World(objects, {"predicate.VolumeZoneEnable": False}).refusal("p")
    off = {"predicate.VolumeZoneEnable": False, "predicate.VolumeBindingEnable": False}
    world = World(objects, off)
    assert world.refusal("p") == ""
    assert world.verdicts("NodeVolumeLimits", "p")["a"].startswith("looking up PVC work/missing: ")


def test_a_node_takes_no_more_pods_than_it_allows() -> None:
    one = node("a")
    one["status"]["allocatable"] = {"cpu": "8", "memory": "16Gi", "pods": "2"}
    world = World([one, pod("e", on="a"), pod("p"), pod("q")])
    assert where(world.verdicts("PodCount", "p")) == {"a"}
    world.place("q", "a")
    assert world.verdicts("PodCount", "p") == {"a": "node(s) pod number exceeded"}
    world.evict("e")
    assert where(world.verdicts("PodCount", "p")) == {"a"}


def busy_cluster() -> list[Raw]:
    """Taints, anti-affinity, spreading, ports, volumes and services of other pods."""
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
        ]
    }
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
    return [
        node("a", {ZONE: "1"}, taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]),
        node("b", unschedulable=True),
        pod("e", "a", affinity={"podAntiAffinity": apart}, topologySpreadConstraints=spread),
        pod("f", "a", containers=[{"name": "main", "ports": [{"hostPort": 80}]}]),
        other("v1", "Service", "s", metadata={"namespace": "work"}, spec={"selector": {"app": "x"}}),
        csi_node("a", {"red": 1}),
        storage_class("red", "red"),
        claim("c", storage_class="red"),
        claiming("g", "c", on="a"),
    ]


def test_a_plain_pod_pays_for_nothing_that_depends_on_the_whole_cluster() -> None:
    world = World([*busy_cluster(), pod("p", labels={"app": "y"})])
    assert [one.name for one in world.applying("p") if one.depends is Dependence.CLUSTER] == []


def test_a_pod_pays_for_the_terms_that_select_it() -> None:
    world = World([*busy_cluster(), pod("p", labels={"app": "x"})])
    coupled = [one.name for one in world.applying("p") if one.depends is Dependence.CLUSTER]
    assert coupled == ["InterPodAffinity", "PodTopologySpread"]  # others' anti-affinity, the service


def test_only_one_plugin_keeps_the_counts_that_both_use() -> None:
    """With a second plugin on the same session every placement must still count once."""
    ports = [{"name": "main", "ports": [{"hostPort": 80}]}]
    world = World([node("a"), pod("p", containers=ports), pod("q", containers=ports)])
    second = Predicates(world.session, {})
    assert where(world.verdicts("NodePorts", "p")) == {"a"}
    transaction = world.place("q", "a")
    event = transaction.operations[0].event
    second.on_allocate(event)
    second.on_deallocate(event)
    second.on_deallocate(event)
    assert where(world.verdicts("NodePorts", "p")) == set()
