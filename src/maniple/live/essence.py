"""The fields of an object that scheduling reads, so that other changes neither wake a cycle nor touch a
column.

`slim` drops what is never read: versions, conditions except three of a pod's, times and messages of a node's, data of
config maps, containers in the pod templates of owners, and what `kubectl apply` notes, which repeats the object with
its environment variables. So heartbeats of nodes are no change at all, and a dump or a journal has no secrets. Dialects
drop what their system does not read (`trimmed`). `essence` further drops the messages that this scheduler itself
writes: its own writes must not wake it.
"""

from typing import TypeVar

from msgspec.structs import replace

from maniple.objects.core import ConfigMap, Node, Pod
from maniple.objects.kai import (
    BindRequest,
    BindRequestStatus,
    KaiPodGroup,
    KaiPodGroupStatus,
    KaiQueue,
    KaiQueueStatus,
)
from maniple.objects.meta import Condition, Object, ObjectMeta
from maniple.objects.owners import WorkloadOwner, slim_fields
from maniple.objects.pod import MOVES_TO
from maniple.objects.volcano import (
    VolcanoPodGroup,
    VolcanoPodGroupStatus,
    VolcanoQueue,
    VolcanoQueueStatus,
)
from maniple.plugins.devices.device_config import KEY as CONFIG_KEY

Any = TypeVar("Any", bound=Object)

POD_SCHEDULED = "PodScheduled"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_READ = (POD_SCHEDULED, "PodResizePending", MOVES_TO)


def slim(item: Any) -> Any:
    """Drop fields that no decision depends on."""
    metadata = replace(item.metadata, resource_version="", generation=0, finalizers=())
    if LAST_APPLIED in metadata.annotations:
        kept = {key: text for key, text in metadata.annotations.items() if key != LAST_APPLIED}
        metadata = replace(metadata, annotations=kept)
    if isinstance(item, ConfigMap):
        data = {key: text for key, text in item.data.items() if key == CONFIG_KEY}
        return replace(item, metadata=metadata, data=data)
    if isinstance(item, Node):
        trimmed = tuple(Condition(type=c.type, status=c.status) for c in item.status.conditions)
        return replace(item, metadata=metadata, status=replace(item.status, conditions=trimmed))
    if isinstance(item, Pod):
        conditions = tuple(c for c in item.status.conditions if c.type in _READ)
        return replace(item, metadata=metadata, status=replace(item.status, conditions=conditions))
    if isinstance(item, WorkloadOwner):
        return replace(item, metadata=metadata, **slim_fields(item))
    return replace(item, metadata=metadata)


def essence(item: Any) -> Any:
    """What a decision may depend on."""
    if isinstance(item, Pod):
        conditions = tuple(c for c in item.status.conditions if c.type != POD_SCHEDULED)
        return replace(item, status=replace(item.status, conditions=conditions))
    if isinstance(item, VolcanoPodGroup):
        return replace(item, status=VolcanoPodGroupStatus(phase=item.status.phase))
    if isinstance(item, VolcanoQueue):
        return replace(item, status=VolcanoQueueStatus(state=item.status.state))
    return _essence_of_kai(item)


def starts(before: Object | None, after: Object | None) -> bool:
    """Whether nothing has changed but that a pod runs on the node that it had.

    Its containers may say what they were given: whoever asks compares what the pod requests.
    """
    if not isinstance(before, Pod) or not isinstance(after, Pod):
        return False
    old, new = before.status, after.status
    return (
        (old.phase, new.phase) == ("Pending", "Running")
        and bool(before.spec.node_name)
        and old.resource_claim_statuses == new.resource_claim_statuses
        and before.metadata == after.metadata
        and before.spec == after.spec
    )


def _essence_of_kai(item: Any) -> Any:
    if isinstance(item, KaiPodGroup):
        # Only groups with a limit on attempts depend on their conditions.
        limited = item.spec.scheduling_backoff not in (None, -1)
        conditions = item.status.scheduling_conditions if limited else ()
        return replace(item, status=KaiPodGroupStatus(scheduling_conditions=conditions))
    if isinstance(item, KaiQueue):
        return replace(item, status=KaiQueueStatus())
    if isinstance(item, BindRequest):
        # Pending or succeeded, the pod has its node; the origin of the request makes no difference.
        failed = item.status.phase == "Failed"
        trimmed = ObjectMeta(name=item.metadata.name, namespace=item.metadata.namespace)
        return replace(item, metadata=trimmed, status=item.status if failed else BindRequestStatus())
    return item


def scheduled_condition(pod: Pod) -> Condition | None:
    """The condition that says whether and why a pod is pending."""
    for condition in pod.status.conditions:
        if condition.type == POD_SCHEDULED:
            return condition
    return None
