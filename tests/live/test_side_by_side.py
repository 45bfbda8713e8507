"""Two schedulers on one cluster, as docs/migrate.md describes it: each with its nodes, in agreement about statuses."""

import asyncio
from collections import Counter
from typing import Any

from maniple.objects.core import Node, Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.sim.clock import run
from tests.live import kai_objects, objects
from tests.live.objects import Raw
from tests.live.scenarios import runs, scheduling
from tests.live.worlds import EmbeddedWorld, pods_of, until

POOL = "kai.scheduler/node-pool"


def pool_node(name: str, pool: str) -> Raw:
    made = objects.node(name)
    made["metadata"]["labels"]["pool"] = pool
    return made


def for_scheduler(items: list[Raw], name: str, queue: str) -> list[Raw]:
    for item in items:
        if item["kind"] == "Pod":
            item["spec"]["schedulerName"] = name
        else:
            item["spec"]["queue"] = queue
    return items


async def nodes_of(world: EmbeddedWorld, group: str) -> set[str]:
    return {pod.spec.node_name for pod in await pods_of(world, group)}


def test_volcano_and_the_profile_volcano_share_a_cluster_by_name_and_nodes() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        old = {"schedulerName": ["volcano"], "nodeSelector": ["pool:volcano"]}
        new = {"schedulerName": ["maniple"], "nodeSelector": ["pool:maniple"]}
        await world.create([objects.queue("old"), objects.queue("new")])
        await world.create([pool_node("v1", "volcano"), pool_node("m1", "maniple")])
        async with scheduling(world, options=old), scheduling(world, options=new):
            await world.create(for_scheduler(objects.gang("theirs", 4), "volcano", "old"))
            await world.create(for_scheduler(objects.gang("ours", 4), "maniple", "new"))
            await until(lambda: runs(world, "theirs", 4), "Volcano's gang runs")
            await until(lambda: runs(world, "ours", 4), "the other gang runs")
            assert await nodes_of(world, "theirs") == {"v1"}
            assert await nodes_of(world, "ours") == {"m1"}
            await asyncio.sleep(30)
            before = await _statuses(world)
            await asyncio.sleep(60)
            # Both write them; if they disagreed, versions would grow without end.
            assert await _statuses(world) == before
            held = {
                queue.metadata.name: queue.status.allocated for queue in await world.objects(VolcanoQueue)
            }
            assert [held[name]["cpu"] for name in ("old", "new")] == ["4", "4"]
            # A pod waits for the scheduler that it names, although the other one has room.
            await world.create(for_scheduler(objects.gang("more", 8), "volcano", "old"))
            await asyncio.sleep(30)
            assert await nodes_of(world, "more") == {""}

    run(main(), virtual=True)


def test_the_status_of_a_queue_counts_the_pods_of_all_schedulers_that_share_it() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        first = {"schedulerName": ["first"], "nodeSelector": ["pool:first"]}
        second = {"schedulerName": ["second"], "nodeSelector": ["pool:second"]}
        await world.create([objects.queue("both"), pool_node("f1", "first"), pool_node("s1", "second")])
        async with scheduling(world, options=first), scheduling(world, options=second):
            await world.create(for_scheduler(objects.gang("large", 4), "first", "both"))
            await until(lambda: runs(world, "large", 4), "the gang of the first runs")
            await world.create(for_scheduler(objects.gang("small", 2), "second", "both"))
            await until(lambda: runs(world, "small", 2), "the gang of the second runs")
            await asyncio.sleep(30)
            held = {one.metadata.name: one.status.allocated for one in await world.objects(VolcanoQueue)}
            assert held["both"]["cpu"] == "6"

    run(main(), virtual=True)


def test_the_profile_maniple_leaves_statuses_of_volcanos_pods_to_volcano() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        await world.create([objects.queue("old"), objects.queue("new"), objects.node("n1", 16)])
        async with scheduling(world), scheduling(world, profile="maniple"):
            await world.create(for_scheduler(objects.gang("theirs", 4), "volcano", "old"))
            await world.create(for_scheduler(objects.gang("ours", 4), "maniple", "new"))
            await until(lambda: runs(world, "theirs", 4), "Volcano's gang runs")
            await until(lambda: runs(world, "ours", 4), "the other gang runs")
            await asyncio.sleep(30)
            phases = {one.metadata.name: one.status.phase for one in await world.objects(VolcanoPodGroup)}
            assert phases["theirs"] == "Running"
            held = {one.metadata.name: one.status.allocated for one in await world.objects(VolcanoQueue)}
            assert held["old"]["cpu"] == "4"
            before = await _statuses(world)
            await asyncio.sleep(60)
            after = await _statuses(world)
            assert {key: after[key] for key in before if "theirs" in key or "old" in key} == {
                key: before[key] for key in before if "theirs" in key or "old" in key
            }

    run(main(), virtual=True)


async def _statuses(world: EmbeddedWorld) -> dict[str, Any]:
    items = [*await world.objects(VolcanoQueue), *await world.objects(VolcanoPodGroup)]
    return {f"{item.kind} {item.key}": item.metadata.resource_version for item in items}


def in_pool(items: list[Raw], pool: str = "maniple") -> list[Raw]:
    """Labelled as workloads are; the podgrouper hands the label on to the group, not to the pods."""
    for item in items:
        if item["kind"] != "Pod":
            item["metadata"]["labels"] = {**item["metadata"].get("labels", {}), POOL: pool}
    return items


def test_kai_and_the_profile_kai_share_a_cluster_by_node_pool() -> None:
    async def main() -> None:
        world = EmbeddedWorld()
        await world.create([kai_objects.queue(), kai_objects.node("k1", 4)])
        await world.create(in_pool([kai_objects.queue("ours"), kai_objects.node("m1", 4)]))
        ours = {"nodePoolLabelValue": "maniple"}
        async with (
            scheduling(world, profile="kai"),
            scheduling(world, profile="kai", options=ours),
        ):
            await world.create(kai_objects.gang("theirs", 2))
            await world.create(in_pool(kai_objects.gang("mine", 4, queue="ours")))
            await until(lambda: runs(world, "theirs", 2), "KAI's gang runs")
            await until(lambda: runs(world, "mine", 4), "the other gang runs")
            assert await nodes_of(world, "theirs") == {"k1"}
            assert await nodes_of(world, "mine") == {"m1"}
            # A node changes hands: what runs on it stays and counts.
            await world.patch(Node, "k1", {"metadata": {"labels": {POOL: "maniple"}}})
            await world.create(in_pool(kai_objects.gang("large", 3, queue="ours")))
            await world.create(kai_objects.gang("moves", 2))
            await asyncio.sleep(30)
            assert await nodes_of(world, "large") == {""}
            assert await nodes_of(world, "moves") == {""}
            # And a pending group, by its label.
            patch = {"metadata": {"labels": {POOL: "maniple"}}, "spec": {"queue": "ours"}}
            await world.patch(KaiPodGroup, f"{objects.NAMESPACE}/moves", patch)
            await until(lambda: runs(world, "moves", 2), "the group runs where it was moved")
            assert await nodes_of(world, "moves") == {"k1"}
            used = Counter(pod.spec.node_name for pod in await world.objects(Pod))
            assert used == {"k1": 4, "m1": 4, "": 3}

    run(main(), virtual=True)
