"""The conditions of Kubernetes' own PodGroups (`scheduling.k8s.io`) whose pods are scheduled here.

Such a group exists in the cluster; the group that decisions are about is made from it in memory, in whatever profile
(`profiles/grouping.py`). `status.py` calls this after every cycle, and whenever something is due.

| condition | status, reason | when |
|---|---|---|
| `PodGroupScheduled` | `False`, `Unschedulable` | fewer pods than its minimum have a node; the message says why |
| | `False`, `SchedulerError` | it cannot be scheduled because it cannot be read, or planning with it failed |
| | `True`, `Scheduled` | as many pods as its minimum are bound, and the cluster has confirmed it |
| `DisruptionTarget` | `True`, `PreemptionByScheduler` | all pods of it that have a node are evicted for another job |
| | `False`, `Scheduled` | it is scheduled again |

As in Kubernetes, `PodGroupScheduled` is about the first success: it does not become `False` again. Conditions of other
types stay as they are. What the watch showed of conditions is kept here and not in the cache, so that no decision
depends on them and none of our own writes wakes a cycle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from maniple.cluster.statuses import READY, WAITING, Status
from maniple.framework.plans.plan import Plan
from maniple.live.assumptions import Assumption
from maniple.live.binding import Binding
from maniple.live.dialect import Report
from maniple.live.messages import message
from maniple.live.pace import Pace, apart
from maniple.live.refs import Ref, ref_of
from maniple.live.writing import Writing
from maniple.objects.core import Pod
from maniple.objects.limits import WAITS
from maniple.objects.meta import Object
from maniple.objects.owners import NATIVE_GROUP, WorkloadOwner
from maniple.workloads.native import API_GROUP

SCHEDULED, DISRUPTED = "PodGroupScheduled", "DisruptionTarget"
UNSCHEDULABLE, ERROR, PREEMPTED, PLACED = (
    "Unschedulable",
    "SchedulerError",
    "PreemptionByScheduler",
    "Scheduled",
)
_ASPECT = "conditions"
_THERE = [status.word for status in Status if READY[status]]
_TO_COME = [status.word for status in Status if WAITING[status]]
_ENDED = ("Succeeded", "Failed")

Raw = dict[str, Any]
# A condition without its times: type, status, reason, message.
Said = tuple[str, str, str, str]


@dataclass(slots=True)
class _Seen:
    """What the watch showed last of a PodGroup."""

    uid: str
    generation: int
    conditions: tuple[Raw, ...]


class NativeGroups:
    def __init__(self, writing: Writing, binding: Binding) -> None:
        self._writing = writing
        self._binding = binding
        self._seen: dict[Ref, _Seen] = {}
        self._wanted: dict[Ref, tuple[Raw, ...]] = {}  # what is being written, or was and is not shown yet
        self._said: dict[Ref, dict[str, Said]] = {}  # in this round, by type of condition
        self._unconfirmed: dict[Ref, Ref] = {}  # by group in memory: its PodGroup, while pods are being bound
        self._when = datetime.min.replace(tzinfo=UTC)
        self.pace: Pace[Ref, tuple[Raw, ...]] = Pace(self._write)

    # -- what is known -----------------------------------------------------------------------------------------------

    def seen(self, item: Object) -> None:
        """The watch showed an object; called before the cache takes it in."""
        if isinstance(item, NATIVE_GROUP) and isinstance(item, WorkloadOwner):
            found = item.status.get("conditions") if isinstance(item.status, Mapping) else None
            conditions = tuple(dict(one) for one in found or () if isinstance(one, Mapping))
            metadata = item.metadata
            self._seen[ref_of(item)] = _Seen(metadata.uid, metadata.generation, conditions)

    def forget(self, ref: Ref) -> None:
        """The object is gone."""
        for known in (self._seen, self._wanted, self._said, self._unconfirmed):
            known.pop(ref, None)

    def _of(self, group: Ref) -> Ref | None:
        """The PodGroup that a group in memory was made from."""
        owner = self._writing.cache.owner_of(group)
        if owner is None or owner.kind != NATIVE_GROUP.kind:
            return None
        if owner.api_version.rpartition("/")[0] != API_GROUP:
            return None
        ref = (NATIVE_GROUP, f"{group[1].partition('/')[0]}/{owner.name}")
        return ref if ref in self._seen else None

    def _known(self, ref: Ref) -> tuple[Raw, ...]:
        """The conditions as they are believed to be."""
        return self._wanted.get(ref) or self._seen[ref].conditions

    # -- what is to be said ------------------------------------------------------------------------------------------

    def begin(self, plan: Plan, when: datetime) -> None:
        """A cycle has been decided; its evictions count in the cache already."""
        self._when = when
        whole: dict[str, str] = {}  # by job
        for one in plan.eviction_notices if self._seen else ():
            if one.actor and one.job:
                whole.setdefault(one.job, one.why)
        for job, why in whole.items():
            group = plan.group(job)
            for ref in self._writing.cache.made_named(group.key) if group is not None else ():
                native = self._of(ref)
                if native is not None and not self._any_stays(native):
                    text = f"PodGroup {native[1]} {why}"
                    self._say(native, (DISRUPTED, "True", PREEMPTED, message(text)))

    def _any_stays(self, native: Ref) -> bool:
        """Whether a pod of the PodGroup has a node and is not leaving it."""
        pods = self._writing.cache.pods_of(native)
        return any(map(_stays, pods))

    def compare(self, report: Report) -> None:
        """The outcome of a cycle for a group; those that were not made from a PodGroup do not matter here."""
        group = ref_of(report.before)
        native = self._of(group) if self._seen else None
        if native is None:
            return
        self._unconfirmed.pop(group, None)
        minimum = max(report.before.spec.min_member, 1)  # type: ignore[attr-defined]
        there = sum(report.counts.get(word, 0) for word in _THERE)
        if there >= minimum:
            if group in self._binding.groups:
                self._unconfirmed[group] = native
            else:
                self._scheduled(native, minimum)
        elif any(report.counts.get(word) for word in _TO_COME) and report.why:
            self._waits(native, group, report.why)

    def _scheduled(self, native: Ref, minimum: int) -> None:
        pods = "1 pod" if minimum == 1 else f"{minimum:,} pods"
        self._say(native, (SCHEDULED, "True", PLACED, f"the group has its minimum of {pods} on nodes"))
        if _status(self._known(native), DISRUPTED) == "True":
            self._say(native, (DISRUPTED, "False", PLACED, "the group is scheduled again"))

    def _waits(self, native: Ref, group: Ref, why: str) -> None:
        cache = self._writing.cache
        made = cache.seen(group)
        unreadable = made is not None and WAITS in made.metadata.annotations
        failed = cache.reasons_aside().get(group, "")
        if _status(self._known(native), SCHEDULED) == "True" or self._says(native, SCHEDULED) == "True":
            return
        reason = ERROR if unreadable or failed else UNSCHEDULABLE
        self._say(native, (SCHEDULED, "False", reason, message(failed or why)))

    def _says(self, native: Ref, name: str) -> str:
        said = self._said.get(native, {}).get(name)
        return said[1] if said is not None else ""

    def _say(self, native: Ref, said: Said) -> None:
        self._said.setdefault(native, {})[said[0]] = said

    # -- writing -----------------------------------------------------------------------------------------------------

    def carry_out(self) -> None:
        """Have written what was said."""
        for group in [one for one in self._unconfirmed if one not in self._binding.groups]:
            native, made = self._unconfirmed.pop(group), self._writing.cache.seen(group)
            if made is not None and native in self._seen:
                self._scheduled(native, max(made.spec.min_member, 1))  # type: ignore[attr-defined]
        self._look_again()
        said, self._said = self._said, {}
        for ref, conditions in said.items():
            self._submit(ref, conditions.values())

    def _look_again(self) -> None:
        """Of what was written: it is shown by now, or was refused and is written again after a rest."""
        for ref, wanted in [*self._wanted.items()]:
            if ref not in self._seen or self._writing.cache.assumes(ref, _ASPECT):
                continue
            del self._wanted[ref]
            if not self._shows(ref, wanted):
                for one in wanted:
                    if one["type"] in (SCHEDULED, DISRUPTED):
                        self._said.setdefault(ref, {}).setdefault(one["type"], _said(one))

    def _submit(self, ref: Ref, said: Iterable[Said]) -> None:
        seen = self._seen.get(ref)
        if seen is None:
            return
        known = self._known(ref)
        by_type = {one.get("type"): one for one in known}
        for one in said:
            by_type[one[0]] = _condition(by_type.get(one[0]), one, seen.generation, self._when)
        after = tuple(by_type.values())
        if after == known:
            self.pace.drop(ref)
            return
        same = [{**one, "message": ""} for one in known] == [{**one, "message": ""} for one in after]
        self.pace.submit(ref, after, apart(_messages(known), _messages(after)) if same else 0.0)

    def _write(self, ref: Ref, after: tuple[Raw, ...]) -> bool:
        seen, port = self._seen.get(ref), self._writing.port
        if seen is None:
            return False  # it was deleted while the message waited for its time
        self._wanted[ref] = after
        patch = {"metadata": {"uid": seen.uid}, "status": {"conditions": [*after]}}
        assumption = Assumption(
            uid=seen.uid, change=lambda item: item, shown=lambda _: self._shows(ref, after)
        )
        self._writing.submit(
            ref, _ASPECT, assumption, lambda: port.patch_status(*ref, patch, True), self.pace
        )
        return False

    def _shows(self, ref: Ref, wanted: tuple[Raw, ...]) -> bool:
        seen = self._seen.get(ref)
        return seen is not None and [*map(_said, seen.conditions)] == [*map(_said, wanted)]


def _stays(pod: Pod) -> bool:
    ends = pod.metadata.deletion_timestamp is not None or pod.status.phase in _ENDED
    return bool(pod.spec.node_name) and not ends


def _status(conditions: Iterable[Raw], name: str) -> str:
    return next((str(one.get("status")) for one in conditions if one.get("type") == name), "")


def _said(condition: Raw) -> Said:
    kind, status, reason, text = (
        str(condition.get(one, "")) for one in ("type", "status", "reason", "message")
    )
    return kind, status, reason, text


def _messages(conditions: Iterable[Raw]) -> str:
    return "\n".join(str(one.get("message", "")) for one in conditions)


def _condition(known: Raw | None, said: Said, generation: int, when: datetime) -> Raw:
    """A condition as the API writes it; its time changes with its status only."""
    if known is not None and _said(known) == said and known.get("observedGeneration", 0) == generation:
        return known
    kept = known.get("lastTransitionTime") if known is not None and known.get("status") == said[1] else None
    return {
        "type": said[0],
        "status": said[1],
        "reason": said[2],
        "message": said[3],
        "observedGeneration": generation,
        "lastTransitionTime": kept or when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


__all__ = ["NativeGroups"]
