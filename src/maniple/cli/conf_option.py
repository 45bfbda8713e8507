"""The option `--conf`, of every command that has a scheduler's configuration."""

from collections.abc import Callable
from typing import Any

import click


def conf_option(about: str) -> Callable[[Any], Any]:
    return click.option(
        "--conf",
        "--scheduler-conf",
        "conf",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help=about,
    )
