"""Commands that write: how they reach a cluster, and how they say what was done.

The objects are those of the API server at this moment, never those of files.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from maniple.cli import InputError
from maniple.cli.cluster_input import ATTEMPTS
from maniple.cli.echo import echo
from maniple.objects.printable import printable

if TYPE_CHECKING:
    from maniple.kube.editing import Editor

EXIT_KEPT = 1


@dataclass(frozen=True, slots=True)
class Act:
    """One object, and what was done to it; `kept`: it was to be done, and was not."""

    object: str
    done: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The values of the command line."""

    kubeconfig: Path | None
    context: str
    dry_run: bool
    output: str

    def carry_out(self, work: Callable[["Editor"], Awaitable[list[Act]]]) -> int:
        """Do it, and say what was done; returns the exit code."""
        acts = self.ask(work)
        dry = " (dry run)" if self.dry_run else ""
        values = {"dryRun": self.dry_run, "items": msgspec.to_builtins(acts)}
        from maniple.cli import render

        match self.output:
            case "json":
                echo(render.as_json(values))
            case "yaml":
                echo(render.as_yaml(values))
            case "name":
                echo("".join(f"{printable(one.object)}\n" for one in acts if not one.kept), nl=False)
            case _:
                for one in acts:
                    echo(f"{printable(one.object)}: {printable(one.done)}{dry}")
        return EXIT_KEPT if any(one.kept for one in acts) else 0

    def ask(self, work: Callable[["Editor"], Awaitable[Any]]) -> Any:
        from maniple.kube.configuration import load_configuration
        from maniple.kube.errors import ApiError, KubeconfigError

        try:
            configuration = load_configuration(self.kubeconfig, self.context)
        except KubeconfigError as error:
            raise InputError(str(error)) from None

        async def working() -> Any:
            from maniple.kube.client import Client
            from maniple.kube.editing import Editor

            async with Client(configuration, attempts=ATTEMPTS) as client:
                return await work(Editor(client, dry_run=self.dry_run))

        try:
            return asyncio.run(working())
        except ApiError as error:
            raise InputError(f"{configuration.server}: {error}") from None


_OPTIONS = (
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The cluster of this file.  [default: KUBECONFIG, then ~/.kube/config]",
    ),
    click.option("--context", metavar="NAME", default="", help="The context.  [default: the current one]"),
    click.option("--dry-run", is_flag=True, help="Have the server check it, and change nothing."),
    click.option(
        "-o",
        "--output",
        type=click.Choice(("table", "json", "yaml", "name")),
        default="table",
        show_default=True,
        help="How to say what was done.",
    ),
)


def acting_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, as one `Place`."""

    @functools.wraps(function)
    def acting(**given: Any) -> None:
        names = ("kubeconfig", "context", "dry_run", "output")
        function(place=Place(**{name: given.pop(name) for name in names}), **given)

    decorated: Callable[..., None] = acting
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def agreed(question: str, *, yes: bool, dry_run: bool) -> None:
    """Ask, unless that was answered on the command line; ends the command if the answer is no."""
    if yes or dry_run:
        return
    try:
        answer = click.confirm(printable(question), err=True)
    except click.Abort:
        raise InputError("not confirmed, nothing was changed; --yes confirms it without asking") from None
    if not answer:
        echo("nothing was changed", err=True)
        raise SystemExit(EXIT_KEPT)


async def evictions(editor: "Editor", pods: list[dict[str, Any]]) -> list[Act]:
    """Evict pods that have a node; disruption budgets are respected."""
    found = []
    for pod in pods:
        phase, meta = pod.get("status", {}).get("phase"), pod["metadata"]
        if not pod.get("spec", {}).get("nodeName") or phase in ("Succeeded", "Failed"):
            continue
        name = f"pod/{meta['namespace']}/{meta['name']}"
        if await editor.evict(pod):
            found.append(Act(name, "evicted"))
        else:
            found.append(Act(name, "kept: a disruption budget allows no eviction now; try again", kept=True))
    return found
