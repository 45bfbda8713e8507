"""The commands: the outermost package, which reads files and clocks, calls the planner, and prints."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from maniple.objects.printable import printable_lines

# The profile if no --profile is given.
DEFAULT_PROFILE = "maniple"
EXIT_WAITING = 1
EXIT_BAD_INPUT = 2
# As a shell reports a command that SIGPIPE has ended.
EXIT_CLOSED_PIPE = 141


class InputError(click.ClickException):
    """Invalid input that leaves nothing to do."""

    exit_code = EXIT_BAD_INPUT

    def format_message(self) -> str:
        return printable_lines(self.message)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print inside: a reader that closes the pipe early, such as `head`, does not change the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Write the rest of standard output nowhere; otherwise the flush at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def with_transport(options: Mapping[str, Any] | None, conf: str | None) -> Mapping[str, Any] | None:
    """The options, with an HTTP transport if the configuration's text names the extender plugin."""
    if conf is None or "extender" not in conf:
        return options
    from maniple.kube.extender import HttpTransport

    return {"extenderTransport": HttpTransport(), **(options or {})}


def with_extensions(options: Mapping[str, Any] | None, folder: Path | None) -> Mapping[str, Any] | None:
    """The options, with the plugins and actions of installed packages and of the folder, if there are any."""
    from maniple.extensions import load
    from maniple.framework.configuration.registry import Extensions

    found = load(folder)
    return options if found == Extensions() else {**(options or {}), "extensions": found}


def seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A duration such as 1s, 500ms, 1m30s."""
    from maniple.framework.configuration.durations import nanoseconds

    try:
        given = nanoseconds(value) / 1e9
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if given <= 0:
        raise click.BadParameter("must be positive")
    return given
