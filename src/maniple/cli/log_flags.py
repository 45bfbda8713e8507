"""The flags of the log of `maniple run`, and what Volcano's and KAI's (`-v`, `--log-json`) come to."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import click

from maniple.cli.process_flags import Process

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("text", "json")
FIRST_STEPS, MOST_STEPS = 3, 5
DEBUG_VERBOSITY = 4  # of klog, from which on single objects are logged


@dataclass(frozen=True, slots=True)
class Logging:
    """`form` is empty unless it was asked for: warnings are then lines among the others."""

    level: int = logging.WARNING
    form: str = ""
    steps: int = 0  # klog's level, 3 to 5, from which on every cycle is logged step by step


def log_flags(function: Callable[..., None]) -> Callable[..., None]:
    for decorate in (
        click.option("--log-format", type=click.Choice(FORMATS), help="Log to standard error in this form."),
        click.option(
            "--log-level", type=click.Choice([*LEVELS]), help="Log from this level on.  [default: warning]"
        ),
    ):
        function = decorate(function)
    return function


def logging_of(level: str | None, form: str | None, process: Process) -> Logging:
    number = LEVELS[level] if level is not None else logging.WARNING
    if level is None and process.verbosity is not None:
        number = logging.DEBUG if process.verbosity >= DEBUG_VERBOSITY else logging.INFO
    if form is None and process.logs_json is not None:
        form = "json" if process.logs_json else "text"
    asked = level is not None or process.verbosity is not None
    steps = steps_of(process.verbosity) if number <= logging.INFO else 0
    return Logging(number, form or ("text" if asked else ""), steps)


def steps_of(verbosity: int | None) -> int:
    """How deep the steps of a cycle are logged; 0: not at all."""
    return min(verbosity, MOST_STEPS) if verbosity is not None and verbosity >= FIRST_STEPS else 0
