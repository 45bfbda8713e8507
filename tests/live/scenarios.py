"""What must hold on every cluster, written once. `test_on_sim` and `test_on_plane` run each of these, unchanged."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from maniple.cluster.canonical import canonical
from maniple.cluster.check import validate
from maniple.cluster.statuses import Status
from maniple.live.cache import Cache
from maniple.live.essence import scheduled_condition
from maniple.live.intake import grouper_of
from maniple.live.port import Port
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Node, Pod
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, pod
from tests.live.ports import Dying, Recorder, Refusing, Stalling
from tests.live.worlds import World, pods_of, until

Scenario = Callable[[World], Awaitable[None]]

SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    SCENARIOS.append(function)
    return function


@asynccontextmanager
async def scheduling(
    world: World,
    port: Port | Any = None,
    *,
    profile: str = "volcano",
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Scheduler]:
    """A scheduler that runs while the scenario looks on."""
    scheduler = Scheduler(
        Planner(profile=profile, options={"debug": True, **(options or {})}),
        world.port() if port is None else port,
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=world.inline,
        **settings,
    )
    async with beside(scheduler.run(), scheduler.stop):
        yield scheduler


async def runs(world: World, name: str, size: int) -> bool:
    pods = await pods_of(world, name)
    return len(pods) == size and all(p.status.phase == "Running" and p.spec.node_name for p in pods)


async def group_of(world: World, name: str) -> VolcanoPodGroup:
    found: VolcanoPodGroup = next(g for g in await world.objects(VolcanoPodGroup) if g.metadata.name == name)
    return found


def conditions(group: VolcanoPodGroup) -> defaultdict[str, tuple[str, str]]:
    """Status and message by type; empty for what the group does not say yet."""
    said = {c.type: (c.status, c.message) for c in group.status.conditions}
    return defaultdict(lambda: ("", ""), said)


async def is_true_to_the_cluster(world: World, scheduler: Scheduler) -> bool:
    """The columns that were kept are those that a list gives."""
    if not scheduler.settled:
        return False
    planner = scheduler.planner
    fresh = Cache(planner.build(()), scheduler.dialect, grouper_of(planner, scheduler.groups))
    for kind in scheduler.kinds:
        for item in await world.objects(kind):
            fresh.put(item)
    for made in scheduler.cache.made():
        fresh.keep_made(made)
    return canonical(scheduler.cache.cluster) == canonical(fresh.cluster)


async def settles(world: World, scheduler: Scheduler) -> None:
    await until(lambda: is_true_to_the_cluster(world, scheduler), "columns equal to those from a list")
    assert validate(scheduler.cache.cluster) == []


# -- gangs -------------------------------------------------------------------------------------------------------------


@scenario
async def a_gang_of_eight_runs_whole(world: World) -> None:
    async with scheduling(world) as scheduler:
        await world.create([node("n1", 4), node("n2", 4), *gang("train", 8)])
        await until(lambda: runs(world, "train", 8), "all eight run")

        async def written() -> bool:
            written = await group_of(world, "train")
            return written.status.phase == "Running" and written.status.running == 8

        await until(written, "the group says that it runs")
        assert conditions(await group_of(world, "train"))["Scheduled"][0] == "True"
        assert Counter(p.spec.node_name for p in await pods_of(world, "train")) == {"n1": 4, "n2": 4}
        await settles(world, scheduler)


@scenario
async def a_scheduler_that_starts_beside_running_gangs_writes_only_what_differs(world: World) -> None:
    names = [f"train-{number}" for number in range(4)]
    async with scheduling(world) as first:
        await world.create([node("n1", 16), *(raw for name in names for raw in gang(name, 4))])

        async def all_say_so() -> bool:
            return {(await group_of(world, name)).status.running for name in names} == {4}

        await until(all_say_so, "the groups say that they run")
        await settles(world, first)

    async def version_of(name: str) -> str:
        return (await group_of(world, name)).metadata.resource_version

    await world.patch(VolcanoPodGroup, f"{NAMESPACE}/train-0", {"status": {"running": 1}})
    versions = {name: await version_of(name) for name in names}
    noted = len([note for note in await world.notes() if note.reason == "Scheduled"])
    async with scheduling(world) as second:
        await until(all_say_so, "the group that said something else is corrected")
        await settles(world, second)
    same = [name for name in names if await version_of(name) == versions[name]]
    assert same == names[1:]
    assert len([note for note in await world.notes() if note.reason == "Scheduled"]) == noted


@scenario
async def a_gang_that_does_not_fit_binds_nothing_says_why_and_runs_when_a_node_comes(world: World) -> None:
    async with scheduling(world) as scheduler:
        await world.create([node("n1", 5), *gang("train", 8)])

        async def says_why() -> bool:
            told = conditions(await group_of(world, "train"))["Unschedulable"]
            pods = [scheduled_condition(p) for p in await pods_of(world, "train")]
            messages = [c.message for c in pods if c is not None and c.status == "False"]
            short = [message for message in messages if "Insufficient cpu" in message]
            # Five of them would have had a place; they say that the others have none.
            return len(messages) == 8 and len(short) == 3 and "Insufficient cpu" in told[1]

        await until(says_why, "group and pods say why they wait")
        # More happens that makes no difference to the gang.
        for number in range(3):
            await world.create([node(f"small-{number}", 0)])
            await asyncio.sleep(0.3)
        assert conditions(await group_of(world, "train"))["Unschedulable"][0] == "True"
        reasons: Counter[str] = Counter()
        for each in await pods_of(world, "train"):
            assert not each.spec.node_name
            told = scheduled_condition(each)
            assert told is not None
            reasons[told.reason] += 1
        # Whoever adds nodes for pods that have no place adds them for three.
        assert reasons == {"Schedulable": 5, "Unschedulable": 3}

        async def warned_once() -> bool:
            warnings = [n for n in await world.notes() if n.type == "Warning"]
            about = [(n.regarding, n.reason) for n in warnings]
            return about == [(f"PodGroup {NAMESPACE}/train", "Unschedulable")] and (
                "Insufficient cpu" in warnings[0].note
            )

        await until(warned_once, "one warning, on the group")
        await world.create([node("n2", 5)])
        await until(lambda: runs(world, "train", 8), "all eight run once there is room")

        async def takes_it_back() -> bool:
            told = conditions(await group_of(world, "train"))
            # The pods run before the group says so: at first it has no such condition.
            return told["Scheduled"][0] == "True" and told["Unschedulable"][0] == "False"

        await until(takes_it_back, "the group says that it is scheduled")
        await settles(world, scheduler)


@scenario
async def pods_without_a_group_are_jobs_of_one_and_queues_are_made(world: World) -> None:
    async with scheduling(world) as scheduler:
        await world.create([node("n1", 2), pod("alone"), pod("too-big", cpu="3")])

        async def alone_runs() -> bool:
            return any(
                p.metadata.name == "alone" and p.status.phase == "Running" for p in await world.objects(Pod)
            )

        async def queues_are_made() -> bool:
            return {q.metadata.name for q in await world.objects(VolcanoQueue)} == {"default", "root"}

        await until(alone_runs, "the pod that fits runs")
        await until(queues_are_made, "the queues that everything hangs on are made")
        assert await world.objects(VolcanoPodGroup) == []

        async def holds_one() -> bool:
            held = {q.metadata.name: q.status.allocated.get("cpu") for q in await world.objects(VolcanoQueue)}
            return held == {"default": "1", "root": "1"}

        await until(holds_one, "the queues say what they hold")

        async def told() -> bool:
            notes = [n for n in await world.notes() if n.type == "Warning"]
            return [n.regarding for n in notes] == [f"Pod {NAMESPACE}/too-big"]

        await until(told, "one warning, on the pod that does not fit")
        await settles(world, scheduler)


# -- many --------------------------------------------------------------------------------------------------------------


class Watcher:
    """Looks at every cycle: a gang that was given something has its minimum then."""

    def __init__(self) -> None:
        self.halves: list[str] = []
        self._placed: dict[str, int] = {}

    def __call__(self, scheduler: Scheduler) -> None:
        jobs = scheduler.cache.cluster.jobs
        placed = {jobs.keys[row]: int(jobs.counts[Status.BINDING :, row].sum()) for row in jobs.facts}
        for row, facts in jobs.facts.items():
            key = jobs.keys[row]
            if self._placed.get(key, 0) < placed[key] < facts.minimum:
                self.halves.append(f"cycle {scheduler.cycles}: {key} has {placed[key]} of {facts.minimum}")
        self._placed = placed


@scenario
async def a_thousand_pods_arrive_while_nodes_come_and_go(world: World) -> None:
    watcher, recorder = Watcher(), Recorder(world.port())
    names = [f"gang-{number:03d}" for number in range(125)]
    async with scheduling(world, recorder, observer=watcher) as scheduler:
        await world.create(node(f"n{number:03d}") for number in range(100))
        for part in range(5):
            gangs = [gang(name, 8) for name in names[part * 25 : part * 25 + 25]]
            await world.create(raws[0] for raws in gangs)
            await asyncio.gather(
                world.create(raw for raws in gangs for raw in raws[1:]),
                world.create(node(f"n{number:03d}") for number in range(100 + part * 20, 120 + part * 20)),
                lose_nodes(world, [f"n{part * 4 + number:03d}" for number in range(4)]),
            )
            await asyncio.sleep(0.2)
        await until(lambda: owner_is_content(world, names), "all thousand run", seconds=300, every=0.5)
        assert watcher.halves == []
        assert {uid: nodes for uid, nodes in recorder.bound.items() if len(nodes) > 1} == {}
        held = Counter(p.spec.node_name for p in await world.objects(Pod))
        assert max(held.values()) <= 8
        await settles(world, scheduler)


async def lose_nodes(world: World, names: list[str]) -> None:
    for name in names:
        await asyncio.sleep(0.02)
        await world.delete(Node, name)


async def owner_is_content(world: World, names: list[str]) -> bool:
    """Whoever owns the pods makes those anew that are lost with their nodes, until all of them run."""
    there = {n.metadata.name for n in await world.objects(Node)}
    pods = {p.metadata.name: p for p in await world.objects(Pod)}
    lost = [p for p in pods.values() if p.spec.node_name and p.spec.node_name not in there]
    await asyncio.gather(*(world.delete(Pod, each.key) for each in lost))
    for each in lost:
        del pods[each.metadata.name]
    wanted = {f"{name}-{number}": name for name in names for number in range(8)}
    missing = {member: name for member, name in wanted.items() if member not in pods}
    await world.create(pod(member, name) for member, name in missing.items())
    return not missing and all(p.status.phase == "Running" for p in pods.values())


# -- bad days ----------------------------------------------------------------------------------------------------------


async def change_behind_its_back(world: World) -> None:
    """Things come, change and go while nobody is listening."""
    await world.create([node("n2", 4), *gang("second", 4)])
    await world.delete(Pod, f"{NAMESPACE}/first-0")
    await world.create([pod("first-0", "first")])
    await world.delete(Node, "unused")


@scenario
async def a_cut_watch_loses_nothing(world: World) -> None:
    await world.create([node("n1", 4), node("unused", 0)])
    async with scheduling(world) as scheduler:
        await world.create(gang("first", 4))
        await until(lambda: runs(world, "first", 4), "the first gang runs")
        await world.hang_up()
        await change_behind_its_back(world)
        await asyncio.sleep(0.3)
        await world.reconnect()
        await until(lambda: runs(world, "second", 4), "the second gang runs")
        await until(lambda: runs(world, "first", 4), "the pod that was made anew runs")
        await settles(world, scheduler)
        assert world.relists() == 0


@scenario
async def a_past_that_was_forgotten_loses_nothing(world: World) -> None:
    await world.create([node("n1", 4), node("unused", 0)])
    async with scheduling(world) as scheduler:
        await world.create(gang("first", 4))
        await until(lambda: runs(world, "first", 4), "the first gang runs")
        await world.hang_up()
        await change_behind_its_back(world)
        await world.forget()
        await world.reconnect()
        await until(lambda: runs(world, "second", 4), "the second gang runs")
        await until(lambda: runs(world, "first", 4), "the pod that was made anew runs")
        await settles(world, scheduler)
        assert world.relists() > 0


@scenario
async def a_scheduler_that_died_in_the_middle_of_a_gang_is_continued_by_the_next(world: World) -> None:
    await world.create([node("n1", 5), node("n2", 5), *gang("train", 8)])
    dying = Dying(world.port(), binds=3)
    first = Scheduler(
        Planner(profile="volcano", options={"debug": True}),
        dying,
        clock=world.clock,
        inline=world.inline,
    )

    async def three_are_bound() -> bool:
        return sum(bool(p.spec.node_name) for p in await pods_of(world, "train")) == 3

    async with beside(first.run()):
        async with asyncio.timeout(120):
            await dying.dead.wait()
        await until(three_are_bound, "three of eight are bound")

    async with scheduling(world) as scheduler:
        await until(lambda: runs(world, "train", 8), "the gang runs whole")
        await settles(world, scheduler)


@scenario
async def a_refused_bind_is_tried_again_and_the_gang_completed(world: World) -> None:
    await world.create([node("n1", 5), node("n2", 5)])
    refusing = Refusing(world.port(), {"train-1": [503, 429], "train-2": [422], "train-3": [409, 409]})
    async with scheduling(world, refusing) as scheduler:
        await world.create(gang("train", 8))

        async def says_that_it_failed() -> bool:
            told = {p.metadata.name: scheduled_condition(p) for p in await pods_of(world, "train")}
            failed = told.get("train-2")
            return failed is not None and failed.reason == "SchedulerError"

        await until(says_that_it_failed, "the pod says that binding failed", every=0.01)
        await until(lambda: runs(world, "train", 8), "the gang runs whole")
        await settles(world, scheduler)


@scenario
async def binds_without_an_answer_do_not_keep_a_healthy_gang_waiting(world: World) -> None:
    await world.create([node("n1", 64)])
    stalling = Stalling(world.port(), "stuck")
    async with scheduling(world, stalling):
        await world.create(gang("stuck", 48))

        async def all_stalled() -> bool:
            return stalling.stalled >= 48

        await until(all_stalled, "no bind of the first gang is answered")
        await world.create(gang("train", 8))
        await until(lambda: runs(world, "train", 8), "the other gang runs")

        async def is_admitted() -> bool:
            return (await group_of(world, "train")).status.phase == "Running"

        await until(is_admitted, "and its group says so")
        stalling.answer.set()
