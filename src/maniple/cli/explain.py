"""The command `maniple explain`: why a job waits, in one sentence, and the chain behind it; read-only."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
import msgspec

from maniple.cli import EXIT_WAITING, InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.planning import question
from maniple.cli.planning_options import Asked, planning_options
from maniple.cli.progress import progress
from maniple.cli.reporting import print_messages
from maniple.cli.scheduler_input import EXPLAIN, RunningScheduler, scheduler_options

if TYPE_CHECKING:
    from maniple.explaining.model import Explanation


@click.command("explain", cls=KaiCommand)
@click.argument("job", metavar="NAMESPACE/NAME")
@planning_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "yaml", "name")),
    default="table",
    show_default=True,
    help="Format; name prints the sentence alone.",
)
@click.option(
    "--remedies/--no-remedies",
    default=True,
    show_default=True,
    help="Look for what would help; each remedy is proven by planning it.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="How long to look for remedies at most.",
)
@scheduler_options
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 if the job waits.")
def command(
    asked: Asked,
    job: str,
    output: str,
    remedies: bool,
    seconds: float,
    scheduler: RunningScheduler | None,
    fail_on_waiting: bool,
) -> None:
    """Say why a job waits, and what would help.

    NAMESPACE/NAME is a pod group or one of its pods. Reads what `maniple plan` reads, or asks a running scheduler
    with --scheduler (with --no-remedies about its last cycle, at once), plans one cycle, and asks every filter, queue
    and plugin that decided: the constraint that binds in one sentence, then the queues on the way up, the place in
    line, what each part of the gang lacks, all nodes by what they answer, and which rule spares the pods that could
    make room. Then what would help: the smallest change of each kind after which the job starts in the next cycle,
    other jobs and evictions included. Nothing is changed anywhere.

    \b
    Examples:
      maniple explain research/bert --kubeconfig ~/.kube/config
      maniple explain research/bert-worker-3 cluster/ -o json
      maniple explain research/bert --scheduler http://127.0.0.1:8080
      maniple rewind journal/ --at 117 -o list | maniple explain research/bert -

    Exit code: 0; 1 if the job waits and --fail-on-waiting is given; 2 if usage or input is bad, or if there is no such
    job or pod.
    """
    remedies = remedies and output != "name"
    if scheduler is not None and not remedies and not asked.paths:
        found = _answered(scheduler, job)
    else:
        found = _explained(replace(asked, scheduler=scheduler), job, seconds if remedies else None)
    with reader_may_leave():
        _show(found, output)
    raise SystemExit(EXIT_WAITING if fail_on_waiting and found.state == "waiting" else 0)


def _answered(scheduler: RunningScheduler, job: str) -> "Explanation":
    """What a running scheduler says itself."""
    from maniple.explaining.model import Explanation

    content = scheduler.page(EXPLAIN, f"?job={quote(job, safe='/')}")
    try:
        return msgspec.json.decode(content, type=Explanation)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{scheduler.address}: not an explanation that this version reads: {error}"
        ) from None


def _explained(asked: Asked, job: str, seconds: float | None) -> "Explanation":
    """`seconds`: how long to look for remedies; None: not at all."""
    from maniple.explaining.diagnosis import Diagnosis, UnknownJobError
    from maniple.explaining.remedies.trials import Budget

    asking = question(asked)
    with progress("planning"):
        planner, cluster, now = asking.opened()
        diagnosis = Diagnosis(planner, cluster, now)
        try:
            budget = Budget(seconds=seconds, clock=time.perf_counter)
            found = diagnosis.advised(job, budget) if seconds is not None else diagnosis.of(job)
        except UnknownJobError as error:
            raise InputError(str(error)) from None
    print_messages("problem", (*asking.unjudged, *planner.problems))
    return found


def _show(found: "Explanation", output: str) -> None:
    from maniple.cli import render
    from maniple.cli.explained import print_explanation

    match output:
        case "json":
            echo(render.as_json(found.as_values()))
        case "yaml":
            echo(render.as_yaml(found.as_values()))
        case "name":
            echo(found.sentence)
        case _:
            print_explanation(found, render.console())
