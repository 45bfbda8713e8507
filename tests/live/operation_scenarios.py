"""Operating a scheduler: a changed configuration, several schedulers with nodes of their own, a limit on writes, the
steps of its cycles in the log."""

import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.framework.traces.recorder import Depth
from maniple.live.reload import FileText, Reload, event_regarding
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import PodDisruptionBudget
from maniple.objects.volcano import NodeShard
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.objects import Raw, gang, node
from tests.live.scenarios import Scenario, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

OPERATION_SCENARIOS: list[Scenario] = []

IDLE = "actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"
PLACING = IDLE.replace("actions: enqueue", "actions: enqueue, allocate")
PROTECTING = PLACING + "  - name: pdb\n"


def scenario(function: Scenario) -> Scenario:
    OPERATION_SCENARIOS.append(function)
    return function


@dataclass
class Running:
    scheduler: Scheduler
    file: Path
    folder: Path

    def roll_out(self, text: str) -> None:
        """As a kubelet does it: a new folder, and the link to it swapped."""
        number = len([*self.folder.glob("..v*")])
        (self.folder / f"..v{number}").mkdir()
        (self.folder / f"..v{number}" / "scheduler.conf").write_text(text)
        link = self.folder / "..next"
        link.symlink_to(f"..v{number}")
        link.replace(self.folder / "..data")


@asynccontextmanager
async def reloading(world: World, text: str) -> AsyncIterator[Running]:
    """A scheduler with a configuration in a ConfigMap's volume."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scheduler.conf").symlink_to("..data/scheduler.conf")
        options = {"debug": True}
        scheduler = Scheduler(
            Planner(text, profile="volcano", options=options),
            world.port(),
            clock=world.clock,
            timing=Timing(period=0.5),
            inline=world.inline,
        )
        running = Running(scheduler, folder / "scheduler.conf", folder)
        running.roll_out(text)
        regarding = event_regarding({"POD_NAME": "maniple-0", "POD_NAMESPACE": "default"}, None)
        reload = Reload(
            scheduler,
            world.clock,
            FileText(running.file).read,
            lambda found: Planner(found, profile="volcano", options=options),
            name="scheduler.conf",
            current=text,
            tell=lambda *said: scheduler.notes.write(regarding, *said),
        )
        async with beside(reload.run()), beside(scheduler.run(), scheduler.stop):
            yield running


@scenario
async def a_changed_configuration_is_used_without_a_restart_and_a_bad_one_changes_nothing(
    world: World,
) -> None:
    async with reloading(world, IDLE) as running:
        scheduler = running.scheduler
        await world.create([node("n1", 4), node("n2", 4), *gang("train", 8)])

        async def idle() -> bool:
            return scheduler.settled and scheduler.cycles > 0

        await until(idle, "the first decision")
        assert not await runs(world, "train", 8)
        running.roll_out(PLACING.replace("allocate", "allocte"))

        async def rejected() -> bool:
            notes = [note for note in await world.notes() if note.reason == "ConfigurationRejected"]
            return len(notes) == 1 and 'did you mean "allocate"' in notes[0].note

        await until(rejected, "an event about the bad file")
        assert (scheduler.configuration.failures, scheduler.configuration.reloads) == (1, 0)
        assert scheduler.planner.configuration.actions == ("enqueue",)
        running.roll_out(PLACING)
        await until(lambda: runs(world, "train", 8), "the gang runs with the new configuration")
        assert (scheduler.configuration.failures, scheduler.configuration.reloads) == (1, 1)
        assert scheduler.configuration.last_success_time > 0

        async def is_told() -> bool:
            notes = [note.note for note in await world.notes() if note.reason == "ConfigurationReloaded"]
            return notes == ["scheduler.conf: reloaded: actions: enqueue → enqueue, allocate"]

        await until(is_told, "an event about the reload")
        await settles(world, scheduler)


@scenario
async def a_reload_while_pods_are_bound_loses_nothing_and_watches_what_it_needs(world: World) -> None:
    async with reloading(world, PLACING) as running:
        await world.create([node("n1", 8), node("n2", 8), *gang("train", 8)])

        async def decided() -> bool:
            return any(running.scheduler.cache.pod(p.key) for p in await pods_of(world, "train"))

        await until(decided, "the gang is known", every=0.001)
        running.roll_out(PROTECTING)
        await world.create(gang("next", 8))

        async def reloaded() -> bool:
            names = [one.name for tier in running.scheduler.planner.configuration.tiers for one in tier]
            return "pdb" in names

        await until(reloaded, "the plugin is configured")
        await until(lambda: runs(world, "train", 8), "the first gang runs")
        await until(lambda: runs(world, "next", 8), "the second gang runs")
        assert PodDisruptionBudget in running.scheduler._kinds


def shard(name: str, *nodes: str) -> Raw:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1",
        "kind": "NodeShard",
        "metadata": {"name": name},
        "spec": {"nodesDesired": [*nodes]},
    }


def of_scheduler(name: str, *raws: Raw) -> list[Raw]:
    for raw in raws:
        if raw["kind"] == "Pod":
            raw["spec"]["schedulerName"] = name
    return [*raws]


@scenario
async def two_schedulers_use_the_nodes_of_their_shards_and_hand_one_over(world: World) -> None:
    names = ("red", "blue")
    options = [{"schedulerName": name, "shard": {"mode": "hard", "name": name}} for name in names]
    await world.create([node("n1", 4), node("n2", 4), shard("red", "n1"), shard("blue", "n2")])

    async def in_use() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        shards: list[NodeShard] = await world.objects(NodeShard)
        return {one.metadata.name: (one.status.nodes_in_use, one.status.nodes_to_add) for one in shards}

    async with scheduling(world, options=options[0]), scheduling(world, options=options[1]):
        await world.create(of_scheduler("red", *gang("first", 4)))
        await world.create(of_scheduler("blue", *gang("second", 2)))
        await until(lambda: runs(world, "first", 4), "the first gang runs")
        await until(lambda: runs(world, "second", 2), "the second gang runs")
        assert {p.spec.node_name for p in await pods_of(world, "first")} == {"n1"}
        assert {p.spec.node_name for p in await pods_of(world, "second")} == {"n2"}

        async def each_says_what_it_uses() -> bool:
            return await in_use() == {"red": (("n1",), ()), "blue": (("n2",), ())}

        await until(each_says_what_it_uses, "the statuses")
        # Red wants blue's node, and gets it when blue has let it go.
        await world.patch(NodeShard, "red", {"spec": {"nodesDesired": ["n1", "n2"]}})

        async def red_waits() -> bool:
            return (await in_use())["red"] == (("n1",), ("n2",))

        await until(red_waits, "red says that it waits for n2")
        await world.create(of_scheduler("red", *gang("third", 2)))
        await world.patch(NodeShard, "blue", {"spec": {"nodesDesired": []}})
        await until(lambda: runs(world, "third", 2), "the third gang runs")
        assert {p.spec.node_name for p in await pods_of(world, "third")} == {"n2"}

        async def handed_over() -> bool:
            return await in_use() == {"red": (("n1", "n2"), ()), "blue": ((), ())}

        await until(handed_over, "the statuses after that")


@scenario
async def two_schedulers_use_the_nodes_that_their_selectors_name(world: World) -> None:
    await world.create([node("n1", 4, labels={"pool": "red"}), node("n2", 4, labels={"pool": "blue"})])
    red = {"schedulerName": "red", "nodeSelector": ["pool:red", "pool:crimson"]}
    blue = {"schedulerName": "blue", "nodeSelector": "pool:blue"}
    async with scheduling(world, options=red), scheduling(world, options=blue):
        await world.create(of_scheduler("red", *gang("first", 4)))
        await world.create(of_scheduler("blue", *gang("second", 4)))
        await until(lambda: runs(world, "first", 4), "the first gang runs")
        await until(lambda: runs(world, "second", 4), "the second gang runs")
        assert {p.spec.node_name for p in await pods_of(world, "first")} == {"n1"}
        assert {p.spec.node_name for p in await pods_of(world, "second")} == {"n2"}


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@scenario
async def the_steps_of_every_cycle_are_logged_if_asked_for(world: World) -> None:
    log, handler = logging.getLogger("maniple.steps"), _Lines()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        async with scheduling(world) as scheduler:
            await world.create([node("n1", 4), node("n2", 4), *gang("quiet", 4)])
            await until(lambda: runs(world, "quiet", 4), "the first gang runs")
            assert handler.lines == []
            scheduler.trace.depth = Depth.TASKS
            await world.create(gang("told", 4))
            await until(lambda: runs(world, "told", 4), "the second gang runs")
            await settles(world, scheduler)
        own = [line for line in handler.lines if "job=team/told" in line]
        wanted = (
            "has its turn",
            "to place, in this order",
            " pod=team/told-0: ",
            "is the gang ready? yes",
            "committed",
        )
        first = [next(place for place, line in enumerate(own) if text in line) for text in wanted]
        assert first == sorted(first)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
