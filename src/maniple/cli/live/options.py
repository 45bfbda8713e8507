"""The options of `maniple bench --live`, apart from those that it shares with other benchmarks."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

PARTS = ("burst", "arrivals", "large")
NAMES = ("kubeconfig", "context", "parts", "nodes", "pods", "gang", "large_nodes", "large_pods")
_COUNT = click.IntRange(min=1)

_OPTIONS = (
    click.option("--live", is_flag=True, help="Measure a running scheduler on the cluster of --kubeconfig."),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Live: the cluster, which should have nothing else to do.",
    ),
    click.option("--context", default="", help="Live: the cluster of this context."),
    click.option(
        "--part",
        "parts",
        type=click.Choice(PARTS),
        multiple=True,
        help="Live: only this part; repeatable.  [default: all]",
    ),
    click.option("--nodes", type=_COUNT, default=1000, show_default=True, help="Live: nodes to create."),
    click.option(
        "--pods", type=_COUNT, default=5000, show_default=True, help="Live: pods to create and bind."
    ),
    click.option("--gang", type=_COUNT, default=8, show_default=True, help="Live: pods of one gang."),
    click.option(
        "--large-nodes", type=_COUNT, default=5000, show_default=True, help="Live: nodes of the part large."
    ),
    click.option(
        "--large-pods", type=_COUNT, default=40000, show_default=True, help="Live: its running pods."
    ),
    click.option(
        "--kube-scheduler",
        metavar="PROGRAM",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Live: measure this kube-scheduler, too, on the same pods without gangs.",
    ),
    click.option(
        "--beside-others",
        is_flag=True,
        help="Live: use a cluster that has nodes and pods of its own. They are not touched.",
    ),
)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What was given for a live measurement."""

    given: dict[str, Any]

    def run(self, profile: str, repeat: int, output: str) -> None:
        from maniple.cli.live.command import run_live
        from maniple.cli.live.measures import Settings

        given = dict(self.given)
        parts = given.pop("parts")
        if given["kubeconfig"] is None and not given["context"]:
            raise click.UsageError("--live needs a cluster: give --kubeconfig or --context")
        program = given.pop("kube_scheduler")
        if program is not None and given["kubeconfig"] is None:
            raise click.UsageError("--kube-scheduler needs --kubeconfig")
        run_live(
            Settings(profile=profile, repeat=repeat, kube_scheduler=str(program or ""), **given),
            parts,
            output,
        )


def live_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which gets them as one `live`: None without --live."""

    @functools.wraps(function)
    def asking(*arguments: Any, **given: Any) -> None:
        is_live = given.pop("live")
        taken = {name: given.pop(name) for name in (*NAMES, "kube_scheduler", "beside_others")}
        source = click.get_current_context().get_parameter_source
        unused = [name for name in taken if source(name) is click.core.ParameterSource.COMMANDLINE]
        if not is_live and unused:
            name = "part" if unused[0] == "parts" else unused[0].replace("_", "-")
            raise click.UsageError(f"--{name} goes with --live")
        function(*arguments, **given, live=LiveOptions(taken) if is_live else None)

    decorated: Callable[..., None] = asking
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    return decorated
