"""What the running scheduler has to know of Volcano's objects: which kinds to watch, and how statuses are written.

Called by `status.py` and `scheduler.py` through `PROFILES`. Pure: time comes in as an argument.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.objects import core, dra
from maniple.objects.core import Pod
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.quantity import format_quantity, parse
from maniple.objects.requests import pod_requests
from maniple.objects.volcano import (
    HyperNode,
    Numatopology,
    VolcanoPodGroup,
    VolcanoPodGroupCondition,
    VolcanoPodGroupSpec,
    VolcanoPodGroupStatus,
    VolcanoQueue,
)
from maniple.profiles.volcano import GROUP_NAME

QUEUE_OF_POD = "scheduling.volcano.sh/queue-name"
ROOT_QUEUE = "root"
# A name that no object can have, so that it is nobody's.
_GROUP_OF_ONE = "pod:{name}"
# Each says the opposite of the other, so that only one of them can be true.
_OPPOSITE = {"Unschedulable": "Scheduled", "Scheduled": "Unschedulable"}

KINDS: tuple[type[Object], ...] = (
    core.Node,
    core.Pod,
    VolcanoQueue,
    VolcanoPodGroup,
    HyperNode,
    core.PriorityClass,
    core.Namespace,
    core.ResourceQuota,
    core.PersistentVolumeClaim,
    core.PersistentVolume,
    core.StorageClass,
    core.CSINode,
    core.CSIDriver,
    core.CSIStorageCapacity,
    core.Service,
    core.ReplicationController,
    core.ReplicaSet,
    core.StatefulSet,
    dra.ResourceClaim,
    dra.ResourceSlice,
    dra.DeviceClass,
)
# What only some plugins read is watched only for them.
KINDS_OF_PLUGINS: Mapping[str, tuple[type[Object], ...]] = {
    "deviceshare": (core.ConfigMap,),
    "numa-aware": (Numatopology,),
    "pdb": (core.PodDisruptionBudget,),
}


class Volcano:
    """Volcano's side of the running scheduler."""

    group_kind: type[Object] = VolcanoPodGroup
    queue_kind: type[Object] = VolcanoQueue

    def __init__(
        self,
        scheduler_names: Iterable[str] = ("volcano",),
        default_queue: str = "default",
        plugins: Collection[str] = (),
    ) -> None:
        extra = (kind for name in sorted(plugins) for kind in KINDS_OF_PLUGINS.get(name, ()))
        self.kinds = (*KINDS, *extra)
        self._scheduler_names = frozenset(scheduler_names)
        self._default_queue = default_queue

    # -- at the start -------------------------------------------------------------------------------------------------

    def lacking(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """The queues that must be there and are not."""
        names = {item.metadata.name for item in present if isinstance(item, VolcanoQueue)}
        wanted = {ROOT_QUEUE: False, self._default_queue: True}
        return [
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"weight": 1, "reclaimable": reclaimable},
            }
            for name, reclaimable in wanted.items()
            if name not in names
        ]

    # -- pods without a group -----------------------------------------------------------------------------------------

    def group(self, pod: Pod) -> tuple[Pod, Object | None]:
        """A pod of ours that names no group becomes a job of one, in memory only."""
        meta, spec = pod.metadata, pod.spec
        if spec.scheduler_name not in self._scheduler_names or meta.annotations.get(GROUP_NAME):
            return pod, None
        name = _GROUP_OF_ONE.format(name=meta.name)
        made = VolcanoPodGroup(
            metadata=ObjectMeta(
                name=name,
                namespace=meta.namespace,
                uid=meta.uid,
                creation_timestamp=meta.creation_timestamp,
            ),
            spec=VolcanoPodGroupSpec(
                min_member=1,
                queue=meta.annotations.get(QUEUE_OF_POD, ""),
                priority_class_name=spec.priority_class_name,
                min_resources={key: format_quantity(value) for key, value in pod_requests(pod).items()},
            ),
        )
        named = replace(meta, annotations={**meta.annotations, GROUP_NAME: name})
        return replace(pod, metadata=named), made

    # -- statuses -----------------------------------------------------------------------------------------------------

    def group_status(
        self,
        group: Object,
        phase: str,
        counts: tuple[int, int, int],
        told: Sequence[Mapping[str, str]],
        now: datetime,
        cause: str,
    ) -> Object:
        """The group as it should read. `counts` are running, succeeded, failed; `cause` names the cycle."""
        if not isinstance(group, VolcanoPodGroup):
            raise TypeError(f"not a pod group of Volcano's: {type(group).__name__}")
        running, succeeded, failed = counts
        status = VolcanoPodGroupStatus(
            phase=phase,
            conditions=_conditions(group.status.conditions, told, now, cause),
            running=running,
            succeeded=succeeded,
            failed=failed,
        )
        return group if status == group.status else replace(group, status=status)

    def words(self, group: Object) -> str:
        """What the conditions of a group say."""
        assert isinstance(group, VolcanoPodGroup)
        return "\n".join(condition.message for condition in group.status.conditions)

    def differ_in_words_only(self, before: Object, after: Object) -> bool:
        """Whether two states of a group differ in nothing but the messages of conditions."""
        assert isinstance(before, VolcanoPodGroup)
        assert isinstance(after, VolcanoPodGroup)
        return _without_words(before.status) == _without_words(after.status)

    def group_patch(self, group: Object) -> dict[str, Any]:
        """Every field is said, also those that are zero: a merge patch leaves alone what it does not name."""
        assert isinstance(group, VolcanoPodGroup)
        status = group.status
        return {
            "metadata": {"uid": group.metadata.uid},
            "status": {
                "phase": status.phase,
                "running": status.running,
                "succeeded": status.succeeded,
                "failed": status.failed,
                "conditions": [msgspec.to_builtins(condition) for condition in status.conditions],
            },
        }

    def queue_allocated(self, queue: Object, allocated: Mapping[str, str]) -> Object:
        """The queue as it should read; equal amounts in other words are no difference."""
        assert isinstance(queue, VolcanoQueue)
        known = queue.status.allocated
        if known.keys() == allocated.keys() and all(
            parse(known[k]) == parse(v) for k, v in allocated.items()
        ):
            return queue
        return replace(queue, status=replace(queue.status, allocated=dict(allocated)))

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]:
        assert isinstance(before, VolcanoQueue)
        assert isinstance(after, VolcanoQueue)
        dropped = dict.fromkeys(before.status.allocated.keys() - after.status.allocated.keys())
        return {
            "metadata": {"uid": after.metadata.uid},
            "status": {"allocated": {**after.status.allocated, **dropped}},
        }

    def parent(self, queue: Object) -> str:
        """The queue above; empty for the root."""
        assert isinstance(queue, VolcanoQueue)
        return "" if queue.metadata.name == ROOT_QUEUE else queue.spec.parent or ROOT_QUEUE


def _conditions(
    known: Sequence[VolcanoPodGroupCondition],
    told: Sequence[Mapping[str, str]],
    now: datetime,
    cause: str,
) -> tuple[VolcanoPodGroupCondition, ...]:
    """One condition of each type. What is told anew takes the place of the old, and makes its opposite untrue."""
    by_type = {condition.type: condition for condition in known}
    for each in told:
        _set(by_type, each["type"], each["status"], each["reason"], each["message"], now, cause)
        opposite = by_type.get(_OPPOSITE.get(each["type"], ""))
        if each["status"] == "True" and opposite is not None and opposite.status == "True":
            _set(by_type, opposite.type, "False", opposite.reason, "", now, cause)
    return tuple(by_type.values())


def _set(
    by_type: dict[str, VolcanoPodGroupCondition],
    name: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    cause: str,
) -> None:
    old = by_type.get(name)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return
    same = old is not None and old.status == status and old.last_transition_time is not None
    by_type[name] = VolcanoPodGroupCondition(
        type=name,
        status=status,
        reason=reason,
        message=message,
        transition_id=cause,
        last_transition_time=old.last_transition_time if old is not None and same else now,
    )


def _without_words(status: VolcanoPodGroupStatus) -> VolcanoPodGroupStatus:
    bare = tuple(replace(c, message="", transition_id="") for c in status.conditions)
    return replace(status, conditions=bare)
