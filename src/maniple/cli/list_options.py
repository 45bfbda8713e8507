"""What `maniple queue list|show` and `maniple job list|show` share: reading, formats, `--watch`."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console

from maniple.cli import EXIT_BAD_INPUT, InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.listing import Listing
from maniple.cli.planning import Question, question
from maniple.cli.planning_options import Asked
from maniple.cli.read import STANDARD_INPUT
from maniple.cli.reporting import report
from maniple.objects.printable import printable

T = TypeVar("T")
FORMATS = ("table", "wide", "json", "yaml", "name")

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="Format; wide shortens nothing, name lists names.",
)
watch_option = click.option(
    "--watch", "-w", "watching", is_flag=True, help="Show it again when files or the cluster change."
)


def show(
    asked: Asked,
    find: Callable[[Listing], T],
    output: str,
    table: Callable[[T, Console, bool], None],
    names: Callable[[T], Iterable[str]],
    *,
    watching: bool = False,
    turns: bool = True,
) -> int:
    """Read, find and print, once or until Ctrl-C; returns the exit code. `table` is given whether it is wide."""

    def found() -> tuple[Question, T]:
        asking = question(asked)
        listing = Listing(asking, turns=turns)
        report(asking, listing.plan)
        return asking, find(listing)

    if watching:
        if STANDARD_INPUT in asked.paths:
            raise click.UsageError("--watch needs files, folders or a cluster: standard input is read once")
        from maniple.cli.watching import watch

        def show_again(value: T) -> None:
            if output in ("table", "wide"):
                echo(f"at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}:")
            elif output == "yaml":
                echo("---")
            _print(value, output, table, names)

        watch(asked, lambda: found()[1], show_again)
        return 0
    asking, value = found()
    with reader_may_leave():
        _print(value, output, table, names)
    return EXIT_BAD_INPUT if asking.reading.problems else 0


def _print(
    value: T,
    output: str,
    table: Callable[[T, Console, bool], None],
    names: Callable[[T], Iterable[str]],
) -> None:
    from maniple.cli import render

    match output:
        case "json":
            echo(render.as_json(_plain(value)))
        case "yaml":
            echo(render.as_yaml(_plain(value)))
        case "name":
            echo("".join(f"{printable(name)}\n" for name in names(value)), nl=False)
        case "wide":
            out = render.console()
            table(value, Console(file=out.file, highlight=False, force_terminal=False, width=10**6), True)
        case _:
            table(value, render.console(), False)


def _plain(value: Any) -> dict[str, Any]:
    plain: Any = msgspec.to_builtins(value)
    return {"items": plain} if isinstance(plain, list) else plain


def in_namespace(name: str, namespace: str) -> str:
    """The key of a job that may be given without its namespace."""
    if "/" not in name:
        return f"{namespace or 'default'}/{name}"
    if namespace and not name.startswith(f"{namespace}/"):
        raise InputError(f"job {name!r} is not in namespace {namespace!r}; leave out one of the two")
    return name
