"""The command `maniple config`: checks, shows and compares configuration files, without a cluster."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import DEFAULT_PROFILE, EXIT_BAD_INPUT, EXIT_WAITING, InputError, with_extensions
from maniple.cli.echo import echo
from maniple.cli.planning import read_conf
from maniple.cli.reporting import configuration_message
from maniple.objects.printable import printable, printable_json

if TYPE_CHECKING:
    from maniple.planner import Planner

EXIT_DIFFERENT = EXIT_WAITING
EXIT_DOUBTFUL = EXIT_WAITING

_PROFILE = click.option(
    "--profile", default=DEFAULT_PROFILE, show_default=True, help="Which system's configuration it is."
)
_PLUGINS = click.option(
    "--plugins-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Load plugins and actions of your own from the .py files of this folder.",
)


@click.group("config")
def command() -> None:
    """Check, show and compare configuration files.

    The files are those of `--conf`: Volcano's, KAI's or our own, also wrapped in their ConfigMap.

    \b
    Examples:
      maniple config check volcano-scheduler.conf --profile volcano
      maniple config show --profile kai
      maniple config diff old.conf new.conf --profile volcano

    Exit code: 0; 1 if files differ (diff), or something is doubtful (check --fail-on-warning); 2 if usage or a file
    is bad.
    """


@command.command("check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--fail-on-warning", is_flag=True, help="Exit with 1 if there is a warning.")
@_PROFILE
@_PLUGINS
def check(file: str, fail_on_warning: bool, profile: str, plugins_dir: Path | None) -> None:
    """Say everything that is wrong or doubtful in a file.

    Each line has the place in the file and, for a name that is not known, the nearest one that is. Errors keep the
    scheduler from starting; warnings are about what it would ignore.

    \b
    Examples:
      maniple config check volcano-scheduler.conf --profile volcano
      maniple config check config.yaml --profile kai --fail-on-warning

    Exit code: 0; 1 if there is a warning and --fail-on-warning; 2 if usage or the file is bad.
    """
    from maniple.cli.config_problems import problems

    found = problems(file, read_conf(file) or "", profile, with_extensions(None, plugins_dir))
    for text in found.errors:
        echo(f"error: {printable(text)}")
    for text in found.warnings:
        echo(f"warning: {printable(text)}")
    if found.errors:
        sys.exit(EXIT_BAD_INPUT)
    if not found.warnings:
        echo(f"{file}: good for the profile {profile}")
    elif fail_on_warning:
        sys.exit(EXIT_DOUBTFUL)


@command.command("show")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
@click.option(
    "-o", "--output", "form", type=click.Choice(("yaml", "json")), default="yaml", show_default=True
)
@_PROFILE
@_PLUGINS
def show(file: str | None, form: str, profile: str, plugins_dir: Path | None) -> None:
    """Show the configuration that is in effect, with what the file leaves out, and where each value comes from.

    Without FILE it is the built-in default of the profile. The YAML is a valid configuration file; where a value
    comes from is in its comments. Arguments that are not given have the defaults of their plugin.

    \b
    Examples:
      maniple config show --profile volcano
      maniple config show config.yaml --profile kai -o json

    Exit code: 0; 2 if usage or the file is bad.
    """
    from maniple.cli.config_shown import as_json, as_yaml

    planner = _planner(file, profile, plugins_dir)
    text = read_conf(file)
    if form == "json":
        echo(printable_json(json.dumps(as_json(planner, file, text), indent=2)))
    else:
        echo(as_yaml(planner, file, text), nl=False)


@command.command("diff")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("other", type=click.Path(exists=True, dir_okay=False), required=False)
@_PROFILE
@_PLUGINS
def diff(file: str, other: str | None, profile: str, plugins_dir: Path | None) -> None:
    """Show what differs between two files, or between the default of the profile and a file.

    Only differences that can change a decision count: not the order of keys, nor defaults that are written out.

    \b
    Examples:
      maniple config diff old.conf new.conf --profile volcano
      maniple config diff volcano-scheduler.conf --profile volcano

    Exit code: 0 if there is no difference; 1 if there is one; 2 if usage or a file is bad.
    """
    from maniple.framework.configuration.compare import differences

    before = _planner(file if other is not None else None, profile, plugins_dir)
    after = _planner(other if other is not None else file, profile, plugins_dir)
    found = differences(before.configuration, after.configuration)
    for line in found:
        echo(printable(line))
    if found:
        sys.exit(EXIT_DIFFERENT)


def _planner(file: str | None, profile: str, plugins_dir: Path | None) -> "Planner":
    from maniple.framework.configuration.loading import ConfigurationError
    from maniple.planner import Planner

    options: Any = with_extensions(None, plugins_dir)
    try:
        return Planner(read_conf(file), profile=profile, options=options)
    except ConfigurationError as error:
        raise InputError(configuration_message(file, error)) from None
