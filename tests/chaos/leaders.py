"""Scenarios of two replicas: one is killed, stopped for long, or cut off; the other takes over in time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS
from maniple.objects.lease import Lease
from tests.chaos.faults import Scenario, killed_after
from tests.chaos.stage import Process, Stage, Violation
from tests.live.objects import gang

LEASE_SECONDS = 4.0
# Short, so that many rounds fit into an hour.
ELECTION = (
    "--leader-elect",
    f"--leader-elect-lease-duration={LEASE_SECONDS:g}s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
# After the lease has run out: one retry period, the time to settle, a cycle, and the noise of a busy machine.
TAKEOVER_SECONDS = LEASE_SECONDS + 4.0
STOPPED_SECONDS = 60.0
QUICK_STOPPED_SECONDS = 6.0
_LEASE = KINDS[Lease].at("v1")


@asynccontextmanager
async def pair(stage: Stage) -> AsyncIterator[tuple[Process, Process]]:
    """The leader and the other one, both up to date."""
    try:
        await stage.client.delete(_LEASE, "maniple-system/maniple")
    except ApiError as error:
        if error.status != 404:
            raise
    # A busy machine may keep a leader from renewing in time: the usual timings, if times are not judged.
    election = ELECTION if stage.timed else ELECTION[:1]
    async with stage.scheduler(*election) as leader:
        await stage.nodes(4)
        await stage.latency(stage.name("first"))
        async with stage.scheduler(*election) as other:
            await asyncio.sleep(2.0)
            yield leader, other


async def taken_over(stage: Stage, since: float) -> None:
    """The next gang is bound in time, by the other one."""
    name = stage.name("second")
    await stage.create(gang(name, 8))
    took = await stage.until_bound(name) - since
    stage.check_time(took, TAKEOVER_SECONDS, "taking over")


async def ends_without_a_write(stage: Stage, leader: Process, since: float) -> None:
    """A leader that lost its lease ends with code 1 and has written nothing more."""

    async def over() -> bool:
        return leader.ended() is not None

    await stage.until(over, "the former leader ends", 30.0)
    if leader.ended() != 1:
        raise Violation(f"the former leader ended with code {leader.ended()}")
    written = leader.proxy.written(since)
    if written:
        raise Violation(f"the former leader wrote {written[0].asked.method} {written[0].asked.path}")


async def a_killed_leader(stage: Stage, quick: bool) -> None:
    async with pair(stage) as (leader, _):
        leader.kill()
        await taken_over(stage, time.monotonic())
        await stage.judge([(stage.name("first"), 8), (stage.name("second"), 8)])


async def a_leader_that_is_killed_while_it_binds(stage: Stage, quick: bool) -> None:
    """The other one completes the gang."""
    async with pair(stage) as (leader, _):
        name = stage.name("second")
        await killed_after(stage, leader, name, 1 + stage.number % 7)
        since = time.monotonic()
        took = await stage.until_bound(name) - since
        stage.check_time(took, TAKEOVER_SECONDS, "taking over")
        await stage.judge([(stage.name("first"), 8), (name, 8)])


async def a_leader_that_is_stopped(stage: Stage, quick: bool) -> None:
    """Stopped for a minute in the middle of its work, and continued."""
    async with pair(stage) as (leader, _):
        leader.stop()
        began = time.monotonic()
        await taken_over(stage, began)
        await asyncio.sleep(
            (QUICK_STOPPED_SECONDS if quick else STOPPED_SECONDS) - (time.monotonic() - began)
        )
        await stage.create(gang(stage.name("third"), 8))
        since = time.monotonic()
        leader.resume()
        await ends_without_a_write(stage, leader, since)
        await stage.until_bound(stage.name("third"))
        await stage.judge([(stage.name(name), 8) for name in ("first", "second", "third")])


async def a_leader_that_is_cut_off(stage: Stage, quick: bool) -> None:
    """No connection between the leader and the API server until the other one leads."""
    async with pair(stage) as (leader, _):
        await leader.proxy.close()
        began = time.monotonic()
        await taken_over(stage, began)
        await leader.proxy.open()
        await stage.create(gang(stage.name("third"), 8))
        await ends_without_a_write(stage, leader, began)
        await stage.until_bound(stage.name("third"))
        await stage.judge([(stage.name(name), 8) for name in ("first", "second", "third")])


LEADERS: tuple[Scenario, ...] = (
    a_killed_leader,
    a_leader_that_is_killed_while_it_binds,
    a_leader_that_is_stopped,
    a_leader_that_is_cut_off,
)
