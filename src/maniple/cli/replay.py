"""The command `maniple replay`: plans a recorded cluster again, and continues as if the plans were carried
out.

For KAI's snapshots and for everything that `maniple plan` reads. Nothing is changed anywhere.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from maniple.cli import EXIT_BAD_INPUT, EXIT_WAITING, reader_may_leave, seconds
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.plan import show
from maniple.cli.planning import Asked, Question, planning_options, question, report

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
@click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Format."
)
@click.option("--all", "everything", is_flag=True, help="Show every task and every node in the tables.")
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 if anything is still pending.")
def command(
    asked: Asked, rounds: int, period: float, output: str, everything: bool, fail_on_waiting: bool
) -> None:
    """Plan a recorded cluster again, and continue from there.

    Reads what `maniple plan` reads, in particular KAI's snapshots (curl .../get-snapshot > snapshot.zip) with
    their configuration and parameters. With --rounds, each plan is carried out in memory before the next cycle:
    placed pods run, evicted ones are pending again.

    \b
    Examples:
      maniple replay snapshot.zip
      maniple replay snapshot.zip --rounds 10 --max-consolidation-preemptees 0

    Exit code: 0; 1 if something is still pending and --fail-on-waiting is given; 2 if usage or input is bad.
    """
    asking = question(asked)
    plans = list(_plans(asking, rounds, timedelta(seconds=period)))
    last = plans[-1]
    report(asking, last)
    if output == "json" and rounds > 1:
        waits = _show_rounds(plans, asking)
    else:
        if rounds > 1:
            with reader_may_leave():
                click.echo("\n".join(_story(plans, rounds)) + "\n")
        waits = show(last, output, everything)
    if asking.reading.problems:
        raise SystemExit(EXIT_BAD_INPUT)
    if waits and fail_on_waiting:
        raise SystemExit(EXIT_WAITING)


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


def _show_rounds(plans: list["Plan"], asking: Question) -> bool:
    from maniple.cli import render, summary

    effects = ("binds", "pipelined", "evictions")
    values: dict[str, Any] = {
        "rounds": [{name: getattr(plan, name) for name in effects} for plan in plans],
        "settled": not _acts(plans[-1]),
        "plan": render.plan_values(plans[-1]),
    }
    with reader_may_leave():
        click.echo(msgspec.json.format(msgspec.json.encode(values), indent=2).decode())
    return bool(summary.waiting_jobs(plans[-1], summary.jobs_of_tasks(plans[-1])))
