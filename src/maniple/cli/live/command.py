"""`maniple bench --live`: runs the measurements on a cluster and prints them."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from maniple.cli import InputError
from maniple.cli.echo import echo
from maniple.cli.live.cluster import Stage
from maniple.cli.live.dialects import DIALECTS
from maniple.cli.live.measures import PARTS, Figures, Measures, Settings
from maniple.cli.live.watching import NotBoundError, bindings
from maniple.cli.progress import progress

if TYPE_CHECKING:
    from rich.console import Console

    from maniple.kube.configuration import Configuration

_BURST = {
    "binds_per_second": "binds/s",
    "of_bare": "of bare",
    "seconds": "seconds",
    "seconds_with_start": "with start",
    "cpu_seconds": "cpu",
}
_ARRIVALS = {
    "gangs": "gangs",
    "median_ms": "median ms",
    "p99_ms": "p99 ms",
    "cpu_seconds_per_gang": "cpu/gang",
    "created_per_second": "created/s",
    "behind_median_seconds": "behind, median s",
    "behind_most_seconds": "behind, most s",
    "cpu_seconds": "cpu",
    "nodes": "nodes",
    "running_pods": "running pods",
    "idle_cpu_seconds_per_minute": "idle cpu/min",
    "rss_mib": "MiB",
}


def run_live(settings: Settings, parts: Sequence[str], output: str) -> None:
    """Measure and print; the cluster is left as it was."""
    from maniple.kube.configuration import load_configuration
    from maniple.kube.errors import ApiError, KubeconfigError

    try:
        configuration = load_configuration(settings.kubeconfig, settings.context)
    except KubeconfigError as error:
        raise InputError(str(error)) from None
    try:
        figures = asyncio.run(_measure(configuration, settings, parts))
    except* ApiError as errors:
        raise InputError(f"{configuration.server}: {errors.exceptions[0]}") from None
    except* NotBoundError as errors:
        raise click.ClickException(str(errors.exceptions[0])) from None
    except* click.ClickException as errors:
        raise errors.exceptions[0] from None
    if output == "json":
        echo(msgspec.json.format(msgspec.json.encode(figures), indent=2).decode())
    else:
        _print(figures)


async def _measure(configuration: "Configuration", settings: Settings, parts: Sequence[str]) -> Figures:
    from maniple.kube.client import Client

    figures: Figures = {
        "profile": settings.profile,
        "nodes": settings.nodes,
        "pods": settings.pods,
        "gang": settings.gang,
    }
    async with Client(configuration, attempts=3, seconds=300.0) as client:
        stage = Stage(client, DIALECTS[settings.profile], settings.gang)
        with progress("preparing the cluster"):
            await stage.open(beside_others=settings.beside_others)
        try:
            async with bindings(client, stage.namespace) as seen:
                measures = Measures(settings, stage, seen, lambda text: echo(text, err=True))
                for part in parts or PARTS:
                    with progress(f"measuring: {part}"):
                        figures[part] = await PARTS[part](measures)
        finally:
            with progress("removing what was created"):
                await stage.close()
    return figures


def _print(figures: Figures) -> None:
    from maniple.cli.render import console

    out = console()
    if "burst" in figures:
        _print_table(out, "Pods that exist already", _BURST, figures["burst"])
    if "arrivals" in figures:
        _print_table(out, "Gangs one at a time", _ARRIVALS, {"maniple": figures["arrivals"]["light"]})
        _print_table(out, "While pods are created", _ARRIVALS, {"maniple": figures["arrivals"]["arriving"]})
    if "large" in figures:
        _print_table(out, "One more gang on a large cluster", _ARRIVALS, {"maniple": figures["large"]})


def _print_table(out: "Console", title: str, columns: dict[str, str], rows: dict[str, Figures]) -> None:
    from maniple.cli.tables import Table

    names = [name for name in columns if any(name in row for row in rows.values())]
    table = Table(
        title, "scheduler", *(columns[name] for name in names), right=[columns[one] for one in names]
    )
    for label, row in rows.items():
        table.add_row(label, *(f"{row[name]:,}" for name in names))
    out.print(table)
