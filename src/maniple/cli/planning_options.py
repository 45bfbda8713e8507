"""The options of commands that plan or read: what is read, and how it is decided, as one value."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from maniple.cli.conf_option import conf_option
from maniple.cli.kai_flags import given_flags, with_kai_flags
from maniple.cli.scheduler_input import RunningScheduler

PROFILES = ("volcano", "kai", "maniple")


@dataclass(frozen=True, slots=True)
class Asked:
    """The values of the command line."""

    paths: tuple[str, ...]
    conf: str | None
    profile: str | None
    actions: str | None
    now: datetime | None
    options: dict[str, Any] | None
    plugins_dir: Path | None
    shard: str | None
    kubeconfig: Path | None
    context: str
    flags: dict[str, Any]
    current_cluster: bool = False  # read it if no other input is named
    scheduler: RunningScheduler | None = None  # whose cluster is read, besides the paths

    @property
    def on_cluster(self) -> bool:
        named = self.kubeconfig is not None or bool(self.context)
        return named or (self.current_cluster and not self.paths)


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """An RFC 3339 time, with its zone."""
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


_READING = (
    click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(exists=True, allow_dash=True)),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read the cluster of this file, besides the paths; nothing is written to it.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        default="",
        help="Read the cluster of this context of the kubeconfig.",
    ),
    conf_option("Scheduler configuration."),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        help="Which system's objects and rules.  [default: that of the pods' schedulerName]",
    ),
    click.option("--now", metavar="RFC3339", callback=_moment, help="The time of the cycle.  [default: now]"),
    click.option(
        "--option",
        "options",
        metavar="KEY=JSON",
        callback=_options,
        multiple=True,
        help="A setting that the scheduler takes as a flag; repeatable.",
    ),
)
_DECIDING = (
    click.option(
        "--shard", metavar="NAME", help="Plan as the scheduler of this SchedulingShard of the input."
    ),
    click.option(
        "--actions",
        metavar="LIST",
        help='Actions to run instead of the configured ones, "enqueue, allocate".',
    ),
    click.option(
        "--plugins-dir",
        metavar="FOLDER",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Load plugins and actions of your own from the .py files of this folder.",
    ),
    with_kai_flags(without=("namespace",)),  # which is of a lease there
)
_LATER = ("flags", "current_cluster", "scheduler")  # not options themselves


def planning_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options above to a command, as one `Asked`."""
    return _with_options(function, (*_READING, *_DECIDING), current_cluster=False)


def reading_options(function: Callable[..., None]) -> Callable[..., None]:
    """Those that say what to read; without a path, it is the current cluster of the kubeconfig."""
    return _with_options(function, _READING, current_cluster=True)


def _with_options(
    function: Callable[..., None], options: Iterable[Callable[..., Any]], *, current_cluster: bool
) -> Callable[..., None]:
    @functools.wraps(function)
    @click.pass_context
    def asking(ctx: click.Context, /, **given: Any) -> None:
        names = [field.name for field in fields(Asked) if field.name not in _LATER]
        values = {name: given.pop(name, None) for name in names}
        asked = Asked(**values, flags=given_flags(ctx), current_cluster=current_cluster)
        function(asked, **given)

    decorated: Callable[..., None] = asking
    for decorate in reversed((*options,)):
        decorated = decorate(decorated)
    return decorated
