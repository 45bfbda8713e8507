"""Volcano's side of the running scheduler: kinds to watch, and how statuses are written.

Made by `dialects.py`. Pure: time comes in as an argument.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.cluster.statuses import Status
from maniple.framework.plans.outcome import Eviction, GroupOutcome, WaitingPod
from maniple.framework.plans.plan import Plan
from maniple.framework.plans.standing import QUEUE_MISSING
from maniple.framework.reasons import joined
from maniple.live.dialect import (
    EvictionNotice,
    Find,
    GroupEvent,
    Patch,
    PodReporting,
    QueueReport,
    Report,
    Worded,
)
from maniple.live.messages import message
from maniple.live.queue_amounts import amounts, patched
from maniple.objects import core, dra
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest
from maniple.objects.meta import Object
from maniple.objects.switches import CLOSED, CLOSING, OPEN, is_closed
from maniple.objects.volcano import (
    HyperNode,
    VolcanoPodGroup,
    VolcanoPodGroupCondition,
    VolcanoPodGroupStatus,
    VolcanoQueue,
)

ROOT_QUEUE = "root"
UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "Scheduled"
RUNNING = "Running"
_COUNTED = [status.word for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_COUNTED_PHASES = {one: one.lower() for one in ("Pending", "Inqueue", "Running", "Unknown", "Completed")}
# Each contradicts the other, so that only one of them can be true.
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


class Volcano:
    """Volcano's side of the running scheduler."""

    queue_kinds: tuple[type[Object], ...] = (VolcanoQueue,)
    writes_queue_status = True

    def __init__(
        self,
        default_queue: str = "default",
        more_kinds: Iterable[type[Object]] = (),
        *,
        keeps_queues: bool = False,
    ) -> None:
        """`keeps_queues`: write all of the status of queues, since Volcano's controller does not."""
        self._keeps_queues = keeps_queues
        self.kinds = (*KINDS, *more_kinds)
        self._default_queue = default_queue

    # -- at the start ------------------------------------------------------------------------------------------------

    def missing_objects(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """The required queues that do not exist."""
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

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, pod: Pod) -> Pod:
        return pod

    def trimmed(self, item: Object) -> Object:
        """Volcano reads a node's taints, not its conditions."""
        if isinstance(item, core.Node):
            return replace(item, status=replace(item.status, conditions=()))
        return item

    def warning(self, item: Object, *, gone: bool) -> str:
        return ""

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        return False

    # -- statuses ----------------------------------------------------------------------------------------------------

    def reports(
        self,
        plan: Plan,
        groups: Mapping[str, GroupOutcome],
        find: Find,
        when: datetime,
        cause: str,
        worded: Worded,
        conditions_of: Callable[[GroupOutcome], list[dict[str, str]]] | None = None,
    ) -> Iterator[Report]:
        """`conditions_of`: the conditions of a job, if no plugin states them."""
        for job, one in groups.items():
            if one.of_others or one.api_group != VolcanoPodGroup.api_group:
                continue
            before = find(VolcanoPodGroup, one.key)
            if before is None:
                continue  # it is gone by now
            assert isinstance(before, VolcanoPodGroup)
            phase, stated = one.phase, one.conditions if conditions_of is None else conditions_of(one)
            if not one.served:  # Volcano says nothing of such a job
                phase, stated = before.status.phase, self._of_its_queue(one)
            waits = _unschedulable(stated) or joined(one.refusals)
            if waits and one.served and not one.held_back:
                stated, waits = _reworded(stated, worded(job, before, waits))
            running, succeeded, failed = [one.counts.get(status, 0) for status in _COUNTED]
            after = self.group_status(before, phase, (running, succeeded, failed), stated, when, cause)
            missing = GroupEvent("Warning", QUEUE_MISSING, "" if one.served else waits)
            events = (*_notes(before, waits, stated=bool(stated)), missing) if one.served else (missing,)
            yield Report(before, after, waits, events, one.queue if one.served else "", one.counts)

    def _of_its_queue(self, one: GroupOutcome) -> list[dict[str, str]]:
        """That a job waits because of its queue; what runs of it is left alone. The default queue is being created."""
        waits = one.count(Status.PENDING.word, Status.GATED.word)
        if not one.queue_problem or not waits or one.queue == self._default_queue:
            return []
        return [
            {"type": UNSCHEDULABLE, "status": "True", "reason": QUEUE_MISSING, "message": one.queue_problem}
        ]

    def unconfirmed(self, before: Object, after: Object) -> Object:
        """The phase Running and the condition Scheduled wait; counts are of pods that run or ended."""
        assert isinstance(before, VolcanoPodGroup)
        assert isinstance(after, VolcanoPodGroup)
        status = after.status
        if status.phase == RUNNING != before.status.phase:
            status = replace(status, phase=before.status.phase)
        if _scheduled(after) and not _scheduled(before):
            status = replace(status, conditions=before.status.conditions)
        if status == after.status:
            return after
        return before if status == before.status else replace(after, status=status)

    def why(self, plan: Plan, pod: WaitingPod, find: Find) -> str:
        group = plan.group(pod.job)
        return _unschedulable(group.conditions if group is not None else ()) or pod.reason

    def pod_reporting(self, group: Object | None) -> PodReporting:
        return PodReporting()

    def adopted(self, seen: Object, after: Object) -> Object:
        assert isinstance(seen, VolcanoPodGroup)
        assert isinstance(after, VolcanoPodGroup)
        return seen if seen.status == after.status else replace(seen, status=after.status)

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        return (Patch(self.group_patch(after)),)

    def depends_on_time(self, plan: Plan) -> bool:
        return plan.time_matters

    def group_status(
        self,
        group: Object,
        phase: str,
        counts: tuple[int, int, int],
        stated: Sequence[Mapping[str, str]],
        now: datetime,
        cause: str,
    ) -> Object:
        """The group as it should read; `counts` are running, succeeded, failed; `cause` names the cycle."""
        if not isinstance(group, VolcanoPodGroup):
            raise TypeError(f"not a pod group of Volcano's: {type(group).__name__}")
        running, succeeded, failed = counts
        status = VolcanoPodGroupStatus(
            phase=phase,
            conditions=_conditions(group.status.conditions, stated, now, cause),
            running=running,
            succeeded=succeeded,
            failed=failed,
        )
        return group if status == group.status else replace(group, status=status)

    def messages(self, group: Object) -> str:
        """The messages of a group's conditions."""
        assert isinstance(group, VolcanoPodGroup)
        return "\n".join(condition.message for condition in group.status.conditions)

    def differ_in_messages_only(self, before: Object, after: Object) -> bool:
        """Whether two states of a group differ only in the messages of conditions."""
        assert isinstance(before, VolcanoPodGroup)
        assert isinstance(after, VolcanoPodGroup)
        return _without_messages(before.status) == _without_messages(after.status)

    def is_awaited(self, before: Object, after: Object) -> bool:
        """The job controller creates a job's pods once the group is admitted."""
        assert isinstance(before, VolcanoPodGroup)
        assert isinstance(after, VolcanoPodGroup)
        return after.status.phase == "Inqueue" != before.status.phase

    def group_patch(self, group: Object) -> dict[str, Any]:
        """Every field is included, even zeros: a merge patch leaves fields alone that it does not name."""
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

    def queue_status(self, queue: Object, report: QueueReport) -> Object:
        """The scheduler writes what is allocated; Volcano's controller the rest, if it runs."""
        assert isinstance(queue, VolcanoQueue)
        status = replace(queue.status, allocated=amounts(queue.status.allocated, report.allocated))
        if self._keeps_queues:
            counts = {field: report.phases.get(phase, 0) for phase, field in _COUNTED_PHASES.items()}
            status = replace(status, state=_state(queue, report.jobs), **counts)
        return queue if status == queue.status else replace(queue, status=status)

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]:
        assert isinstance(before, VolcanoQueue)
        assert isinstance(after, VolcanoQueue)
        old, new = before.status, after.status
        status: dict[str, Any] = {"allocated": patched(old.allocated, new.allocated)}
        if self._keeps_queues:
            counts = {field: getattr(new, field) for field in _COUNTED_PHASES.values()}
            status |= {"state": new.state, **counts}
        return {"metadata": {"uid": after.metadata.uid}, "status": status}

    def parent(self, name: str, parent: str) -> str:
        """The queue above; empty for the root."""
        return "" if name == ROOT_QUEUE else parent or ROOT_QUEUE

    # -- decisions ---------------------------------------------------------------------------------------------------

    def unsupported_reason(self, pod: Pod) -> str:
        return ""

    def direct(self, pod: Pod) -> bool:
        return True

    def bind_request(self, plan: Plan, pod: Pod, node: str, find: Find) -> dict[str, Any] | None:
        return None

    def labels(self, pod: Pod) -> Mapping[str, str]:
        return {}

    def assigned(self, pod: Pod, node: str) -> str:
        return f"Successfully assigned {pod.key} to {node}"

    def eviction_notice(self, plan: Plan, eviction: Eviction, pod: Pod, find: Find) -> EvictionNotice:
        """Volcano's own words first; the rule, which Volcano does not name, behind them."""
        if eviction.text.startswith(f"Pod {eviction.pod} "):  # a whole sentence already
            return EvictionNotice(pod, "Warning", eviction.text, condition=eviction.text)
        text = eviction.text if eviction.why in ("", eviction.text) else f"{eviction.text}: {eviction.why}"
        return EvictionNotice(pod, "Warning", f"Pod is evicted, because of {text}", condition=text)

    def ours(self, request: BindRequest) -> bool:
        return False


def _state(queue: VolcanoQueue, jobs: int) -> str:
    """As Volcano's controller has it: a queue that is to be closed is closing until the last job has ended."""
    if not is_closed(queue):
        return OPEN
    return CLOSING if jobs else CLOSED


def _unschedulable(stated: Iterable[Mapping[str, str]]) -> str:
    """The message of the condition by which a group is unschedulable."""
    return next((one["message"] for one in stated if one["type"] == UNSCHEDULABLE), "")


def _reworded(stated: Sequence[Mapping[str, str]], waits: str) -> tuple[list[dict[str, str]], str]:
    """The conditions with this message in that by which a group is unschedulable."""
    return [{**one, "message": waits} if one["type"] == UNSCHEDULABLE else {**one} for one in stated], waits


def _notes(group: VolcanoPodGroup, waits: str, *, stated: bool) -> tuple[GroupEvent, ...]:
    if waits:
        return (GroupEvent("Warning", UNSCHEDULABLE, waits),)
    if not stated:
        return ()
    over = GroupEvent("Warning", UNSCHEDULABLE, "")
    return (over,) if _scheduled(group) else (over, GroupEvent("Normal", SCHEDULED, "pod group is ready"))


def _scheduled(group: VolcanoPodGroup) -> bool:
    return any(one.type == SCHEDULED and one.status == "True" for one in group.status.conditions)


def _conditions(
    known: Sequence[VolcanoPodGroupCondition],
    stated: Sequence[Mapping[str, str]],
    now: datetime,
    cause: str,
) -> tuple[VolcanoPodGroupCondition, ...]:
    """One condition of each type; a new one replaces the old, and makes its opposite false."""
    by_type = {condition.type: condition for condition in known}
    for each in stated:
        _set(by_type, each["type"], each["status"], each["reason"], message(each["message"]), now, cause)
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


def _without_messages(status: VolcanoPodGroupStatus) -> VolcanoPodGroupStatus:
    trimmed = tuple(replace(c, message="", transition_id="") for c in status.conditions)
    return replace(status, conditions=trimmed)
