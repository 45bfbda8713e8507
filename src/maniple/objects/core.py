"""The built-in Kubernetes kinds, in one place to import from.

Pods, affinity and storage have their own files; nodes and the small kinds are here.
"""

from typing import Any, ClassVar

import msgspec

from maniple.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from maniple.objects.meta import Condition, Int32, Int64, LabelSelector, Object, Record, ResourceList, Time
from maniple.objects.pod import (
    Container,
    ContainerClaim,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SchedulingGate,
)
from maniple.objects.storage import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    ClaimReference,
    ClaimTemplateMeta,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    DriverAllocatable,
    EphemeralVolumeSource,
    GCEPersistentDisk,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    StorageRequirements,
    TopologyLabelRequirement,
    TopologySelectorTerm,
    Volume,
    VolumeNodeAffinity,
    VolumeSource,
)

__all__ = [
    "ISCSI",
    "RBD",
    "AWSElasticBlockStore",
    "Affinity",
    "AzureDisk",
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "CSIVolumeSource",
    "ClaimReference",
    "ClaimTemplateMeta",
    "Condition",
    "ConfigMap",
    "Container",
    "ContainerClaim",
    "ContainerImage",
    "ContainerPort",
    "ContainerStatus",
    "DriverAllocatable",
    "EphemeralVolumeSource",
    "GCEPersistentDisk",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "RuntimeClass",
    "RuntimeOverhead",
    "RuntimeScheduling",
    "SchedulingGate",
    "Service",
    "StatefulSet",
    "StorageClass",
    "StorageRequirements",
    "Taint",
    "Toleration",
    "TopologyLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeNodeAffinity",
    "VolumeSource",
    "WeightedPodAffinityTerm",
    "WorkloadSelector",
    "WorkloadSpec",
]


class NodeSpec(Record, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Record, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Record, frozen=True, kw_only=True):
    capacity: ResourceList = msgspec.field(default_factory=dict)
    allocatable: ResourceList = msgspec.field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Node"
    namespaced: ClassVar[bool] = False

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Namespace"
    namespaced: ClassVar[bool] = False


class ConfigMap(Object, frozen=True, kw_only=True):
    """Text by name: device plugins describe the cards of a cluster in one."""

    kind: ClassVar[str] = "ConfigMap"

    data: dict[str, str] = msgspec.field(default_factory=dict)


class PriorityClass(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.k8s.io"
    kind: ClassVar[str] = "PriorityClass"
    namespaced: ClassVar[bool] = False

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class RuntimeOverhead(Record, frozen=True, kw_only=True):
    pod_fixed: ResourceList = msgspec.field(default_factory=dict)


class RuntimeScheduling(Record, frozen=True, kw_only=True):
    """Tolerations are copied to pods unchanged."""

    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()


class RuntimeClass(Object, frozen=True, kw_only=True):
    """Only admission reads it, as with limit ranges."""

    api_group: ClassVar[str] = "node.k8s.io"
    kind: ClassVar[str] = "RuntimeClass"
    namespaced: ClassVar[bool] = False

    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


class LimitRangeItem(Record, frozen=True, kw_only=True):
    type: str = ""
    max: ResourceList = msgspec.field(default_factory=dict)
    min: ResourceList = msgspec.field(default_factory=dict)
    default: ResourceList = msgspec.field(default_factory=dict)
    default_request: ResourceList = msgspec.field(default_factory=dict)


class LimitRangeSpec(Record, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "LimitRange"

    spec: LimitRangeSpec = LimitRangeSpec()


class ResourceQuotaSpec(Record, frozen=True, kw_only=True):
    hard: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuotaStatus(Record, frozen=True, kw_only=True):
    hard: ResourceList = msgspec.field(default_factory=dict)
    used: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuota(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "ResourceQuota"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Record, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    # A number of pods, or a percentage such as "30%".
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class PodDisruptionBudgetStatus(Record, frozen=True, kw_only=True):
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, Time] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "policy"
    kind: ClassVar[str] = "PodDisruptionBudget"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class WorkloadSelector(Record, frozen=True, kw_only=True):
    """The spec of the older kinds, where the selector is a plain map of labels."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)
    replicas: Int32 | None = None  # of a controller


class WorkloadSpec(Record, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    replicas: Int32 | None = None


class Service(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Service"

    spec: WorkloadSelector = WorkloadSelector()


class ReplicationController(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "ReplicationController"

    spec: WorkloadSelector = WorkloadSelector()


class ReplicaSet(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "ReplicaSet"

    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "StatefulSet"

    spec: WorkloadSpec = WorkloadSpec()
