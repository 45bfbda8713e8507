"""What administrators allow tenants to name, on every cluster: `test_on_sim` and `test_on_plane` run each of these."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from maniple.live.essence import scheduled_condition
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Namespace
from maniple.objects.volcano import VolcanoQueue
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw, gang, node, queue
from tests.live.scenarios import Scenario, conditions, group_of, runs, settles
from tests.live.worlds import World, pods_of, until

POLICY_SCENARIOS: list[Scenario] = []
CONF = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def scenario(function: Scenario) -> Scenario:
    POLICY_SCENARIOS.append(function)
    return function


@asynccontextmanager
async def preempting(world: World, **options: Any) -> AsyncIterator[Scheduler]:
    planner = Planner(CONF, profile="volcano", options={"debug": True, **options})
    timing = Timing(period=0.5)
    scheduler = Scheduler(planner, world.port(), clock=world.clock, timing=timing, inline=world.inline)
    async with beside(scheduler.run(), scheduler.stop):
        yield scheduler


def owned(name: str, **annotations: str) -> Raw:
    raw = queue(name)
    notes = {f"maniple.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**raw, "metadata": {**raw["metadata"], "annotations": notes}}


def jobs_in(queue: str, name: str, size: int, priority: str = "") -> list[Raw]:
    group, *pods = gang(name, size)
    group["spec"]["queue"] = queue
    group["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    if priority:
        group["spec"]["priorityClassName"] = priority
    return [group, *pods]


async def told(world: World, name: str) -> str:
    """What all pods of a gang say of why they wait."""
    found = [scheduled_condition(one) for one in await pods_of(world, name)]
    messages = {one.message if one is not None and one.reason == "Refused" else "" for one in found}
    return messages.pop() if len(messages) == 1 else ""


async def says(world: World, name: str, words: str) -> bool:
    group = conditions(await group_of(world, name))["Unschedulable"]
    return words in await told(world, name) and words in group[1]


async def annotate_namespace(world: World, queues: str | None) -> None:
    if NAMESPACE not in {one.metadata.name for one in await world.objects(Namespace)}:
        await world.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    await world.patch(Namespace, NAMESPACE, {"metadata": {"annotations": {"maniple.dev/queues": queues}}})


@scenario
async def a_gang_waits_until_its_namespace_may_use_the_queue(world: World) -> None:
    async with preempting(world) as scheduler:
        await world.create([node("n1", 4), owned("gold", namespaces="owners"), *jobs_in("gold", "train", 4)])
        refused = "may not use queue 'gold': Queue gold allows namespaces owners"
        await until(lambda: says(world, "train", refused), "group and pods say who may use the queue")
        assert (await group_of(world, "train")).status.phase != "Inqueue"

        allowed = {"metadata": {"annotations": {"maniple.dev/namespaces": f"owners, {NAMESPACE}"}}}
        await world.patch(VolcanoQueue, "gold", allowed)
        await until(lambda: runs(world, "train", 4), "it runs as soon as the queue allows its namespace")

        await annotate_namespace(world, "other")
        await world.create([node("n2", 4), *jobs_in("gold", "more", 4)])
        limited = "annotation maniple.dev/queues of the namespace allows other"
        await until(lambda: says(world, "more", limited), "the namespace has a say, too")
        assert await runs(world, "train", 4), "what runs is left alone"
        await annotate_namespace(world, None)
        await until(lambda: runs(world, "more", 4), "it runs as soon as the namespace allows the queue")
        await settles(world, scheduler)


@scenario
async def a_system_priority_takes_no_pods_from_others(world: World) -> None:
    async with preempting(world, systemPriorities="kube-system") as scheduler:
        await world.create([node("n1", 3), queue("gold"), *jobs_in("gold", "work", 3)])
        await until(lambda: runs(world, "work", 3), "the others run")
        await world.create(jobs_in("gold", "robber", 3, "system-node-critical"))
        refused = "systemPriorities allows it in kube-system only"
        await until(lambda: says(world, "robber", refused), "the gang says why it waits")
        await asyncio.sleep(2)
        assert await runs(world, "work", 3)
        await settles(world, scheduler)
