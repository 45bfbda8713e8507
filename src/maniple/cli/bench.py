"""The command `maniple bench`: times one scheduling cycle on generated clusters of known shape.

Every shape runs in a fresh process. The figures go to standard output, progress to standard error. With `--live` it
measures a running scheduler on a cluster instead (`cli/live/`).
"""

import subprocess
import sys
from fractions import Fraction
from typing import Any

import click
import msgspec

from maniple.cli.echo import echo
from maniple.cli.live.options import LiveOptions, live_options
from maniple.cli.peers import recorded
from maniple.cli.progress import progress
from maniple.cli.shapes import DIALECTS, SHAPES

Figures = dict[str, Any]

LARGEST_SCALE = 1000


def _scales(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[Fraction, ...]:
    """Factors for all sizes, exactly: 2, 0.5 or 1/10."""
    scales = []
    for value in values:
        try:
            scale = Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise click.BadParameter(f"{value!r} is not a factor like 2, 0.5 or 1/10") from None
        if not 0 < scale <= LARGEST_SCALE:
            raise click.BadParameter(f"{value} is not above 0 and at most {LARGEST_SCALE}")
        scales.append(scale)
    return tuple(scales)


@click.command("bench")
@click.option(
    "--shape",
    "shapes",
    metavar="NAME",
    type=click.Choice(list(SHAPES)),
    multiple=True,
    help="One of the shapes above; repeatable.",
)
@click.option(
    "--scale",
    "scales",
    metavar="FACTOR",
    callback=_scales,
    multiple=True,
    default=("1",),
    help="Multiplies every size: 2, 0.5, 1/10; repeatable.  [default: 1]",
)
@click.option(
    "--profile",
    type=click.Choice(list(DIALECTS)),
    default="volcano",
    show_default=True,
    help="Which system's objects and default configuration.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs; the shortest cycle counts, with --live the median.",
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Format."
)
@live_options
def command(
    shapes: tuple[str, ...],
    scales: tuple[Fraction, ...],
    profile: str,
    repeat: int,
    output: str,
    live: LiveOptions | None,
) -> None:
    """Time one scheduling cycle on a generated cluster, or with --live a scheduler on a real one.

    \b
    Shapes (at scale 1):
      a     1,000 nodes of 8 GPUs, 1,000 gangs of 8 one-GPU tasks in 4 queues
      b     5,000 nodes, 5,000 gangs of 8
      c     5,000 nodes, one gang of 10,000
      full  1,000 full nodes, 1,000 gangs of 8 that have to wait
      d     1,000 nodes full of one queue's jobs, 200 gangs of 8 of another: reclaim (d_gang, d_single, d_quota)
      e     1,000 full nodes, 100 gangs of 8 that matter more: preempt (e_gang)
      f     1,000 nodes half used, 100 gangs of 2 that need whole nodes: consolidation (f_scatter)
      reclaim_large  1,000 nodes full of one-GPU jobs, a gang of 100 whole nodes with a quota
      hopeless       500 such nodes, a gang of 10 whole nodes that has to be refused
      hypernodes     1,000 nodes in racks of 10, a job of 100 sub-groups of 10, each in one rack

    \b
    Mixed work (1,000 nodes of four kinds, 1,000 gangs of 8):
      classes   every gang asks for something else
      tasks     every pod asks for something else
      selector  a node selector and a toleration on every gang
      roles     a master and seven workers
      antiaff, aff, prefaff, spread  every pod on another node; all in one rack, required or preferred; over zones
      differ    as classes, 5,000 nodes and 5,000 gangs
      backlog   1,000 full nodes, 5,000 gangs that all differ and have to wait

    \b
    Examples:
      maniple bench --shape a
      maniple bench --shape a --scale 1/2 --scale 1 --scale 2 -o json
      maniple bench --profile kai --shape reclaim_large --scale 0.1 --scale 0.2 --scale 0.5 --scale 1
      maniple bench --live --kubeconfig plane.kubeconfig

    --live starts `maniple run` on the cluster of --kubeconfig or --context, which should have nothing else to do,
    creates nodes and pods there, measures how they are bound, and removes them. Nodes without a kubelet are enough.

    Exit code: 0; 1 if a measurement failed; 2 if usage is bad.
    """
    if live is not None:
        if shapes:
            raise click.UsageError("--shape and --live do not go together")
        live.run(profile, repeat, output)
        return
    if not shapes:
        raise click.UsageError("give --shape NAME or --live")
    runs = [(shape, scale) for shape in shapes for scale in scales]
    figures = [_measure(shape, scale, profile, repeat) for shape, scale in runs]
    if output == "json":
        answer: Figures | list[Figures] = figures[0] if len(figures) == 1 else figures
        echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
    else:
        _print_table(runs, figures)


def _measure(shape: str, scale: Fraction, profile: str, repeat: int) -> Figures:
    """Run one shape in a process of its own."""
    echo(f"shape {shape} at scale {scale} ...", err=True)
    arguments = ["--shape", shape, "--scale", str(scale), "--profile", profile, "--repeat", str(repeat)]
    with progress(f"measuring shape {shape}"):
        done = subprocess.run(
            [sys.executable, "-m", "maniple.cli.main", "bench-one", *arguments],
            stdout=subprocess.PIPE,
            check=False,
        )
    if done.returncode != 0:
        raise click.ClickException(f"shape {shape} at scale {scale} ended with code {done.returncode}")
    figures: Figures = msgspec.json.decode(done.stdout)
    figures["recorded"] = recorded(shape, scale)
    echo(f"shape {shape} at scale {scale}: cycle {figures['cycle']:.3f} s", err=True)
    return figures


def _print_table(runs: list[tuple[str, Fraction]], figures: list[Figures]) -> None:
    """A row for each run; the phases come last, so that a narrow terminal leaves out those."""
    from maniple.cli.render import console
    from maniple.cli.tables import Table

    rows = [_row(each) for each in figures]
    phases = list(dict.fromkeys(phase for each in figures for phase in each["phases"]))
    phases.sort(key="close".__eq__)  # the last one also of runs with more actions
    names = [name for name in rows[0] if any(row[name] for row in rows)] + phases
    table = Table("", "shape", *names, right=names)
    for (shape, scale), each, row in zip(runs, figures, rows, strict=True):
        times = {phase: _seconds(each["phases"].get(phase)) for phase in phases}
        label = shape if scale == 1 else f"{shape}@{scale}"
        table.add_row(label, *({**row, **times}[name] for name in names))
    console().print(table)


def _row(figures: Figures) -> dict[str, str]:
    """The figures of one run by column, times in seconds; a column without any is left out."""
    counts = {name: f"{figures[name]:,}" for name in ("nodes", "tasks", "placed")}
    rare = {name: f"{figures[name]:,}" if figures[name] else "" for name in ("pipelined", "evicted")}
    return {
        **counts,
        **rare,
        "cycle": _seconds(figures["cycle"]),
        "cpu": _seconds(figures["cycle_cpu"]),
        "tasks/s": f"{figures['tasks_per_second']:,}",
        "MiB": f"{figures['peak_rss_mib']:,.0f}",
        "Volcano": _beside(figures, "volcano"),
        "KAI": _beside(figures, "kai"),
    }


def _beside(figures: Figures, system: str) -> str:
    """The recorded cycle of another system, and how many times as long that is."""
    seconds = figures["recorded"].get(system)
    return "" if seconds is None else f"{seconds:g} (x{seconds / figures['cycle']:.0f})"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f}"
