"""The flags of KAI's scheduler as flags of our commands, in KAI's spelling.

`@with_kai_flags(...)` adds them to a command, which has to be a `KaiCommand`; `given_flags` returns those
that were given. Flags for KAI's own process are accepted so that a script need not change, with a note that
they do nothing.
"""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from maniple.cli.echo import echo
from maniple.framework.configuration.scalars import parse_bool
from maniple.profiles.kai_flags import BY_NAME, KAI_FLAGS, Flag

Function = TypeVar("Function", bound=Callable[..., Any])

_GIVEN = "maniple.kai_flags"


class KaiOption(click.Option):
    """One of KAI's flags."""


class KaiCommand(click.Command):
    """A command with KAI's flags: in their own section of the help, and with values for switches, as in
    --x=false."""

    sections: tuple[tuple[str, type[click.Option]], ...] = (
        ("Options", click.Option),
        ("Options of the profile kai", KaiOption),
    )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_spelled(argument) for argument in args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, kind in self.sections:
            chosen = [one for one in self.get_params(ctx) if type(one) is kind]
            records = [record for one in chosen if (record := one.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def with_kai_flags(*, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Adds the flags, except `without`, which the command has itself."""

    def decorate(function: Function) -> Function:
        for flag in reversed(KAI_FLAGS):
            if flag.name not in without:
                function = _option(flag)(function)
        return function

    return decorate


def given_flags(ctx: click.Context) -> dict[str, Any]:
    """The options of the flags on the command line."""
    found: dict[str, Any] = ctx.meta.get(_GIVEN, {})
    return found


def _option(flag: Flag) -> Callable[[Function], Function]:
    switch = flag.form == "switch"
    shown = str(flag.default).lower() if switch else str(flag.default)
    return click.option(
        f"--{flag.name}/--no-{flag.name}" if switch else f"--{flag.name}",
        flag.option or flag.name.replace("-", "_"),
        cls=KaiOption,
        default=None,
        metavar=None if switch else {"text": "TEXT", "number": "N", "duration": "DURATION"}[flag.form],
        hidden=not flag.option,
        expose_value=False,
        callback=_taker(flag),
        help=f"{flag.about}  [default: {shown}]" if shown else flag.about,
    )


def _taker(flag: Flag) -> Callable[[click.Context, click.Parameter, str | bool | None], None]:
    def take(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> None:
        if value is None:
            return
        try:
            read = flag.read(value) if isinstance(value, str) else value
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        if flag.option:
            ctx.meta.setdefault(_GIVEN, {})[flag.option] = read
        else:
            echo(f"note: --{flag.name} has no effect here: {flag.instead}", err=True)

    return take


def _spelled(argument: str) -> str:
    """--x=true and --x=false as --x and --no-x, for KAI's switches."""
    name, equals, value = argument.removeprefix("--").partition("=")
    flag = BY_NAME.get(name)
    if not equals or not argument.startswith("--") or flag is None or flag.form != "switch":
        return argument
    match parse_bool(value):
        case True:
            return f"--{name}"
        case False:
            return f"--no-{name}"
    return argument
