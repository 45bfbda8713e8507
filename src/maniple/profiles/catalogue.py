"""The profiles by name, and what the names in each one's configuration stand for."""

from collections.abc import Mapping
from typing import Any

from maniple.actions.allocate import Allocate
from maniple.actions.backfill import Backfill
from maniple.actions.enqueue import Enqueue
from maniple.actions.preempt import Preempt
from maniple.actions.reclaim import Reclaim
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration import Configuration, load_volcano
from maniple.framework.registry import Registry
from maniple.plugins.fairness.capacity import Capacity
from maniple.plugins.fairness.drf import Drf
from maniple.plugins.fairness.overcommit import Overcommit
from maniple.plugins.fairness.proportion import Proportion
from maniple.plugins.fairness.resourcequota import ResourceQuotas
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.gang.conformance import Conformance
from maniple.plugins.gang.gang import Gang
from maniple.plugins.order.priority import Priority
from maniple.plugins.order.sla import Sla
from maniple.plugins.score.binpack import Binpack
from maniple.plugins.score.nodeorder import NodeOrder
from maniple.plugins.score.resource_strategy_fit import ResourceStrategyFit
from maniple.profiles.options import checked, strings
from maniple.profiles.profile import Profile
from maniple.profiles.volcano import ALWAYS_IGNORED_PROVISIONERS, VolcanoDialect

_VOLCANO_PLUGINS = (
    Binpack,
    Capacity,
    Conformance,
    Drf,
    Gang,
    NodeOrder,
    Overcommit,
    Predicates,
    Priority,
    Proportion,
    ResourceQuotas,
    ResourceStrategyFit,
    Sla,
)
_VOLCANO_REGISTRY = Registry(
    plugins={plugin.name: plugin for plugin in _VOLCANO_PLUGINS},
    actions={action.name: action for action in (Enqueue, Allocate, Backfill, Preempt, Reclaim)},
    # Both divide the cluster among queues; Volcano's documentation says to use one of them.
    rivals=(frozenset({"proportion", "capacity"}),),
)


def _load_volcano(source: str | Mapping[str, Any] | None) -> Configuration:
    return load_volcano(source, known_actions=_VOLCANO_REGISTRY.actions)


def _volcano_cluster(configuration: Configuration, options: Mapping[str, Any]) -> Cluster:
    dialect = VolcanoDialect(
        strict=configuration.compat == "strict",
        default_queue=options.get("defaultQueue", "default"),
        scheduler_names=strings(options, "schedulerName") or ("volcano",),
    )
    ignored = (*ALWAYS_IGNORED_PROVISIONERS, *strings(options, "ignoredProvisioners"))
    return Cluster(dialect, ignored_provisioners=ignored)


VOLCANO = Profile(
    name="volcano",
    registry=_VOLCANO_REGISTRY,
    load=_load_volcano,
    cluster=_volcano_cluster,
    checked_options=checked,
)

PROFILES: dict[str, Profile] = {VOLCANO.name: VOLCANO}
