"""The command `maniple plan`: runs one scheduling cycle over objects and prints the result; read-only.

The plan goes to standard output, everything that is wrong with the input to standard error. Unreadable input
does not stop the rest from being planned, but the exit code is then 2.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from maniple.cli import EXIT_BAD_INPUT, EXIT_WAITING, InputError, reader_may_leave
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.planning import Asked, Question, planning_options, question, report

if TYPE_CHECKING:
    from maniple.planner import Plan


@click.command("plan", cls=KaiCommand)
@planning_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Format.",
)
@click.option("--all", "everything", is_flag=True, help="Show every task and every node in the tables.")
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 if anything is pending.")
@click.option(
    "--snapshot-out",
    metavar="FILE.zip",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the input, with configuration and flags, as a KAI snapshot (profile kai).",
)
def command(
    asked: Asked, output: str, everything: bool, fail_on_waiting: bool, snapshot_out: Path | None
) -> None:
    """Show what would be bound where, what is pending, and why.

    Reads Kubernetes objects from files, from folders (every .yaml, .yml and .json below them) and from standard input
    (-), runs one scheduling cycle on them and prints the outcome. KAI's snapshots are read too, zipped or not.
    Nothing is changed anywhere.

    \b
    Examples:
      kubectl get nodes,pods,queues,podgroups,priorityclasses -A -o json | maniple plan -
      maniple plan cluster/ new-job.yaml --profile volcano --conf volcano-scheduler.conf --fail-on-waiting
      maniple plan snapshot.zip
      maniple plan cluster/ --profile kai --snapshot-out for-a-colleague.zip

    Exit code: 0; 1 if something is pending and --fail-on-waiting is given; 2 if usage or input is bad.
    """
    asking = question(asked)
    if snapshot_out is not None and asking.profile != "kai":
        raise click.UsageError("--snapshot-out is for the profile kai")
    plan = asking.answer()
    if snapshot_out is not None:
        _write_snapshot(asking, snapshot_out)
    report(asking, plan)
    waits = show(plan, output, everything)
    if asking.reading.problems:
        raise SystemExit(EXIT_BAD_INPUT)
    if waits and fail_on_waiting:
        raise SystemExit(EXIT_WAITING)


def _write_snapshot(asking: Question, file: Path) -> None:
    from maniple.plugins.kai.snapshot import snapshot_file, written

    planner = asking.planner()
    try:
        file.write_bytes(
            snapshot_file(planner.configuration, planner.options, written(asking.reading.objects))
        )
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None


def show(plan: "Plan", output: str, everything: bool) -> bool:
    """Print the plan; returns whether anything is pending."""
    from maniple.cli import render, summary

    jobs_of = summary.jobs_of_tasks(plan)
    with reader_may_leave():
        if output == "json":
            click.echo(render.plan_json(plan))
        elif output == "yaml":
            click.echo(render.plan_yaml(plan))
        else:
            render.print_plan(plan, jobs_of, render.console(), everything)
    return bool(summary.waiting_jobs(plan, jobs_of))
