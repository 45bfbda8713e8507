"""What must hold on every cluster for pods with volumes, and with devices in resource claims.

Run with the other scenarios.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

from maniple.live.scheduler import Scheduler
from maniple.objects.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.need_objects import (
    LOCAL,
    MADE,
    claim,
    claiming,
    csi_node,
    device_class,
    devices,
    gated,
    mounting,
    resource_claim,
    storage_class,
    volume,
)
from tests.live.objects import NAMESPACE, group, node, pod
from tests.live.ports import Dying, Refusing
from tests.live.scenarios import Scenario, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

NEED_SCENARIOS: list[Scenario] = []
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def scenario(function: Scenario) -> Scenario:
    NEED_SCENARIOS.append(function)
    return function


async def three_run(world: World) -> bool:
    return [p.status.phase for p in await world.objects(Pod)].count("Running") == 3


# -- volumes -----------------------------------------------------------------------------------------------------------


async def volumes_of(world: World) -> dict[str, str]:
    """By volume: the claim that has it."""
    found = [v for v in await world.objects(PersistentVolume) if v.spec.claim_ref is not None]
    return {v.metadata.name: v.spec.claim_ref.name for v in found}


async def can_be_had(world: World, names: Iterable[str]) -> None:
    async def available() -> bool:
        phases = {v.metadata.name: v.status.phase for v in await world.objects(PersistentVolume)}
        return all(phases.get(name) == "Available" for name in names)

    await until(available, "the volumes are available")


async def bound_before_its_pod_runs(world: World) -> None:
    """Nobody runs without its volumes."""
    claims = {c.metadata.name: c for c in await world.objects(PersistentVolumeClaim)}
    for each in await world.objects(Pod):
        for mounted in each.spec.volumes:
            if each.spec.node_name and mounted.persistent_volume_claim is not None:
                assert claims[mounted.persistent_volume_claim.claim_name].spec.volume_name


@scenario
async def a_gang_gets_volumes_that_are_there_and_runs_where_they_are(world: World) -> None:
    async with world.controllers(), scheduling(world) as scheduler:
        await world.create([storage_class(LOCAL), node("n1"), node("n2")])
        await world.create([volume("v1", "n1"), volume("v2", "n2"), volume("huge", "n1", "9Gi")])
        await can_be_had(world, ("v1", "v2", "huge"))
        await world.create([claim("c0", LOCAL), claim("c1", LOCAL), group("train", 2)])
        await world.create([mounting(pod(f"train-{n}", "train"), f"c{n}") for n in range(2)])
        await until(lambda: runs(world, "train", 2), "both run")
        await bound_before_its_pod_runs(world)
        taken = await volumes_of(world)
        # A claim gets the smallest that the node has; where the pods go together, the second gets the larger one.
        assert set(taken.values()) == {"c0", "c1"}
        places = {v.metadata.name: v for v in await world.objects(PersistentVolume)}
        for each in await pods_of(world, "train"):
            mine = each.spec.volumes[0].persistent_volume_claim
            name = next(v for v, c in taken.items() if mine is not None and c == mine.claim_name)
            (term,) = places[name].spec.node_affinity.required.node_selector_terms
            assert term.match_expressions[0].values == (each.spec.node_name,)
        await settles(world, scheduler)


@scenario
async def pods_of_successive_cycles_never_get_the_same_volume(world: World) -> None:
    async with scheduling(world) as scheduler:
        await world.create([storage_class(LOCAL), node("n1")])
        async with world.controllers():
            await world.create([volume(f"v{n}", "n1") for n in range(3)])
            await can_be_had(world, [f"v{n}" for n in range(3)])
            await world.create(claim(f"c{n}", LOCAL) for n in range(4))
            for number in range(4):
                await world.create([mounting(pod(f"alone-{number}"), f"c{number}")])
                await asyncio.sleep(0.02)

            await until(lambda: three_run(world), "three of four run")
            await bound_before_its_pod_runs(world)
            taken = await volumes_of(world)
            assert len(taken) == len(set(taken.values())) == 3
            await settles(world, scheduler)


@scenario
async def volumes_are_made_on_the_chosen_node_and_a_refusal_is_decided_anew(world: World) -> None:
    async with world.controllers(), scheduling(world) as scheduler:
        await world.create([storage_class(MADE), node("n1"), csi_node("n1"), group("train", 2)])
        await world.create([claim("c0", MADE), claim("c1", MADE)])
        world.refuse_volumes(f"{NAMESPACE}/c1", 1)
        await world.create([mounting(pod(f"train-{n}", "train"), f"c{n}") for n in range(2)])
        await until(lambda: runs(world, "train", 2), "both run")
        await bound_before_its_pod_runs(world)
        for each in await world.objects(PersistentVolumeClaim):
            assert each.metadata.annotations[SELECTED_NODE] == "n1"
        await settles(world, scheduler)


# -- queue admission ---------------------------------------------------------------------------------------------------


@scenario
async def pods_behind_the_gate_of_queue_admission_are_let_in_and_run(world: World) -> None:
    async with scheduling(world) as scheduler:
        await world.create([node("n1"), group("train", 2)])
        await world.create([gated(pod(f"train-{n}", "train")) for n in range(2)])
        await until(lambda: runs(world, "train", 2), "both run")
        assert [p.spec.scheduling_gates for p in await pods_of(world, "train")] == [(), ()]
        await settles(world, scheduler)


# -- devices -----------------------------------------------------------------------------------------------------------


async def with_claims_of_their_own(world: World, pods: Iterable[Any]) -> None:
    """Pods whose resource claims are made from a template, as Kubernetes' controller does."""
    raws = list(pods)
    await world.create(raws)
    names = {raw["metadata"]["name"] for raw in raws}
    for each in [p for p in await world.objects(Pod) if p.metadata.name in names]:
        name = f"{each.metadata.name}-gpus"
        await world.create([resource_claim(name, each)])
        statuses = [{"name": "gpus", "resourceClaimName": name}]
        await world.patch(Pod, each.key, {"status": {"resourceClaimStatuses": statuses}}, status=True)


async def devices_of(world: World) -> dict[str, set[tuple[str, str]]]:
    """By claim: pool and device."""
    return {
        c.metadata.name: {(r.pool, r.device) for r in c.status.allocation.devices.results}
        for c in await world.objects(ResourceClaim)
        if c.status.allocation is not None
    }


async def each_device_is_had_once(world: World) -> None:
    """And by claims of pods on its node, who are named in them."""
    had = Counter(device for some in (await devices_of(world)).values() for device in some)
    assert max(had.values()) == 1
    nodes = {p.metadata.uid: p.spec.node_name for p in await world.objects(Pod)}
    for each in await world.objects(ResourceClaim):
        for user in each.status.reserved_for:
            assert {r.pool for r in each.status.allocation.devices.results} == {nodes[user.uid]}


async def runs_alone(world: World, name: str) -> bool:
    return any(p.metadata.name == name and p.status.phase == "Running" for p in await world.objects(Pod))


@scenario
async def pods_get_devices_of_their_own_and_leave_them_to_the_next(world: World) -> None:
    async with world.controllers(), scheduling(world) as scheduler:
        await world.create([device_class(), node("n1"), node("n2"), devices("n1", 2), devices("n2", 2)])
        await world.create([group("train", 4)])
        gang = [claiming(pod(f"train-{n}", "train")) for n in range(4)]
        await with_claims_of_their_own(world, gang)
        await until(lambda: runs(world, "train", 4), "all four run")
        await each_device_is_had_once(world)
        assert {user.name for c in await world.objects(ResourceClaim) for user in c.status.reserved_for} == {
            f"train-{n}" for n in range(4)
        }
        await with_claims_of_their_own(world, [claiming(pod("next"))])
        await asyncio.sleep(1.0)
        assert not await runs_alone(world, "next")
        await world.delete(Pod, f"{NAMESPACE}/train-0")
        await until(lambda: runs_alone(world, "next"), "the next one has the device that was left")
        await each_device_is_had_once(world)
        await settles(world, scheduler)


@scenario
async def pods_of_successive_cycles_never_get_the_same_device(world: World) -> None:
    async with world.controllers(), scheduling(world) as scheduler:
        await world.create([device_class(), node("n1"), devices("n1", 3)])
        await world.create(resource_claim(f"c{n}") for n in range(4))
        for number in range(4):
            await world.create([claiming(pod(f"alone-{number}"), f"c{number}")])
            await asyncio.sleep(0.02)

        await until(lambda: three_run(world), "three of four run")
        await each_device_is_had_once(world)
        await settles(world, scheduler)


@scenario
async def pods_that_share_a_claim_share_its_devices(world: World) -> None:
    async with world.controllers(), scheduling(world) as scheduler:
        await world.create([device_class(), node("n1"), node("n2"), devices("n1", 2), devices("n2", 2)])
        await world.create([resource_claim("ours", count=2), group("train", 3)])
        await world.create([claiming(pod(f"train-{n}", "train"), "ours") for n in range(3)])
        await until(lambda: runs(world, "train", 3), "all three run")
        await each_device_is_had_once(world)
        (ours,) = await world.objects(ResourceClaim)
        assert sorted(user.name for user in ours.status.reserved_for) == ["train-0", "train-1", "train-2"]
        await world.create([claiming(pod("late"), "ours")])
        await until(lambda: runs_alone(world, "late"), "one who comes later shares it, too")
        (ours,) = await world.objects(ResourceClaim)
        assert len(ours.status.reserved_for) == 4
        await settles(world, scheduler)


@scenario
async def a_refused_bind_gives_devices_back_and_the_gang_is_completed(world: World) -> None:
    refusing = Refusing(world.port(), {"train-1": [422, 422]})
    async with world.controllers(), scheduling(world, refusing) as scheduler:
        await world.create([device_class(), node("n1"), devices("n1", 2), group("train", 2)])
        await with_claims_of_their_own(world, [claiming(pod(f"train-{n}", "train")) for n in range(2)])

        async def given_back() -> bool:
            claims = {c.metadata.name: c for c in await world.objects(ResourceClaim)}
            mine = claims.get("train-1-gpus")
            return (
                mine is not None
                and "train-0-gpus" in await devices_of(world)
                and not mine.status.reserved_for
            )

        await until(given_back, "the claim of the pod that could not be bound is nobody's", every=0.01)
        await until(lambda: runs(world, "train", 2), "the gang runs whole")
        await each_device_is_had_once(world)
        await settles(world, scheduler)


@scenario
async def devices_of_a_scheduler_that_died_before_it_bound_are_given_anew(world: World) -> None:
    await world.create([device_class(), node("n1"), devices("n1", 1), resource_claim("mine")])
    await world.create([claiming(pod("alone"), "mine")])
    dying = Dying(world.port(), binds=0)
    first = Scheduler(
        Planner(profile="volcano", options={"debug": True}), dying, clock=world.clock, inline=world.inline
    )
    async with beside(first.run()), asyncio.timeout(120):
        await dying.dead.wait()
    assert await devices_of(world) == {"mine": {("n1", "gpu-0")}}
    # Its node is lost, and with it the only way to use what was written.
    await world.patch(Node, "n1", {"spec": {"unschedulable": True}})
    await world.create([node("n2"), devices("n2", 1)])
    async with world.controllers(), scheduling(world) as scheduler:
        await until(lambda: runs_alone(world, "alone"), "the pod runs elsewhere")
        assert await devices_of(world) == {"mine": {("n2", "gpu-0")}}
        await settles(world, scheduler)
