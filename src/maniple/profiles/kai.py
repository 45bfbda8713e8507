"""The KAI dialect: how KAI's objects are read.

Queues, pod groups and nodes belong to one node pool by a label; those of another pool are ignored. A pod is a
task of the group that its annotation names. The node of a pod about to be bound comes from its BindRequest.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from maniple.cluster.claims import claimed_gpus
from maniple.cluster.facts import GpuAsk, GroupFacts, JobFacts, LevelWish, QueueFacts, TaskFacts
from maniple.cluster.resources import Amount
from maniple.cluster.statuses import Status
from maniple.framework.devices.gpu_facts import DEVICE_PLUGINS, GPU, MIG_PREFIX, OTHER_MAKERS
from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import (
    BindRequest,
    KaiPodGroup,
    KaiQueue,
    SchedulingCondition,
    SubGroup,
    TopologyConstraint,
)
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.quantity import parse
from maniple.objects.switches import is_closed, is_evicted_whole
from maniple.plugins.kai.labelled import ORDER_LABELS

GROUP_NAME = "pod-group-name"
SUB_GROUP = "kai.scheduler/subgroup-name"
SMALLEST = 0.01  # part of a device
FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
GPU_GROUP = "runai-gpu-group"
LAST_START = "kai.scheduler/last-start-timestamp"
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
DEFAULT_QUEUE_PRIORITY = 100
_FOREVER = -1  # a group's back-off: retried without limit

_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,9}")
_DECIMAL = re.compile(r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NATIVE = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_NEGLIGIBLE = {"memory": 10 * 2**20}
_FINISHED = {"Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED}


@dataclass(frozen=True, slots=True)
class NodePool:
    """Selects objects by label: those with this value, or, without a value, those without the label."""

    key: str = "kai.scheduler/node-pool"
    value: str = ""

    def holds(self, item: Object) -> bool:
        labels = item.metadata.labels
        return labels.get(self.key) == self.value if self.value else self.key not in labels


class KaiDialect:
    """KAI's fields, annotations, labels and defaults."""

    name = "kai"
    default_priority = 50
    counts_devices = True
    order_labels = ORDER_LABELS
    minds_config_maps = True
    placement_annotations: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        scheduler_names: Iterable[str] = ("kai-scheduler",),
        pool: NodePool | None = None,
        worker_labels: tuple[str, ...] = (),
        reservation_app: str = "kai-resource-reservation",
        strict: bool = False,
    ) -> None:
        """`worker_labels`: only nodes with one of these labels count; none means all."""
        self.scheduler_names = frozenset(scheduler_names)
        self._pool = pool or NodePool()
        self._worker_labels = worker_labels
        self._reservation_app = reservation_app
        self._strict = strict

    # -- which objects --------------------------------------------------------------------------------------------

    def covers(self, item: Object) -> bool:
        """Whether this scheduler reads the object at all."""
        if isinstance(item, Node):
            labels = item.metadata.labels
            worker = not self._worker_labels or any(key in labels for key in self._worker_labels)
            return worker and self._pool.holds(item)
        if isinstance(item, KaiPodGroup):
            return self._pool.holds(item) and not self._backs_off(item)
        return not isinstance(item, KaiQueue) or self._pool.holds(item)

    def _backs_off(self, group: KaiPodGroup) -> bool:
        """Whether the group allows one attempt, and its last condition says that it did not fit here."""
        conditions = group.status.scheduling_conditions
        if group.spec.scheduling_backoff in (None, _FOREVER) or not conditions:
            return False
        return max(conditions, key=_transition).node_pool == (self._pool.value or "default")

    def decides(self, item: Object) -> str | None:
        if not isinstance(item, BindRequest):
            return None
        return f"{item.metadata.namespace or 'default'}/{item.spec.pod_name or item.metadata.name}"

    # -- resources ------------------------------------------------------------------------------------------------

    def counts(self, resource: str) -> bool:
        if resource in _NATIVE:
            return True
        if self._strict and resource in OTHER_MAKERS:
            return False
        return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))

    def allocatable(self, node: Node, devices: int = 0) -> Mapping[str, Amount]:
        amounts = self._by_name(node.status.allocatable)
        if devices:
            amounts[GPU] = _exact(amounts.get(GPU, 0)) + devices
        return amounts

    def requests(
        self, pod: Pod, amounts: Mapping[str, Amount], claims: Sequence[ResourceClaim]
    ) -> Mapping[str, Amount]:
        counted, ask = self._by_name(amounts), self.gpu(pod)
        if ask is not None and ask.reserves:
            counted[GPU] = 0  # pods that hold the parts count, not the reservation pod
        elif ask is not None:
            # The annotations replace the containers' requests for GPUs.
            counted = {name: amount for name, amount in counted.items() if not _is_gpu(name)}
            counted |= {GPU: 0} | dict(ask.slices)
        devices = sum(map(claimed_gpus, claims))
        if devices:
            counted[GPU] = _exact(counted.get(GPU, 0)) + devices
        return counted

    def _by_name(self, amounts: Mapping[str, Amount]) -> dict[str, Amount]:
        """Amounts to compare nodes with; in the original, GPUs of all vendors count as one resource."""
        return _with_one_kind_of_gpu(amounts) if self._strict else dict(amounts)

    def negligible(self, resource: str) -> int:
        return _NEGLIGIBLE.get(resource, 10)

    def _may_reserve(self, pod: Pod) -> bool:
        """The binder gives reservation pods their node. One that is scheduled here is a user's with a forged label."""
        return self._strict or pod.spec.scheduler_name not in self.scheduler_names

    def gpu(self, pod: Pod) -> GpuAsk | None:
        annotations = pod.metadata.annotations
        if pod.metadata.labels.get("app") == self._reservation_app and self._may_reserve(pod):
            return GpuAsk(reserves=True)
        if not annotations:
            return None
        slices = _legacy_slices(pod)
        if slices:
            return GpuAsk(legacy_mig=True, slices=tuple(sorted(slices.items())))
        exact = _portion(annotations.get(FRACTION, ""))
        memory = 0 if exact else _count(annotations.get(MEMORY, ""))
        if not (exact or memory):
            # KAI ignores it, and the pod would run without the GPU that it should have.
            wrong = (
                "" if self._strict else next((key for key in (FRACTION, MEMORY) if annotations.get(key)), "")
            )
            return GpuAsk(unreadable=wrong) if wrong else None
        # Halves are rounded up; a part below a hundredth counts as a hundredth. KAI places it all the same.
        hundredths = max(math.floor(exact * 100 + 0.5), 1) if exact else 0
        devices = _count(annotations.get(DEVICES, "")) or 1
        if exact < SMALLEST and exact and not self._strict:
            return GpuAsk(hundredths, memory, devices, exact=SMALLEST, unreadable=FRACTION)
        return GpuAsk(hundredths, memory, devices, exact=exact)

    def volume_requests(self, drivers: Mapping[str, int]) -> Mapping[str, int]:
        """Volumes are not counted."""
        return {}

    # -- pods -----------------------------------------------------------------------------------------------------

    def task(self, pod: Pod, decided: Object | None = None) -> TaskFacts | None:
        meta, spec = pod.metadata, pod.spec
        request = decided if isinstance(decided, BindRequest) else None
        if request is not None and not (
            request.spec.selected_node and is_under_way(request) and is_for(request, pod)
        ):
            request = None
        status = task_status(pod, about_to_bind=request is not None)
        ours = spec.scheduler_name in self.scheduler_names
        if not ours and (not spec.node_name or status in (Status.SUCCEEDED, Status.FAILED)):
            return None
        chosen = request.spec if request is not None else None
        groups = chosen.selected_gpu_groups if chosen is not None else ()
        node = spec.node_name or (chosen.selected_node if chosen is not None else "")
        # A pod in phase Unknown may still be running; the original counts its resources as free.
        forgotten = self._strict and status is Status.UNKNOWN
        return TaskFacts(
            status=status,
            job=self.group_of(pod) if ours else None,
            node="" if forgotten else node,
            role=meta.labels.get(SUB_GROUP, ""),
            nominated=pod.promised_node,
            gated=status is Status.GATED,
            gpu_groups=groups or self._groups_on(meta),
        )

    def group_of(self, pod: Pod) -> str | None:
        group = pod.metadata.annotations.get(GROUP_NAME)
        return f"{pod.metadata.namespace or 'default'}/{group}" if group else None

    def _groups_on(self, meta: ObjectMeta) -> tuple[str, ...]:
        """The shared devices that the binder recorded; the original overlooks several of them.

        Users can write labels, too: no more devices count than the pod requests and its queue is charged for.
        """
        labels = meta.labels
        one = labels.get(GPU_GROUP)
        if not one and self._strict:
            return ()
        several = [labels[key] for key in sorted(labels) if key.startswith(f"{GPU_GROUP}/")]
        found = tuple(dict.fromkeys(name for name in (one, *several) if name))
        return found if self._strict else found[: _count(meta.annotations.get(DEVICES, "")) or 1]

    # -- groups and queues ----------------------------------------------------------------------------------------

    def job(self, group: Object) -> JobFacts | None:
        if not isinstance(group, KaiPodGroup):
            return None
        spec, annotations = group.spec, group.metadata.annotations
        # In KAI a sub-group needs one pod at least; a group that was made in memory may have sets without a minimum.
        least = 0 if ":" in group.metadata.name else 1
        names = {one.name for one in spec.sub_groups}
        groups = tuple(
            GroupFacts(
                name=one.name,
                minimum=max(one.min_member, least),
                parent=self._parent(one, names),
                wish=_wish(one.topology_constraint),
            )
            for one in spec.sub_groups
        )
        parents = {one.parent for one in groups}
        leaves = [one.minimum for one in groups if one.name not in parents]
        return JobFacts(
            queue=spec.queue,
            names_queue=bool(spec.queue),
            minimum=sum(leaves) if leaves else max(spec.min_member, 1),
            phase=group.status.phase,
            priority_class=spec.priority_class_name,
            groups=groups,
            closed=True,
            level_wish=_wish(spec.topology_constraint),
            preemptible=_PREEMPTIBILITY.get(spec.preemptibility),
            evicted_whole=is_evicted_whole(group),
            started=_moment(annotations.get(LAST_START, "")),
            stale_since=_moment(annotations.get(STALE_SINCE, "")),
        )

    def _parent(self, group: SubGroup, names: Collection[str]) -> str:
        """The parent's name in lower case; exact if such a group exists, which the original does not check."""
        parent = group.parent or ""
        return parent if parent in names and not self._strict else parent.lower()

    def queue(self, queue: Object) -> QueueFacts | None:
        if not isinstance(queue, KaiQueue):
            return None
        priority = queue.spec.priority
        return QueueFacts(
            parent=queue.spec.parent_queue,
            priority=DEFAULT_QUEUE_PRIORITY if priority is None else priority,
            states_priority=priority is not None,
            open=not is_closed(queue),
        )


_PREEMPTIBILITY = {"preemptible": True, "non-preemptible": False}


def task_status(pod: Pod, *, about_to_bind: bool) -> Status:
    """The state of a task, from its pod."""
    leaving = pod.metadata.deletion_timestamp is not None
    match pod.status.phase:
        case "Running":
            return Status.RELEASING if leaving else Status.RUNNING
        case "Pending" | "":
            if leaving:
                return Status.RELEASING
            if pod.spec.node_name:
                return Status.BOUND
            if about_to_bind:
                return Status.BINDING
            return Status.GATED if pod.spec.scheduling_gates else Status.PENDING
    return _FINISHED.get(pod.status.phase, Status.UNKNOWN)


def is_under_way(request: BindRequest) -> bool:
    """Whether a request is still being carried out; a failed one is not, once its retries are used up."""
    limit = request.spec.backoff_limit
    failed = request.status.phase == "Failed"
    return not failed or (limit is not None and request.status.failed_attempts < limit)


def is_for(request: BindRequest, pod: Pod) -> bool:
    """Whether it is for this pod, not left over from an earlier one of that name."""
    owners = [one.uid for one in request.metadata.owner_references if one.kind == Pod.kind and one.uid]
    return not owners or not pod.metadata.uid or pod.metadata.uid in owners


def _transition(condition: SchedulingCondition) -> int:
    number = condition.transition_id
    return int(number) if _WHOLE_NUMBER.fullmatch(number) else -1


def _wish(constraint: TopologyConstraint | None) -> LevelWish | None:
    if constraint is None or not constraint.topology:
        return None
    return LevelWish(
        constraint.topology, constraint.required_topology_level, constraint.preferred_topology_level
    )


def _with_one_kind_of_gpu(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """GPUs of all vendors under one name."""
    merged = dict(amounts)
    for name in OTHER_MAKERS:
        if name in merged:
            more = _exact(merged.pop(name))
            merged[GPU] = _exact(merged.get(GPU, 0)) + more
    return merged


def _is_gpu(resource: str) -> bool:
    return resource.startswith(MIG_PREFIX) or resource in DEVICE_PLUGINS


def _exact(amount: Amount) -> Fraction:
    return amount if isinstance(amount, Fraction) else Fraction(parse(amount))


def _legacy_slices(pod: Pod) -> dict[str, int]:
    """GPU slices given by annotations only, an older form than container requests."""
    annotations = pod.metadata.annotations
    return {
        key: _count(annotations[key])
        for key in annotations
        if key.startswith(MIG_PREFIX)
        and _count(annotations[key])
        and not any(key in container.resources.requests for container in pod.spec.containers)
    }


def _portion(text: str) -> float:
    """A part of a device; 0 for anything else."""
    portion = float(text) if _DECIMAL.fullmatch(text) else 0.0
    return portion if 0 < portion <= 1 else 0.0


def _count(text: str) -> int:
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else 0


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
