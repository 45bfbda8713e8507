"""The command `maniple plan`: runs one scheduling cycle over objects and prints the result; read-only.

The plan goes to standard output, everything that is wrong with the input to standard error. Unreadable input
does not stop the rest from being planned, but the exit code is then 2.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from maniple.cli import InputError
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.log_flags import steps_of
from maniple.cli.planning import Question, question
from maniple.cli.planning_options import Asked, planning_options
from maniple.cli.read import STANDARD_INPUT
from maniple.cli.reporting import exit_code, report
from maniple.cli.showing import Shown, output_options

if TYPE_CHECKING:
    from maniple.planner import Plan


@click.command("plan", cls=KaiCommand)
@planning_options
@output_options("table", "wide", "json", "yaml", "name")
@click.option("--watch", "-w", "watching", is_flag=True, help="Plan again when files or the cluster change.")
@click.option(
    "-v",
    "verbosity",
    metavar="LEVEL",
    type=click.IntRange(min=0),
    help="Log the steps of the cycle: 3 turns and transactions, 4 pods, 5 nodes.",
)
@click.option(
    "--fail-on-waiting",
    is_flag=True,
    help="Exit with 1 if anything is pending, with 2 if anything could not be planned.",
)
@click.option(
    "--snapshot-out",
    metavar="FILE.zip",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write the input, with configuration and flags, as a KAI snapshot (profile kai).",
)
def command(
    asked: Asked,
    shown: Shown,
    watching: bool,
    verbosity: int | None,
    fail_on_waiting: bool,
    snapshot_out: Path | None,
) -> None:
    """Show what would be bound where, what is pending, and why.

    Reads Kubernetes objects from a cluster (--kubeconfig, --context), from files, from folders (every .yaml, .yml and
    .json below them) and from standard input (-), runs one scheduling cycle on them and prints the outcome. KAI's
    snapshots are read too, zipped or not. Nothing is changed anywhere.

    \b
    Examples:
      maniple plan --kubeconfig ~/.kube/config
      maniple plan --kubeconfig ~/.kube/config new-job.yaml --job research/new-job --fail-on-waiting
      kubectl get nodes,pods,queues,podgroups,priorityclasses -A -o json | maniple plan -
      maniple plan cluster/ new-job.yaml --profile volcano --conf volcano-scheduler.conf --fail-on-waiting
      maniple plan snapshot.zip
      maniple plan cluster/ --profile kai --snapshot-out for-a-colleague.zip

    Exit code: 0; 1 if something is pending and --fail-on-waiting is given; 2 if usage or input is bad, or, with
    --fail-on-waiting, if an object was left out of the plan.
    """
    if watching:
        if steps_of(verbosity):
            raise click.UsageError("--watch does not go with -v")
        _watch(asked, shown, once=fail_on_waiting or snapshot_out is not None)
        return
    asking = question(asked)
    if snapshot_out is not None and asking.profile != "kai":
        raise click.UsageError("--snapshot-out is for the profile kai")
    plan = asking.answer(steps=steps_of(verbosity))
    if snapshot_out is not None:
        _write_snapshot(asking, snapshot_out)
    report(asking, plan)
    waits = shown.show(plan)
    raise SystemExit(exit_code(asking, plan, waits=waits, fail_on_waiting=fail_on_waiting))


def _watch(asked: Asked, shown: Shown, *, once: bool) -> None:
    from maniple.cli.watching import watch

    if once:
        raise click.UsageError("--watch goes neither with --fail-on-waiting nor with --snapshot-out")
    if STANDARD_INPUT in asked.paths or not (asked.paths or asked.on_cluster):
        raise click.UsageError("--watch needs files, folders or a cluster: standard input is read once")

    def make() -> "Plan":
        asking = question(asked)
        plan = asking.answer()
        report(asking, plan)
        return plan

    watch(asked, make, shown.show_again)


def _write_snapshot(asking: Question, file: Path) -> None:
    from maniple.plugins.kai.snapshot import snapshot_file, written

    planner = asking.planner()
    try:
        file.write_bytes(
            snapshot_file(planner.configuration, planner.options, written(asking.reading.objects))
        )
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
