"""What must hold for KAI's objects on every cluster, written once.

`test_kai_on_sim` and `test_kai_on_plane` run each of these, unchanged. Pods are bound by request; on the
embedded cluster its fake of KAI's binder carries requests out, on the real one `binder.py` does.
"""

import asyncio
from collections import Counter
from functools import partial

from maniple.live.essence import scheduled_condition
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Node, Pod
from maniple.objects.kai import BindRequest, KaiPodGroup
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.kai_objects import gang, node, pod, queue
from tests.live.objects import NAMESPACE
from tests.live.ports import DyingOfRequests
from tests.live.scenarios import Scenario, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

KAI_SCENARIOS: list[Scenario] = []
kai_scheduling = partial(scheduling, profile="kai")


def scenario(function: Scenario) -> Scenario:
    KAI_SCENARIOS.append(function)
    return function


async def group_of(world: World, name: str) -> KaiPodGroup:
    found: KaiPodGroup = next(g for g in await world.objects(KaiPodGroup) if g.metadata.name == name)
    return found


@scenario
async def a_gang_that_does_not_fit_says_why_and_runs_whole_when_a_node_comes(world: World) -> None:
    async with kai_scheduling(world) as scheduler:
        await world.create([queue(), node("n1", 5), *gang("train", 8)])

        async def says_why() -> bool:
            told = (await group_of(world, "train")).status.scheduling_conditions
            pods = [scheduled_condition(p) for p in await pods_of(world, "train")]
            # Before it has seen all of them, it says something else.
            why = "Resources were found for 5 pods while 8 are required"
            return (
                any(why in one.message for one in told)
                and [c.status for c in pods if c is not None] == ["False"] * 8
            )

        await until(says_why, "group and pods say why they wait")
        (told,) = (await group_of(world, "train")).status.scheduling_conditions
        assert (told.type, told.node_pool, told.status) == ("UnschedulableOnNodePool", "default", "True")
        assert told.reason == "Unschedulable"
        assert [why.reason for why in told.reasons] == ["PodSchedulingErrors"]
        assert await world.objects(BindRequest) == []
        assert all(not each.spec.node_name for each in await pods_of(world, "train"))

        await world.create([node("n2", 5)])
        await until(lambda: runs(world, "train", 8), "all eight run once there is room")

        async def takes_it_back() -> bool:
            read = await group_of(world, "train")
            return (
                not read.status.scheduling_conditions
                and "kai.scheduler/last-start-timestamp" in read.metadata.annotations
            )

        await until(takes_it_back, "the group says when it started, and no longer that it cannot")
        await has_one_request_for_each(world, "train")
        await settles(world, scheduler)
        reasons = Counter(n.reason for n in await world.notes() if n.regarding.startswith("Pod "))
        assert reasons["Scheduled"] == 8


async def has_one_request_for_each(world: World, name: str) -> None:
    """As KAI's binder expects them."""
    requests = {r.spec.pod_name: r for r in await world.objects(BindRequest)}
    pods = await pods_of(world, name)
    assert requests.keys() == {p.metadata.name for p in pods}
    for each in pods:
        request = requests[each.metadata.name]
        assert request.metadata.name == each.metadata.name
        assert request.spec.selected_node == each.spec.node_name
        assert request.metadata.labels["selected-node"] == each.spec.node_name
        assert [(o.kind, o.uid) for o in request.metadata.owner_references] == [("Pod", each.metadata.uid)]
        assert request.spec.received_resource_type == "Regular"
        assert request.spec.received_gpu is not None
        assert (request.spec.received_gpu.count, request.spec.received_gpu.portion) == (1, "1.00")


@scenario
async def a_cut_watch_loses_nothing(world: World) -> None:
    await world.create([queue(), node("n1", 4), node("unused", 0)])
    async with kai_scheduling(world) as scheduler:
        await world.create(gang("first", 4))
        await until(lambda: runs(world, "first", 4), "the first gang runs")
        await world.hang_up()
        await world.create([node("n2", 4), *gang("second", 4)])
        await world.delete(Pod, f"{NAMESPACE}/first-0")
        await world.create([pod("first-0", "first")])
        await world.delete(Node, "unused")
        await asyncio.sleep(0.3)
        await world.reconnect()
        await until(lambda: runs(world, "second", 4), "the second gang runs")
        await until(lambda: runs(world, "first", 4), "the pod that was made anew runs")
        await settles(world, scheduler)


@scenario
async def a_scheduler_that_died_in_the_middle_of_a_gang_is_continued_by_the_next(world: World) -> None:
    await world.create([queue(), node("n1", 5), node("n2", 5), *gang("train", 8)])
    dying = DyingOfRequests(world.port(), requests=3)
    first = Scheduler(
        Planner(profile="kai", options={"debug": True}), dying, clock=world.clock, inline=world.inline
    )

    async def three_are_requested() -> bool:
        return len(await world.objects(BindRequest)) == 3

    async with beside(first.run()):
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await until(three_are_requested, "three of eight are requested")

    async with kai_scheduling(world) as scheduler:
        await until(lambda: runs(world, "train", 8), "the gang runs whole")
        await settles(world, scheduler)
