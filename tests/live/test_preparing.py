"""Pods that need more than a node: nothing is allocated twice or leaked, and nothing else is delayed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maniple.cluster.check import validate
from maniple.objects.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.sim.faults import Fault
from tests.live import kai_stage
from tests.live.kai_stage import KaiStage
from tests.live.need_objects import (
    LOCAL,
    MADE,
    claim,
    claiming,
    csi_node,
    device_class,
    devices,
    mounting,
    resource_claim,
    storage_class,
    volume,
)
from tests.live.objects import NAMESPACE, node, pod

FAILED = "failed to bind"
PATIENCE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments: {volumebinding.bindTimeoutSeconds: 30}
"""


def played(scene: Callable[[KaiStage], Coroutine[Any, Any, None]], **settings: Any) -> None:
    stage = kai_stage.played(scene, profile="volcano", **settings)
    assert validate(stage.scheduler.cache.cluster) == []


def users(stage: KaiStage, name: str) -> list[str]:
    """The pods that a resource claim is reserved for."""
    status = stage.of_kind(ResourceClaim)[name].get("status", {})
    return [user["name"] for user in status.get("reservedFor") or []]


def device(stage: KaiStage, name: str) -> str:
    status = stage.of_kind(ResourceClaim)[name].get("status", {})
    results = (status.get("allocation") or {}).get("devices", {}).get("results", [])
    return "+".join(f"{result['pool']}/{result['device']}" for result in results)


def claimed(stage: KaiStage) -> dict[str, str]:
    """By volume: the claim that it names."""
    references = {name: raw["spec"].get("claimRef") for name, raw in stage.of_kind(PersistentVolume).items()}
    return {name: reference["name"] for name, reference in references.items() if reference}


# -- volumes -----------------------------------------------------------------------------------------------------------


def test_volumes_that_never_come_are_waited_for_so_long_and_no_longer() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1"), csi_node("n1"), claim("c", MADE))
        stage.create(mounting(pod("alone"), "c"))
        await asyncio.sleep(29)
        assert not stage.scheduler.settled
        await asyncio.sleep(1.5)
        assert "were not ready in 30 s" in stage.condition("alone")["message"]
        assert stage.condition("alone")["reason"] == "SchedulerError"
        await asyncio.sleep(1)  # and it is decided anew
        assert not stage.scheduler.settled
        assert stage.phases() == {"alone": "Pending"}

    played(scene, conf=PATIENCE)


def test_pods_that_wait_for_volumes_delay_no_other_pod() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1", 100), csi_node("n1"))
        for number in range(50):  # more than there are workers
            stage.create(claim(f"c{number}", MADE), mounting(pod(f"slow-{number}"), f"c{number}"))
        await asyncio.sleep(3)
        stage.create(pod("quick"))
        await asyncio.sleep(3)
        assert stage.phases()["quick"] == "Running"
        assert stage.phases()["slow-0"] == "Pending"

    played(scene)


def test_a_volume_that_was_bound_elsewhere_stays_bound() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(storage_class(LOCAL), node("n1"), volume("v1", "n1"), volume("v2", "n1", "2Gi"))
        stage.create(claim("c", LOCAL), claim("other", LOCAL))
        await asyncio.sleep(5)
        stage.world.volumes.stop()  # so that nothing but this happens to them
        uid = stage.of_kind(PersistentVolumeClaim)["other"]["metadata"]["uid"]
        theirs = {"namespace": NAMESPACE, "name": "other", "uid": uid}
        stage.store.patch(PersistentVolume, "v1", {"spec": {"claimRef": theirs}})
        stage.create(mounting(pod("alone"), "c"))  # the watch has not shown that yet
        await asyncio.sleep(10)
        assert claimed(stage) == {"v1": "other", "v2": "c"}
        assert stage.nodes() == {"alone": ""}  # its claim is not bound yet

    played(scene, late=5.0)


def test_volumes_are_given_once_however_late_the_watch_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(storage_class(LOCAL), node("n1"), *(volume(f"v{n}", "n1") for n in range(4)))
        stage.create(*(claim(f"c{n}", LOCAL) for n in range(4)))
        await asyncio.sleep(10)
        for number in range(4):
            stage.create(mounting(pod(f"p{number}"), f"c{number}"))
            await asyncio.sleep(0.5)
        await asyncio.sleep(1)
        assert sorted(claimed(stage).values()) == ["c0", "c1", "c2", "c3"]
        await asyncio.sleep(20)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.scheduler.settled

    played(scene, late=5.0)
    assert FAILED not in caplog.text  # each at the first attempt: nobody was promised what another had


def test_a_node_that_goes_while_volumes_are_made_there_gives_the_pod_back() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1"), csi_node("n1"), claim("c", MADE))
        stage.create(mounting(pod("alone"), "c"))
        await asyncio.sleep(2)
        stage.store.remove(Node, "n1")
        await asyncio.sleep(0.5)
        assert "node n1 is gone" in stage.condition("alone")["message"]

    played(scene)


def test_a_volume_that_the_node_cannot_reach_gives_the_pod_back() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1"), csi_node("n1"), claim("c", MADE))
        stage.create(mounting(pod("alone"), "c"))
        await asyncio.sleep(2)
        stage.create(volume("far", "n2"))
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": bound, "spec": {"volumeName": "far"}}
        stage.store.patch(PersistentVolumeClaim, f"{NAMESPACE}/c", patch)
        await asyncio.sleep(0.5)
        assert "cannot reach" in stage.condition("alone")["message"]
        assert stage.nodes() == {"alone": ""}

    played(scene)


# -- devices -----------------------------------------------------------------------------------------------------------


def test_devices_are_given_once_however_late_the_watch_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(device_class(), node("n1"), devices("n1", 4))
        stage.create(*(resource_claim(f"c{n}") for n in range(4)))
        await asyncio.sleep(10)
        # Something else is written into a claim; its event comes after the first decision and before the
        # decision's own.
        stage.store.patch(ResourceClaim, f"{NAMESPACE}/c0", {"metadata": {"labels": {"seen": "yes"}}})
        await asyncio.sleep(4)
        for number in range(4):
            stage.create(claiming(pod(f"p{number}"), f"c{number}"))
            await asyncio.sleep(1.2)
        assert len({device(stage, f"c{number}") for number in range(4)}) == 4
        await asyncio.sleep(20)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.scheduler.settled

    played(scene, late=5.0)
    assert FAILED not in caplog.text


def test_a_write_whose_answer_is_lost_is_found_done(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(device_class(), node("n1"), devices("n1", 2), resource_claim("mine"))
        # The second write is that of the status; the first is that of the finalizer.
        for _ in range(2):
            stage.port.faults.plan(Fault("change", 0, done=True, key=f"{NAMESPACE}/mine"))
        stage.create(claiming(pod("alone"), "mine"))
        await asyncio.sleep(5)
        assert stage.port.faults.happened == 2
        assert stage.phases() == {"alone": "Running"}
        assert users(stage, "mine") == ["alone"]
        finalizers = stage.of_kind(ResourceClaim)["mine"]["metadata"]["finalizers"]
        assert finalizers == ["resource.kubernetes.io/delete-protection"]

    played(scene)
    assert FAILED not in caplog.text


def test_a_write_whose_answer_is_lost_for_good_is_undone() -> None:
    async def scene(stage: KaiStage) -> None:
        mine = resource_claim("mine")
        mine["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
        stage.create(device_class(), node("n1"), devices("n1", 1), mine)
        await asyncio.sleep(15)
        key = f"{NAMESPACE}/mine"
        stage.port.faults.plan(Fault("change", 0, done=True, key=key))
        stage.port.faults.plan(Fault("read", 0, times=5, key=key))
        stage.create(claiming(pod("alone"), "mine"))
        await asyncio.sleep(1)
        assert users(stage, "mine") == ["alone"]
        await asyncio.sleep(2.5)  # pauses of 0.1, 0.2, 0.4, 0.8 and 1.6 seconds
        assert stage.condition("alone")["reason"] == "SchedulerError"
        assert (users(stage, "mine"), device(stage, "mine")) == ([], "")
        await asyncio.sleep(5)
        assert stage.phases() == {"alone": "Running"}
        assert users(stage, "mine") == ["alone"]

    played(scene, late=10.0)


def test_a_pod_that_is_decided_anew_is_written_anew_however_late_the_watch_is() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(device_class(), node("n1"), devices("n1", 1), resource_claim("mine"))
        await asyncio.sleep(10)
        stage.port.faults.plan(Fault("bind", 422))
        stage.create(claiming(pod("alone"), "mine"))
        await asyncio.sleep(3)
        assert stage.phases() == {"alone": "Running"}
        assert (users(stage, "mine"), device(stage, "mine")) == (["alone"], "n1/gpu-0")

    played(scene, late=5.0)


def test_a_claim_that_got_other_devices_meanwhile_keeps_them() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(device_class(), node("n1"), node("n2"), devices("n1", 1), devices("n2", 1))
        stage.create(resource_claim("mine"))
        await asyncio.sleep(5)
        result = {"request": "gpus", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0"}
        named = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
        theirs = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [named]}]},
        }
        stage.store.patch(ResourceClaim, f"{NAMESPACE}/mine", {"status": {"allocation": theirs}})
        stage.create(
            claiming(pod("alone"), "mine")
        )  # the watch has not shown that yet: n1 would be the first choice
        await asyncio.sleep(20)
        assert stage.nodes() == {"alone": "n2"}
        assert device(stage, "mine") == "n2/gpu-0"
        assert users(stage, "mine") == ["alone"]

    played(scene, late=5.0)


def test_a_pod_whose_volumes_fail_uses_its_claims_no_more() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1"), csi_node("n1"), claim("c", MADE))
        stage.create(device_class(), devices("n1", 1), resource_claim("mine"))
        stage.create(claiming(mounting(pod("alone"), "c"), "mine"))
        await asyncio.sleep(2)
        assert users(stage, "mine") == ["alone"]
        taken_off = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
        stage.store.patch(PersistentVolumeClaim, f"{NAMESPACE}/c", taken_off)
        await asyncio.sleep(0.5)
        assert (users(stage, "mine"), device(stage, "mine")) == ([], "")
        assert "no volume could be provisioned" in stage.condition("alone")["message"]

    played(scene)


def test_a_pod_that_is_deleted_meanwhile_uses_its_claims_no_more() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.volumes.stop()
        stage.create(storage_class(MADE), node("n1"), csi_node("n1"), claim("c", MADE))
        stage.create(device_class(), devices("n1", 1), resource_claim("mine"))
        stage.store.observers.remove(stage.world.claims._told)  # it is done from here
        stage.create(claiming(mounting(pod("alone"), "c"), "mine"))
        await asyncio.sleep(2)
        stage.store.remove(Pod, f"{NAMESPACE}/alone")
        await asyncio.sleep(1)
        assert (users(stage, "mine"), device(stage, "mine")) == ([], "")
        assert stage.scheduler.settled

    played(scene)


def test_one_of_two_pods_that_share_a_claim_leaves_it_to_the_other() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("bind", 422, key=f"{NAMESPACE}/a", times=3))
        stage.create(device_class(), node("n1"), devices("n1", 1), resource_claim("ours"))
        stage.create(claiming(pod("a"), "ours"), claiming(pod("b"), "ours"))
        await asyncio.sleep(0.5)
        assert users(stage, "ours") == ["b"]
        assert device(stage, "ours") == "n1/gpu-0"
        await asyncio.sleep(20)
        assert set(stage.phases().values()) == {"Running"}
        assert sorted(users(stage, "ours")) == ["a", "b"]

    played(scene)


def test_a_bind_whose_answer_is_lost_for_good_takes_nothing_from_the_pod() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("bind", 0, times=6, done=True))
        stage.create(device_class(), node("n1"), devices("n1", 1), resource_claim("mine"))
        stage.create(claiming(pod("alone"), "mine"))
        await asyncio.sleep(60)
        assert stage.port.faults.happened == 6
        assert stage.phases() == {"alone": "Running"}
        assert (users(stage, "mine"), device(stage, "mine")) == (["alone"], "n1/gpu-0")
        assert stage.scheduler.settled

    played(scene)
