"""The command `maniple replay`: plans a recorded cluster again, and continues as if the plans were carried
out.

For KAI's snapshots and for everything that `maniple plan` reads. Nothing is changed anywhere.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import reader_may_leave, seconds
from maniple.cli.echo import echo
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.planning import Question, question
from maniple.cli.planning_options import Asked, planning_options
from maniple.cli.reporting import exit_code, report
from maniple.cli.showing import Shown, output_options

if TYPE_CHECKING:
    from maniple.planner import Plan


@click.command("replay", cls=KaiCommand)
@planning_options
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cycles at most; it ends earlier if nothing is left to do.",
)
@click.option(
    "--period",
    default="1s",
    show_default=True,
    callback=seconds,
    help="The time from one cycle to the next.",
)
@output_options("table", "wide", "json", "yaml", "name")
@click.option(
    "--fail-on-waiting",
    is_flag=True,
    help="Exit with 1 if anything is still pending, with 2 if anything could not be planned.",
)
def command(asked: Asked, shown: Shown, rounds: int, period: float, fail_on_waiting: bool) -> None:
    """Plan a recorded cluster again, and continue from there.

    Reads what `maniple plan` reads, in particular KAI's snapshots (curl .../get-snapshot > snapshot.zip) with
    their configuration and parameters. With --rounds, each plan is carried out in memory before the next cycle:
    placed pods run, evicted ones are pending again.

    \b
    Examples:
      maniple replay snapshot.zip
      maniple replay snapshot.zip --rounds 10 --max-consolidation-preemptees 0

    Exit code: 0; 1 if something is still pending and --fail-on-waiting is given; 2 if usage or input is bad, or,
    with --fail-on-waiting, if an object was left out of the plan.
    """
    asking = question(asked)
    plans = list(_plans(asking, rounds, timedelta(seconds=period)))
    last = plans[-1]
    report(asking, last)
    if rounds > 1 and shown.as_values:
        waits = _show_rounds(plans, shown)
    else:
        if rounds > 1:
            with reader_may_leave():
                echo("\n".join(_story(plans, rounds)) + "\n", err=shown.output == "name")
        waits = shown.show(last)
    raise SystemExit(exit_code(asking, last, waits=waits, fail_on_waiting=fail_on_waiting))


def _plans(asking: Question, rounds: int, period: timedelta) -> Iterator["Plan"]:
    """A plan per round, ending with the first that does nothing."""
    from maniple.sim.rounds import carried_out

    objects, now = asking.reading.objects, asking.now
    for left in range(rounds - 1, -1, -1):
        plan = asking.answer(objects, now)
        yield plan
        if not _acts(plan):
            return
        if left:
            objects, now = carried_out(objects, plan), now + period


def _acts(plan: "Plan") -> bool:
    """Whether another round could differ; a pipelined pod waits for terminating pods."""
    return bool(plan.binds or plan.held or plan.evictions or plan.pipelined)


def _story(plans: list["Plan"], rounds: int) -> list[str]:
    """A line per round, and whether it settled."""
    lines = [
        f"round {number}: {len(plan.binds):,} bound, {len(plan.pipelined):,} pipelined, {len(plan.evictions):,} evicted"
        for number, plan in enumerate(plans, start=1)
    ]
    if not _acts(plans[-1]):
        return [*lines, "nothing is left to do."]
    return [*lines, f"still going on after {rounds:,} rounds."]


def _show_rounds(plans: list["Plan"], shown: Shown) -> bool:
    from maniple.cli import render

    effects = ("binds", "pipelined", "evictions")
    last = shown.part_of(plans[-1])
    values: dict[str, Any] = {
        "rounds": [{name: getattr(plan, name) for name in effects} for plan in plans],
        "settled": not _acts(plans[-1]),
        "plan": render.plan_values(last),
    }
    with reader_may_leave():
        echo(render.as_json(values) if shown.output == "json" else render.as_yaml(values))
    return shown.waits(last)
