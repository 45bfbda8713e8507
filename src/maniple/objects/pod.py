"""The pod: its spec and its status; import these names from `core`."""

from typing import Any, ClassVar

import msgspec

from maniple.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from maniple.objects.meta import Condition, Int32, Object, Record, ResourceList, Time
from maniple.objects.storage import ObjectReference, Volume


class ContainerClaim(Record, frozen=True, kw_only=True):
    """A container's use of one of the pod's resource claims; an empty request means all of the claim."""

    name: str
    request: str = ""


class ResourceRequirements(Record, frozen=True, kw_only=True):
    requests: ResourceList = msgspec.field(default_factory=dict)
    limits: ResourceList = msgspec.field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Record, frozen=True, kw_only=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class VariableSource(Record, frozen=True, kw_only=True):
    config_map_key_ref: ObjectReference | None = None


class Variable(Record, frozen=True, kw_only=True):
    """Of an environment variable only the source of its value is read."""

    value_from: VariableSource | None = None


class VariablesSource(Record, frozen=True, kw_only=True):
    config_map_ref: ObjectReference | None = None


class VolumeMount(Record, frozen=True, kw_only=True):
    name: str = ""


class Container(Record, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    # "Always" on an init container makes it a sidecar.
    restart_policy: str | None = None
    # What it needs to start; not part of what makes pods equal to the scheduler (see `config_maps.py`).
    env: tuple[Variable, ...] = ()
    env_from: tuple[VariablesSource, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class SchedulingGate(Record, frozen=True, kw_only=True):
    name: str


class PodResourceClaim(Record, frozen=True, kw_only=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Record, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    overhead: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    restart_policy: str = "Always"
    # The group of Kubernetes' own API that the pod names; read by `workloads/`, and for the claims of the group.
    scheduling_group: dict[str, Any] | None = None
    workload_ref: dict[str, Any] | None = None


class ContainerStatus(Record, frozen=True, kw_only=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)


class PodResourceClaimStatus(Record, frozen=True, kw_only=True):
    """The claim created from a template; None if none was needed."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(Record, frozen=True, kw_only=True):
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: Time | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resize: str = ""


# The condition of a pod that is evicted to be placed elsewhere, with the node as its message: the API server rejects a
# nomination on a bound pod. It is part of the status, which a user who may create pods cannot write. An annotation
# could be forged, and would keep room free for as long as the pod takes to terminate.
MOVES_TO = "maniple.dev/moves-to"
CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})


class Pod(Object, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Pod"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_critical(self) -> bool:
        """It keeps the cluster itself running."""
        return self.spec.priority_class_name in CRITICAL_CLASSES or self.metadata.namespace == "kube-system"

    @property
    def promised_node(self) -> str:
        """The node being cleared for the pod or, while the pod is evicted in order to move, for its
        replacement."""
        if self.metadata.deletion_timestamp is not None:
            return next((one.message for one in self.status.conditions if one.type == MOVES_TO), "")
        return self.status.nominated_node_name
