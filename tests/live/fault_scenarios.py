"""Binds that fail, on every cluster: what is claimed meanwhile, and what becomes of the gang.

`test_on_sim` and `test_on_plane` run each of these, unchanged.
"""

import asyncio
import re

from maniple.live.overview import overview
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Node
from maniple.objects.volcano import VolcanoQueue
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw, gang, group, node, pod
from tests.live.ports import Denying, Dying, SlowNotes
from tests.live.scenarios import Scenario, conditions, group_of, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

FAULT_SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    FAULT_SCENARIOS.append(function)
    return function


# -- claims ------------------------------------------------------------------------------------------------------------


def line_of(scheduler: Scheduler, job: str) -> tuple[int, int]:
    """How many pods of a job start, and how many of these are being bound, as shown to people."""
    (line,) = [one for one in overview(scheduler).jobs if one.key == f"{NAMESPACE}/{job}"]
    return line.starting + line.running, line.binding


@scenario
async def a_group_does_not_say_that_it_is_scheduled_before_all_binds_are_confirmed(world: World) -> None:
    denying = Denying(world.port(), lambda pod, node: 500 if pod == "train-7" else 0)
    async with scheduling(world, denying) as scheduler:
        await world.create([node("n1", 8), *gang("train", 8)])

        async def seven_are_bound() -> bool:
            return sum(bool(p.spec.node_name) for p in await pods_of(world, "train")) == 7

        async def is_told() -> bool:
            notes = [n for n in await world.notes() if n.regarding == f"Pod {NAMESPACE}/train-7"]
            return any(n.reason == "FailedScheduling" and "refused by the test" in n.note for n in notes)

        await until(seven_are_bound, "seven of eight are bound")
        await until(is_told, "the pod that cannot be bound says so")
        while denying.denied["train-7", "n1"] < 5:  # all of them attempts of one decision
            await asyncio.sleep(0.1)
            written = await group_of(world, "train")
            assert written.status.phase != "Running"
            assert conditions(written)["Scheduled"][0] != "True"
            assert [n for n in await world.notes() if n.note == "pod group is ready"] == []
            held = {
                q.metadata.name: q.status.allocated.get("cpu", "0") for q in await world.objects(VolcanoQueue)
            }
            assert int(held.get("default", "0")) <= 7
            assert line_of(scheduler, "train") == (8, 1)

        denying.status = lambda pod, node: 0
        await until(lambda: runs(world, "train", 8), "the gang runs whole")

        async def claims_it() -> bool:
            written = await group_of(world, "train")
            held = {q.metadata.name: q.status.allocated.get("cpu") for q in await world.objects(VolcanoQueue)}
            return (
                written.status.phase == "Running"
                and conditions(written)["Scheduled"][0] == "True"
                and held["default"] == "8"
            )

        await until(claims_it, "group and queue say that it is")
        assert line_of(scheduler, "train") == (8, 0)
        await settles(world, scheduler)


# -- nodes -------------------------------------------------------------------------------------------------------------


@scenario
async def a_node_that_refuses_binds_is_avoided_while_others_are_free(world: World) -> None:
    await world.create([node("bad", 16), node("good", 8)])
    denying = Denying(world.port(), lambda pod, node: 422 if node == "bad" else 0)
    async with scheduling(world, denying) as scheduler:
        await world.create(gang("train", 8))
        await until(lambda: runs(world, "train", 8), "the gang runs whole")
        assert {p.spec.node_name for p in await pods_of(world, "train")} == {"good"}
        assert max(denying.denied.values(), default=0) <= 1
        denying.denied.clear()
        await settles(world, scheduler)


@scenario
async def a_node_that_has_refused_two_pods_is_avoided_by_all_that_are_alike(world: World) -> None:
    await world.create([node("bad", 16)])
    denying = Denying(world.port(), lambda pod, node: 422 if node == "bad" else 0)
    async with scheduling(world, denying):
        await world.create(gang("first", 2))

        async def both_denied() -> bool:
            return {name for name, _ in denying.denied} == {"first-0", "first-1"}

        await until(both_denied, "both are refused")
        await world.create([node("good", 16)])
        await world.create(gang("second", 8))
        await until(lambda: runs(world, "second", 8), "another gang of such pods runs")
        assert not [name for name, _ in denying.denied if name.startswith("second")]
        await until(lambda: runs(world, "first", 2), "and so do they")


# -- half gangs --------------------------------------------------------------------------------------------------------

SLOW = {"maniple.dev/start-after": "1h"}
SOON = {"stalenessGracePeriod": "5s"}


def slow_gang(name: str, size: int) -> list[Raw]:
    """A gang whose pods do not start for a long time once they are bound."""
    return [group(name, size), *(pod(f"{name}-{number}", name, **SLOW) for number in range(size))]


async def recreate(world: World, name: str, size: int) -> None:
    """As the controller of a gang does with pods that were deleted."""
    there = {p.metadata.name for p in await pods_of(world, name)}
    await world.create(raw for raw in slow_gang(name, size)[1:] if raw["metadata"]["name"] not in there)


async def bound(world: World, name: str) -> dict[str, str]:
    """Pods of a gang that are bound, and where."""
    pods = await pods_of(world, name)
    return {p.metadata.name: p.spec.node_name for p in pods if p.spec.node_name}


async def is_bound(world: World, name: str, size: int) -> bool:
    return len(await bound(world, name)) == size


@scenario
async def half_a_gang_keeps_the_missing_room_and_is_taken_back_after_a_time(world: World) -> None:
    await world.create([node("n1", 4)])
    denying = Denying(world.port(), lambda pod, node: 422 if pod == "train-3" else 0)
    async with scheduling(world, denying, options=SOON) as scheduler:
        await world.create(slow_gang("train", 4))
        await until(lambda: is_bound(world, "train", 3), "three of four are bound")
        await until(lambda: called(denying, "train-3"), "the fourth is refused")
        await world.create(gang("rival", 1))

        async def taken_back() -> bool:
            left = await bound(world, "train")
            assert not left or not await bound(world, "rival"), "the rival took the room of half a gang"
            return not left

        await until(taken_back, "the gang gives back what it holds", every=0.02)

        async def says_why() -> bool:
            notes = [n.note for n in await world.notes() if n.reason == "Evict"]
            return bool(notes) and all("3 of 4 pods on nodes" in note for note in notes)

        await until(says_why, "an event says why")
        await until(lambda: runs(world, "rival", 1), "another gang gets the room")

        denying.status = lambda pod, node: 0
        await world.create([node("n2", 4)])
        await recreate(world, "train", 4)
        await until(lambda: is_bound(world, "train", 4), "the gang is bound whole")
        await settles(world, scheduler)


async def called(denying: Denying, name: str) -> bool:
    return any(pod == name for pod, _ in denying.denied)


@scenario
async def half_a_gang_of_a_scheduler_that_died_is_taken_back_if_its_room_is_gone(world: World) -> None:
    await world.create([node("n1", 4), *slow_gang("train", 4)])
    dying = Dying(world.port(), binds=2)
    planner = Planner(profile="volcano", options={"debug": True})
    async with beside(Scheduler(planner, dying, clock=world.clock, inline=world.inline).run()):
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await until(lambda: is_bound(world, "train", 2), "two of four are bound")
    taken = pod("other", cpu="2")
    taken["spec"] |= {"nodeName": "n1", "schedulerName": "default-scheduler"}
    await world.create([taken])

    async with scheduling(world, options=SOON) as scheduler:
        await until(lambda: is_bound(world, "train", 0), "what was bound is given back")
        await world.create([node("n2", 4)])
        await recreate(world, "train", 4)
        await until(lambda: is_bound(world, "train", 4), "the gang is bound whole")
        await settles(world, scheduler)


@scenario
async def members_on_a_node_that_is_gone_are_given_back_and_the_gang_completed(world: World) -> None:
    await world.create([node("n1", 2), node("n2", 2)])
    async with scheduling(world, options=SOON) as scheduler:
        await world.create(slow_gang("train", 4))
        await until(lambda: is_bound(world, "train", 4), "the gang is bound")
        stays = [name for name, where in (await bound(world, "train")).items() if where == "n1"]
        await world.delete(Node, "n2")

        async def given_back() -> bool:
            return sorted(await bound(world, "train")) == sorted(stays)

        await until(given_back, "the members on the lost node are deleted, and no others")
        await world.create([node("n3", 2)])
        await recreate(world, "train", 4)
        await until(lambda: is_bound(world, "train", 4), "the gang is bound whole")
        assert {*(await bound(world, "train")).values()} == {"n1", "n3"}
        await settles(world, scheduler)


# -- events ------------------------------------------------------------------------------------------------------------


@scenario
async def events_beyond_what_can_wait_are_gathered_with_their_number(world: World) -> None:
    await world.create([node("n1", 30)])
    slow = SlowNotes(world.port())
    async with scheduling(world, slow) as scheduler:
        scheduler.effects.most_notes = 4
        await world.create(gang("train", 30))
        await until(lambda: runs(world, "train", 30), "the gang runs while no event can be written")
        slow.go.set()

        async def all_are_told() -> bool:
            notes = [
                n for n in await world.notes() if n.reason == "Scheduled" and n.regarding.startswith("Pod ")
            ]
            told = 0
            for one in notes:
                gathered = re.search(r"one of (\d+) events Scheduled on Pods in namespace team", one.note)
                told += int(gathered[1]) if gathered else 1
            assert len(notes) <= 8
            return told == 30

        await until(all_are_told, "every event is told or counted")
        assert scheduler.effects.dropped > 0
