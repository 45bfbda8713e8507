"""Binding by request and directly: the requests to KAI's binder, and those that fail or are left over."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from maniple.objects.core import Node, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import BindRequest
from maniple.sim.faults import Fault
from tests.live.kai_objects import gang, group, node, pod, queue
from tests.live.kai_stage import KaiStage, played
from tests.live.need_objects import MADE, claim, mounting, storage_class
from tests.live.objects import NAMESPACE

Raw = dict[str, Any]
HALF = {"gpu-fraction": "0.5"}


def halves(name: str, size: int, **annotations: str) -> list[Raw]:
    """A gang of pods that ask for half a device each."""
    members = [pod(f"{name}-{number}", name, 0, **HALF, **annotations) for number in range(size)]
    return [group(name, size), *members]


# -- what is asked for -------------------------------------------------------------------------------------------------


def test_pods_that_share_a_device_name_it_and_their_part() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 1, **{"nvidia.com/gpu.memory": "1000"}), *halves("two", 2))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        first, second = (stage.requests()[f"two-{number}"]["spec"] for number in range(2))
        assert first["receivedResourceType"] == second["receivedResourceType"] == "Fraction"
        assert first["receivedGPU"] == {"count": 1, "portion": "0.50"}
        assert len(first["selectedGPUGroups"]) == 1
        assert first["selectedGPUGroups"] == second["selectedGPUGroups"]
        labels = stage.of_kind(Pod)["two-0"]["metadata"]["labels"]
        assert labels["runai-gpu-group"] == first["selectedGPUGroups"][0]
        stage.create(*halves("third", 1))
        await asyncio.sleep(5)
        assert stage.phases()["third-0"] == "Pending", "the device stays taken"

    played(scene)


def test_a_part_by_memory_is_written_as_the_part_that_it_is_on_the_node() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 1, **{"nvidia.com/gpu.memory": "1000"}))
        stage.create(group("one", 1), pod("one-0", "one", 0, **{"gpu-memory": "250"}))
        await asyncio.sleep(5)
        assert stage.requests()["one-0"]["spec"]["receivedGPU"] == {"count": 1, "portion": "0.25"}

    played(scene)


def test_a_pod_without_gpus_gets_none() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1"), *gang("plain", 1, gpus=0))
        await asyncio.sleep(5)
        spec = stage.requests()["plain-0"]["spec"]
        assert (spec["receivedResourceType"], spec["receivedGPU"]) == (
            "Regular",
            {"count": 0, "portion": "0.00"},
        )
        assert "selectedGPUGroups" not in spec

    played(scene)


def test_slices_of_devices_are_instances() -> None:
    async def scene(stage: KaiStage) -> None:
        there, asks = node("n1", 0), pod("one-0", "one", 0)
        there["status"]["allocatable"]["nvidia.com/mig-1g.5gb"] = "7"
        there["metadata"]["labels"] |= {"nvidia.com/mig.strategy": "mixed"}
        asks["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/mig-1g.5gb"] = "1"
        stage.create(queue(), there, group("one", 1), asks)
        await asyncio.sleep(5)
        spec = stage.requests()["one-0"]["spec"]
        assert (spec["receivedResourceType"], spec["receivedGPU"]["count"]) == ("MigInstance", 0)

    played(scene)


def with_claims() -> list[Raw]:
    """Two devices that a driver publishes, and a pod that claims one."""
    name = "gpu.example.com"
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpus"},
        "spec": {
            "driver": name,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a"}, {"name": "b"}],
        },
    }
    class_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {},
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "mine", "namespace": NAMESPACE, "labels": {"kai.scheduler/queue": "team"}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": name, "count": 1}}]}},
    }
    asks = pod("one-0", "one", 0)
    asks["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": "mine"}]
    return [queue(), node("n1", 0), devices, class_, claim, group("one", 1), asks]


def test_allocations_of_claims_are_requested_and_written_by_the_binder() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(*with_claims())
        await asyncio.sleep(5)
        (told,) = stage.requests()["one-0"]["spec"]["resourceClaimAllocations"]
        assert told["name"] == "device"
        assert told["allocation"]["devices"]["results"][0]["pool"] == "n1"
        status = stage.of_kind(ResourceClaim)["mine"]["status"]
        assert status["allocation"] == told["allocation"]
        assert [user["name"] for user in status["reservedFor"]] == ["one-0"]
        assert stage.phases()["one-0"] == "Running"

    played(scene)


def test_in_a_node_pool_requests_and_pods_carry_its_label() -> None:
    pool = {"kai.scheduler/node-pool": "a"}

    async def scene(stage: KaiStage) -> None:
        objects = [queue(), node("n1"), *gang("train", 1)]
        for raw in objects[:3]:
            raw["metadata"].setdefault("labels", {}).update(pool)
        stage.create(*objects, node("other"))
        await asyncio.sleep(5)
        labels = stage.requests()["train-0"]["metadata"]["labels"]
        assert labels == {"selected-node": "n1", **pool}
        assert stage.of_kind(Pod)["train-0"]["metadata"]["labels"] == pool
        ((_, note),) = stage.events("Scheduled")
        assert note == "Successfully assigned pod team/train-0 to node n1 at node-pool a"

    played(scene, options={"nodePoolLabelValue": "a"})


def test_a_request_for_an_allocated_claim_repeats_its_allocation() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(*with_claims())
        await asyncio.sleep(5)
        joins = pod("two-0", "two", 0)
        joins["spec"]["resourceClaims"] = [{"name": "ours", "resourceClaimName": "mine"}]
        stage.create(group("two", 1), joins)
        await asyncio.sleep(5)
        (told,) = stage.requests()["two-0"]["spec"]["resourceClaimAllocations"]
        status = stage.of_kind(ResourceClaim)["mine"]["status"]
        assert (told["name"], told["allocation"]) == ("ours", status["allocation"])
        assert [user["name"] for user in status["reservedFor"]] == ["one-0", "two-0"]

    played(scene)


# -- while it is on its way --------------------------------------------------------------------------------------------


def test_a_pod_whose_request_is_not_carried_out_keeps_its_place() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1", 1), *gang("first", 1))
        await asyncio.sleep(5)
        stage.create(*gang("second", 1))
        await asyncio.sleep(60)
        assert stage.requests().keys() == {"first-0"}
        assert not stage.condition("first-0")
        assert stage.condition("second-0")["status"] == "False"

    played(scene)


def test_a_request_that_could_not_be_made_is_tried_again_and_the_gang_completed() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("create", 422, times=1))
        stage.create(queue(), node("n1"), *gang("train", 4))
        await asyncio.sleep(0.5)
        told = [stage.condition(name) for name in stage.phases()]
        assert [one["reason"] for one in told if one.get("status") == "False"] == ["SchedulerError"]
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}

    played(scene)


def test_an_answer_that_got_lost_makes_no_second_request() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("create", 0, times=1, done=True))
        stage.create(queue(), node("n1"), *gang("train", 1))
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running"}
        assert stage.port.faults.happened == 1

    played(scene)


def test_a_foreign_request_that_comes_first_is_a_conflict_and_deleted() -> None:
    async def scene(stage: KaiStage) -> None:
        make = stage.port.create

        async def late(raw: Any, *, same: bool = False) -> None:
            if not stage.requests():
                stage.world.binder.stop()
                stage.create(request_for("train-0", "n2", "another pod"))
            await make(raw, same=same)

        stage.port.create = late  # type: ignore[method-assign]
        stage.create(queue(), node("n1"), *gang("train", 1))
        await asyncio.sleep(0.2)
        assert stage.condition("train-0")["reason"] == "SchedulerError"
        stage.port.create = make  # type: ignore[method-assign]
        await asyncio.sleep(5)
        assert stage.requests()["train-0"]["spec"]["selectedNode"] == "n1"

    played(scene)


def test_a_request_that_was_deleted_while_the_watch_was_cut_is_created_again() -> None:
    async def scene(stage: KaiStage) -> None:
        made: list[str] = []

        def vanish(event: Any) -> None:
            if event.kind is BindRequest and event.before is None:
                made.append(event.key)
                if len(made) == 1:
                    stage.store.cut()
                    stage.store.remove(BindRequest, event.key)
                    stage.store.compact()

        stage.create(queue(), node("n1"), *gang("train", 1))
        stage.store.observers.append(vanish)
        await asyncio.sleep(5)
        assert made == ["team/train-0"] * 2
        assert stage.phases() == {"train-0": "Running"}

    played(scene)


# -- requests that fail ------------------------------------------------------------------------------------------------


def test_a_failed_request_is_deleted_and_its_pod_tried_again_after_longer_and_longer_pauses() -> None:
    came: list[float] = []

    async def scene(stage: KaiStage) -> None:
        def note(event: Any) -> None:
            if event.kind is BindRequest and event.before is None:
                came.append(stage.world.clock.elapsed())

        stage.store.observers.append(note)
        stage.world.binder.faults.plan(Fault("bind", 500, times=5))
        stage.create(queue(), node("n1"), *gang("train", 1))
        await asyncio.sleep(1.0)
        assert stage.condition("train-0")["reason"] == "SchedulerError"
        assert "a planned fault" in stage.condition("train-0")["message"]
        assert stage.requests() == {}
        await asyncio.sleep(120)
        assert stage.phases() == {"train-0": "Running"}

    played(scene)
    pauses = [round(later - before) for before, later in pairwise(came)]
    assert pauses == [1, 2, 4, 8, 16]


def test_others_are_scheduled_while_a_failed_request_cannot_be_deleted() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.faults.plan(Fault("bind", 500, key="team/bad-0"))
        stage.port.faults.plan(Fault("delete", 500, times=5))
        stage.create(queue(), node("n1"), *gang("bad", 1))
        await asyncio.sleep(0.3)
        stage.create(*gang("good", 1))
        await asyncio.sleep(0.5)
        assert stage.phases()["good-0"] == "Running"
        await asyncio.sleep(60)
        assert stage.phases()["bad-0"] == "Running"

    played(scene)


def test_a_failed_request_that_was_not_deleted_is_when_it_is_in_the_way() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.faults.plan(Fault("bind", 500))
        stage.port.faults.plan(Fault("delete", 422))
        stage.create(queue(), node("n1"), *gang("train", 1))
        await asyncio.sleep(0.5)
        assert stage.requests()["train-0"]["status"]["phase"] == "Failed"
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running"}

    played(scene)


def request_for(name: str, node: str, uid: str, **status: Any) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}],
        },
        "spec": {"podName": name, "selectedNode": node},
        "status": status,
    }


def test_a_request_of_a_pod_that_had_the_name_before_is_not_in_the_way() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1"), node("n2"))
        stage.create(request_for("train-0", "n2", "long-gone", phase="Succeeded"), *gang("train", 1))
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running"}
        (owner,) = stage.requests()["train-0"]["metadata"]["ownerReferences"]
        assert owner["uid"] == stage.of_kind(Pod)["train-0"]["metadata"]["uid"]

    played(scene)


def test_a_request_for_a_node_that_is_gone_is_deleted_and_the_pod_placed_elsewhere() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1", 1), *gang("train", 1))
        await asyncio.sleep(2)
        assert stage.requests()["train-0"]["spec"]["selectedNode"] == "n1"
        stage.create(node("n2", 1))
        stage.store.remove(Node, "n1")
        await asyncio.sleep(2)
        assert stage.requests()["train-0"]["spec"]["selectedNode"] == "n2"

    played(scene)


def test_without_another_node_the_request_is_deleted_all_the_same() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1", 1), *gang("train", 1))
        await asyncio.sleep(2)
        stage.store.remove(Node, "n1")
        await asyncio.sleep(2)
        assert stage.requests() == {}

    played(scene)


def test_at_the_start_requests_for_nodes_that_are_not_there_are_deleted() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(request_for("train-0", "gone", "x"), request_for("other-0", "n1", "y"), node("n1"))
        await asyncio.sleep(2)
        assert stage.requests().keys() == {"other-0"}

    played(scene)


def test_requests_of_other_node_pools_are_left_alone() -> None:
    async def scene(stage: KaiStage) -> None:
        foreign = request_for("theirs", "elsewhere", "x", phase="Failed")
        foreign["metadata"]["labels"] = {"kai.scheduler/node-pool": "b"}
        stage.create(queue(), node("n1"), foreign, request_for("ours", "elsewhere", "y", phase="Failed"))
        await asyncio.sleep(5)
        assert stage.requests().keys() == {"theirs"}

    played(scene)


# -- nobody there ------------------------------------------------------------------------------------------------------


def test_requests_that_are_not_carried_out_are_reported_once_in_the_log_and_on_a_pod(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.stop()
        stage.create(queue(), node("n1"), *gang("train", 2))
        await asyncio.sleep(29)
        assert stage.events("NoBinder") == []
        await asyncio.sleep(120)
        ((regarding, note),) = stage.events("NoBinder")
        assert regarding == "Pod team/train-0"
        assert "--bind direct" in note

    played(scene)
    assert caplog.text.count("no BindRequest has been carried out") == 1


def test_a_binder_that_carries_out_or_fails_is_a_binder(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.world.binder.faults.plan(Fault("bind", 422))
        stage.create(queue(), node("n1"), *gang("train", 1))
        await asyncio.sleep(1)
        stage.world.binder.stop()
        stage.create(*gang("later", 1))
        await asyncio.sleep(120)
        assert stage.events("NoBinder") == []

    played(scene)
    assert "no BindRequest has been carried out" not in caplog.text


# -- directly ----------------------------------------------------------------------------------------------------------


def test_directly_pods_are_bound_without_requests() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1"), *gang("train", 4))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.requests() == {}

    played(scene, bind="direct")


def test_directly_what_only_the_binder_can_do_waits_and_takes_no_room() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(queue(), node("n1", 1), *halves("one", 1))
        await asyncio.sleep(5)
        said = stage.condition("one-0")
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        assert "shares devices" in said["message"]
        assert "--bind request" in said["message"]
        assert any("shares devices" in note for _, note in stage.events("NotReady"))
        stage.create(*gang("plain", 1, gpus=0))
        await asyncio.sleep(5)
        assert stage.phases() == {"one-0": "Pending", "plain-0": "Running"}

    played(scene, bind="direct")


def test_directly_claims_get_their_devices_from_here() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(*with_claims())
        await asyncio.sleep(5)
        assert stage.phases() == {"one-0": "Running"}
        status = stage.of_kind(ResourceClaim)["mine"]["status"]
        (result,) = status["allocation"]["devices"]["results"]
        assert (result["pool"], result["request"]) == ("n1", "r")
        assert [user["name"] for user in status["reservedFor"]] == ["one-0"]
        assert stage.requests() == {}

    played(scene, bind="direct")


def test_a_gang_with_one_such_pod_waits_whole() -> None:
    async def scene(stage: KaiStage) -> None:
        members = [pod("mixed-0", "mixed"), pod("mixed-1", "mixed", 0, **HALF)]
        stage.create(queue(), node("n1"), group("mixed", 2), *members)
        await asyncio.sleep(5)
        assert stage.nodes() == {"mixed-0": "", "mixed-1": ""}
        assert "shares devices" in stage.condition("mixed-0")["message"]

    played(scene, bind="direct")


def test_directly_volumes_are_made_before_the_pods_are_bound() -> None:
    async def scene(stage: KaiStage) -> None:
        members = [mounting(pod("train-0", "train"), "data"), pod("train-1", "train")]
        stage.create(
            storage_class(MADE), claim("data", MADE), queue(), node("n1"), group("train", 2), *members
        )
        await asyncio.sleep(5)
        assert stage.phases() == {"train-0": "Running", "train-1": "Running"}
        assert stage.of_kind(PersistentVolumeClaim)["data"]["status"]["phase"] == "Bound"
        assert stage.requests() == {}

    played(scene, bind="direct")
