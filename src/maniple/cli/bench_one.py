"""The hidden command `maniple bench-one`: measures one shape in this process and prints the figures as JSON.

`maniple bench` starts it once per shape and scale, so that the peak memory is that of one cluster alone.
"""

import gc
import resource
import sys
import time
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click
import msgspec

from maniple.cli.echo import echo
from maniple.cli.shape_model import FIRST_PENDING, Object, Shape
from maniple.cli.shapes import DIALECTS, SHAPES

if TYPE_CHECKING:
    from maniple.planner import Plan

# An hour after the youngest job was created, whatever the real time.
NOW = datetime.fromtimestamp(FIRST_PENDING + 3600, UTC)


@click.command("bench-one", hidden=True)
@click.option("--shape", type=click.Choice(list(SHAPES)), required=True)
@click.option("--scale", required=True)
@click.option("--profile", type=click.Choice(list(DIALECTS)), required=True)
@click.option("--repeat", type=click.IntRange(min=1), required=True)
def command(shape: str, scale: str, profile: str, repeat: int) -> None:
    """Measure one shape and print its figures."""
    echo(msgspec.json.encode(measure(shape, Fraction(scale), profile, repeat)).decode())


def measure(name: str, scale: Fraction, profile: str, repeat: int) -> dict[str, Any]:
    """Generate the cluster once, plan it `repeat` times, and keep the run with the shortest cycle."""
    shape = SHAPES[name](scale)
    objects = DIALECTS[profile](shape)
    runs = [_run(objects, shape, profile) for _ in range(repeat)]
    phases, cycle, _, plan = min(runs, key=lambda run: run[1])
    return {
        "shape": name,
        "profile": profile,
        "nodes": len(shape.nodes),
        "tasks": shape.tasks,
        "phases": {phase: round(seconds, 6) for phase, seconds in phases.items()},
        "cycle": round(cycle, 6),
        "cycle_cpu": round(min(cpu for _, _, cpu, _ in runs), 6),
        "placed": len(plan.binds),
        "pipelined": len(plan.pipelined),
        "evicted": len(plan.evictions),
        "tasks_per_second": round(len(plan.binds) / cycle),
        "peak_rss_mib": round(_peak_rss_mib(), 1),
    }


def _run(objects: list[Object], shape: Shape, profile: str) -> tuple[dict[str, float], float, float, "Plan"]:
    """One cycle from objects to plan: seconds of each phase, wall and CPU seconds from open to close, the
    plan."""
    from maniple.planner import Planner

    special = profile == "volcano"  # the other profiles' default configurations cover every shape
    conf, actions = (shape.conf, shape.actions) if special else (None, None)
    clock = time.perf_counter
    planner = Planner(conf=conf, profile=profile, actions=actions, clock=clock)
    gc.collect()  # the garbage of an earlier run is not this run's cost
    begin = clock()
    cluster = planner.build(objects)
    built, busy = clock(), time.process_time()
    plan = planner.cycle(cluster, now=NOW)
    cycle, cpu = clock() - built, time.process_time() - busy
    return {"build": built - begin, **plan.timings}, cycle, cpu, plan


def _peak_rss_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)  # bytes there, KiB elsewhere
