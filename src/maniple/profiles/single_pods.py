"""Pods without a group: the group of one that a controller of their system would create.

Volcano's podgroup controller and KAI's podgrouper do this in a cluster. `Planner.build` does it for a plan and
the running scheduler for its cache, in memory only, so that a pod is treated the same by both; on a cluster
with KAI's podgrouper that is left to the podgrouper.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup, KaiPodGroupSpec
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.quantity import format_quantity
from maniple.objects.requests import pod_requests
from maniple.objects.volcano import VolcanoPodGroup, VolcanoPodGroupSpec
from maniple.profiles import kai, volcano
from maniple.profiles.maniple import SCHEDULER_NAME, of_kai
from maniple.profiles.options import strings

# A pod as it is to be read, and the group to create for it if it has none.
Grouping = Callable[[Pod], tuple[Pod, Object | None]]

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
KAI_QUEUE = "kai.scheduler/queue"
_PROJECT = "project"  # KAI's older label for the queue
_KAI_DEFAULT_QUEUE = "default-queue"
_KAI_PRIORITY = "priorityClassName"
_KAI_DEFAULT_PRIORITY = "train"
_KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
# A name that no object can have, so that nothing refers to it.
_MADE = "pod:"
_GROUP_OF_ONE = f"{_MADE}{{name}}"


def of_volcano(options: Mapping[str, Any]) -> Grouping:
    return volcano_grouping(strings(options, "schedulerName") or ("volcano",))


def of_kai_podgrouper(options: Mapping[str, Any]) -> Grouping:
    default = kai.NodePool()
    pool = options.get("nodePoolLabelKey", default.key), options.get("nodePoolLabelValue", default.value)
    queue_label = str(options.get("queueLabelKey") or KAI_QUEUE)
    names = frozenset(strings(options, "schedulerName") or ("kai-scheduler",))

    def group(pod: Pod) -> tuple[Pod, Object | None]:
        if pod.spec.scheduler_name not in names or pod.metadata.annotations.get(kai.GROUP_NAME):
            return pod, None
        return _kai_group(pod, kai.NodePool(*pool), queue_label)

    return group


def of_maniple(options: Mapping[str, Any]) -> Grouping:
    """As Volcano's, unless the pod is in a group of KAI's."""
    of_others = volcano_grouping(strings(options, "schedulerName") or (SCHEDULER_NAME,))
    return lambda pod: (pod, None) if of_kai(pod) else of_others(pod)


def volcano_grouping(scheduler_names: Collection[str]) -> Grouping:
    names = frozenset(scheduler_names)

    def group(pod: Pod) -> tuple[Pod, Object | None]:
        if pod.spec.scheduler_name not in names or pod.metadata.annotations.get(volcano.GROUP_NAME):
            return pod, None
        return _volcano_group(pod)

    return group


def is_made(group: Object) -> bool:
    """Whether a group was created here, for a single pod."""
    return group.metadata.name.startswith(_MADE)


def ungrouped(pod: Pod) -> Pod:
    """The pod without the group that was created for it here."""
    kept = {
        key: value
        for key, value in pod.metadata.annotations.items()
        if key not in (volcano.GROUP_NAME, kai.GROUP_NAME) or not value.startswith(_MADE)
    }
    if len(kept) == len(pod.metadata.annotations):
        return pod
    return replace(pod, metadata=replace(pod.metadata, annotations=kept))


def _volcano_group(pod: Pod) -> tuple[Pod, Object]:
    metadata = _metadata(pod)
    made = VolcanoPodGroup(
        metadata=metadata,
        spec=VolcanoPodGroupSpec(
            min_member=1,
            queue=pod.metadata.annotations.get(VOLCANO_QUEUE, ""),
            priority_class_name=pod.spec.priority_class_name,
            min_resources={key: format_quantity(value) for key, value in pod_requests(pod).items()},
        ),
    )
    return _in_group(pod, volcano.GROUP_NAME, metadata.name), made


def _kai_group(pod: Pod, pool: kai.NodePool, queue_label: str) -> tuple[Pod, Object]:
    metadata, labels = _metadata(pod), pod.metadata.labels
    if pool.key in labels:
        metadata = replace(metadata, labels={pool.key: labels[pool.key]})
    project = "-".join(filter(None, (labels.get(_PROJECT), labels.get(pool.key))))
    made = KaiPodGroup(
        metadata=metadata,
        spec=KaiPodGroupSpec(
            min_member=1,
            queue=labels.get(queue_label) or (project if labels.get(_PROJECT) else _KAI_DEFAULT_QUEUE),
            priority_class_name=labels.get(_KAI_PRIORITY)
            or pod.spec.priority_class_name
            or _KAI_DEFAULT_PRIORITY,
            preemptibility=labels.get(_KAI_PREEMPTIBILITY, ""),
        ),
    )
    return _in_group(pod, kai.GROUP_NAME, metadata.name), made


def _metadata(pod: Pod) -> ObjectMeta:
    meta = pod.metadata
    return ObjectMeta(
        name=_GROUP_OF_ONE.format(name=meta.name),
        namespace=meta.namespace,
        uid=meta.uid,
        creation_timestamp=meta.creation_timestamp,
    )


def _in_group(pod: Pod, annotation: str, name: str) -> Pod:
    meta = pod.metadata
    return replace(pod, metadata=replace(meta, annotations={**meta.annotations, annotation: name}))
