"""Maniple's own dialect: both systems' objects in one cluster.

A pod's annotation says which system its job belongs to; jobs and queues of both are side by side, in one
queue tree. Equivalent fields become one: a Volcano queue's `deserved` is a quota, its `capability` a limit,
its weight counts for every resource; a Volcano job may be preempted unless it says otherwise, a KAI job
according to its priority.

Queues of one name are one queue, described by both systems' objects. Jobs of one name are two jobs: a job is
identified by its name and its system.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from maniple.cluster.facts import GpuAsk, JobFacts, QueueFacts, TaskFacts, job_key
from maniple.cluster.resources import Amount
from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.plugins.kai.labelled import ORDER_LABELS
from maniple.profiles import kai, volcano

SCHEDULER_NAME = "maniple"
VOLCANO, KAI = "volcano", "kai"


def of_kai(pod: Pod) -> bool:
    """Whether a pod is in a KAI group; if annotations of both systems name one, Volcano's counts."""
    annotations = pod.metadata.annotations
    return bool(annotations.get(kai.GROUP_NAME)) and not annotations.get(volcano.GROUP_NAME)


def _scheduled_since(group: VolcanoPodGroup) -> datetime | None:
    """When a Volcano group was placed, by its condition: it has no annotation for it, as KAI's have."""
    said = [one for one in group.status.conditions if one.type == "Scheduled" and one.status == "True"]
    return said[0].last_transition_time if said else None


class ManipleDialect:
    """Volcano's and KAI's fields, annotations and labels."""

    name = "maniple"
    default_priority = 50
    counts_devices = True
    order_labels = ORDER_LABELS
    minds_config_maps = False
    placement_annotations = volcano.VolcanoDialect.placement_annotations

    def __init__(
        self,
        *,
        scheduler_names: Iterable[str] = (SCHEDULER_NAME,),
        default_queue: str = "default",
        pool: kai.NodePool | None = None,
        worker_labels: tuple[str, ...] = (),
        reservation_app: str = "kai-resource-reservation",
        npus_shared: bool = False,
        node_selector: Iterable[str] = (),
    ) -> None:
        names = tuple(scheduler_names)
        self.scheduler_names = frozenset(names)
        self._default_queue = default_queue
        self._volcano = volcano.VolcanoDialect(
            default_queue=default_queue,
            scheduler_names=names,
            npus_shared=npus_shared,
            node_selector=node_selector,
        )
        self._kai = kai.KaiDialect(
            scheduler_names=names, pool=pool, worker_labels=worker_labels, reservation_app=reservation_app
        )

    def covers(self, item: Object) -> bool:
        return self._kai.covers(item) and self._volcano.covers(item)

    def decides(self, item: Object) -> str | None:
        return self._kai.decides(item)

    # -- resources ------------------------------------------------------------------------------------------------

    def counts(self, resource: str) -> bool:
        return self._volcano.counts(resource) and self._kai.counts(resource)

    def allocatable(self, node: Node, devices: int = 0) -> Mapping[str, Amount]:
        offered = self._kai.allocatable(node, devices)
        return {**offered, **self._volcano.oversubscribed(node)}

    def requests(
        self, pod: Pod, amounts: Mapping[str, Amount], claims: Sequence[ResourceClaim]
    ) -> Mapping[str, Amount]:
        return self._kai.requests(pod, amounts, claims)

    def negligible(self, resource: str) -> int:
        return 1

    def gpu(self, pod: Pod) -> GpuAsk | None:
        return self._kai.gpu(pod)

    def volume_requests(self, drivers: Mapping[str, int]) -> Mapping[str, int]:
        """Volumes are counted by the filter NodeVolumeLimits."""
        return {}

    # -- pods -----------------------------------------------------------------------------------------------------

    def task(self, pod: Pod, decided: Object | None = None) -> TaskFacts | None:
        facts = self._kai.task(pod, decided)
        ours = pod.spec.scheduler_name in self.scheduler_names
        if facts is None or not ours:
            return facts
        if of_kai(pod):
            return replace(facts, job=self.group_of(pod))
        # Node and shared devices are read as in KAI, whichever system's job it is; the role in its job as in
        # Volcano.
        own = self._volcano.task(pod)
        if own is None:
            return facts
        return replace(
            facts,
            job=self.group_of(pod),
            role=own.role,
            priority=own.priority,
            index=own.index,
            preemptable=own.preemptable,
        )

    def group_of(self, pod: Pod) -> str | None:
        theirs, system = (self._kai, KAI) if of_kai(pod) else (self._volcano, VOLCANO)
        group = theirs.group_of(pod)
        return job_key(group, system) if group else None

    # -- groups and queues ----------------------------------------------------------------------------------------

    def job(self, group: Object) -> JobFacts | None:
        if isinstance(group, KaiPodGroup):
            facts = self._kai.job(group)
            if facts is None:
                return None
            return replace(facts, queue=facts.queue or self._default_queue, system=KAI)
        facts = self._volcano.job(group)
        if facts is None or not isinstance(group, VolcanoPodGroup):
            return None
        said = group.metadata.annotations.get(
            volcano.PREEMPTABLE, group.metadata.labels.get(volcano.PREEMPTABLE)
        )
        return replace(
            facts,
            minimum=max(facts.minimum, 1),
            preemptible=facts.preemptable if said is not None else True,
            started=_scheduled_since(group),
            system=VOLCANO,
        )

    def queue(self, queue: Object) -> QueueFacts | None:
        if isinstance(queue, KaiQueue):
            return self._kai.queue(queue)
        facts = self._volcano.queue(queue)
        if facts is None:
            return None
        # In Volcano every path ends at the root queue; here paths end above the queues. Queues without a
        # priority are equal.
        parent = "" if facts.parent == "root" else facts.parent
        return replace(
            facts,
            parent=parent,
            priority=kai.DEFAULT_QUEUE_PRIORITY + facts.priority,
            states_priority=facts.priority != 0,
        )
