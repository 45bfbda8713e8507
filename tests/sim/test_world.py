"""Kubelets, the timetable and the port: what becomes of objects without a scheduler's doing."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.objects.core import Node, Pod
from maniple.objects.load import load
from maniple.objects.meta import Condition
from maniple.sim.clock import run
from maniple.sim.cluster import SimCluster
from maniple.sim.errors import ApiError
from maniple.sim.faults import Fault
from maniple.sim.world import World
from tests.live.objects import NAMESPACE, node, pod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = f"{NAMESPACE}/a"


def played(scene: Callable[[World], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        return await scene(World(start_seconds=0.5))

    return run(main(), virtual=True)


def phase(world: World, key: str = KEY) -> str:
    found = world.store.find(Pod, key)
    return "gone" if found is None else str(found["status"]["phase"])


def typed(world: World, key: str = KEY) -> Pod:
    item = load(world.store.get(Pod, key))
    assert isinstance(item, Pod)
    return item


async def bound(world: World, **annotations: str) -> SimCluster:
    port = world.port()
    world.store.create(node("n1"))
    world.store.create(pod("a", **annotations))
    await port.bind(typed(world), "n1")
    return port


@pytest.mark.parametrize(
    ("annotations", "end"),
    [
        ({"maniple.dev/run-for": "10s"}, "Succeeded"),
        ({"maniple.dev/fail-after": "10s"}, "Failed"),
        ({"maniple.dev/run-for": "20s", "maniple.dev/fail-after": "10s"}, "Failed"),
        ({}, "Running"),
        ({"maniple.dev/run-for": "soon"}, "Running"),
    ],
)
def test_a_bound_pod_runs_as_long_as_it_says(annotations: dict[str, str], end: str) -> None:
    async def scene(world: World) -> list[str]:
        await bound(world, **annotations)
        seen = [phase(world)]
        for seconds in (1, 9, 1):
            await asyncio.sleep(seconds)
            seen.append(phase(world))
        await asyncio.sleep(1000)
        return [*seen, phase(world)]

    assert played(scene) == ["Pending", "Running", "Running", end, end]


def test_a_pod_that_is_deleted_goes_after_a_moment_and_does_not_end_by_itself_any_more() -> None:
    async def scene(world: World) -> list[str]:
        port = await bound(world, **{"maniple.dev/run-for": "10s"})
        await asyncio.sleep(1)
        await port.evict(typed(world))
        seen = [phase(world)]
        await asyncio.sleep(1)
        seen.append(phase(world))
        assert not world.busy
        return seen

    assert played(scene) == ["Running", "gone"]


def test_a_waiting_pod_is_deleted_at_once() -> None:
    async def scene(world: World) -> str:
        port = world.port()
        world.store.create(pod("a"))
        await port.evict(typed(world))
        return phase(world)

    assert played(scene) == "gone"


def test_the_pods_of_a_node_go_with_it_also_when_they_are_bound_too_late() -> None:
    async def scene(world: World) -> list[str]:
        port = await bound(world)
        await asyncio.sleep(1)
        world.store.remove(Node, "n1")
        seen = [phase(world)]
        world.store.create(pod("b"))
        await port.bind(typed(world, f"{NAMESPACE}/b"), "n1")
        await asyncio.sleep(1)
        return [*seen, phase(world, f"{NAMESPACE}/b")]

    assert played(scene) == ["gone", "gone"]


def test_binding_twice_is_done_once_and_to_another_node_refused() -> None:
    async def scene(world: World) -> int:
        port = await bound(world)
        await port.bind(typed(world), "n1")
        assert port.binds == [(KEY, typed(world).metadata.uid, "n1")]
        with pytest.raises(ApiError) as error:
            await port.bind(typed(world), "n2")
        return error.value.status

    assert played(scene) == 409


def test_a_pod_made_anew_is_not_bound_in_place_of_the_old_one() -> None:
    async def scene(world: World) -> int:
        world.store.create(pod("a"))
        old = typed(world)
        world.store.remove(Pod, KEY)
        world.store.create(pod("a"))
        with pytest.raises(ApiError) as error:
            await world.port().bind(old, "n1")
        await world.port().evict(old)
        assert phase(world) == "Pending"
        return error.value.status

    assert played(scene) == 409


def test_a_condition_takes_the_place_of_the_one_of_its_type_and_keeps_its_time() -> None:
    async def scene(world: World) -> list[Condition]:
        port = world.port()
        world.store.create(pod("a"))
        for message, when in (("first", NOON), ("second", NOON.replace(hour=13))):
            told = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
            await port.patch_pod_condition(typed(world), told, when, "n1")
        assert typed(world).status.nominated_node_name == "n1"
        await port.patch_pod_condition(typed(world), told, when, "")
        assert typed(world).status.nominated_node_name == ""
        return list(typed(world).status.conditions)

    (told,) = played(scene)
    assert (told.message, told.last_transition_time) == ("second", NOON)


def test_events_with_the_same_words_are_counted() -> None:
    async def scene(world: World) -> list[tuple[str, int]]:
        port = world.port()
        world.store.create(pod("a"))
        for note in ("no room", "no room", "no queue"):
            await port.record_event(typed(world), "Warning", "FailedScheduling", note)
        return [(event.note, event.count) for event in port.events]

    assert played(scene) == [("no room", 2), ("no queue", 1)]


@pytest.mark.parametrize("done", [False, True])
def test_a_planned_fault_happens_once_before_or_after_the_write(done: bool) -> None:
    async def scene(world: World) -> tuple[bool, int]:
        port = world.port()
        world.store.create(node("n1"))
        world.store.create(pod("a"))
        port.faults.plan(Fault("bind", 503, done=done))
        with pytest.raises(ApiError) as error:
            await port.bind(typed(world), "n1")
        landed = bool(typed(world).spec.node_name)
        await port.bind(typed(world), "n1")
        assert len(port.binds) == 1
        return landed, error.value.status

    assert played(scene) == (done, 503)


def test_objects_come_and_go_by_their_annotations_in_the_order_given() -> None:
    async def scene(world: World) -> None:
        late = {"maniple.dev/arrive-after": "10s", "maniple.dev/replicas": "3"}
        world.timetable.add(
            [
                node("n1", annotations={"maniple.dev/leave-after": "20s"}),
                pod("late", **late),
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
            ]
        )
        busy = [world.busy]
        assert world.store.list(Pod)[0] == []
        await asyncio.sleep(10.1)
        names = [raw["metadata"]["name"] for raw in world.store.list(Pod)[0]]
        assert names == ["late-0", "late-1", "late-2"]
        assert [*busy, world.busy] == [True, False]
        assert world.timetable.leaving
        assert len(world.store.list(Node)[0]) == 1
        await asyncio.sleep(10)
        assert world.store.list(Node)[0] == []
        assert len(world.timetable.refused) == 1

    played(scene)


def test_work_is_unfinished_while_it_waits_or_will_end() -> None:
    async def scene(world: World) -> None:
        await bound(world)
        world.store.create(pod("waits"))
        world.store.create(pod("ends", **{"maniple.dev/run-for": "5s"}))
        await world.port().bind(typed(world, f"{NAMESPACE}/ends"), "n1")
        await asyncio.sleep(1)
        assert world.unfinished() == [f"{NAMESPACE}/waits", f"{NAMESPACE}/ends"]
        await asyncio.sleep(5)
        assert world.unfinished() == [f"{NAMESPACE}/waits"]

    played(scene)
