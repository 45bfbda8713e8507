"""The stand-ins for Kubernetes' volume controller, provisioners, and the controller of resource claims."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from maniple.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.meta import Object
from maniple.sim.clock import run
from maniple.sim.faults import Fault
from maniple.sim.world import World
from tests.live.need_objects import LOCAL, MADE, claim, claiming, resource_claim, storage_class, volume
from tests.live.objects import NAMESPACE, node, pod

Raw = dict[str, Any]
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def played(scene: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await scene(World(start_seconds=0.1))

    run(main(), virtual=True)


def create(world: World, *raws: Raw) -> None:
    for raw in raws:
        world.store.create(raw)


def one(world: World, kind: type[Object], name: str) -> Raw:
    return world.store.get(kind, f"{NAMESPACE}/{name}" if kind.namespaced else name)


def choose(world: World, name: str, node: str) -> None:
    patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
    world.store.patch(PersistentVolumeClaim, f"{NAMESPACE}/{name}", patch)


def immediate(raw: Raw) -> Raw:
    return {**raw, "volumeBindingMode": "Immediate"}


def test_a_claim_that_need_not_wait_gets_the_smallest_volume_that_is_large_enough() -> None:
    async def scene(world: World) -> None:
        create(world, immediate(storage_class(LOCAL)), volume("tiny", "n1", "1Gi"))
        create(world, volume("huge", "n1", "9Gi"), volume("right", "n1", "3Gi"), claim("c", LOCAL, "2Gi"))
        assert world.busy
        await asyncio.sleep(1)
        assert one(world, PersistentVolumeClaim, "c")["spec"]["volumeName"] == "right"
        phases = {name: one(world, PersistentVolume, name)["status"]["phase"] for name in ("tiny", "right")}
        assert phases == {"tiny": "Available", "right": "Bound"}
        assert not world.busy

    played(scene)


def test_a_claim_that_waits_gets_a_volume_when_its_node_is_chosen_and_it_is_there_alone() -> None:
    async def scene(world: World) -> None:
        create(world, storage_class(MADE), node("n1"), claim("c", MADE))
        await asyncio.sleep(1)
        assert "volumeName" not in one(world, PersistentVolumeClaim, "c")["spec"]
        choose(world, "c", "n1")
        await asyncio.sleep(1)
        found = one(world, PersistentVolumeClaim, "c")
        made = one(world, PersistentVolume, found["spec"]["volumeName"])
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["n1"]
        world.store.remove(PersistentVolumeClaim, f"{NAMESPACE}/c")
        await asyncio.sleep(1)
        assert world.store.list(PersistentVolume)[0] == []

    played(scene)


def test_a_volume_that_cannot_be_made_leaves_the_choice_to_the_scheduler() -> None:
    async def scene(world: World) -> None:
        create(world, storage_class(MADE), node("n1"), claim("c", MADE), claim("nowhere", MADE))
        world.volumes.faults.plan(Fault("provision", 422, key=f"{NAMESPACE}/c"))
        choose(world, "c", "n1")
        choose(world, "nowhere", "n2")
        await asyncio.sleep(1)
        for name in ("c", "nowhere"):
            assert SELECTED_NODE not in one(world, PersistentVolumeClaim, name)["metadata"]["annotations"]

    played(scene)


def test_claims_of_a_pods_own_volumes_come_and_go_with_it() -> None:
    async def scene(world: World) -> None:
        template = {"spec": claim("x", MADE)["spec"]}
        own = pod("p")
        own["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        create(world, storage_class(MADE), node("n1"), own, claim("p-other", MADE))
        await asyncio.sleep(1)
        (owner,) = one(world, PersistentVolumeClaim, "p-scratch")["metadata"]["ownerReferences"]
        assert owner["uid"] == one(world, Pod, "p")["metadata"]["uid"]
        world.store.remove(Pod, f"{NAMESPACE}/p")
        await asyncio.sleep(1)
        left = [raw["metadata"]["name"] for raw in world.store.list(PersistentVolumeClaim)[0]]
        assert left == ["p-other"]

    played(scene)


def test_a_deleted_pod_is_removed_from_claims_and_its_own_claim_is_deleted() -> None:
    async def scene(world: World) -> None:
        create(world, claiming(pod("a"), "ours"), claiming(pod("b"), "ours"), resource_claim("ours"))
        users = [{"resource": "pods", "name": p, "uid": one(world, Pod, p)["metadata"]["uid"]} for p in "ab"]
        status = {"reservedFor": users, "allocation": {"devices": {}}}
        world.store.patch(ResourceClaim, f"{NAMESPACE}/ours", {"status": status})
        own = resource_claim("own")
        own["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "a", "uid": users[0]["uid"]}]
        create(world, own)
        world.store.remove(Pod, f"{NAMESPACE}/a")
        await asyncio.sleep(1)
        assert world.store.find(ResourceClaim, f"{NAMESPACE}/own") is None
        assert one(world, ResourceClaim, "ours")["status"] == {**status, "reservedFor": users[1:]}
        world.store.remove(Pod, f"{NAMESPACE}/b")
        await asyncio.sleep(1)
        assert one(world, ResourceClaim, "ours")["status"] == {}
        assert not world.busy

    played(scene)


def test_claims_are_made_from_templates_whichever_comes_first_and_go_with_their_pods() -> None:
    async def scene(world: World) -> None:
        template: Raw = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpus", "namespace": NAMESPACE},
            "spec": {"spec": resource_claim("x")["spec"]},
        }
        create(world, claiming(pod("early")))
        await asyncio.sleep(1)
        create(world, template, claiming(pod("late")))
        await asyncio.sleep(1)
        for name in ("early", "late"):
            (made,) = one(world, Pod, name)["status"]["resourceClaimStatuses"]
            claim = one(world, ResourceClaim, made["resourceClaimName"])
            assert claim["spec"] == template["spec"]["spec"]
            (owner,) = claim["metadata"]["ownerReferences"]
            assert (owner["name"], owner["controller"]) == (name, True)
        world.store.remove(Pod, f"{NAMESPACE}/late")
        await asyncio.sleep(1)
        assert [raw["metadata"]["name"] for raw in world.store.list(ResourceClaim)[0]] == ["early-gpus"]

    played(scene)
