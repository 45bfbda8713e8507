"""What the running scheduler has to know of KAI's objects: which kinds to watch, how it is said why a gang waits, and how pods are bound and evicted.

Made by `dialects.py`. Pods are bound by request, which KAI's binder carries out, or directly (`bind="direct"`) on clusters that have no binder: then pods that share devices
are not placed at all, since nobody would hand them over, and say so. Queues and the amounts in PodGroups are the business of KAI's controllers. Pure: time comes in with the plan.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from maniple.cluster.facts import QueueFacts
from maniple.cluster.statuses import Status
from maniple.framework.outcome import Plan
from maniple.framework.reasons import POD
from maniple.live import kai_groups
from maniple.live.dialect import Farewell, Patch, PodWords, Report, Word
from maniple.live.kai_bindings import bind_request
from maniple.live.kai_evictions import eviction_annotations
from maniple.live.kai_queues import queue_lines
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

# By request, directly, or directly what shares no devices and the rest by request as far as that is installed.
REQUEST, DIRECT, EITHER = "request", "direct", "either"
# A pod that could not be carried out is kept out of decisions by a gate that exists only in the cache.
BEYOND_GATE = SchedulingGate(name="maniple.dev/not-carried-out")
_WRITTEN = (LAST_START, STALE_SINCE)
_NO_BINDER = (
    "the custom resource BindRequest is not installed on this cluster, so that nobody would bind the pod;"
    " install KAI's, or bind directly (--bind direct)"
)
_SHARES = (
    "it shares devices, which are handed over by KAI's binder only:"
    " run with --bind request where KAI's binder is installed"
)


class Kai:
    """KAI's side of the running scheduler."""

    queue_kinds: tuple[type[Object], ...] = (KaiQueue,)
    tells_queues = False

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
    ) -> None:
        """`marks_evicted`: pods get a condition before they are evicted. `shard`: whose scheduler this is.

        `nominates`: the node that was cleared for a pod is written into its status, which KAI itself never does.
        `more_kinds`: what the plugins read besides `KINDS`.
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

    # -- reading ------------------------------------------------------------------------------------------------------

    def lacking(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """Queues are the users' to make."""
        return []

    def bare(self, item: Object) -> Object:
        """Of config maps it is enough that they are there."""
        return replace(item, data={}) if isinstance(item, core.ConfigMap) else item

    def remark(self, item: Object, *, gone: bool) -> str:
        """The shard was read before anything began; what becomes of it later is for the next start."""
        if not isinstance(item, SchedulingShard) or item.metadata.name != self._shard:
            return ""
        begun, self._shard_spec = self._shard_spec, self._shard_spec or item.spec
        if begun is None or (begun == item.spec and not gone):
            return ""
        word = "is gone" if gone else "has changed"
        return (
            f"SchedulingShard {self._shard}: {word} since the start; start again to schedule by what is there"
        )

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        if kind is not BindRequest or there == self._has_requests:
            return False
        self._has_requests = there
        return True

    def group(self, pod: Pod) -> tuple[Pod, Object | None]:
        """A pod that names no group waits for KAI's podgrouper. One that could not be carried out waits behind a gate."""
        if pod.spec.node_name or not self.beyond(pod):
            return pod, None
        gates = (*pod.spec.scheduling_gates, BEYOND_GATE)
        return replace(pod, spec=replace(pod.spec, scheduling_gates=gates)), None

    def beyond(self, pod: Pod) -> str:
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
        """Whether somebody else can be asked to bind."""
        return self._bind != DIRECT and self._has_requests

    # -- statuses -----------------------------------------------------------------------------------------------------

    def reports(self, plan: Plan, when: datetime, cause: str) -> Iterator[Report]:
        for job, group in plan.session.cluster.jobs.objects.items():
            if isinstance(group, KaiPodGroup):
                yield self._report(plan, job, group, when)

    def _report(self, plan: Plan, job: int, group: KaiPodGroup, when: datetime) -> Report:
        counts, after = plan.session.jobs.counts[:, job], kai_groups.with_moments(group, plan, job)
        lacks = self._lacks(plan, job) if counts[Status.PENDING] or counts[Status.GATED] else ""
        if lacks:
            told = Word("Normal", kai_groups.NOT_READY, lacks)
            return Report(group, after, lacks, (told, kai_groups.stale_word(plan, job)))
        if not counts[Status.PENDING]:
            waits = kai_groups.BEING_RELEASED if counts[Status.PIPELINED] else ""
            if group.status.scheduling_conditions and not waits and kai_groups.active(plan, job):
                after = kai_groups.without_condition(after, self._pool_name)
            return Report(group, after, waits, self._all_is_well(plan, job))
        reason, why = kai_groups.why_waiting(plan, job)
        why = kai_groups.prefix(group, self._pool_name) + why
        if not kai_groups.active(plan, job):
            reasons = kai_groups.explanations(plan, job, reason, why)
            after = kai_groups.with_condition(after, self._pool_name, why, reasons, when)
        elif plan.session.pod_sets.satisfied(job):
            after = kai_groups.without_condition(after, self._pool_name)
        words = (
            Word("Normal", kai_groups.UNSCHEDULABLE, why),
            Word("Normal", kai_groups.NOT_READY, ""),
            kai_groups.stale_word(plan, job),
        )
        return Report(group, after, why, words)

    def _lacks(self, plan: Plan, job: int) -> str:
        """Why a gang cannot even be tried; empty when it can."""
        lacks, session = kai_groups.not_ready(plan, job), plan.session
        if not lacks or not session.jobs.counts[Status.GATED, job]:
            return lacks
        beyond = (self.beyond(session.cluster.tasks.pods[row]) for row in session.tasks_of(job).tolist())
        return ": ".join(filter(None, (lacks, next(filter(None, beyond), ""))))

    def _all_is_well(self, plan: Plan, job: int) -> tuple[Word, ...]:
        return (
            Word("Normal", kai_groups.UNSCHEDULABLE, ""),
            Word("Normal", kai_groups.NOT_READY, ""),
            kai_groups.stale_word(plan, job),
        )

    def why(self, plan: Plan, row: int, job: int) -> str:
        if job in plan.served:
            return self._lacks(plan, job) or kai_groups.why_waiting(plan, job)[1]
        return plan.why(row, job)

    def pod_words(self, group: Object | None) -> PodWords:
        if not isinstance(group, KaiPodGroup):
            return PodWords(event=True, nominates=self._nominates)
        return PodWords(
            condition=group.spec.mark_unschedulable is not False,
            event=True,
            nominates=self._nominates,
            prefix=kai_groups.prefix(group, self._pool_name),
        )

    def adopted(self, seen: Object, after: Object) -> Object:
        """What others write, such as the amounts in its status, stays as it was seen."""
        assert isinstance(seen, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        new = seen
        told = after.status.scheduling_conditions
        if seen.status.scheduling_conditions != told:
            new = replace(new, status=replace(new.status, scheduling_conditions=told))
        kept = {name: text for name, text in seen.metadata.annotations.items() if name not in _WRITTEN}
        kept |= _moments(after)
        if kept != seen.metadata.annotations:
            new = replace(new, metadata=replace(new.metadata, annotations=kept))
        return new

    def words(self, group: Object) -> str:
        assert isinstance(group, KaiPodGroup)
        return "\n".join(one.message for one in group.status.scheduling_conditions)

    def differ_in_words_only(self, before: Object, after: Object) -> bool:
        assert isinstance(before, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        return _moments(before) == _moments(after) and _kinds(before) == _kinds(after)

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        assert isinstance(before, KaiPodGroup)
        assert isinstance(after, KaiPodGroup)
        patches, uid = [], after.metadata.uid
        told = after.status.scheduling_conditions
        if before.status.scheduling_conditions != told:
            status = {"schedulingConditions": [msgspec.to_builtins(one) for one in told]}
            patches.append(Patch({"metadata": {"uid": uid}, "status": status}, subresource=True))
        if _moments(before) != _moments(after):
            moments = {name: after.metadata.annotations.get(name) for name in _WRITTEN}
            patches.append(Patch({"metadata": {"uid": uid, "annotations": moments}}, subresource=False))
        return patches

    def queue_allocated(self, queue: Object, allocated: Mapping[str, str]) -> Object:
        return queue

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]:
        return {}

    def parent(self, name: str, facts: QueueFacts) -> str:
        return facts.parent

    def minds_time(self, plan: Plan) -> bool:
        """A broken gang has only so much time; and who has only just started is no victim yet."""
        session = plan.session
        broken = any(facts.stale_since is not None for facts in session.cluster.jobs.facts.values())
        return broken or bool(session.stale_since) or self._waits_for_runtime(plan)

    def _waits_for_runtime(self, plan: Plan) -> bool:
        session = plan.session
        protects = any(getattr(plugin, "protects", False) for _, plugin in session.plugins)
        return protects and bool(session.jobs.counts[Status.PENDING, session.jobs.rows].any())

    # -- decisions ----------------------------------------------------------------------------------------------------

    def direct(self, pod: Pod) -> bool:
        return not self._asks or (self._bind == EITHER and not shares_devices(pod))

    def bind_request(self, plan: Plan, pod: str, node: str) -> dict[str, Any] | None:
        row = plan.session.cluster.tasks.index_of(pod)
        assert row is not None  # it is in the plan
        if self.direct(plan.session.cluster.tasks.pods[row]):
            return None
        return bind_request(plan, pod, node, self._pool)

    def labels(self, pod: Pod) -> Mapping[str, str]:
        """A pod that was scheduled in a node pool carries its label."""
        pool = self._pool
        wanted = {pool.key: pool.value} if pool.key and pool.value else {}
        return {} if wanted.items() <= pod.metadata.labels.items() else wanted

    def assigned(self, pod: Pod, node: str) -> str:
        return f"Successfully assigned pod {pod.key} to node {node} at node-pool {self._pool_name}"

    def farewell(self, plan: Plan, row: int, reason: str) -> Farewell:
        session = plan.session
        text = reason.replace(POD, session.task_key(row)) + queue_lines(plan, row, reason)
        group = session.cluster.jobs.objects.get(int(session.tasks.job[row]))
        regarding = group if group is not None else session.cluster.tasks.pods[row]
        condition = text if self._marks_evicted else ""
        return Farewell(regarding, "Normal", text, condition, eviction_annotations(plan, row, reason))

    def ours(self, request: BindRequest) -> bool:
        return self._pool.holds(request)


def shares_devices(pod: Pod) -> bool:
    """Whether a pod asks for parts of devices."""
    return any(name in pod.metadata.annotations for name in (FRACTION, MEMORY, DEVICES))


def _moments(group: KaiPodGroup) -> dict[str, str]:
    annotations = group.metadata.annotations
    return {name: annotations[name] for name in _WRITTEN if name in annotations}


def _kinds(group: KaiPodGroup) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Its conditions without words and times."""
    return [
        (one.type, one.node_pool, one.status, tuple(why.reason for why in one.reasons))
        for one in group.status.scheduling_conditions
    ]
