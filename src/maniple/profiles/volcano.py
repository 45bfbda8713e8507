"""The Volcano profile: how Volcano's objects are read, and the names in its configuration."""

import re
from collections.abc import Iterable, Mapping, Sequence

from maniple.cluster.facts import GpuAsk, JobFacts, QueueFacts, SubGroupRule, TaskFacts, TopologyWish
from maniple.cluster.resources import Amount
from maniple.cluster.statuses import Status
from maniple.framework.configuration.scalars import parse_bool
from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.meta import Object
from maniple.objects.quantity import parse
from maniple.objects.switches import OPEN, is_evicted_whole, wanted_state
from maniple.objects.volcano import NetworkTopology, SubGroupPolicy, VolcanoPodGroup, VolcanoQueue

GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
ADMISSION_GATE = "scheduling.volcano.sh/queue-allocation-gate"
OVERSUBSCRIPTION = {
    "cpu": ("volcano.sh/oversubscription-cpu", "m"),
    "memory": ("volcano.sh/oversubscription-memory", ""),
}
ALWAYS_IGNORED_PROVISIONERS = ("rancher.io/local-path", "hostpath.csi.k8s.io")

_DEFAULT_TASK_PRIORITY = 1
_DIGITS = re.compile(r"[0-9]{1,18}")
_INT32 = re.compile(r"[+-]?[0-9]{1,10}")
_NPU = "huawei.com/Ascend"
_PARTS_OF_NPUS = ("-memory", "-core")
_NATIVE = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


class VolcanoDialect:
    """Volcano's fields, annotations and defaults."""

    name = "volcano"
    default_priority = 0
    counts_devices = False
    order_labels = frozenset[str]()
    minds_config_maps = False
    placement_annotations: tuple[str, ...] = (
        ADMISSION_GATE,
        "volcano.sh/resource-strategy-scoring-type",
        "volcano.sh/resource-strategy-weight",
        "volcano.sh/numa-topology-policy",
        "volcano.sh/vgpu-mode",
        "volcano.sh/vgpu-podgroup-policy",
        "volcano.sh/vgpu-use-gpuuuid",
        "volcano.sh/vgpu-nouse-gpuuuid",
        "nvidia.com/use-gputype",
        "nvidia.com/nouse-gputype",
        "huawei.com/vnpu-mode",
    )

    def __init__(
        self,
        *,
        strict: bool = False,
        default_queue: str = "default",
        scheduler_names: Iterable[str] = ("volcano",),
        npus_shared: bool = False,
        node_selector: Iterable[str] = (),
    ) -> None:
        """`node_selector`: labels as key:value, of which a node must have one; none means all nodes."""
        self._node_labels = [tuple(label.split(":", 1)) for label in node_selector]
        self._strict = strict
        self._default_queue = default_queue
        self.scheduler_names = frozenset(scheduler_names)
        self._npus_shared = npus_shared

    def covers(self, item: Object) -> bool:
        """Whether this scheduler reads the object at all."""
        if not self._node_labels or not isinstance(item, Node):
            return True
        labels = item.metadata.labels
        return any(labels.get(key) == value for key, value in self._node_labels)

    # -- resources ------------------------------------------------------------------------------------------------

    def counts(self, resource: str) -> bool:
        """Volcano counts Kubernetes' scalar resources, besides the native ones."""
        if resource in _NATIVE:
            return True
        if resource.startswith(("count/", "requests.", "limits.")):
            return False
        # Memory and cores of a shared card are not node resources: `deviceshare` accounts for them.
        if self._npus_shared and resource.startswith(_NPU) and resource.endswith(_PARTS_OF_NPUS):
            return False
        return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))

    def allocatable(self, node: Node, devices: int = 0) -> Mapping[str, Amount]:
        return {**node.status.allocatable, **self.oversubscribed(node)}

    def oversubscribed(self, node: Node) -> dict[str, Amount]:
        """Resources that a node oversubscribes, by its annotations."""
        amounts: dict[str, Amount] = {}
        for resource, (annotation, suffix) in OVERSUBSCRIPTION.items():
            extra = node.metadata.annotations.get(annotation, "")
            if _DIGITS.fullmatch(extra):
                reported = node.status.allocatable.get(resource, 0)
                amounts[resource] = parse(reported) + parse(f"{extra}{suffix}")
        return amounts

    def requests(
        self, pod: Pod, amounts: Mapping[str, Amount], claims: Sequence[ResourceClaim]
    ) -> Mapping[str, Amount]:
        return amounts

    def negligible(self, resource: str) -> int:
        return 1

    def gpu(self, pod: Pod) -> GpuAsk | None:
        """`deviceshare` handles parts of devices."""
        return None

    def volume_requests(self, drivers: Mapping[str, int]) -> Mapping[str, int]:
        """The original counts volumes as a resource: a node without a driver's capacity has 0 of it."""
        if not self._strict:
            return {}
        return {f"attachable-volumes-csi-{driver}": count for driver, count in drivers.items()}

    # -- pods -----------------------------------------------------------------------------------------------------

    def task(self, pod: Pod, decided: Object | None = None) -> TaskFacts | None:
        meta, spec = pod.metadata, pod.spec
        status = task_status(pod)
        ours = spec.scheduler_name in self.scheduler_names
        if not ours and (not spec.node_name or status in (Status.SUCCEEDED, Status.FAILED)):
            return None
        annotations, labels = meta.annotations, meta.labels
        gates = [gate.name for gate in spec.scheduling_gates]
        return TaskFacts(
            status=status,
            job=self.group_of(pod),
            node=spec.node_name,
            role=annotations.get(ROLE) or labels.get(ROLE, ""),
            priority=_task_priority(pod),
            index=_index_in_name(meta.name),
            preemptable=_flag(annotations.get(PREEMPTABLE, labels.get(PREEMPTABLE)), default=True),
            gated=bool(gates) and status is Status.PENDING,
            admissible=gates == [ADMISSION_GATE] and annotations.get(ADMISSION_GATE) == "true",
            nominated=pod.promised_node,
        )

    def group_of(self, pod: Pod) -> str | None:
        group = pod.metadata.annotations.get(GROUP_NAME)
        return f"{pod.metadata.namespace or 'default'}/{group}" if group else None

    def decides(self, item: Object) -> str | None:
        """A pod is bound directly, without a request object."""
        return None

    # -- groups and queues ----------------------------------------------------------------------------------------

    def job(self, group: Object) -> JobFacts | None:
        if not isinstance(group, VolcanoPodGroup):
            return None
        spec, meta = group.spec, group.metadata
        preemptable = meta.annotations.get(PREEMPTABLE, meta.labels.get(PREEMPTABLE))
        return JobFacts(
            queue=spec.queue or self._default_queue,
            minimum=spec.min_member,
            phase=group.status.phase,
            priority_class=spec.priority_class_name,
            role_minimums=spec.min_task_member,
            min_resources=spec.min_resources,
            preemptable=_flag(preemptable, default=False),
            evicted_whole=is_evicted_whole(group),
            topology=_wish(spec.network_topology),
            sub_groups=tuple(_rule(policy) for policy in spec.sub_group_policy),
            # Volcano's admission takes the default queue for none, too.
            names_queue=spec.queue not in ("", self._default_queue),
        )

    def queue(self, queue: Object) -> QueueFacts | None:
        if not isinstance(queue, VolcanoQueue):
            return None
        state = wanted_state(queue) or queue.status.state
        return QueueFacts(
            parent=queue.spec.parent,
            weight=queue.spec.weight,
            priority=queue.spec.priority,
            # Volcano ignores a queue until its controller has written a state; here a queue is open unless
            # closed.
            open=state == OPEN or (not state and not self._strict),
        )


def task_status(pod: Pod) -> Status:
    """The state of a task, from its pod."""
    leaving = pod.metadata.deletion_timestamp is not None
    match pod.status.phase:
        case "Running":
            return Status.RELEASING if leaving else Status.RUNNING
        case "Pending" | "":
            if leaving:
                return Status.RELEASING
            return Status.BOUND if pod.spec.node_name else Status.PENDING
        case "Succeeded":
            return Status.SUCCEEDED
        case "Failed":
            return Status.FAILED
    return Status.UNKNOWN


def _wish(topology: NetworkTopology | None) -> TopologyWish | None:
    if topology is None:
        return None
    return TopologyWish(topology.mode, topology.highest_tier_allowed, topology.highest_tier_name)


def _rule(policy: SubGroupPolicy) -> SubGroupRule:
    return SubGroupRule(
        name=policy.name,
        size=policy.sub_group_size,
        least=policy.min_sub_groups,
        selector=policy.label_selector,
        keys=policy.match_label_keys,
        topology=_wish(policy.network_topology),
    )


def _task_priority(pod: Pod) -> int:
    written = pod.metadata.annotations.get(TASK_PRIORITY, "")
    if _INT32.fullmatch(written) and -(2**31) <= int(written) < 2**31:
        return int(written)
    return pod.spec.priority if pod.spec.priority is not None else _DEFAULT_TASK_PRIORITY


def _index_in_name(name: str) -> int:
    """The number of a pod `<job>-<role>-<number>`; -1 for any other name."""
    parts = name.rsplit("-", 2)
    return int(parts[2]) if len(parts) == 3 and _DIGITS.fullmatch(parts[2]) else -1


def _flag(text: str | None, *, default: bool) -> bool:
    """A boolean annotation; an invalid one counts as false."""
    return default if text is None else bool(parse_bool(text))
