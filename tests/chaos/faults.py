"""The scenarios: one fault each, played once a round on a real API server with `maniple run` as a process.

A scenario gets a stage with an empty cluster and raises `Violation` if something does not hold. `quick` rounds wait
shorter for the same things.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from maniple.kube.kinds import KINDS
from maniple.objects.volcano import VolcanoPodGroup
from tests.chaos.proxy import Asked, Fault
from tests.chaos.stage import Process, Stage, Violation
from tests.live.objects import NAMESPACE, gang

Scenario = Callable[[Stage, bool], Awaitable[None]]
# How much longer a healthy gang may wait because others fail.
MORE_SECONDS = 1.0
# How long an interrupted or refused gang may be half before it is completed or taken back.
HEAL = "--default-staleness-grace-period=3s"
HEALED_SECONDS = 45.0
# A watch lasts a minute at most; one that is silent for longer is opened again.
NOTICED_SECONDS = 75.0


async def usual(stage: Stage) -> float:
    """How long gangs wait without a fault: the longest of three, after one that waited for the start."""
    waits = [await stage.latency(stage.name(f"usual{number}")) for number in range(4)]
    return max(waits[1:])


async def waits_no_longer(stage: Stage, name: str, before: float) -> None:
    stage.check_time(await stage.latency(name), before + MORE_SECONDS, "binding a healthy gang")


async def failing_webhook(stage: Stage, quick: bool) -> None:
    """48 pods whose binds answer 500 after seconds; a healthy gang does not notice, and they recover."""
    bad, failing = [stage.name(f"bad{number}") for number in range(6)], True

    def rule(asked: Asked) -> Fault | None:
        return Fault(500, 1.0 if quick else 10.0) if failing and asked.bound_pod.startswith("bad") else None

    async with stage.scheduler(rule=rule):
        await stage.nodes(14)
        before = await usual(stage)
        await stage.create([raw for name in bad for raw in gang(name, 8)])
        await asyncio.sleep(0.5 if quick else 3.0)
        await waits_no_longer(stage, stage.name("healthy"), before)
        failing = False
        for name in bad:
            await stage.until_bound(name)
        await stage.judge([(name, 8) for name in [*bad, stage.name("healthy")]])


async def slow_webhook(stage: Stage, quick: bool) -> None:
    """Binds of some pods succeed after seconds; a healthy gang does not notice."""
    slow = [stage.name(f"slow{number}") for number in range(6)]

    def rule(asked: Asked) -> Fault | None:
        return Fault(0, 2.0 if quick else 8.0) if asked.bound_pod.startswith("slow") else None

    async with stage.scheduler(rule=rule):
        await stage.nodes(14)
        before = await usual(stage)
        await stage.create([raw for name in slow for raw in gang(name, 8)])
        await asyncio.sleep(0.5)
        await waits_no_longer(stage, stage.name("healthy"), before)
        for name in slow:
            await stage.until_bound(name)
        await stage.judge([(name, 8) for name in [*slow, stage.name("healthy")]])


async def status_during_a_burst(stage: Stage, quick: bool) -> None:
    """While hundreds of pods are bound slowly, a new group is admitted at once."""
    size = 160 if quick else 800

    def rule(asked: Asked) -> Fault | None:
        return Fault(0, 0.2) if asked.bound_pod.startswith("many") else None

    async with stage.scheduler(rule=rule):
        await stage.nodes(size // 64 + 4, cpu=64)
        await usual(stage)
        await stage.create([raw for n in range(size // 8) for raw in gang(stage.name(f"many{n}"), 8)])
        await asyncio.sleep(0.5)
        (group, *_), began = gang(stage.name("new"), 8), time.monotonic()
        await stage.create([group])
        await stage.until(lambda: admitted(stage, stage.name("new")), "the new group is admitted", 30.0)
        stage.check_time(time.monotonic() - began, MORE_SECONDS, "admitting a new group")
        for number in range(size // 8):
            await stage.until_bound(stage.name(f"many{number}"))
        await stage.judge([(stage.name(f"many{n}"), 8) for n in range(size // 8)])


async def admitted(stage: Stage, name: str) -> bool:
    body = await stage.client.get(KINDS[VolcanoPodGroup].at("v1beta1"), f"{NAMESPACE}/{name}")
    return bool(body.get("status", {}).get("phase") == "Inqueue")


async def killed_in_the_middle(stage: Stage, quick: bool) -> None:
    """Killed after some binds of a gang and started again: the gang is completed."""
    name = stage.name("train")
    async with stage.scheduler() as running:
        await stage.nodes(2)
        await killed_after(stage, running, name, 1 + stage.number % 7)
        await stage.again(running)
        await stage.until_bound(name)
        await stage.latency(stage.name("healthy"))
        await stage.judge([(name, 8), (stage.name("healthy"), 8)])


async def killed_and_the_room_is_taken(stage: Stage, quick: bool) -> None:
    """Killed in the middle of a gang; others take the rest of its room: it is completed elsewhere or taken back."""
    name = stage.name("train")
    stage.plane.stop_kwok()  # nothing starts: a gang of which something runs is left as it is
    try:
        async with stage.scheduler(HEAL) as running:
            (node,) = await stage.nodes(1)
            there = 1 + stage.number % 7
            await killed_after(stage, running, name, there)
            await stage.take(node, 8 - there)
            await stage.again(running, HEAL)
            await stage.until(
                lambda: whole_or_absent(stage, name), "the gang is whole or absent", HEALED_SECONDS
            )
            await stage.judge([(name, 8)])
    finally:
        stage.plane.start_kwok()


async def a_member_that_can_never_be_bound(stage: Stage, quick: bool) -> None:
    """One pod is refused for ever: its gang does not stay half, and others do not wait."""
    name = stage.name("train")
    status = (403, 404, 422)[stage.number % 3]

    def rule(asked: Asked) -> Fault | None:
        return Fault(status) if asked.bound_pod == f"{name}-5" else None

    stage.plane.stop_kwok()
    try:
        async with stage.scheduler(HEAL, rule=rule):
            await stage.nodes(7)
            before = await usual(stage)
            await stage.create(gang(name, 8))
            await waits_no_longer(stage, stage.name("healthy"), before)
            await stage.until(lambda: absent(stage, name), "the gang is taken back", HEALED_SECONDS)
            await stage.judge([(stage.name("healthy"), 8)])
    finally:
        stage.plane.start_kwok()


async def killed_after(stage: Stage, running: Process, name: str, binds: int) -> None:
    """A new gang, of which so many pods are bound when the scheduler is killed."""
    running.proxy.pass_binds(binds)
    await stage.create(gang(name, 8))
    await stage.until_set(running.proxy.enough, "some of the gang is bound")
    running.kill()
    running.proxy.pass_binds(None)


async def whole_or_absent(stage: Stage, name: str, size: int = 8) -> bool:
    return await stage.bound(name) in (0, size)


async def absent(stage: Stage, name: str) -> bool:
    return await stage.bound(name) == 0


async def a_node_that_refuses(stage: Stage, quick: bool) -> None:
    """Binds to one node fail; other nodes have room: the gang goes there after a few attempts."""
    name = stage.name("train")
    bad = stage.name("node0")
    status = (500, 422)[stage.number % 2]

    def rule(asked: Asked) -> Fault | None:
        return Fault(status) if asked.target == bad else None

    async with stage.scheduler(rule=rule) as running:
        await stage.nodes(3)
        await stage.create(gang(name, 8))
        await stage.until_bound(name, seconds=60.0)
        tried = len(running.proxy.refused)
        if tried > 24:
            raise Violation(f"a node that refuses was tried {tried} times for 8 pods")
        await stage.judge([(name, 8)])


async def a_silent_watch(stage: Stage, quick: bool) -> None:
    """Open watches stop passing anything on: noticed, and a new gang is bound."""
    async with stage.scheduler() as running:
        await stage.nodes(2)
        await stage.latency(stage.name("first"))
        running.proxy.silence()
        stage.check_time(
            await stage.latency(stage.name("second")), NOTICED_SECONDS, "noticing a silent watch"
        )
        await stage.judge([(stage.name("first"), 8), (stage.name("second"), 8)])


async def a_missing_permission(stage: Stage, quick: bool) -> None:
    """One kind may not be listed: it is named, and the rest is scheduled."""
    kind = ("persistentvolumeclaims", "resourcequotas", "hypernodes", "csinodes")[stage.number % 4]

    def rule(asked: Asked) -> Fault | None:
        return Fault(403) if asked.method == "GET" and asked.resource == kind else None

    async with stage.scheduler(rule=rule) as running:
        await stage.nodes(1)
        await stage.latency(stage.name("train"))
        if "may not list it" not in running.log.read_text():
            raise Violation(f"{kind} may not be listed, and the log does not say so")
        await stage.judge([(stage.name("train"), 8)])


FAULTS: tuple[Scenario, ...] = (
    failing_webhook,
    slow_webhook,
    status_during_a_burst,
    killed_in_the_middle,
    killed_and_the_room_is_taken,
    a_member_that_can_never_be_bound,
    a_node_that_refuses,
    a_silent_watch,
    a_missing_permission,
)
