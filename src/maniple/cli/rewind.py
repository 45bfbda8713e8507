"""The command `maniple rewind`: the cluster and the plan of a cycle that a running scheduler recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import InputError, reader_may_leave, with_extensions
from maniple.cli.echo import echo
from maniple.cli.journal_input import At, journal_argument, moment_of, opened
from maniple.cli.progress import progress
from maniple.cli.reporting import print_messages
from maniple.cli.showing import Shown, output_options

if TYPE_CHECKING:
    from maniple.journal.reading import Journal, Step

EXIT_DIFFERENT = 1
LIST = "list"


@click.command("rewind")
@journal_argument
@click.option(
    "--at",
    metavar="CYCLE|TIME",
    callback=moment_of,
    help="A cycle (17, or 2:17 for that of the second run) or the last one up to a time.  [default: the last]",
)
@click.option("--check", "checks", is_flag=True, help="Plan every cycle, or that of --at, again and compare.")
@click.option(
    "--plugins-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Load plugins and actions of your own from the .py files of this folder.",
)
@output_options("table", "wide", "json", "yaml", "name", LIST)
def command(path: Path, at: At | None, checks: bool, plugins_dir: Path | None, shown: Shown) -> None:
    """Show the plan of a recorded cycle, or its cluster.

    JOURNAL is the folder that `maniple run --journal` writes, or one of its files. The plan is made anew from what the
    scheduler knew then, and equals the one that it carried out. `-o list` prints the cluster instead, with
    configuration, options and time: `maniple plan` reads all of it.

    \b
    Examples:
      maniple rewind journal/ --at 17
      maniple rewind journal/ --at 2026-01-31T12:00:00Z -o list > cluster.json
      maniple rewind journal/ --at 17 -o list | maniple plan -
      maniple rewind journal/ --check

    Exit code: 0; 1 if --check found a plan that differs; 2 if usage or input is bad.
    """
    own = with_extensions(None, plugins_dir)
    with opened(path) as journal:
        if checks:
            raise SystemExit(_check(journal, at, own, shown))
        step = at.step(journal) if at is not None else journal.last()
        moment = step.moment()
        if shown.output == LIST:
            _print_list(moment.to_list())
            return
        _explain(step)
        with progress("planning"):
            plan = moment.plan(own)
        print_messages("problem", plan.problems)
        print_messages("warning", plan.warnings)
        different = step.differences(plan)
        if different:
            print_messages("warning", [f"the recorded plan differs in {', '.join(different)}{_why(step)}"])
        shown.show(plan)


def _print_list(document: dict[str, Any]) -> None:
    import msgspec

    from maniple.objects.printable import printable_json

    with reader_may_leave():
        echo(printable_json(msgspec.json.encode(document).decode()))


def _explain(step: "Step") -> None:
    from maniple import __version__

    lines = [f"run {step.run}, cycle {step.number} at {step.when:%Y-%m-%dT%H:%M:%S.%fZ}"]
    if step.version != __version__:
        lines.append(
            f"it was recorded by version {step.version}; this is {__version__}, which may plan otherwise"
        )
    if step.state.aside:
        lines.append(f"{len(step.state.aside)} objects were set aside: {', '.join(step.state.aside)}")
    print_messages("note", lines)


def _why(step: "Step") -> str:
    """What may be the reason for a difference, if one is known."""
    from maniple import __version__

    unrecorded = step.state.settings.unrecorded if step.state.settings is not None else ()
    if "extensions" in unrecorded:
        return "; it was made with plugins of your own: give --plugins-dir with the same files"
    if step.version != __version__:
        return f"; it was made by version {step.version}"
    return ""


def _check(journal: "Journal", at: At | None, own: Any, shown: Shown) -> int:
    from maniple.cli import render
    from maniple.journal.checking import check

    if shown.output not in ("table", "json", "yaml"):
        raise InputError(f"--check prints -o table, json or yaml, not {shown.output}")
    steps = journal.steps() if at is None else iter([at.step(journal)])
    cycles, runs, different = 0, set[int](), list[dict[str, Any]]()
    with progress("planning every cycle again"):
        for one in check(steps, own):
            cycles += 1
            runs.add(one.step.run)
            if one.differences:
                different.append(
                    {
                        "run": one.step.run,
                        "cycle": one.step.number,
                        "differs": [*one.differences],
                        "hint": _why(one.step).removeprefix("; "),
                    }
                )
    values = {"cycles": cycles, "runs": len(runs), "different": different}
    with reader_may_leave():
        if shown.as_values:
            echo(render.as_json(values) if shown.output == "json" else render.as_yaml(values))
        else:
            for found in different:
                hint = f" ({found['hint']})" if found["hint"] else ""
                echo(
                    f"run {found['run']}, cycle {found['cycle']}: differs in {', '.join(found['differs'])}{hint}"
                )
            equal = "all plans are equal" if not different else f"{len(different):,} plans differ"
            echo(
                f"{render.count(cycles, 'cycle')} of {render.count(len(runs), 'run')} planned again: {equal}"
            )
    return EXIT_DIFFERENT if different else 0
