"""The options of commands that run beside a scheduler: `maniple group` and `maniple admission`."""

from collections.abc import Callable
from typing import Any

import click

from maniple.cli import DEFAULT_PROFILE
from maniple.cli.conf_option import conf_option
from maniple.cli.log_flags import FORMATS, LEVELS


def scheduler_options(*, conf: str, profile: str, does: str) -> Callable[[Any], Any]:
    """How the scheduler is configured. `does`: what the command does with the scheduler's pods."""
    options = (
        conf_option(conf),
        click.option("--profile", help=f"{profile}  [default: {DEFAULT_PROFILE}]"),
        click.option(
            "--scheduler-name",
            "names",
            multiple=True,
            metavar="NAME",
            help=f"{does} pods with this schedulerName; repeatable.  [default: that of the profile]",
        ),
    )
    return lambda function: _decorated(function, options)


def controller_log_options(function: Any) -> Any:
    options = (
        click.option("--log-level", type=click.Choice([*LEVELS]), default="info", show_default=True),
        click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True),
    )
    return _decorated(function, options)


def _decorated(function: Any, options: tuple[Callable[[Any], Any], ...]) -> Any:
    for option in reversed(options):
        function = option(function)
    return function
