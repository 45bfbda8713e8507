"""Both systems in one cluster, for Maniple's own profile: each group is written in its own system's form.

Made by `dialects.py` from the two others. Pods are bound directly; those of KAI's groups that share devices
are bound by request where BindRequests are installed, since only KAI's binder assigns shared devices.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from maniple.cluster.statuses import Status
from maniple.framework.plans.outcome import Eviction, GroupOutcome, WaitingPod
from maniple.framework.plans.plan import Plan
from maniple.framework.plans.standing import REFUSED
from maniple.live.dialect import EvictionNotice, Find, Patch, PodReporting, QueueReport, Report, Worded
from maniple.live.kai import Kai
from maniple.live.kai_groups import why_waiting
from maniple.live.volcano import ROOT_QUEUE, UNSCHEDULABLE, Volcano
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest, KaiPodGroup, KaiQueue
from maniple.objects.meta import Object
from maniple.plugins.gang.conditions import NOT_ENOUGH_RESOURCES, SCHEDULED_CONDITION
from maniple.profiles.maniple import of_kai


class Maniple:
    """Volcano's and KAI's side of the running scheduler, together."""

    writes_queue_status = True

    def __init__(self, volcano: Volcano, kai: Kai) -> None:
        self._volcano = volcano
        self._kai = kai
        self.kinds: tuple[type[Object], ...] = tuple(dict.fromkeys((*volcano.kinds, *kai.kinds)))
        self.queue_kinds: tuple[type[Object], ...] = (*volcano.queue_kinds, *kai.queue_kinds)

    def _of(self, item: Object | None) -> Volcano | Kai:
        return self._kai if isinstance(item, KaiPodGroup | KaiQueue) else self._volcano

    def _of_pod(self, pod: Pod) -> Volcano | Kai:
        return self._kai if of_kai(pod) else self._volcano

    # -- reading -----------------------------------------------------------------------------------------------------

    def missing_objects(self, present: Iterable[Object]) -> list[dict[str, Any]]:
        """The default queue, if neither system has one of that name; there is no root queue here."""
        names = {item.metadata.name for item in present}
        wanted = self._volcano.missing_objects(())
        return [
            raw
            for raw in wanted
            if raw["metadata"]["name"] != ROOT_QUEUE and raw["metadata"]["name"] not in names
        ]

    def trimmed(self, item: Object) -> Object:
        return item

    def warning(self, item: Object, *, gone: bool) -> str:
        return self._kai.warning(item, gone=gone)

    def kind_is(self, kind: type[Object], *, there: bool) -> bool:
        return self._kai.kind_is(kind, there=there)

    def read(self, pod: Pod) -> Pod:
        return self._of_pod(pod).read(pod)

    def unsupported_reason(self, pod: Pod) -> str:
        return self._of_pod(pod).unsupported_reason(pod)

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
        yield from self._volcano.reports(plan, groups, find, when, cause, worded, _conditions)
        yield from self._kai.reports(plan, groups, find, when, cause, worded)

    def unconfirmed(self, before: Object, after: Object) -> Object:
        return self._of(after).unconfirmed(before, after)

    def why(self, plan: Plan, pod: WaitingPod, find: Find) -> str:
        return self._kai.why(plan, pod, find)

    def pod_reporting(self, group: Object | None) -> PodReporting:
        return self._of(group).pod_reporting(group)

    def adopted(self, seen: Object, after: Object) -> Object:
        return self._of(after).adopted(seen, after)

    def messages(self, group: Object) -> str:
        return self._of(group).messages(group)

    def differ_in_messages_only(self, before: Object, after: Object) -> bool:
        return self._of(after).differ_in_messages_only(before, after)

    def is_awaited(self, before: Object, after: Object) -> bool:
        return self._of(after).is_awaited(before, after)

    def group_patches(self, before: Object, after: Object) -> Sequence[Patch]:
        return self._of(after).group_patches(before, after)

    def queue_status(self, queue: Object, report: QueueReport) -> Object:
        return self._of(queue).queue_status(queue, report)

    def queue_patch(self, before: Object, after: Object) -> dict[str, Any]:
        return self._of(after).queue_patch(before, after)

    def parent(self, name: str, parent: str) -> str:
        return parent

    def depends_on_time(self, plan: Plan) -> bool:
        return self._kai.depends_on_time(plan)

    # -- decisions ---------------------------------------------------------------------------------------------------

    def direct(self, pod: Pod) -> bool:
        return self._of_pod(pod).direct(pod)

    def bind_request(self, plan: Plan, pod: Pod, node: str, find: Find) -> dict[str, Any] | None:
        return self._of_pod(pod).bind_request(plan, pod, node, find)

    def labels(self, pod: Pod) -> Mapping[str, str]:
        return self._of_pod(pod).labels(pod)

    def assigned(self, pod: Pod, node: str) -> str:
        return self._of_pod(pod).assigned(pod, node)

    def eviction_notice(self, plan: Plan, eviction: Eviction, pod: Pod, find: Find) -> EvictionNotice:
        return self._of_pod(pod).eviction_notice(plan, eviction, pod, find)

    def ours(self, request: BindRequest) -> bool:
        return self._kai.ours(request)


def _conditions(one: GroupOutcome) -> list[dict[str, str]]:
    """The conditions of a Volcano group, as the plugin gang states them if it is enabled."""
    if one.conditions:
        return one.conditions
    if one.satisfied:
        return [SCHEDULED_CONDITION] if one.counts else []
    if not one.count(Status.PENDING.word, Status.GATED.word):
        return []  # all of its pods are terminating or finished
    waits = one.not_ready or why_waiting(one)[1]
    reason = REFUSED if one.held_back else NOT_ENOUGH_RESOURCES
    return [{"type": UNSCHEDULABLE, "status": "True", "reason": reason, "message": waits}]
