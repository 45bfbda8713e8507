"""What messages that explain cost: `python -m tests.live.explaining_cost [WAITING [NODES [CYCLES]]]`.

A scheduler of the default profile on the embedded cluster: nodes full of pods, gangs that wait, of ten kinds, and one
pod that ends and comes again before every cycle. It runs twice, with and without explaining, and measures the CPU time
of planning, of everything else but the embedded cluster in which a cycle is carried out, and of explaining.
"""

import asyncio
import sys
import time
from typing import Any

import click

from maniple.live.explanations import Explanations
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, pod, queue

PER_NODE, SIZE, KINDS = 8, 8, 10


class Meter:
    """CPU seconds of each cycle, and of what comes after it."""

    def __init__(self) -> None:
        self.planning: list[float] = []
        self.carrying: list[float] = []
        self.explaining = 0.0
        self.longest = 0.0
        self.explained = 0

    def timed(self, method: Any, into: list[float]) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            begin = time.thread_time()
            result = method(*given, **more)
            into.append(time.thread_time() - begin)
            return result

        return called

    def ask(self, method: Any) -> Any:
        def called(*given: Any) -> str:
            begin = time.thread_time()
            result: str = method(*given)
            took = time.thread_time() - begin
            self.explaining += took
            self.explained += 1
            self.longest = max(self.longest, took)
            return result

        return called


async def measure(waiting: int, nodes: int, cycles: int, *, explaining: bool) -> Meter:
    objects = [queue("default"), *(node(f"n{number:05}", PER_NODE) for number in range(nodes))]
    for number in range(nodes):
        made = gang(f"old-{number:05}", SIZE)
        for raw in made[1:]:
            raw["spec"] |= {"nodeName": f"n{number:05}", "schedulerName": "maniple"}
            raw["status"] = {"phase": "Running"}
        objects += made
    for number in range(waiting):
        made = gang(f"new-{number:05}", 2, cpu=str(1 + number % KINDS))
        for raw in made[1:]:
            raw["spec"]["schedulerName"] = "maniple"
        objects += made
    world, meter = World(objects, start_seconds=0.05), Meter()
    planner = Planner(profile="maniple")
    port, timing = world.port(), Timing(period=1.0)
    scheduler = Scheduler(planner, port, clock=world.clock, timing=timing, inline=True, alone=True)
    explanations: Explanations = scheduler._explanations
    planner.cycle = meter.timed(planner.cycle, meter.planning)  # type: ignore[method-assign]
    scheduler._carry_out = meter.timed(scheduler._carry_out, meter.carrying)  # type: ignore[method-assign]
    if explaining:
        explanations.ask = meter.ask(explanations.ask)  # type: ignore[method-assign]
    else:
        explanations.choose = lambda moment: None  # type: ignore[method-assign]
    async with beside(scheduler.run(), scheduler.stop):
        await asyncio.sleep(5)
        del meter.planning[:], meter.carrying[:]
        meter.explaining, meter.explained, meter.longest = 0.0, 0, 0.0
        for number in range(cycles):
            single = pod(f"old-00000-{number % SIZE}", "old-00000")
            world.store.remove(Pod, f"{NAMESPACE}/old-00000-{number % SIZE}")
            single["spec"] |= {"nodeName": "n00000", "schedulerName": "maniple"}
            world.store.create({**single, "status": {"phase": "Running"}})
            await asyncio.sleep(1.0)
    return meter


def main() -> None:
    given = [int(one) for one in sys.argv[1:]]
    waiting, nodes, cycles = (*given, *(1000, 1000, 20)[len(given) :])
    click.echo(f"{waiting:,} gangs wait; {nodes:,} nodes, {nodes * SIZE:,} pods run")
    for explaining in (False, True):
        meter = run(measure(waiting, nodes, cycles, explaining=explaining), virtual=True)
        planning, carrying = (sorted(one)[len(one) // 2] * 1000 for one in (meter.planning, meter.carrying))
        text = f"median of {len(meter.planning)} cycles: planning {planning:.1f} ms, carrying out {carrying:.1f} ms"
        click.echo(f"{'with' if explaining else 'without'} explaining: {text}")
        if explaining:
            each = meter.explaining / max(meter.explained, 1) * 1000
            share = meter.explaining / (sum(meter.planning) + sum(meter.carrying))
            click.echo(
                f"explained between cycles: {meter.explained:,} jobs, {each:.1f} ms each, {meter.longest * 1000:.1f} ms at most; "
                f"{share:.1%} of the time of the cycles"
            )


if __name__ == "__main__":
    main()
