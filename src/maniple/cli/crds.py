"""The command `maniple crds`: prints or installs the custom resources that the scheduler reads.

Without `--install` it contacts no cluster: the YAML goes to standard output, for kubectl or for reading.
"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maniple.cli import InputError
from maniple.cli.echo import echo
from maniple.cli.logs import message_handler

if TYPE_CHECKING:
    from maniple.kube.configuration import Configuration
    from maniple.kube.crds import Manifest

DIALECTS = ("volcano", "kai")
_SAID = {
    "created": "created",
    "updated": "updated",
    "kept": "kept: not installed by maniple (--replace overwrites it)",
}


@click.command("crds")
@click.option("--only", type=click.Choice(DIALECTS), help="Only those of one scheduler.  [default: both]")
@click.option("--install", is_flag=True, help="Create or update them on the current cluster.")
@click.option(
    "--replace", is_flag=True, help="With --install: overwrite definitions not installed by maniple, too."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --install: the file.  [default: KUBECONFIG, then ~/.kube/config]",
)
@click.option("--context", default="", help="With --install: the context.  [default: the current one]")
def command(only: str | None, install: bool, replace: bool, kubeconfig: Path | None, context: str) -> None:
    """Print the custom resource definitions of Volcano and KAI, or install them.

    \b
    Examples:
      maniple crds | kubectl apply -f -
      maniple crds --install --only volcano

    Exit code: 0; 2 if usage is bad or the cluster refuses.
    """
    from maniple.kube.crds import manifests

    if not install and (replace or kubeconfig is not None or context):
        raise click.UsageError("--replace, --kubeconfig and --context go with --install")
    wanted = manifests(only or "")
    if not install:
        click.echo("---\n".join(manifest.text for manifest in wanted), nl=False)
        return
    _install(wanted, kubeconfig, context, replace)


def _install(wanted: list["Manifest"], kubeconfig: Path | None, context: str, replace: bool) -> None:
    from maniple.kube.configuration import load_configuration
    from maniple.kube.errors import ApiError, KubeconfigError

    logging.basicConfig(handlers=[message_handler()], level=logging.WARNING)
    try:
        configuration = load_configuration(kubeconfig, context)
        asyncio.run(_apply(configuration, wanted, replace))
    except KubeconfigError as error:
        raise InputError(str(error)) from None
    except ApiError as error:
        raise InputError(f"{configuration.server}: {error}") from None


async def _apply(configuration: "Configuration", wanted: list["Manifest"], replace: bool) -> None:
    from maniple.kube.client import Client
    from maniple.kube.crds import install

    async with Client(configuration, attempts=6) as client:
        async for done in install(client, wanted, replace=replace):
            echo(f"{done.name}: {_SAID[done.outcome]}")
