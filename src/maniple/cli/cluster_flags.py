"""The flags of commands that work on a cluster: `--kubeconfig`, `--context` and `--in-cluster`."""

from collections.abc import Callable
from pathlib import Path

import click


def cluster_flags(deed: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the flags to a command; `deed`: what is done, before the words "the cluster"."""

    def adding(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(_options(deed)):
            function = option(function)
        return function

    return adding


def _options(deed: str) -> tuple[Callable[[Callable[..., None]], Callable[..., None]], ...]:
    return (
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False),
            help=f"{deed} the cluster of this file.",
        ),
        click.option("--context", default="", help=f"{deed} the cluster of this context."),
        click.option("--in-cluster", is_flag=True, help=f"{deed} the cluster that this pod runs in."),
    )


def check_named(kubeconfig: Path | None, context: str, *, in_cluster: bool, otherwise: str) -> None:
    """Raises UsageError unless exactly one cluster is named; `otherwise` says what to do without one."""
    if in_cluster and (kubeconfig is not None or context):
        raise click.UsageError("--in-cluster takes neither --kubeconfig nor --context")
    if not in_cluster and kubeconfig is None and not context:
        raise click.UsageError(f"{otherwise}: --kubeconfig, --context or --in-cluster")
