"""The sources of measurements that a configuration names, for `maniple run`."""

import logging
import os
from typing import TYPE_CHECKING

from maniple.cli import InputError
from maniple.cli.reporting import print_messages
from maniple.cli.run_stage import Settings

if TYPE_CHECKING:
    from maniple.kube.client import Client
    from maniple.live.usage_feed import Feed, Feeds
    from maniple.planner import Planner

log = logging.getLogger(__name__)

# The plugins that read the load of nodes.
LOAD_PLUGINS = frozenset({"usage", "rescheduling"})


def feeds_of(planner: "Planner", settings: Settings, client: "Client | None" = None) -> "Feeds | None":
    """The feeds of a configuration, also of later ones; None in virtual time, which does not wait for a response."""
    from maniple.live.usage_feed import Feeds

    try:
        feeds = Feeds(lambda one: _feeds(one, client), planner)
    except ValueError as error:
        raise InputError(str(error)) from None
    if not settings.virtual_time:
        return feeds
    ignored = [name for name, used in _named(planner) if used]
    print_messages(
        "warning", [f"{name}: nothing is fetched in virtual time; continuing without" for name in ignored]
    )
    return None


def _named(planner: "Planner") -> list[tuple[str, bool]]:
    plugins = {option.name for tier in planner.configuration.tiers for option in tier}
    measured = bool(planner.configuration.metrics) and not LOAD_PLUGINS.isdisjoint(plugins)
    return [("usageDBConfig", bool(planner.configuration.usage)), ("metrics", measured)]


def _feeds(planner: "Planner", client: "Client | None") -> "list[Feed]":
    from maniple.kube.node_usage import NodeUsageFeed, read_metrics
    from maniple.kube.usage import UsageFeed
    from maniple.kube.usage_query import read_settings

    named = dict(_named(planner))
    found: list[Feed] = []
    if named["usageDBConfig"]:
        found.append(UsageFeed(read_settings(planner.configuration.usage, os.environ), report=log.warning))
    if named["metrics"]:
        settings = read_metrics(planner.configuration.metrics)
        found.append(NodeUsageFeed(settings, client, report=log.warning))
    return found
