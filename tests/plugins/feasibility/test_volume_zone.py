"""Zones of bound volumes."""

import pytest

from tests.plugins.asking import Raw, World, node, where
from tests.plugins.feasibility.storage import claim, claiming, storage_class, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
NODES = [
    node("a", {ZONE: "1", REGION: "x"}),
    node("b", {ZONE: "2", REGION: "x"}),
    node("c", {OLD_ZONE: "1"}),
    node("d", {REGION: "y"}),
    node("plain"),
]


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ({}, {"a", "b", "c", "d", "plain"}),
        ({ZONE: "1"}, {"a", "plain"}),
        ({OLD_ZONE: "1"}, {"a", "c", "plain"}),  # the old label is met by the node's new one
        ({ZONE: "1__2"}, {"a", "b", "plain"}),
        ({ZONE: "2", REGION: "x"}, {"b", "plain"}),
        ({ZONE: "1__"}, {"a", "b", "c", "d", "plain"}),  # cannot be read
        ({REGION: "y"}, {"d", "plain"}),
    ],
)
def test_the_node_is_in_a_zone_of_the_volume(labels: dict[str, str], nodes: set[str]) -> None:
    bound = [volume("v", labels=labels), claim("c", "v", bound=True)]
    world = World([*NODES, *bound, claiming("p", "c")])
    found = world.verdicts("VolumeZone", "p")
    assert where(found) == nodes
    assert {text for text in found.values() if text} <= {"node(s) had no available volume zone"}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", "v", bound=True)], 'persistentvolume "v" not found'),
        ([claim("c")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("c", storage_class="s")], 'storageclass.storage.k8s.io "s" not found'),
        (
            [claim("c", storage_class="s"), storage_class("s", waits=False)],
            "PersistentVolume had no name",
        ),
    ],
)
def test_a_claim_that_leads_to_no_volume_rules_the_pod_out(objects: list[Raw], message: str) -> None:
    world = World([*NODES, *objects, claiming("p", "c")])
    assert world.refusal("p") == f"plugin VolumeZone pre-predicates failed {message}"


def test_claims_that_wait_for_a_node_have_no_zone_yet() -> None:
    world = World([*NODES, claim("c", storage_class="s"), storage_class("s"), claiming("p", "c")])
    assert world.refusal("p") == ""
    assert len(where(world.verdicts("VolumeZone", "p"))) == len(NODES)
