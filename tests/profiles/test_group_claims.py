"""Resource claims of a native PodGroup: allocated once, reserved for the group, in every profile."""

from typing import Any

import msgspec
import pytest

from maniple.objects.dra import ResourceClaim
from maniple.objects.group_claims import GROUP_CLAIMS
from maniple.planner import Plan, Planner, plan
from maniple.profiles.group_forms import ungrouped
from tests.eviction.test_wholes import NOW, WAYS, Raw, Scene, scene_for
from tests.profiles.test_grouping import believed, pod
from tests.profiles.test_shared_claims import claim, driver

PROFILES = ["volcano", "kai", "maniple"]
SHARED = {"name": "gpus", "resourceClaimName": "shared"}
FROM_TEMPLATE = {"name": "gpus", "resourceClaimTemplateName": "t"}
OF_GROUP = {
    "apiGroup": "scheduling.k8s.io",
    "resource": "podgroups",
    "name": "pair",
    "uid": "pair",
}


def raw(item: Any) -> Raw:
    made: Raw = msgspec.to_builtins(item)
    return {"apiVersion": "resource.k8s.io/v1", "kind": item.kind, **made}


def scene_of(profile: str, *, of_group: Raw, of_pods: Raw) -> Scene:
    """A pair on two nodes, of which one has a device."""
    scene = scene_for(profile)
    scene.node("n1", 4)
    scene.node("n2", 4)
    scene.group("pair", 2, ["", ""], whole=False)
    for one in scene.objects:
        if one["kind"] == "PodGroup":
            one["spec"]["resourceClaims"] = [of_group]
        if one["kind"] == "Pod":
            one["spec"]["resourceClaims"] = [of_pods]
    scene.objects += [raw(one) for one in driver("n1", 2)]
    return scene


def with_claim(scene: Scene, name: str = "shared", **metadata: Any) -> Scene:
    made = raw(claim(name))
    made["metadata"] = {"name": name, "namespace": "ml", "uid": name, **metadata}
    scene.objects.append(made)
    return scene


def decided(scene: Scene, profile: str) -> Plan:
    return plan(scene.objects, conf=WAYS[profile][1], profile=profile, now=NOW)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_of_the_group_is_allocated_once_and_reserved_for_it(profile: str) -> None:
    scene = with_claim(scene_of(profile, of_group=SHARED, of_pods=SHARED))
    found = decided(scene, profile)
    assert {**found.binds} == {"ml/pair-0": "n1", "ml/pair-1": "n1"}
    (change,) = found.claims.values()
    assert change["reservedFor"] == [OF_GROUP]
    assert len(change["allocation"]["devices"]["results"]) == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_that_only_the_pods_name_is_reserved_for_them(profile: str) -> None:
    scene = scene_of(profile, of_group={**SHARED, "name": "other"}, of_pods=SHARED)
    with_claim(scene, labels={"kai.scheduler/queue": "q0"})
    (change,) = decided(scene, profile).claims.values()
    assert {one["name"] for one in change["reservedFor"]} == {"pair-0", "pair-1"}
    assert {one["resource"] for one in change["reservedFor"]} == {"pods"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_from_a_template_belongs_to_the_group(profile: str) -> None:
    scene = scene_of(profile, of_group=FROM_TEMPLATE, of_pods=FROM_TEMPLATE)
    for one in scene.objects:
        if one["kind"] == "Pod":
            named = [{"name": "gpus", "resourceClaimName": "pair-gpus"}]
            one["status"]["resourceClaimStatuses"] = named
    owner = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "name": "pair",
        "uid": "pair",
        "controller": True,
    }
    with_claim(scene, "pair-gpus", ownerReferences=[owner])
    found = decided(scene, profile)
    assert {*found.binds.values()} == {"n1"}
    assert [one["reservedFor"] for one in found.claims.values()] == [[OF_GROUP]]


@pytest.mark.parametrize("profile", PROFILES)
def test_in_a_plan_the_claim_of_the_group_is_made_from_its_template(profile: str) -> None:
    scene = scene_of(profile, of_group=FROM_TEMPLATE, of_pods=FROM_TEMPLATE)
    spec = raw(claim("any"))["spec"]
    metadata = {"name": "t", "namespace": "ml"}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata}
    scene.objects.append({**template, "spec": {"spec": spec}})
    found = decided(scene, profile)
    assert {*found.binds.values()} == {"n1"}
    assert {key: one["reservedFor"] for key, one in found.claims.items()} == {"ml/pair-gpus": [OF_GROUP]}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_pod_that_is_added_later_shares_the_claim_that_was_made(profile: str) -> None:
    scene = scene_of(profile, of_group=FROM_TEMPLATE, of_pods=FROM_TEMPLATE)
    spec = raw(claim("t"))["spec"]
    metadata = {"name": "t", "namespace": "ml"}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata}
    scene.objects.append({**template, "spec": {"spec": spec}})
    late = next(one for one in scene.objects if one["kind"] == "Pod")
    scene.objects.remove(late)
    planner = Planner(conf=WAYS[profile][1], profile=profile)
    cluster = planner.build(scene.objects)
    (made,) = cluster.all(ResourceClaim).values()
    planner.apply(cluster, [late])
    assert [*cluster.all(ResourceClaim).values()] == [made]
    assert len(planner.cycle(cluster, now=NOW).binds) == 2


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_that_is_reserved_for_the_group_needs_no_more(profile: str) -> None:
    scene = with_claim(scene_of(profile, of_group=SHARED, of_pods=SHARED))
    allocated = raw(claim("shared", on="n1"))["status"]
    scene.objects[-1]["status"] = {**allocated, "reservedFor": [OF_GROUP]}
    found = decided(scene, profile)
    assert {*found.binds.values()} == {"n1"}
    assert not found.claims


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_that_is_not_there_is_named_with_its_field(profile: str) -> None:
    scene = scene_of(profile, of_group=SHARED, of_pods=SHARED)
    found = decided(scene, profile)
    assert not found.binds
    said = [one.reason for one in found.tasks.values()]
    for one in found.jobs.values():
        said += one.reasons
    assert "spec.resourceClaims[0].resourceClaimName, shared with PodGroup ml/pair" in " ".join(said)


def test_a_note_that_a_user_wrote_does_not_count() -> None:
    forged = pod("a", annotations={GROUP_CLAIMS: "uid:gpus"})
    (read,) = believed(forged).pods.values()
    assert read.metadata.annotations[GROUP_CLAIMS] == ""
    assert ungrouped(read) == forged
