"""The profiles by name, and what the names in each one's configuration stand for."""

from collections.abc import Collection, Mapping
from typing import Any

from maniple.actions.allocate import Allocate
from maniple.actions.backfill import Backfill
from maniple.actions.enqueue import Enqueue
from maniple.actions.gangpreempt import GangPreempt
from maniple.actions.gangreclaim import GangReclaim
from maniple.actions.preempt import Preempt
from maniple.actions.reclaim import Reclaim
from maniple.actions.shuffle import Shuffle
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration import Configuration, load_volcano
from maniple.framework.registry import Registry
from maniple.plugins.devices.deviceshare import DeviceShare, shares_npus
from maniple.plugins.devices.numa_aware import NumaAware
from maniple.plugins.extender.extender import Extender
from maniple.plugins.fairness.capacity import Capacity
from maniple.plugins.fairness.drf import Drf
from maniple.plugins.fairness.overcommit import Overcommit
from maniple.plugins.fairness.proportion import Proportion
from maniple.plugins.fairness.resourcequota import ResourceQuotas
from maniple.plugins.feasibility.nodegroup import NodeGroup
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.feasibility.tdm import Tdm
from maniple.plugins.gang.conformance import Conformance
from maniple.plugins.gang.gang import Gang
from maniple.plugins.order.priority import Priority
from maniple.plugins.order.sla import Sla
from maniple.plugins.score.binpack import Binpack
from maniple.plugins.score.nodeorder import NodeOrder
from maniple.plugins.score.resource_strategy_fit import ResourceStrategyFit
from maniple.plugins.score.usage import Usage
from maniple.plugins.topology.network_topology_aware import NetworkTopologyAware
from maniple.plugins.topology.task_topology import TaskTopology
from maniple.plugins.victims.cdp import Cooldown
from maniple.plugins.victims.pdb import Budgets
from maniple.plugins.victims.rescheduling import Rescheduling
from maniple.profiles.options import checked, strings
from maniple.profiles.profile import Profile
from maniple.profiles.volcano import ALWAYS_IGNORED_PROVISIONERS, VolcanoDialect

_VOLCANO_PLUGINS = (
    Binpack,
    Budgets,
    Capacity,
    Conformance,
    Cooldown,
    DeviceShare,
    Drf,
    Extender,
    Gang,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    ResourceQuotas,
    ResourceStrategyFit,
    Sla,
    TaskTopology,
    Tdm,
    Usage,
)
_VOLCANO_ACTIONS = (Enqueue, Allocate, Backfill, Preempt, Reclaim, GangPreempt, GangReclaim, Shuffle)
_VOLCANO_REGISTRY = Registry(
    plugins={plugin.name: plugin for plugin in _VOLCANO_PLUGINS},
    actions={action.name: action for action in _VOLCANO_ACTIONS},
    # Both divide the cluster among queues; Volcano's documentation says to use one of them.
    rivals=(frozenset({"proportion", "capacity"}),),
)


def _load_volcano(source: str | Mapping[str, Any] | None, known_actions: Collection[str]) -> Configuration:
    return load_volcano(source, known_actions=known_actions)


def _volcano_cluster(configuration: Configuration, options: Mapping[str, Any]) -> Cluster:
    dialect = VolcanoDialect(
        strict=configuration.compat == "strict",
        default_queue=options.get("defaultQueue", "default"),
        scheduler_names=strings(options, "schedulerName") or ("volcano",),
        npus_shared=shares_npus(configuration),
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
