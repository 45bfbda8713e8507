"""`maniple group` on a cluster: the controller that writes PodGroups, and what it needs around it."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError
from maniple.cli.cluster_flags import check_named
from maniple.cli.listen_flags import listens_of
from maniple.cli.logs import plain_logs
from maniple.cli.planning import read_conf
from maniple.cli.process_flags import Process
from maniple.cli.reporting import configuration_message
from maniple.cli.run_cluster import EXIT_LOST_LEASE, find_cluster, reach
from maniple.cli.run_stage import Settings, served, stop_on_signals

if TYPE_CHECKING:
    from maniple.kube.configuration import Configuration
    from maniple.live.leadership import Election
    from maniple.planner import Planner
    from maniple.web.settings import Listen

LEASE = "maniple-group"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Which cluster."""

    kubeconfig: Path | None
    context: str
    in_cluster: bool


def control(
    place: Place,
    conf: str | None,
    profile: str,
    options: dict[str, Any],
    election: "Election | None",
    listening: dict[str, Any],
    process: Process,
    logs: tuple[int, str],
) -> int:
    """Write groups until a signal comes; returns the exit code."""
    otherwise = "give -f to show the groups of manifests, or name the cluster to write groups to"
    check_named(place.kubeconfig, place.context, in_cluster=place.in_cluster, otherwise=otherwise)
    listens = listens_of(listening, process, on_cluster=True)
    planner = _planner(conf, profile, options)
    settings = Settings(0.0, (), False, False, place.kubeconfig, place.context, place.in_cluster, "", "")
    configuration = find_cluster(settings)
    with plain_logs(*logs):
        return asyncio.run(_run(planner, configuration, election, listens))


def _planner(conf: str | None, profile: str, options: dict[str, Any]) -> "Planner":
    from maniple.framework.configuration.loading import ConfigurationError
    from maniple.planner import Planner

    try:
        return Planner(read_conf(conf), profile=profile, options=options or None)
    except ConfigurationError as error:
        raise InputError(configuration_message(conf, error)) from None
    except ValueError as error:
        raise InputError(str(error)) from None


async def _run(
    planner: "Planner",
    configuration: "Configuration",
    election: "Election | None",
    listens: "tuple[Listen, ...]",
) -> int:
    from maniple.kube.client import Client
    from maniple.kube.cluster import KubeCluster
    from maniple.live.group_controller import GroupController
    from maniple.live.leadership import Leadership, LeadershipLostError
    from maniple.live.port import SystemClock

    async with Client(configuration, attempts=6) as client:
        await reach(client)
    async with Client(configuration) as client:
        port = KubeCluster(client)
        leadership = Leadership(port, election, SystemClock()) if election is not None else None
        controller = GroupController(planner, port, leadership=leadership)
        stop_on_signals(controller.stop)
        log.info("writing groups for pods of %s, profile %s", configuration.server, planner.profile.name)
        try:
            async with served(controller, listens, client):
                await controller.run()
        except BaseExceptionGroup as errors:
            lost = errors.subgroup(LeadershipLostError)
            if lost is None:
                raise
            log.error("%s; another replica takes over", lost.exceptions[0])
            return EXIT_LOST_LEASE
    return 0
