"""KAI's side of the running scheduler: kinds to watch, statuses, binding and eviction.

Made by `dialects.py`. Pods are bound by request, which KAI's binder carries out, or directly
(`bind="direct"`) on clusters without a binder: then pods that share devices are not placed, since no binder
would assign the devices, and their condition says so. Queue statuses and the amounts in PodGroups belong to
KAI's controllers. Pure: time comes in with the plan.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.cluster.statuses import Status
from maniple.framework.plans.outcome import Eviction, GroupOutcome, WaitingPod
from maniple.framework.plans.plan import Plan
from maniple.live import kai_groups, kai_queues
from maniple.live.dialect import (
    EvictionNotice,
    Find,
    GroupEvent,
    Patch,
    PodReporting,
    QueueReport,
    Report,
    Worded,
    group_of,
)
from maniple.live.kai_bindings import bind_request
from maniple.live.kai_evictions import eviction_annotations
from maniple.objects import core, dra
from maniple.objects.core import Pod, SchedulingGate
from maniple.objects.kai import (
    BindRequest,
    KaiPodGroup,
    KaiQueue,
    SchedulingShard,
    SchedulingShardSpec,
    Topology,
)
from maniple.objects.meta import Object
from maniple.profiles.kai import DEVICES, FRACTION, GROUP_NAME, LAST_START, MEMORY, STALE_SINCE, NodePool

KINDS: tuple[type[Object], ...] = (
    core.Node,
    core.Pod,
    KaiQueue,
    KaiPodGroup,
    BindRequest,
    Topology,
    core.PriorityClass,
    core.Namespace,
    core.PersistentVolumeClaim,
    core.PersistentVolume,
    core.StorageClass,
    core.CSINode,
    core.CSIDriver,
    core.CSIStorageCapacity,
    dra.ResourceClaim,
    dra.ResourceSlice,
    dra.DeviceClass,
)

# By request; directly; or directly unless a pod shares devices, and those by request where that is installed.
REQUEST, DIRECT, EITHER = "request", "direct", "either"
# A pod that could not be bound here is excluded from decisions by a gate that exists only in the cache.
BEYOND_GATE = SchedulingGate(name="maniple.dev/not-carried-out")
_WRITTEN = (LAST_START, STALE_SINCE)
_PENDING, _PIPELINED = Status.PENDING.word, Status.PIPELINED.word
_NO_BINDER = (
    "the custom resource BindRequest is not installed on this cluster, so the pod would not be bound;"
    " install KAI's, or bind directly (--bind direct)"
)
_SHARES = (
    "it shares devices, which only KAI's binder assigns:"
    " run with --bind request where KAI's binder is installed"
)


class Kai:
    """KAI's side of the running scheduler."""

    queue_kinds: tuple[type[Object], ...] = (KaiQueue,)

    def __init__(
        self,
        scheduler_names: Iterable[str] = ("kai-scheduler",),
        pool: NodePool | None = None,
        more_kinds: Iterable[type[Object]] = (),
        *,
        bind: str = REQUEST,
        marks_evicted: bool = False,
        nominates: bool = True,
        shard: str = "",
        keeps_queues: bool = False,
    ) -> None:
        """`keeps_queues`: write the status of queues, since KAI's controller does not.

        `marks_evicted`: pods get a condition before they are evicted.

        `shard`: the scheduling shard of this scheduler. `nominates`: write the node that was cleared for a
        pod into its status, which KAI itself never does. `more_kinds`: what the plugins read besides `KINDS`.
        """
        self.kinds = (*KINDS, *more_kinds, *((SchedulingShard,) if shard else ()))
        self._shard = shard
        self._shard_spec: SchedulingShardSpec | None = None  # as it was at the start
        self._scheduler_names = frozenset(scheduler_names)
        self._pool = pool or NodePool()
        self._pool_name = self._pool.value or "default"
        self._bind = bind
        self._marks_evicted = marks_evicted
        self._nominates = nominates
        self._has_requests = True
        self.writes_queue_status = keeps_queues

    # -- reading -----------------------------------------------------------------------------------------------------

    def missing_objects(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """None: users create the queues."""
        return []

    def trimmed(self, item: Object) -> Object:
        """Of config maps only their existence is read."""
        return replace(item, data={}) if isinstance(item, core.ConfigMap) else item

    def warning(self, item: Object, *, gone: bool) -> str:
        """The shard is read at the start; later changes take effect at the next start."""
        if not isinstance(item, SchedulingShard) or item.metadata.name != self._shard:
            return ""
        begun, self._shard_spec = self._shard_spec, self._shard_spec or item.spec
        if begun is None or (begun == item.spec and not gone):
            return ""
        word = "is gone" if gone else "has changed"
        return f"SchedulingShard {self._shard}: {word} since the start; restart to apply it"

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        if kind is not BindRequest or there == self._has_requests:
            return False
        self._has_requests = there
        return True

    def read(self, pod: Pod) -> Pod:
        """A pod that could not be bound here waits behind a gate."""
        if pod.spec.node_name or not self.unsupported_reason(pod):
            return pod
        gates = (*pod.spec.scheduling_gates, BEYOND_GATE)
        return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))

    def unsupported_reason(self, pod: Pod) -> str:
        if pod.spec.scheduler_name not in self._scheduler_names or not pod.metadata.annotations.get(
            GROUP_NAME
        ):
            return ""
        if self._asks:
            return ""
        if self._bind == REQUEST:
            return _NO_BINDER
        return _SHARES if shares_devices(pod) else ""

    @property
    def _asks(self) -> bool:
        """Whether pods can be bound by request."""
        return self._bind != DIRECT and self._has_requests

    # -- statuses ----------------------------------------------------------------------------------------------------

    def reports(
        self,
        plan: Plan,
        groups: Mapping[str, GroupOutcome],
        find: Find,
        when: datetime,
        cause: str,
        worded: Worded,
    ) -> Iterator[Report]:
        for job, one in groups.items():
            ours = one.api_group == KaiPodGroup.api_group and not one.of_others
            group = find(KaiPodGroup, one.key) if ours else None
            if isinstance(group, KaiPodGroup):
                after = kai_groups.with_moments(group, plan, job)
                yield self._report(one, group, after, find, when, partial(worded, job, group))

    def _report(
        self,
        one: GroupOutcome,
        group: KaiPodGroup,
        after: KaiPodGroup,
        find: Find,
        when: datetime,
        worded: Callable[[str], str],
    ) -> Report:
        """`after`: the group with the times that the cycle changed."""
        not_ready = self._not_ready_reason(one, find)
        if not_ready:
            event = GroupEvent("Normal", kai_groups.NOT_READY, not_ready)
            return Report(group, after, not_ready, (event, kai_groups.stale_event(one)), counts=one.counts)
        if not one.count(_PENDING):
            waits = kai_groups.BEING_RELEASED if one.count(_PIPELINED) else ""
            if group.status.scheduling_conditions and not waits and kai_groups.active(one):
                after = kai_groups.without_condition(after, self._pool_name)
            return Report(group, after, waits, self._all_is_well(one), counts=one.counts)
        reason, why = kai_groups.why_waiting(one)
        prefix = kai_groups.prefix(group, self._pool_name)
        reasons = kai_groups.explanations(one, reason, prefix + why)
        why = prefix + (why if one.held_back else worded(why))
        if not kai_groups.active(one):
            after = kai_groups.with_condition(after, self._pool_name, why, reasons, when)
        elif one.satisfied:
            after = kai_groups.without_condition(after, self._pool_name)
        events = (
            GroupEvent("Normal", kai_groups.UNSCHEDULABLE, why),
            GroupEvent("Normal", kai_groups.NOT_READY, ""),
            kai_groups.stale_event(one),
        )
        return Report(group, after, why, events, counts=one.counts)

    def _not_ready_reason(self, one: GroupOutcome, find: Find) -> str:
        """Why a gang cannot even be tried; empty if it can."""
        if not one.not_ready:
            return ""
        pods = (find(Pod, key) for key in one.gated)
        unsupported_reason = (self.unsupported_reason(pod) for pod in pods if isinstance(pod, Pod))
        return ": ".join(filter(None, (one.not_ready, next(filter(None, unsupported_reason), ""))))

    def _all_is_well(self, one: GroupOutcome) -> tuple[GroupEvent, ...]:
        return (
            GroupEvent("Normal", kai_groups.UNSCHEDULABLE, ""),
            GroupEvent("Normal", kai_groups.NOT_READY, ""),
            kai_groups.stale_event(one),
        )

    def unconfirmed(self, before: Object, after: Object) -> Object:
        """The condition that says why it is pending stays; the times that decisions depend on are written."""
        assert isinstance(before, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        conditions = before.status.scheduling_conditions
        if len(after.status.scheduling_conditions) >= len(conditions):
            return after
        if _moments(before) == _moments(after):
            return before
        return replace(after, status=replace(after.status, scheduling_conditions=conditions))

    def why(self, plan: Plan, pod: WaitingPod, find: Find) -> str:
        group = plan.group(pod.job)
        if group is None or not group.served:
            return pod.reason
        return self._not_ready_reason(group, find) or kai_groups.why_waiting(group)[1]

    def pod_reporting(self, group: Object | None) -> PodReporting:
        if not isinstance(group, KaiPodGroup):
            return PodReporting(event=True, nominates=self._nominates)
        return PodReporting(
            condition=group.spec.mark_unschedulable is not False,
            event=True,
            nominates=self._nominates,
            prefix=kai_groups.prefix(group, self._pool_name),
        )

    def adopted(self, seen: Object, after: Object) -> Object:
        """What other controllers write, such as the amounts in its status, stays as it was seen."""
        assert isinstance(seen, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        new = seen
        conditions = after.status.scheduling_conditions
        if seen.status.scheduling_conditions != conditions:
            new = replace(new, status=replace(new.status, scheduling_conditions=conditions))
        kept = {name: text for name, text in seen.metadata.annotations.items() if name not in _WRITTEN}
        kept |= _moments(after)
        if kept != seen.metadata.annotations:
            new = replace(new, metadata=replace(new.metadata, annotations=kept))
        return new

    def messages(self, group: Object) -> str:
        assert isinstance(group, KaiPodGroup)
        return "\n".join(one.message for one in group.status.scheduling_conditions)

    def differ_in_messages_only(self, before: Object, after: Object) -> bool:
        assert isinstance(before, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        return _moments(before) == _moments(after) and _kinds(before) == _kinds(after)

    def is_awaited(self, before: Object, after: Object) -> bool:
        return False  # pods are created whatever their group says

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        assert isinstance(before, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        patches, uid = [], after.metadata.uid
        conditions = after.status.scheduling_conditions
        if before.status.scheduling_conditions != conditions:
            status = {"schedulingConditions": [msgspec.to_builtins(one) for one in conditions]}
            patches.append(Patch({"metadata": {"uid": uid}, "status": status}, subresource=True))
        if _moments(before) != _moments(after):
            moments = {name: after.metadata.annotations.get(name) for name in _WRITTEN}
            patches.append(Patch({"metadata": {"uid": uid, "annotations": moments}}, subresource=False))
        return patches

    def queue_status(self, queue: Object, report: QueueReport) -> Object:
        assert isinstance(queue, KaiQueue)
        return kai_queues.with_status(queue, report) if self.writes_queue_status else queue

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]:
        assert isinstance(before, KaiQueue)
        assert isinstance(after, KaiQueue)
        return kai_queues.patch(before, after)

    def parent(self, name: str, parent: str) -> str:
        return parent

    def depends_on_time(self, plan: Plan) -> bool:
        return plan.time_matters

    # -- decisions ---------------------------------------------------------------------------------------------------

    def direct(self, pod: Pod) -> bool:
        return not self._asks or (self._bind == EITHER and not shares_devices(pod))

    def bind_request(self, plan: Plan, pod: Pod, node: str, find: Find) -> dict[str, Any] | None:
        return None if self.direct(pod) else bind_request(plan, pod, node, self._pool, find)

    def labels(self, pod: Pod) -> Mapping[str, str]:
        """A pod that was scheduled in a node pool carries its label."""
        pool = self._pool
        wanted = {pool.key: pool.value} if pool.key and pool.value else {}
        return {} if wanted.items() <= pod.metadata.labels.items() else wanted

    def assigned(self, pod: Pod, node: str) -> str:
        return f"Successfully assigned pod {pod.key} to node {node} at node-pool {self._pool_name}"

    def eviction_notice(self, plan: Plan, eviction: Eviction, pod: Pod, find: Find) -> EvictionNotice:
        text = eviction.text + kai_queues.queue_lines(plan, eviction, find)
        if eviction.why not in text:  # KAI's words first, the rule behind them
            text = f"{text}\n{eviction.sentence}."
        regarding = group_of(plan, eviction.job, find) or pod
        condition = text if self._marks_evicted else ""
        return EvictionNotice(regarding, "Normal", text, condition, eviction_annotations(eviction))

    def ours(self, request: BindRequest) -> bool:
        return self._pool.holds(request)


def shares_devices(pod: Pod) -> bool:
    """Whether a pod requests parts of devices."""
    return any(name in pod.metadata.annotations for name in (FRACTION, MEMORY, DEVICES))


def _moments(group: KaiPodGroup) -> dict[str, str]:
    annotations = group.metadata.annotations
    return {name: annotations[name] for name in _WRITTEN if name in annotations}


def _kinds(group: KaiPodGroup) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Its conditions without messages and times."""
    return [
        (one.type, one.node_pool, one.status, tuple(why.reason for why in one.reasons))
        for one in group.status.scheduling_conditions
    ]
