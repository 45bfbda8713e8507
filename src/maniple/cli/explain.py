"""The command `maniple explain`: why a job waits, in one sentence, and the chain behind it; read-only."""

import time
from typing import TYPE_CHECKING

import click

from maniple.cli import EXIT_WAITING, InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.planning import Asked, planning_options, print_messages, question
from maniple.cli.progress import progress

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
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 if the job waits.")
def command(
    asked: Asked, job: str, output: str, remedies: bool, seconds: float, fail_on_waiting: bool
) -> None:
    """Say why a job waits, and what would help.

    NAMESPACE/NAME is a pod group or one of its pods. Reads what `maniple plan` reads, plans one cycle, and asks every
    filter, queue and plugin that decided: the constraint that binds in one sentence, then the queues on the way up, the
    place in line, what each part of the gang lacks, all nodes by what they answer, and which rule spares the pods that
    could make room. Then what would help: the smallest change of each kind after which the job starts in the next
    cycle, other jobs and evictions included. Nothing is changed anywhere.

    \b
    Examples:
      maniple explain research/bert --kubeconfig ~/.kube/config
      maniple explain research/bert-worker-3 cluster/ -o json
      maniple snapshot | maniple explain research/bert -
      maniple rewind journal/ --at 117 -o list | maniple explain research/bert -

    Exit code: 0; 1 if the job waits and --fail-on-waiting is given; 2 if usage or input is bad, or if there is no such
    job or pod.
    """
    from maniple.explaining.diagnosis import Diagnosis, UnknownJobError
    from maniple.explaining.remedies.trials import Budget

    asking = question(asked)
    with progress("planning"):
        planner, cluster, now = asking.opened()
        diagnosis = Diagnosis(planner, cluster, now)
        try:
            budget = Budget(seconds=seconds, clock=time.perf_counter)
            found = diagnosis.advised(job, budget) if remedies and output != "name" else diagnosis.of(job)
        except UnknownJobError as error:
            raise InputError(str(error)) from None
    print_messages("problem", (*asking.unjudged, *planner.problems))
    with reader_may_leave():
        _show(found, output)
    raise SystemExit(EXIT_WAITING if fail_on_waiting and found.state == "waiting" else 0)


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
