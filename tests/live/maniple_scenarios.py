"""What must hold on every cluster with objects of both systems at once, written once.

`test_maniple_on_sim` and `test_maniple_on_plane` run each of these, unchanged.
"""

import asyncio
from functools import partial
from typing import Any

from maniple.live.essence import scheduled_condition
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Node, Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.planner import Planner
from tests.live import kai_objects, objects
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw, node
from tests.live.ports import Dying, Recorder, Refusing
from tests.live.scenarios import Scenario, Watcher, conditions, lose_nodes, runs, scheduling, settles
from tests.live.worlds import World, until

MANIPLE_SCENARIOS: list[Scenario] = []
OPTIONS = {"schedulerName": ["maniple", "volcano", "kai-scheduler"]}
QUEUE = "team"
QUEUES = [kai_objects.queue(QUEUE), objects.queue(QUEUE)]  # of one name: one queue
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 75,
}
maniple_scheduling = partial(scheduling, profile="maniple", options=OPTIONS)


def scenario(function: Scenario) -> Scenario:
    MANIPLE_SCENARIOS.append(function)
    return function


def member(name: str, group: str, *, kai: bool) -> Raw:
    return kai_objects.pod(name, group, 0) if kai else objects.pod(name, group)


def gang(name: str, size: int, *, kai: bool, **spec: Any) -> list[Raw]:
    """Pods of one CPU each."""
    head = kai_objects.group(name, size, QUEUE, **spec) if kai else objects.group(name, size, QUEUE)
    head["spec"] |= spec
    return [head, *(member(f"{name}-{number}", name, kai=kai) for number in range(size))]


def of_both(prefix: str, size: int) -> list[Raw]:
    """Two gangs, `prefix-v` and `prefix-k`."""
    return [*gang(f"{prefix}-v", size, kai=False), *gang(f"{prefix}-k", size, kai=True)]


async def both_run(world: World, prefix: str, size: int) -> bool:
    return await runs(world, f"{prefix}-v", size) and await runs(world, f"{prefix}-k", size)


async def volcano_group(world: World, name: str) -> VolcanoPodGroup:
    found: VolcanoPodGroup = next(g for g in await world.objects(VolcanoPodGroup) if g.metadata.name == name)
    return found


async def kai_group(world: World, name: str) -> KaiPodGroup:
    found: KaiPodGroup = next(g for g in await world.objects(KaiPodGroup) if g.metadata.name == name)
    return found


@scenario
async def gangs_of_both_wait_say_why_and_run_whole_when_a_node_comes(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        await world.create([*QUEUES, node("n1", 3), *of_both("train", 4)])

        async def say_why() -> bool:
            ours = conditions(await volcano_group(world, "train-v"))["Unschedulable"]
            theirs = (await kai_group(world, "train-k")).status.scheduling_conditions
            pods = [scheduled_condition(p) for p in await world.objects(Pod)]
            return (
                ours[0] == "True"
                and "cpu" in ours[1]
                and any("cpu" in one.message for one in theirs)
                and [c.status for c in pods if c is not None] == ["False"] * 8
            )

        await until(say_why, "both groups and all pods say why they wait")
        assert all(not each.spec.node_name for each in await world.objects(Pod))
        await world.create([node("n2", 5)])
        await until(lambda: both_run(world, "train", 4), "both gangs run once there is room")

        async def take_it_back() -> bool:
            ours, theirs = await volcano_group(world, "train-v"), await kai_group(world, "train-k")
            return (
                conditions(ours)["Scheduled"][0] == "True"
                and conditions(ours)["Unschedulable"][0] == "False"
                and not theirs.status.scheduling_conditions
                and "kai.scheduler/last-start-timestamp" in theirs.metadata.annotations
            )

        await until(take_it_back, "each group says in its own way that it has got its places")

        async def holds_all() -> bool:
            held = {q.metadata.name: q.status.allocated.get("cpu") for q in await world.objects(VolcanoQueue)}
            return held.get(QUEUE) == "8"

        await until(holds_all, "the queue says what jobs of both hold")
        await settles(world, scheduler)


@scenario
async def groups_of_one_name_are_two_jobs(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        ours = [objects.group("train", 2, QUEUE), *(member(f"v-{n}", "train", kai=False) for n in range(2))]
        theirs = [
            kai_objects.group("train", 3, QUEUE),
            *(member(f"k-{n}", "train", kai=True) for n in range(3)),
        ]
        await world.create([*QUEUES, node("n1", 4), *ours])
        await until(lambda: _running(world, {"v-0", "v-1"}), "the first runs")
        await world.create(theirs)

        async def told() -> bool:
            return bool((await kai_group(world, "train")).status.scheduling_conditions)

        async def first_is_scheduled() -> bool:
            return conditions(await volcano_group(world, "train"))["Scheduled"][0] == "True"

        await until(told, "the second is told that it has to wait")
        await until(first_is_scheduled, "the first is told that it has its places")
        await world.create([node("n2", 4)])
        await until(lambda: _running(world, {"v-0", "v-1", "k-0", "k-1", "k-2"}), "both run")
        await settles(world, scheduler)


async def _running(world: World, names: set[str]) -> bool:
    return names == {p.metadata.name for p in await world.objects(Pod) if p.status.phase == "Running"}


@scenario
async def room_is_made_for_a_more_important_gang_of_the_other_system(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        await world.create([*QUEUES, HIGH, node("n1", 4), *gang("low", 4, kai=False)])
        await until(lambda: runs(world, "low", 4), "the first gang runs")
        await world.create(gang("urgent", 4, kai=True, priorityClassName="high"))
        await until(lambda: runs(world, "urgent", 4), "the more important one has its place")
        assert not [p for p in await world.objects(Pod) if p.metadata.name.startswith("low")]
        await settles(world, scheduler)


@scenario
async def a_pod_that_has_to_move_says_where_to_until_it_is_gone(world: World) -> None:
    recorder, machine = Recorder(world.port()), partial(kai_objects.node, gpus=4)
    pods = partial(kai_objects.gang, queue=QUEUE)
    async with maniple_scheduling(world, recorder) as scheduler:
        await world.create([*QUEUES, machine("n1"), *pods("one", 2), *pods("rest", 2)])
        await until(lambda: runs(world, "rest", 2), "n1 is full")
        await world.create([machine("n2"), *pods("two", 2)])
        await until(lambda: runs(world, "two", 2), "n2 is half full")
        for name in ("rest-0", "rest-1"):
            await world.delete(Pod, f"{NAMESPACE}/{name}")
        await world.create(pods("whole", 1, 4))
        await until(lambda: runs(world, "whole", 1), "one node is cleared for the pod that needs all of it")
        (home,) = {p.spec.node_name for p in await world.objects(Pod) if p.metadata.name == "whole-0"}
        assert list(recorder.promised.values()) == ["n2" if home == "n1" else "n1"] * 2
        await settles(world, scheduler)


@scenario
async def many_gangs_of_both_arrive_while_nodes_come_and_go(world: World) -> None:
    watcher, recorder = Watcher(), Recorder(world.port())
    gangs = {f"gang-{number:02d}": number % 2 == 1 for number in range(40)}
    async with maniple_scheduling(world, recorder, observer=watcher) as scheduler:
        await world.create([*QUEUES, *(node(f"n{number:02d}") for number in range(30))])
        for part in range(4):
            some = list(gangs.items())[part * 10 : part * 10 + 10]
            made = [gang(name, 8, kai=kai) for name, kai in some]
            await world.create(raws[0] for raws in made)
            await asyncio.gather(
                world.create(raw for raws in made for raw in raws[1:]),
                world.create(node(f"n{number:02d}") for number in range(30 + part * 8, 38 + part * 8)),
                lose_nodes(world, [f"n{part * 2 + number:02d}" for number in range(2)]),
            )
        await until(lambda: _all_run(world, gangs), "all of them run", seconds=300, every=0.5)
        assert watcher.halves == []
        assert {uid: nodes for uid, nodes in recorder.bound.items() if len(nodes) > 1} == {}
        await settles(world, scheduler)


async def _all_run(world: World, gangs: dict[str, bool]) -> bool:
    """Whoever owns the pods makes those anew that are lost with their nodes, until all of them run."""
    there = {n.metadata.name for n in await world.objects(Node)}
    pods = {p.metadata.name: p for p in await world.objects(Pod)}
    lost = [p for p in pods.values() if p.spec.node_name and p.spec.node_name not in there]
    await asyncio.gather(*(world.delete(Pod, each.key) for each in lost))
    for each in lost:
        del pods[each.metadata.name]
    wanted = {f"{name}-{n}": (name, kai) for name, kai in gangs.items() for n in range(8)}
    missing = {name: of for name, of in wanted.items() if name not in pods}
    await world.create(member(name, group, kai=kai) for name, (group, kai) in missing.items())
    return not missing and all(p.status.phase == "Running" for p in pods.values())


@scenario
async def a_cut_watch_loses_nothing_of_either(world: World) -> None:
    await world.create([*QUEUES, node("n1"), node("unused", 0)])
    async with maniple_scheduling(world) as scheduler:
        await world.create(of_both("first", 4))
        await until(lambda: both_run(world, "first", 4), "the first gangs run")
        await world.hang_up()
        await world.create([node("n2"), *of_both("second", 4)])
        for name, kai in (("first-v", False), ("first-k", True)):
            await world.delete(Pod, f"{NAMESPACE}/{name}-0")
            await world.create([member(f"{name}-0", name, kai=kai)])
        await world.delete(Node, "unused")
        await asyncio.sleep(0.3)
        await world.reconnect()
        await until(lambda: both_run(world, "second", 4), "the second gangs run")
        await until(lambda: both_run(world, "first", 4), "the pods that were made anew run")
        await settles(world, scheduler)


@scenario
async def a_scheduler_that_died_between_two_gangs_is_continued_by_the_next(world: World) -> None:
    await world.create([*QUEUES, node("n1", 5), node("n2", 5), *of_both("train", 4)])
    dying = Dying(world.port(), binds=6)
    planner = Planner(profile="maniple", options={"debug": True, **OPTIONS})
    first = Scheduler(planner, dying, clock=world.clock, inline=world.inline)

    async def six_are_bound() -> bool:
        return sum(bool(p.spec.node_name) for p in await world.objects(Pod)) == 6

    async with beside(first.run()):
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await until(six_are_bound, "six of eight are bound")
    async with maniple_scheduling(world) as scheduler:
        await until(lambda: both_run(world, "train", 4), "both gangs run whole")
        await settles(world, scheduler)


@scenario
async def refused_binds_are_tried_again_and_both_gangs_completed(world: World) -> None:
    await world.create([*QUEUES, node("n1", 5), node("n2", 5)])
    refusing = Refusing(world.port(), {"train-v-1": [503, 429], "train-k-2": [422], "train-k-3": [409, 409]})
    async with maniple_scheduling(world, refusing) as scheduler:
        await world.create(of_both("train", 4))
        await until(lambda: both_run(world, "train", 4), "both gangs run whole")
        await settles(world, scheduler)
