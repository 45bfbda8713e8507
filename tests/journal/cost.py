"""What a journal costs a running scheduler: `python -m tests.journal.cost [NODES [PODS [CYCLES]]]`.

A scheduler on the embedded cluster, with nodes full of pods of which some end and others arrive before every cycle. Of
each cycle it measures the CPU time of planning and of carrying it out, of the recorder, which is part of the cycle,
and of the writer. What the recorder notes of changes between cycles is counted, and one note measured afterwards.
"""

import asyncio
import inspect
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from maniple.journal.recorder import Recorder
from maniple.journal.writer import Entry, Writer
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Plan, Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, queue

PER_NODE = 8
SIZE = 8  # of a gang
EACH = 25  # gangs that come and go before a cycle


class Timed(Recorder):
    """Measures itself."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.seconds = 0.0
        self.notes = 0

    def _note(self, *given: Any) -> None:
        self.notes += 1
        super()._note(*given)

    def attempt(self, *given: Any) -> Any:
        begin = time.thread_time()
        result = super().attempt(*given)
        self.seconds += time.thread_time() - begin
        return result

    def planned(self, *given: Any) -> None:
        begin = time.thread_time()
        super().planned(*given)
        self.seconds += time.thread_time() - begin

    def decided(self, *given: Any) -> None:
        begin = time.thread_time()
        super().decided(*given)
        self.seconds += time.thread_time() - begin


def seconds_of_a_note() -> float:
    """On average, with as many between two cycles as there are here."""
    recorder, rounds = Recorder(Writer(Path())), 200
    recorder._known.planner = Planner(profile="volcano")
    references = [(Pod, f"{NAMESPACE}/{number}") for number in range(2 * EACH * SIZE)]
    rest = [None] * (len(inspect.signature(recorder._note).parameters) - 1)
    begin = time.thread_time()
    for _ in range(rounds):
        for ref in references:
            recorder._note(ref, *rest)
        recorder._changed.clear()
    return (time.thread_time() - begin) / rounds / len(references)


class TimedPlanner(Planner):
    seconds = 0.0

    def cycle(self, *given: Any, **more: Any) -> Plan:
        begin = time.thread_time()
        plan = super().cycle(*given, **more)
        self.seconds += time.thread_time() - begin
        return plan


class TimedScheduler(Scheduler):
    carrying = 0.0

    def _carry_out(self, *given: Any) -> None:
        begin = time.thread_time()
        super()._carry_out(*given)
        self.carrying += time.thread_time() - begin


class TimedWriter(Writer):
    seconds = 0.0

    def _write(self, entry: Entry) -> None:
        begin = time.thread_time()
        super()._write(entry)
        self.seconds += time.thread_time() - begin


async def measure(nodes: int, pods: int, cycles: int, folder: Path) -> dict[str, float]:
    gangs = pods // SIZE
    objects = [queue("default"), *(node(f"n{number:05}", PER_NODE + 1) for number in range(nodes))]
    for number in range(gangs):
        made = gang(f"old-{number:05}", SIZE)
        for index, raw in enumerate(made[1:]):
            raw["spec"]["nodeName"] = f"n{(number * SIZE + index) // PER_NODE:05}"
            raw["status"] = {"phase": "Running"}
        objects += made
    world = World(objects, start_seconds=0.05)
    writer = TimedWriter(folder, waits=True)
    journal = Timed(writer)
    planner = TimedPlanner(profile="volcano")
    scheduler = TimedScheduler(
        planner,
        world.port(),
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=True,
        alone=True,
        journal=journal,
    )
    async with beside(scheduler.run(), scheduler.stop):
        await asyncio.sleep(2)
        writer.flush()
        first = figures(scheduler, planner, journal, writer)
        for number in range(cycles):
            for one in range(EACH):
                old = number * EACH + one
                for index in range(SIZE):
                    world.store.remove(Pod, f"{NAMESPACE}/old-{old:05}-{index}")
                world.store.remove(VolcanoPodGroup, f"{NAMESPACE}/old-{old:05}")
                for raw in gang(f"new-{old:05}", SIZE):
                    world.store.create(raw)
            await asyncio.sleep(0.3)
    journal.close()
    last = figures(scheduler, planner, journal, writer)
    return {name: last[name] - first[name] for name in last}


def figures(
    scheduler: TimedScheduler, planner: TimedPlanner, journal: Timed, writer: TimedWriter
) -> dict[str, float]:
    return {
        "cycles": scheduler.cycles,
        "planning": planner.seconds,
        "carrying out": scheduler.carrying,
        "notes": journal.notes,
        "recorder": journal.seconds,
        "writer": writer.seconds,
        "bytes": writer.figures.bytes,
    }


def main() -> None:
    given = [int(one) for one in sys.argv[1:]]
    nodes, pods, cycles = (*given, *(5000, 40000, 40)[len(given) :])
    folder = Path(tempfile.mkdtemp())
    try:
        found = run(measure(nodes, pods, cycles, folder), virtual=True)
        checkpoint = max(path.stat().st_size for path in folder.iterdir())
        click.echo(f"{nodes:,} nodes, {pods:,} pods, {EACH} gangs of {SIZE} come and go before a cycle")
        number = found["cycles"]
        found["notes"] *= seconds_of_a_note()
        cycle, journal = (
            sum(found[name] for name in names)
            for names in (("planning", "carrying out"), ("notes", "recorder", "writer"))
        )
        for name in ("planning", "carrying out", "notes", "recorder", "writer"):
            click.echo(f"{name:12} {found[name] / number * 1000:8.2f} ms a cycle")
        shares = f"{journal / cycle:.1%} of the cycle, {journal / found['planning']:.1%} of planning"
        click.echo(f"the journal  {journal / number * 1000:8.2f} ms a cycle, {shares}")
        click.echo(
            f"{number:.0f} cycles, {found['bytes'] / number / 1024:,.1f} KiB each; largest segment {checkpoint / 2**20:.1f} MiB"
        )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
