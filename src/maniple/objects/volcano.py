"""Volcano's custom resources: queues, pod groups, network topology, NUMA topology, node shards.

Fields that Volcano declares but no scheduler reads are left out. Annotations are read through `metadata`.
"""

from typing import Annotated, ClassVar

import msgspec

from maniple.objects.meta import (
    Condition,
    Count,
    Int32,
    LabelSelector,
    Object,
    Record,
    ResourceList,
    Time,
)

# The API allows 1..65535; an unset weight is 0 until Volcano's webhook has defaulted it.
Weight = Annotated[int, msgspec.Meta(ge=0, le=65535)]


class Guarantee(Record, frozen=True, kw_only=True):
    resource: ResourceList = msgspec.field(default_factory=dict)


class NodeGroupTerms(Record, frozen=True, kw_only=True):
    """Names of node groups."""

    required_during_scheduling_ignored_during_execution: tuple[str, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[str, ...] = ()


class QueueAffinity(Record, frozen=True, kw_only=True):
    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class VolcanoQueueSpec(Record, frozen=True, kw_only=True):
    weight: Weight = 1
    capability: ResourceList = msgspec.field(default_factory=dict)
    # None reads as true.
    reclaimable: bool | None = None
    guarantee: Guarantee = Guarantee()
    affinity: QueueAffinity | None = None
    parent: str = ""
    deserved: ResourceList = msgspec.field(default_factory=dict)
    priority: Count = 0


class VolcanoQueueStatus(Record, frozen=True, kw_only=True):
    """The counts are of pod groups by their phase."""

    state: str = ""
    allocated: ResourceList = msgspec.field(default_factory=dict)
    pending: Int32 = 0
    inqueue: Int32 = 0
    running: Int32 = 0
    unknown: Int32 = 0
    completed: Int32 = 0


class VolcanoQueue(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.volcano.sh"
    kind: ClassVar[str] = "Queue"
    namespaced: ClassVar[bool] = False

    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


class NetworkTopology(Record, frozen=True, kw_only=True):
    mode: str = "hard"
    highest_tier_allowed: Count | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Record, frozen=True, kw_only=True):
    name: str
    network_topology: NetworkTopology | None = None
    sub_group_size: Count = 1
    min_sub_groups: Count = 0
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class VolcanoPodGroupSpec(Record, frozen=True, kw_only=True):
    min_member: Count = 0
    min_task_member: dict[str, Count] = msgspec.field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""
    # None and {} differ: without minResources a group is admitted without a check.
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class VolcanoPodGroupCondition(Condition, frozen=True, kw_only=True):
    transition_id: str = msgspec.field(name="transitionID", default="")


class VolcanoPodGroupStatus(Record, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[VolcanoPodGroupCondition, ...] = ()
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class VolcanoPodGroup(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "scheduling.volcano.sh"
    kind: ClassVar[str] = "PodGroup"

    spec: VolcanoPodGroupSpec = VolcanoPodGroupSpec()
    status: VolcanoPodGroupStatus = VolcanoPodGroupStatus()


class ExactMatch(Record, frozen=True, kw_only=True):
    name: str


class RegexMatch(Record, frozen=True, kw_only=True):
    pattern: str


class MemberSelector(Record, frozen=True, kw_only=True):
    """Exactly one of the three is set; `load` rejects anything else."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(Record, frozen=True, kw_only=True):
    type: str
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Record, frozen=True, kw_only=True):
    tier: Count = 0
    tier_name: str = ""
    members: tuple[HyperNodeMember, ...] = ()


class HyperNode(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "topology.volcano.sh"
    kind: ClassVar[str] = "HyperNode"
    namespaced: ClassVar[bool] = False

    spec: HyperNodeSpec = HyperNodeSpec()


class NumaResource(Record, frozen=True, kw_only=True):
    """`allocatable` is a cpuset such as "0-3,8"."""

    allocatable: str = ""
    capacity: Count = 0


class CpuPlace(Record, frozen=True, kw_only=True):
    numa: Count = 0
    socket: Count = 0
    core: Count = 0


class ContainerAllocation(Record, frozen=True, kw_only=True):
    name: str = ""
    allocations: dict[str, str] = msgspec.field(default_factory=dict)


class PodAllocation(Record, frozen=True, kw_only=True):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    container_allocations: tuple[ContainerAllocation, ...] = ()


class NumatopologySpec(Record, frozen=True, kw_only=True):
    policies: dict[str, str] = msgspec.field(default_factory=dict)
    res_reserved: ResourceList = msgspec.field(default_factory=dict)
    numares: dict[str, NumaResource] = msgspec.field(default_factory=dict)
    cpu_detail: dict[str, CpuPlace] = msgspec.field(default_factory=dict)
    pod_allocations: tuple[PodAllocation, ...] = ()


class Numatopology(Object, frozen=True, kw_only=True):
    """Named after its node."""

    api_group: ClassVar[str] = "nodeinfo.volcano.sh"
    kind: ClassVar[str] = "Numatopology"
    namespaced: ClassVar[bool] = False

    spec: NumatopologySpec = NumatopologySpec()


class NodeShardSpec(Record, frozen=True, kw_only=True):
    nodes_desired: tuple[str, ...] = ()


class NodeShardStatus(Record, frozen=True, kw_only=True):
    last_update_time: Time | None = None
    nodes_in_use: tuple[str, ...] = ()
    nodes_to_remove: tuple[str, ...] = ()
    nodes_to_add: tuple[str, ...] = ()


class NodeShard(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "shard.volcano.sh"
    kind: ClassVar[str] = "NodeShard"
    namespaced: ClassVar[bool] = False

    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()
