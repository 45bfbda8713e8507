"""The command `maniple plan`: objects in, one scheduling cycle, and what would happen printed. It changes nothing.

The plan goes to standard output, everything that is wrong with the input to standard error. Input that cannot be read
does not stop the rest from being planned, but it is not forgotten: the exit code is then 2.
"""

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

import maniple
from maniple.cli import DEFAULT_PROFILE, with_extensions, with_transport
from maniple.cli.read import STANDARD_INPUT, Reading, read_paths
from maniple.framework.configuration import ConfigurationError

if TYPE_CHECKING:
    from maniple.planner import Plan

PROFILES = ("volcano", "kai", "maniple")
MESSAGES_SHOWN = 20
EXIT_WAITING = 1
EXIT_BAD_INPUT = 2


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A time as RFC 3339 writes it, with its zone."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time like 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone; add Z or an offset such as +02:00")
    return moment.astimezone(UTC)


def _options(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any] | None:
    """key=value, where the value is JSON; a plain word is a string."""
    options = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{value!r} is not of the form key=value")
        try:
            options[key] = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            if text[:1] in ("{", "[", '"'):
                raise click.BadParameter(f"the value of {key} is not JSON: {error}") from None
            options[key] = text
    return options or None


@click.command("plan")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(exists=True, allow_dash=True))
@click.option(
    "--conf", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Scheduler configuration."
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default=DEFAULT_PROFILE,
    show_default=True,
    help="Whose objects and rules.",
)
@click.option(
    "--actions", metavar="LIST", help='Actions to run instead of the configured ones, "enqueue, allocate".'
)
@click.option("--now", metavar="RFC3339", callback=_moment, help="The time of the cycle.  [default: now]")
@click.option(
    "--option",
    "options",
    metavar="KEY=JSON",
    callback=_options,
    multiple=True,
    help="A setting that the scheduler takes as a flag; repeatable.",
)
@click.option(
    "--plugins-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Load plugins and actions of your own from the .py files of this folder.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Format.",
)
@click.option("--all", "everything", is_flag=True, help="Show every task and every node in the tables.")
@click.option("--fail-on-waiting", is_flag=True, help="Exit with 1 when anything waits.")
def command(
    paths: tuple[str, ...],
    conf: str | None,
    profile: str,
    actions: str | None,
    now: datetime | None,
    options: dict[str, Any] | None,
    plugins_dir: Path | None,
    output: str,
    everything: bool,
    fail_on_waiting: bool,
) -> None:
    """Say what would be bound where, what waits, and why.

    Reads Kubernetes objects from files, from folders (every .yaml, .yml and .json below them) and from standard input
    (-), runs one scheduling cycle on them and prints the outcome. Nothing is changed anywhere.

    \b
    Examples:
      kubectl get nodes,pods,queues,podgroups,priorityclasses -A -o json | maniple plan -
      maniple plan cluster/ new-job.yaml --conf volcano-scheduler.conf --fail-on-waiting

    Exit code: 0; 1 if something waits and --fail-on-waiting is given; 2 if usage or input is bad.
    """
    reading = _read(paths)
    _complain("unreadable", reading.problems)
    if not reading.objects:
        raise InputError("no Kubernetes objects in the input")
    plan = _plan(
        reading.objects,
        conf=conf,
        profile=profile,
        actions=None if actions is None else [name.strip() for name in actions.split(",") if name.strip()],
        now=now or datetime.now(UTC),
        options=with_extensions(options, plugins_dir),
    )
    _complain("problem", plan.problems)
    _complain("warning", plan.warnings)
    waits = _show(plan, reading, output, everything)
    if reading.problems:
        raise SystemExit(EXIT_BAD_INPUT)
    if waits and fail_on_waiting:
        raise SystemExit(EXIT_WAITING)


def _read(paths: tuple[str, ...]) -> Reading:
    if not paths and sys.stdin.isatty():
        raise click.UsageError("give files or folders to plan, or - to read standard input")
    return read_paths(paths or (STANDARD_INPUT,), sys.stdin.buffer)


def _plan(
    objects: list[dict[str, Any]], *, conf: str | None, options: Mapping[str, Any] | None, **settings: Any
) -> "Plan":
    text = None
    try:
        if conf is not None:
            text = Path(conf).read_text(encoding="utf-8")
        return maniple.plan(objects, conf=text, options=with_transport(options, text), **settings)
    except ConfigurationError as error:
        raise InputError(_configuration_message(conf, error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{conf}: {error}") from None


class InputError(click.ClickException):
    """Bad input that leaves nothing to plan."""

    exit_code = EXIT_BAD_INPUT


def _configuration_message(conf: str | None, error: ConfigurationError) -> str:
    if conf is None:
        return str(error)
    place = conf if error.line is None else f"{conf}:{error.line}"
    return ": ".join(part for part in (place, error.path, error.message) if part)


def _complain(word: str, messages: Iterable[object]) -> None:
    """Each message on its line of standard error; a long list is cut, and says so."""
    lines = [f"{word}: {message}" for message in messages]
    for line in lines[:MESSAGES_SHOWN]:
        click.echo(line, err=True)
    if len(lines) > MESSAGES_SHOWN:
        click.echo(f"{word}: and {len(lines) - MESSAGES_SHOWN:,} more", err=True)


def _show(plan: "Plan", reading: Reading, output: str, everything: bool) -> bool:
    """Print the plan; say whether anything waits."""
    from maniple.cli import render, summary

    jobs_of = summary.jobs_of_tasks(reading.objects)
    if output == "json":
        click.echo(render.plan_json(plan))
    elif output == "yaml":
        click.echo(render.plan_yaml(plan))
    else:
        render.print_plan(plan, jobs_of, render.console(), everything)
    return bool(summary.waiting_jobs(plan, jobs_of))
