"""The hidden command `maniple bench-bind`: a client that only binds, as fast as this library can.

`maniple bench --live` starts it beside nothing else: it knows where every pod goes, watches nothing, and reports
nothing. No scheduler that uses the same client can bind faster.
"""

import asyncio
import itertools
from functools import partial
from pathlib import Path

import click


@click.command("bench-bind", hidden=True)
@click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--context", default="")
@click.option("--namespace", required=True)
@click.option("--concurrency", type=click.IntRange(min=1), required=True)
def command(kubeconfig: Path | None, context: str, namespace: str, concurrency: int) -> None:
    """Bind every pending pod of a namespace, to the nodes of the benchmark in turn."""
    asyncio.run(_bind_all(kubeconfig, context, namespace, concurrency))


async def _bind_all(kubeconfig: Path | None, context: str, namespace: str, concurrency: int) -> None:
    from maniple.cli.live.cluster import at_once
    from maniple.cli.live.objects import LABEL
    from maniple.kube.client import Client
    from maniple.kube.cluster import KubeCluster
    from maniple.kube.configuration import load_configuration
    from maniple.kube.kinds import KINDS, PODS
    from maniple.kube.watch import list_all
    from maniple.objects.core import Node, Pod

    async with Client(load_configuration(kubeconfig, context)) as client:
        found = (await list_all(client, KINDS[Pod], PODS)).objects
        pods = [one for one in found if isinstance(one, Pod) and one.metadata.namespace == namespace]
        nodes = (await list_all(client, KINDS[Node], KINDS[Node].at("v1"))).objects
        names = [one.metadata.name for one in nodes if LABEL in one.metadata.labels]
        port = KubeCluster(client)
        places = zip((one for one in pods if not one.spec.node_name), itertools.cycle(names))
        await at_once((partial(port.bind, pod, node) for pod, node in places), concurrency)
