"""Several schedulers on one cluster: what must hold on every cluster. Run like `scenarios.py`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maniple.live.group_controller import GroupController
from maniple.live.leadership import Election, Leadership, LeadershipLostError, since_boot
from maniple.live.port import Port
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.lease import Lease
from maniple.planner import Planner
from tests.live.beside import beside, cancelled
from tests.live.objects import gang, node
from tests.live.ports import Between
from tests.live.scenarios import Scenario, runs
from tests.live.worlds import World, pods_of, until
from tests.live.written_group_scenarios import gang as owned_gang
from tests.live.written_group_scenarios import groups, is_written

LEADER_SCENARIOS: list[Scenario] = []
NAMESPACE, NAME = "kube-system", "maniple"


def scenario(function: Scenario) -> Scenario:
    LEADER_SCENARIOS.append(function)
    return function


class Counting(Between):
    """Counts the writes that reach the cluster, but for those of the lease."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.writes = 0
        self.cut = asyncio.Event()  # set: nothing gets through any more, nor an answer

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name == "changes":
            return method

        async def through(*arguments: Any, **named: Any) -> Any:
            if self.cut.is_set():
                await asyncio.Event().wait()
            about_lease = any(isinstance(one, Lease) or one is Lease for one in arguments)
            about_lease |= any(isinstance(one, dict) and one.get("kind") == "Lease" for one in arguments)
            self.writes += name != "read" and not about_lease
            return await method(*arguments, **named)

        return through


class Watch:
    """A clock for one candidate, which can be put forward."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self.ahead = 0.0

    def __call__(self) -> float:
        return self._elapsed() + self.ahead


class Candidate:
    """A scheduler that takes part in an election, or a controller of groups."""

    def __init__(
        self, world: World, identity: str, kind: type[Scheduler] = Scheduler, profile: str = "volcano"
    ) -> None:
        self.port = Counting(world.port())
        self.watch = Watch(asyncio.get_running_loop().time if world.inline else since_boot)
        election = Election(identity, NAMESPACE, NAME, duration=4.0, renew=3.0, retry=0.5, settle=0.2)
        self.leadership = Leadership(self.port, election, world.clock, self.watch)
        self.scheduler = kind(
            Planner(profile=profile, options={"debug": True}),
            self.port,
            clock=world.clock,
            timing=Timing(period=0.5),
            inline=world.inline,
            leadership=self.leadership,
        )

    async def leads(self) -> bool:
        return self.leadership.leads

    async def is_idle(self) -> bool:
        """It leads, and what it had to write at its start is written."""
        return self.leadership.leads and self.scheduler.cycles > 0 and self.scheduler.settled


async def holder(world: World) -> str:
    leases = [one for one in await world.objects(Lease) if one.key == f"{NAMESPACE}/{NAME}"]
    return leases[0].spec.holder_identity if leases else ""


@asynccontextmanager
async def led_by(world: World, first: Candidate) -> AsyncIterator["asyncio.Task[None]"]:
    async with beside(first.scheduler.run()) as running:
        await until(first.leads, "the first one leads")
        yield running


@scenario
async def the_one_that_does_not_lead_writes_nothing_and_takes_over_at_once_when_the_leader_stops(
    world: World,
) -> None:
    first, second = Candidate(world, "first"), Candidate(world, "second")
    async with beside(first.scheduler.run(), first.scheduler.stop):
        await until(first.leads, "the first one leads")
        async with beside(second.scheduler.run(), second.scheduler.stop):
            await world.create([node("n1", 8), *gang("train", 8)])
            await until(lambda: runs(world, "train", 8), "the gang runs")
            assert await holder(world) == "first"
            assert second.port.writes == 0
            first.scheduler.stop()
            await until(second.leads, "the second one leads", seconds=30.0)
            await world.create([node("n2", 8), *gang("next", 8)])
            await until(lambda: runs(world, "next", 8), "the next gang runs")
            assert await holder(world) == "second"


@scenario
async def of_two_controllers_of_groups_the_leader_writes_and_the_other_one_goes_on_when_it_stops(
    world: World,
) -> None:
    first, second = (Candidate(world, name, GroupController, "maniple") for name in ("first", "second"))
    async with beside(first.scheduler.run(), first.scheduler.stop):
        await until(first.leads, "the first one leads")
        async with beside(second.scheduler.run(), second.scheduler.stop):
            written = await owned_gang(world, "train", 2)
            await until(
                lambda: is_written(world, "train", written), "the group is written, and its pods name it"
            )
            assert second.port.writes == 0
            first.scheduler.stop()
            await until(second.leads, "the second one leads", seconds=30.0)
            written = await owned_gang(world, "next", 2)
            await until(lambda: is_written(world, "next", written), "the next group is written")
            assert await holder(world) == "second"
            assert len(await groups(world)) == 2, "no group is written twice"


@scenario
async def after_a_kill_the_other_one_takes_over_when_the_lease_has_run_out(world: World) -> None:
    first, second = Candidate(world, "first"), Candidate(world, "second")
    async with led_by(world, first) as running, beside(second.scheduler.run(), second.scheduler.stop):
        first.port.cut.set()  # not even the lease is released
        await cancelled(running)
        await world.create([node("n1", 8), *gang("train", 8)])
        await until(lambda: runs(world, "train", 8), "the gang runs")
        assert await holder(world) == "second"


@scenario
async def a_leader_that_was_paused_for_longer_than_its_lease_writes_nothing(world: World) -> None:
    first, second = Candidate(world, "first"), Candidate(world, "second")
    running = asyncio.create_task(first.scheduler.run())
    await until(first.leads, "the first one leads")
    await world.create([node("n1", 8)])
    await until(first.is_idle, "the first one has written what it had to at its start")
    before = first.port.writes
    first.watch.ahead = 60.0  # what it would see of the time in which it did not run
    await world.create(gang("train", 8))
    async with beside(second.scheduler.run(), second.scheduler.stop):
        await until(lambda: runs(world, "train", 8), "the gang runs")
    assert first.port.writes == before
    with pytest.raises(ExceptionGroup) as ended:
        await running
    assert ended.value.subgroup(LeadershipLostError) is not None


@scenario
async def a_leader_without_a_connection_writes_nothing_when_the_connection_is_back(world: World) -> None:
    first, second = Candidate(world, "first"), Candidate(world, "second")
    running = asyncio.create_task(first.scheduler.run())
    await until(first.leads, "the first one leads")
    first.port.cut.set()
    await world.create([node("n1", 8), *gang("train", 8)])
    async with beside(second.scheduler.run(), second.scheduler.stop):
        await until(lambda: runs(world, "train", 8), "the gang runs")
        assert await holder(world) == "second"
        before = first.port.writes
        first.port.cut.clear()
        with pytest.raises(ExceptionGroup):
            await running
        assert first.port.writes == before
        assert len({p.spec.node_name for p in await pods_of(world, "train")}) == 1
