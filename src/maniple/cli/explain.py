"""The command `maniple explain`: why a job waits, in one sentence, and the chain behind it; read-only."""

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
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 if the job waits.")
def command(asked: Asked, job: str, output: str, fail_on_waiting: bool) -> None:
    """Say why a job waits, and what stands in its way.

    NAMESPACE/NAME is a pod group or one of its pods. Reads what `maniple plan` reads, plans one cycle, and asks every
    filter, queue and plugin that decided: the constraint that binds in one sentence, then the queues on the way up, the
    place in line, what each part of the gang lacks, all nodes by what they answer, and which rule spares the pods that
    could make room. Nothing is changed anywhere.

    \b
    Examples:
      maniple explain research/bert --kubeconfig ~/.kube/config
      maniple explain research/bert-worker-3 cluster/ -o json

    Exit code: 0; 1 if the job waits and --fail-on-waiting is given; 2 if usage or input is bad, or if there is no such
    job or pod.
    """
    from maniple.explaining.diagnosis import Diagnosis, UnknownJobError

    asking = question(asked)
    with progress("planning"):
        planner, cluster, now = asking.opened()
        diagnosis = Diagnosis(planner, cluster, now)
        try:
            found = diagnosis.of(job)
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
