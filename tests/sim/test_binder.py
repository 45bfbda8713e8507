"""The stand-in for KAI's binder: what it writes, what it refuses, and what it clears away."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest
from maniple.sim.clock import run
from maniple.sim.faults import Fault
from maniple.sim.world import World

Raw = dict[str, Any]
NODE: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {}}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "ns", "uid": "u1"},
    "spec": {"containers": []},
}


def request(owner: str = "u1", **spec: Any) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {"name": "a", "namespace": "ns", "ownerReferences": [{"kind": "Pod", "uid": owner}]},
        "spec": {"podName": "a", "selectedNode": "n1", **spec},
    }


def played(scene: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await scene(World(start_seconds=0.1))

    run(main(), virtual=True)


def status(world: World) -> Raw:
    found: Raw = world.store.get(BindRequest, "ns/a")["status"]
    return found


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (["g"], {"runai-gpu-group": "g"}),
        (["g", "h"], {"runai-gpu-group/g": "g", "runai-gpu-group/h": "h"}),
    ],
)
def test_a_pod_is_bound_with_its_devices(groups: list[str], labels: dict[str, str]) -> None:
    async def scene(world: World) -> None:
        for raw in (NODE, POD, request(receivedResourceType="Fraction", selectedGPUGroups=groups)):
            world.store.create(raw)
        assert world.busy
        await asyncio.sleep(1)
        pod = world.store.get(Pod, "ns/a")
        assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n1", "Running")
        assert pod["metadata"]["labels"] == labels
        assert pod["metadata"]["annotations"] == {"received-resource-type": "Fraction"}
        assert status(world) == {"phase": "Succeeded"}
        assert not world.busy

    played(scene)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([POD, request()], "Node n1 does not exist"),
        ([NODE, request()], "Pod ns/a does not exist"),
        ([NODE, POD, request(owner="u0")], "the uid is u1, not u0"),
        ([NODE, POD, request(receivedResourceType="Fraction")], "needs selectedGPUGroups"),
    ],
)
def test_what_cannot_be_done_fails_and_says_why(objects: list[Raw], why: str) -> None:
    async def scene(world: World) -> None:
        for raw in objects:
            world.store.create(raw)
        await asyncio.sleep(1)
        assert (status(world)["phase"], status(world)["failedAttempts"]) == ("Failed", 1)
        assert why in status(world)["reason"]

    played(scene)


@pytest.mark.parametrize(("limit", "phase"), [(None, "Failed"), (2, "Failed"), (3, "Succeeded")])
def test_a_request_is_tried_as_often_as_it_asks_for(limit: int | None, phase: str) -> None:
    async def scene(world: World) -> None:
        world.binder.faults.plan(Fault("bind", 500, times=2))
        for raw in (NODE, POD, request(backoffLimit=limit)):
            world.store.create(raw)
        await asyncio.sleep(60)
        assert status(world)["phase"] == phase

    played(scene)


def test_a_request_goes_with_its_pod_and_not_with_another_of_the_name() -> None:
    async def scene(world: World) -> None:
        for raw in (POD, request()):
            world.store.create(raw)
        world.store.remove(Pod, "ns/a")
        assert world.store.find(BindRequest, "ns/a") is None
        assert not world.busy
        for raw in (POD, request(owner="somebody else")):
            world.store.create(raw)
        world.store.remove(Pod, "ns/a")
        assert world.store.find(BindRequest, "ns/a") is not None

    played(scene)
