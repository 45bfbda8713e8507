"""Maniple's own profile: the names in its configuration, and how its cluster is built.

Used by `catalogue.py`. Plugins and actions are those of both systems that work on one tree of queues and on
groups inside jobs; for the other names of the two systems, the error says what replaces them.
"""

from collections.abc import Collection, Mapping
from typing import Any

from maniple.actions.allocate import Allocate
from maniple.actions.backfill import Backfill
from maniple.actions.consolidation import Consolidation
from maniple.actions.preempt import Preempt
from maniple.actions.reclaim import Reclaim
from maniple.actions.stalegangeviction import StaleGangEviction
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import Configuration, Counterpart, load_maniple
from maniple.framework.configuration.registry import Registry
from maniple.plugins.devices.deviceshare import DeviceShare, shares_npus
from maniple.plugins.devices.numa_aware import NumaAware
from maniple.plugins.fairness.resourcequota import ResourceQuotas
from maniple.plugins.feasibility.nodegroup import NodeGroup
from maniple.plugins.kai.dynamicresources import DynamicResources
from maniple.plugins.kai.elastic import Elastic
from maniple.plugins.kai.gpupack import GpuPack
from maniple.plugins.kai.gpusharingorder import GpuSharingOrder
from maniple.plugins.kai.gpuspread import GpuSpread
from maniple.plugins.kai.kubeflow import Kubeflow
from maniple.plugins.kai.minruntime import MinRuntime
from maniple.plugins.kai.nodeplacement import NodePlacement
from maniple.plugins.kai.nominatednode import NominatedNode
from maniple.plugins.kai.priority import Priority
from maniple.plugins.kai.ray import Ray
from maniple.plugins.kai.subgrouporder import SubGroupOrder
from maniple.plugins.kai.taskorder import TaskOrder
from maniple.plugins.kai.topology import Topology
from maniple.plugins.maniple.binpack import Binpack
from maniple.plugins.maniple.budgets import Budgets
from maniple.plugins.maniple.conformance import Conformance
from maniple.plugins.maniple.extender import Extender
from maniple.plugins.maniple.fairness import Fairness
from maniple.plugins.maniple.hypernodes import HyperNodes
from maniple.plugins.maniple.predicates import Predicates
from maniple.plugins.maniple.tdm import Tdm
from maniple.plugins.order.sla import Sla
from maniple.plugins.score.nodeorder import NodeOrder
from maniple.plugins.score.resource_strategy_fit import ResourceStrategyFit
from maniple.plugins.score.usage import Usage
from maniple.plugins.topology.task_topology import TaskTopology
from maniple.profiles import default_queues
from maniple.profiles.group_forms import maniple_form
from maniple.profiles.kai import NodePool
from maniple.profiles.maniple import ManipleDialect
from maniple.profiles.options import affinity_keeps_others_out, checked_maniple, strings
from maniple.profiles.profile import Profile
from maniple.profiles.rules import MANIPLE_RULES

_PLUGINS = (
    Binpack,
    Budgets,
    Conformance,
    DeviceShare,
    DynamicResources,
    Elastic,
    Extender,
    Fairness,
    GpuPack,
    GpuSharingOrder,
    GpuSpread,
    HyperNodes,
    Kubeflow,
    MinRuntime,
    NodeGroup,
    NodeOrder,
    NodePlacement,
    NominatedNode,
    NumaAware,
    Predicates,
    Priority,
    Ray,
    ResourceQuotas,
    ResourceStrategyFit,
    Sla,
    SubGroupOrder,
    TaskOrder,
    TaskTopology,
    Tdm,
    Topology,
    Usage,
)
_ACTIONS = (Allocate, Backfill, Consolidation, Reclaim, Preempt, StaleGangEviction)
REGISTRY = Registry(
    plugins={plugin.name: plugin for plugin in _PLUGINS},
    actions={action.name: action for action in _ACTIONS},
    # One packs devices, the other spreads over them.
    rivals=(frozenset({GpuPack.name, GpuSpread.name}),),
)

_BUILT_IN = "it is built in here, for every job"
_FAIRNESS = 'here it is "fairness", which is used'
# Names of the two systems' plugins and actions, and what replaces them here.
COUNTERPARTS: Mapping[str, Counterpart] = {
    "proportion": Counterpart(_FAIRNESS, "fairness"),
    "capacity": Counterpart(f"{_FAIRNESS}; it reads deserved, guarantee and capability", "fairness"),
    "drf": Counterpart(_FAIRNESS, "fairness"),
    "gang": Counterpart(_BUILT_IN),
    "network-topology-aware": Counterpart('here it is "hypernodes", which is used', "hypernodes"),
    "nodeavailability": Counterpart("idle resources always come first here"),
    "podaffinity": Counterpart('here it is part of "nodeorder", which is used', "nodeorder"),
    "resourcetype": Counterpart('here it is part of "nodeplacement", which is used', "nodeplacement"),
    "overcommit": Counterpart(
        "jobs are not held back until there is room, so there is nothing to overcommit"
    ),
    "cdp": Counterpart(
        'here "minruntime", which is used, protects jobs that have just started; '
        "its arguments and the queues say how long",
        "minruntime",
    ),
    "rescheduling": Counterpart(
        'nodes are not evened out here; the action "consolidation" moves jobs where that makes room'
    ),
    "enqueue": Counterpart(
        'here it is part of "allocate": jobs are admitted as soon as their queue accepts them'
    ),
    "gangpreempt": Counterpart(
        'here it is "preempt", which is used: it always takes whole gangs or what they can spare', "preempt"
    ),
    "gangreclaim": Counterpart(
        'here it is "reclaim", which is used: it always takes whole gangs or what they can spare', "reclaim"
    ),
    "shuffle": Counterpart('the nearest thing here is "consolidation", which is used', "consolidation"),
}


def _load(source: str | Mapping[str, Any] | None, known_actions: Collection[str]) -> Configuration:
    return load_maniple(source, known_actions=known_actions, counterparts=COUNTERPARTS)


def _cluster(configuration: Configuration, options: Mapping[str, Any]) -> Cluster:
    restricted = options["restrictNodeScheduling"]
    dialect = ManipleDialect(
        scheduler_names=strings(options, "schedulerName"),
        default_queue=options["defaultQueue"],
        pool=NodePool(options["nodePoolLabelKey"], options["nodePoolLabelValue"]),
        worker_labels=(options["cpuWorkerNodeLabelKey"], options["gpuWorkerNodeLabelKey"])
        if restricted
        else (),
        reservation_app=options["resourceReservationAppLabel"],
        npus_shared=shares_npus(configuration),
        node_selector=strings(options, "nodeSelector"),
    )
    return Cluster(dialect, affinity_keeps_others_out=affinity_keeps_others_out(options))


MANIPLE = Profile(
    name="maniple",
    registry=REGISTRY,
    load=_load,
    cluster=_cluster,
    form=maniple_form,
    default_queue=default_queues.of_maniple,
    checked_options=checked_maniple,
    rules=MANIPLE_RULES,
    strict_rules=MANIPLE_RULES,  # there is no original to agree with
)

__all__ = ["COUNTERPARTS", "MANIPLE", "REGISTRY"]
