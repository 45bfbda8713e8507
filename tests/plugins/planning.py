"""Whole plans for plugin tests: objects and some plugins in, one cycle, a plan out."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from maniple.profiles.volcano import VolcanoDialect


def planned(
    objects: Iterable[Object],
    *plugins: str | Mapping[str, Any],
    actions: str = "allocate",
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
) -> Plan:
    """One cycle in debug mode. A plugin is its name, or its entry in a configuration; gang comes first."""
    entries = [{"name": plugin} if isinstance(plugin, str) else plugin for plugin in ("gang", *plugins)]
    compat = "strict" if strict else "better"
    conf = {"actions": actions, "tiers": [{"plugins": entries}], "compat": compat}
    planner = Planner(profile="volcano", conf=conf, options={"debug": True, **(options or {})})
    return planner.cycle(Cluster.from_objects(VolcanoDialect(strict=strict), objects), now=now)
