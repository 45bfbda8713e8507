"""`maniple run` on a real cluster: the connection, and the scheduler on it."""

import asyncio
import os
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError
from maniple.cli.journal_flags import recorder_of
from maniple.cli.logs import logs
from maniple.cli.run_feeds import feeds_of
from maniple.cli.run_stage import (
    Settings,
    dump_on_signals,
    observer,
    open_view,
    served,
    stop_on_signals,
    tick,
    write_rate,
)

if TYPE_CHECKING:
    from maniple.cli.run_recipe import Recipe
    from maniple.kube.client import Client
    from maniple.kube.configuration import Configuration
    from maniple.planner import Planner

KAI_CONFIG = "kai-config"  # KAI reads only this one
EXIT_LOST_LEASE = 1


def find_cluster(settings: Settings) -> "Configuration":
    from maniple.kube.configuration import at_address, in_cluster, load_configuration
    from maniple.kube.errors import KubeconfigError

    try:
        if settings.in_cluster:
            found = in_cluster(os.environ)
        elif settings.kubeconfig is None and not settings.context:
            found = at_address(settings.process.master or "")
        else:
            found = load_configuration(settings.kubeconfig, settings.context)
        master = settings.process.master
        return replace(found, server=at_address(master).server) if master else found
    except KubeconfigError as error:
        raise InputError(str(error)) from None


async def run_on_cluster(
    planner: "Planner",
    settings: Settings,
    configuration: "Configuration",
    recipe: "Recipe",
) -> int:
    from maniple.kube.client import Client
    from maniple.kube.cluster import KubeCluster
    from maniple.live.leadership import Leadership, LeadershipLostError
    from maniple.live.port import SystemClock
    from maniple.live.scheduler import Scheduler, Timing
    from maniple.live.usage_feed import run_beside

    begin = asyncio.get_running_loop().time()

    def elapsed() -> float:
        return asyncio.get_running_loop().time() - begin

    async with Client(configuration, attempts=6) as client:
        await reach(client)
    async with Client(configuration) as client:
        feeds = feeds_of(planner, settings, client)
        with (
            open_view(configuration.server) as view,
            logs(settings.logs, view, elapsed) as log,
            recorder_of(settings.recording) as journal,
        ):
            port, election = KubeCluster(client), settings.election
            scheduler = Scheduler(
                planner,
                port,
                leadership=Leadership(port, election, SystemClock()) if election is not None else None,
                timing=Timing(period=settings.period),
                bind=settings.bind,
                keeps_queues=settings.keeps_queues,
                groups=settings.groups,
                shard=settings.shard,
                options=feeds.options if feeds is not None else None,
                rate=write_rate(settings.process),
                unread=settings.process.unread_kinds(),
                observer=observer(view, elapsed),
                journal=journal,
            )
            log.follow(scheduler.trace)
            stop_on_signals(scheduler.stop)
            dump_on_signals(scheduler, SystemClock(), settings.process)
            reload = recipe.reload(scheduler, SystemClock(), feeds)
            running = asyncio.create_task(run_beside(feeds, scheduler, reload))
            try:
                async with served(scheduler, settings.listens, client):
                    await asyncio.gather(running, tick(view, elapsed, running))
            except BaseExceptionGroup as errors:
                lost = errors.subgroup(LeadershipLostError)
                if lost is None:
                    raise
                view.say(elapsed(), f"error: {lost.exceptions[0]}; another replica takes over")
                return EXIT_LOST_LEASE
    return 0


async def reach(client: "Client") -> None:
    """One request that every user may make.

    If it fails there is one error, not one for each kind to watch.
    """
    from maniple.kube.errors import ApiError

    try:
        await client.request("GET", "/version")
    except ApiError as error:
        if error.status in (0, HTTPStatus.UNAUTHORIZED):
            raise InputError(f"{client.configuration.server}: {error}") from None


async def fetch_shard(name: str, configuration: "Configuration") -> list[dict[str, Any]]:
    from maniple.kube.client import Client
    from maniple.kube.errors import ApiError

    async with Client(configuration, attempts=6) as client:
        try:
            return await shard_objects(client, name)
        except ApiError as error:
            raise InputError(f"{configuration.server}: {error}") from None


async def shard_objects(client: "Client", name: str) -> list[dict[str, Any]]:
    """A shard and the operator's own configuration, as far as the cluster has them."""
    from maniple.kube.errors import ApiError
    from maniple.kube.kinds import KINDS
    from maniple.objects.kai import KaiConfig, SchedulingShard

    found = []
    for kind, key in ((SchedulingShard, name), (KaiConfig, KAI_CONFIG)):
        resource = KINDS[kind].at("v1")
        try:
            raw = await client.get(resource, key)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            found.append({"apiVersion": resource.api_version, "kind": kind.kind, **raw})
    return found
