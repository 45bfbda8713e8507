"""The profiles by name, and the plugins and actions that each one's configuration may name."""

from collections.abc import Collection, Mapping
from typing import Any

from maniple.actions.allocate import Allocate as KaiAllocate
from maniple.actions.consolidation import Consolidation as KaiConsolidation
from maniple.actions.preempt import Preempt as KaiPreempt
from maniple.actions.reclaim import Reclaim as KaiReclaim
from maniple.actions.stalegangeviction import StaleGangEviction as KaiStaleGangEviction
from maniple.actions.volcano.allocate import Allocate
from maniple.actions.volcano.backfill import Backfill
from maniple.actions.volcano.enqueue import Enqueue
from maniple.actions.volcano.gangpreempt import GangPreempt
from maniple.actions.volcano.gangreclaim import GangReclaim
from maniple.actions.volcano.preempt import Preempt
from maniple.actions.volcano.reclaim import Reclaim
from maniple.actions.volcano.shuffle import Shuffle
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import Configuration, load_kai, load_volcano
from maniple.framework.configuration.registry import Registry
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
from maniple.plugins.kai.dynamicresources import DynamicResources as KaiDynamicResources
from maniple.plugins.kai.elastic import Elastic as KaiElastic
from maniple.plugins.kai.gpupack import GpuPack as KaiGpuPack
from maniple.plugins.kai.gpusharingorder import GpuSharingOrder as KaiGpuSharingOrder
from maniple.plugins.kai.gpuspread import GpuSpread as KaiGpuSpread
from maniple.plugins.kai.kubeflow import Kubeflow as KaiKubeflow
from maniple.plugins.kai.minruntime import MinRuntime as KaiMinRuntime
from maniple.plugins.kai.nodeavailability import NodeAvailability as KaiNodeAvailability
from maniple.plugins.kai.nodeplacement import NodePlacement as KaiNodePlacement
from maniple.plugins.kai.nominatednode import NominatedNode as KaiNominatedNode
from maniple.plugins.kai.podaffinity import PodAffinity as KaiPodAffinity
from maniple.plugins.kai.predicates import Predicates as KaiPredicates
from maniple.plugins.kai.priority import Priority as KaiPriority
from maniple.plugins.kai.proportion import Proportion as KaiProportion
from maniple.plugins.kai.ray import Ray as KaiRay
from maniple.plugins.kai.reflectjoborder import ReflectJobOrder as KaiReflectJobOrder
from maniple.plugins.kai.resourcetype import ResourceType as KaiResourceType
from maniple.plugins.kai.snapshot import Snapshot as KaiSnapshot
from maniple.plugins.kai.subgrouporder import SubGroupOrder as KaiSubGroupOrder
from maniple.plugins.kai.taskorder import TaskOrder as KaiTaskOrder
from maniple.plugins.kai.topology import Topology as KaiTopology
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
from maniple.profiles import default_queues
from maniple.profiles.group_forms import kai_form, volcano_form
from maniple.profiles.kai import KaiDialect, NodePool
from maniple.profiles.maniple_catalogue import MANIPLE
from maniple.profiles.options import affinity_keeps_others_out, checked, checked_kai, strings
from maniple.profiles.profile import Profile
from maniple.profiles.rules import KAI_RULES, KAI_STRICT_RULES, VOLCANO_RULES, VOLCANO_STRICT_RULES
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

_KAI_PLUGINS = (
    KaiDynamicResources,
    KaiElastic,
    KaiGpuPack,
    KaiGpuSharingOrder,
    KaiGpuSpread,
    KaiKubeflow,
    KaiMinRuntime,
    KaiNodeAvailability,
    KaiNodePlacement,
    KaiNominatedNode,
    KaiPodAffinity,
    KaiPredicates,
    KaiPriority,
    KaiProportion,
    KaiRay,
    KaiReflectJobOrder,
    KaiResourceType,
    KaiSnapshot,
    KaiSubGroupOrder,
    KaiTaskOrder,
    KaiTopology,
)
_KAI_ACTIONS = (KaiAllocate, KaiConsolidation, KaiReclaim, KaiPreempt, KaiStaleGangEviction)
_KAI_REGISTRY = Registry(
    plugins={plugin.name: plugin for plugin in _KAI_PLUGINS},
    actions={action.name: action for action in _KAI_ACTIONS},
)


def _load_volcano(source: str | Mapping[str, Any] | None, known_actions: Collection[str]) -> Configuration:
    return load_volcano(source, known_actions=known_actions)


def _volcano_cluster(configuration: Configuration, options: Mapping[str, Any]) -> Cluster:
    strict = configuration.compat == "strict"
    dialect = VolcanoDialect(
        strict=strict,
        default_queue=options.get("defaultQueue", "default"),
        scheduler_names=strings(options, "schedulerName") or ("volcano",),
        npus_shared=shares_npus(configuration),
        node_selector=strings(options, "nodeSelector"),
    )
    ignored = {*ALWAYS_IGNORED_PROVISIONERS, *strings(options, "ignoredProvisioners")}
    return Cluster(
        dialect, ignored_provisioners=ignored, affinity_keeps_others_out=affinity_keeps_others_out(options)
    )


VOLCANO = Profile(
    name="volcano",
    registry=_VOLCANO_REGISTRY,
    load=_load_volcano,
    cluster=_volcano_cluster,
    form=volcano_form,
    default_queue=default_queues.of_volcano,
    checked_options=checked,
    rules=VOLCANO_RULES,
    strict_rules=VOLCANO_STRICT_RULES,
)


def _load_kai(source: str | Mapping[str, Any] | None, known_actions: Collection[str]) -> Configuration:
    return load_kai(source, known_actions=known_actions)


def _kai_cluster(configuration: Configuration, options: Mapping[str, Any]) -> Cluster:
    restricted = options["restrictNodeScheduling"]
    workers = (options["cpuWorkerNodeLabelKey"], options["gpuWorkerNodeLabelKey"]) if restricted else ()
    dialect = KaiDialect(
        scheduler_names=strings(options, "schedulerName"),
        pool=NodePool(options["nodePoolLabelKey"], options["nodePoolLabelValue"]),
        worker_labels=workers,
        reservation_app=options["resourceReservationAppLabel"],
        strict=configuration.compat == "strict",
    )
    return Cluster(dialect, affinity_keeps_others_out=affinity_keeps_others_out(options))


KAI = Profile(
    name="kai",
    registry=_KAI_REGISTRY,
    load=_load_kai,
    cluster=_kai_cluster,
    form=kai_form,
    default_queue=default_queues.of_kai,
    checked_options=checked_kai,
    rules=KAI_RULES,
    strict_rules=KAI_STRICT_RULES,
)

PROFILES: dict[str, Profile] = {VOLCANO.name: VOLCANO, KAI.name: KAI, MANIPLE.name: MANIPLE}
