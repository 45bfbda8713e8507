"""KAI's custom resources: queues, pod groups, bind requests, topologies, shards, the operator's
configuration.

Fields that KAI declares but no scheduler reads are left out. Annotations and labels are read through
`metadata`.
"""

from typing import Any, ClassVar

import msgspec

from maniple.objects.dra import AllocationResult
from maniple.objects.meta import Condition, Count, Int32, Object, Record, ResourceList


class QueueResource(Record, frozen=True, kw_only=True):
    """GPUs in devices, CPU in millicores, memory in 10^6 bytes; -1 means unlimited, an unset limit means 0."""

    quota: float = 0.0
    over_quota_weight: float = 0.0
    limit: float = 0.0


class QueueResources(Record, frozen=True, kw_only=True):
    gpu: QueueResource = QueueResource()
    cpu: QueueResource = QueueResource()
    memory: QueueResource = QueueResource()


class KaiQueueSpec(Record, frozen=True, kw_only=True):
    display_name: str = ""
    parent_queue: str = ""
    priority: Int32 | None = None
    # Go durations such as "10m".
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: QueueResources | None = None


class KaiQueueStatus(Record, frozen=True, kw_only=True):
    child_queues: tuple[str, ...] = ()
    allocated: ResourceList = msgspec.field(default_factory=dict)
    allocated_non_preemptible: ResourceList = msgspec.field(default_factory=dict)
    requested: ResourceList = msgspec.field(default_factory=dict)


class KaiQueue(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.run.ai"
    kind: ClassVar[str] = "Queue"
    namespaced: ClassVar[bool] = False

    spec: KaiQueueSpec = KaiQueueSpec()
    status: KaiQueueStatus = KaiQueueStatus()


class TopologyConstraint(Record, frozen=True, kw_only=True):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(Record, frozen=True, kw_only=True):
    """A group that others name as parent is inner; the rest are leaves that contain pods."""

    name: str
    min_member: Count = 0
    parent: str | None = None
    topology_constraint: TopologyConstraint | None = None


class KaiPodGroupSpec(Record, frozen=True, kw_only=True):
    min_member: Count = 0
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    mark_unschedulable: bool | None = None
    scheduling_backoff: Int32 | None = None
    topology_constraint: TopologyConstraint = TopologyConstraint()
    sub_groups: tuple[SubGroup, ...] = ()


class Explanation(Record, frozen=True, kw_only=True):
    """Why a group is pending, for programs; which details are set depends on the reason."""

    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


class SchedulingCondition(Condition, frozen=True, kw_only=True):
    node_pool: str = ""
    reasons: tuple[Explanation, ...] = ()
    transition_id: str = msgspec.field(name="transitionID", default="")


class ResourcesStatus(Record, frozen=True, kw_only=True):
    allocated: ResourceList = msgspec.field(default_factory=dict)
    allocated_non_preemptible: ResourceList = msgspec.field(default_factory=dict)
    requested: ResourceList = msgspec.field(default_factory=dict)


class KaiPodGroupStatus(Record, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    resources_status: ResourcesStatus = ResourcesStatus()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class KaiPodGroup(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.run.ai"
    kind: ClassVar[str] = "PodGroup"

    spec: KaiPodGroupSpec = KaiPodGroupSpec()
    status: KaiPodGroupStatus = KaiPodGroupStatus()


class ReceivedGpu(Record, frozen=True, kw_only=True):
    count: Int32 = 0
    portion: str = ""


class ClaimAllocation(Record, frozen=True, kw_only=True):
    """`name` is the claim's name inside the pod."""

    name: str
    allocation: AllocationResult | None = None


class BindRequestSpec(Record, frozen=True, kw_only=True):
    pod_name: str = ""
    selected_node: str = ""
    received_resource_type: str = ""
    received_gpu: ReceivedGpu | None = msgspec.field(name="receivedGPU", default=None)
    selected_gpu_groups: tuple[str, ...] = msgspec.field(name="selectedGPUGroups", default=())
    resource_claim_allocations: tuple[ClaimAllocation, ...] = ()
    backoff_limit: Int32 | None = None


class BindRequestStatus(Record, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    failed_attempts: Int32 = 0


class BindRequest(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.run.ai"
    kind: ClassVar[str] = "BindRequest"

    spec: BindRequestSpec = BindRequestSpec()
    status: BindRequestStatus = BindRequestStatus()


class TopologyLevel(Record, frozen=True, kw_only=True):
    node_label: str


class TopologySpec(Record, frozen=True, kw_only=True):
    """Levels from the widest to the narrowest."""

    levels: tuple[TopologyLevel, ...] = ()


class Topology(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "kai.scheduler"
    kind: ClassVar[str] = "Topology"
    namespaced: ClassVar[bool] = False

    spec: TopologySpec = TopologySpec()


class PlacementStrategy(Record, frozen=True, kw_only=True):
    gpu: str | None = None
    cpu: str | None = None


class MinRuntime(Record, frozen=True, kw_only=True):
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class ActionOverride(Record, frozen=True, kw_only=True):
    """None keeps the default."""

    enabled: bool | None = None
    priority: Int32 | None = None


class PluginOverride(ActionOverride, frozen=True, kw_only=True):
    arguments: dict[str, str] | None = None


class SchedulingShardSpec(Record, frozen=True, kw_only=True):
    args: dict[str, str] = msgspec.field(default_factory=dict)
    placement_strategy: PlacementStrategy = PlacementStrategy()
    partition_label_value: str = ""
    queue_depth_per_action: dict[str, Int32] = msgspec.field(default_factory=dict)
    min_runtime: MinRuntime = MinRuntime()
    k_value: float | None = None
    usage_db_config: dict[str, Any] | None = msgspec.field(name="usageDBConfig", default=None)
    plugins: dict[str, PluginOverride] = msgspec.field(default_factory=dict)
    actions: dict[str, ActionOverride] = msgspec.field(default_factory=dict)


class SchedulingShard(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "kai.scheduler"
    kind: ClassVar[str] = "SchedulingShard"
    namespaced: ClassVar[bool] = False

    spec: SchedulingShardSpec = SchedulingShardSpec()


class GlobalSettings(Record, frozen=True, kw_only=True):
    """None keeps KAI's default."""

    scheduler_name: str | None = None
    node_pool_label_key: str | None = None
    queue_label_key: str | None = None


class ReservationSettings(Record, frozen=True, kw_only=True):
    app_label: str | None = None


class BinderSettings(Record, frozen=True, kw_only=True):
    resource_reservation: ReservationSettings = ReservationSettings()


class PrometheusSettings(Record, frozen=True, kw_only=True):
    enabled: bool = False
    external_prometheus_url: str | None = None


class KaiConfigSpec(Record, frozen=True, kw_only=True):
    """The parts that decide how the operator starts a scheduler."""

    namespace: str = "kai-scheduler"
    global_: GlobalSettings = msgspec.field(name="global", default=GlobalSettings())
    binder: BinderSettings = BinderSettings()
    prometheus: PrometheusSettings = PrometheusSettings()


class KaiConfig(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "kai.scheduler"
    kind: ClassVar[str] = "Config"
    namespaced: ClassVar[bool] = False

    spec: KaiConfigSpec = KaiConfigSpec()
