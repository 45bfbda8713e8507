"""Why pods are pending, written on the pods: the condition PodScheduled=False and the nominated node.

A pod that fits no node has a cause of its own. One that would fit waits for the rest of its gang and reports
what the gang lacks. The dialect decides whether there is a condition, an event, or both.
"""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from maniple.framework.plans.outcome import WaitingPod
from maniple.framework.plans.plan import Plan
from maniple.framework.plans.standing import REFUSED
from maniple.live.answers import Answers
from maniple.live.assumptions import Assumption
from maniple.live.dialect import Find, LiveDialect, PodReporting, group_of
from maniple.live.essence import POD_SCHEDULED, scheduled_condition
from maniple.live.messages import message
from maniple.live.notes import Notes
from maniple.live.pace import NUMBERS_SECONDS, Pace, apart
from maniple.live.refs import Ref
from maniple.live.writing import Writing, now
from maniple.objects.core import Pod
from maniple.objects.meta import Condition

UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"  # nothing to add nodes for
SCHEDULER_ERROR = "SchedulerError"
BEING_RELEASED = "waits for resources that are being released on {node}"
POD_NUMBERS_SECONDS = 60.0
PIPELINED = "Pipelined"


@dataclass(frozen=True, slots=True)
class _PodReport:
    """What a pending pod should report; an empty nomination leaves the pod's own unchanged."""

    reason: str
    message: str
    nominated: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", message(self.message))


class WaitingPods:
    def __init__(self, writing: Writing, dialect: LiveDialect, notes: Notes, answers: Answers) -> None:
        self._writing = writing
        self._answers = answers
        self._dialect = dialect
        self._notes = notes
        self._when: datetime | None = None
        self.pace: Pace[Ref, _PodReport] = Pace(self._write)

    def compare(self, plan: Plan, when: datetime) -> None:
        """Find the pods with an outdated report, and have them written."""
        self._when = when
        cache, moment = self._writing.cache, now()
        causes, rules = _Causes(plan, self._dialect, cache.get), dict[str, PodReporting]()
        for key, one in plan.waiting.items():
            pod = cache.pod(key)
            if pod is None:
                continue  # it is gone by now
            rule = rules.get(one.job)
            if rule is None:
                rule = rules[one.job] = self._dialect.pod_reporting(group_of(plan, one.job, cache.get))
            self._compare_pod(pod, one, causes, rule, moment)
        self._compare_left_out(plan, moment)

    def compare_one(self, plan: Plan, key: str) -> None:
        """The same for one pod of the last plan."""
        cache, one = self._writing.cache, plan.waiting.get(key)
        pod = cache.pod(key)
        if pod is not None and one is not None:
            rule = self._dialect.pod_reporting(group_of(plan, one.job, cache.get))
            self._compare_pod(pod, one, _Causes(plan, self._dialect, cache.get), rule, now())

    def _compare_pod(
        self, pod: Pod, one: WaitingPod, causes: "_Causes", rule: PodReporting, moment: float
    ) -> None:
        claims, refusal = bool(one.node), self._writing.cache.refusal(pod)
        report = (
            self._gated(pod)
            if one.gated
            else causes.claiming(pod.key, one, rule)
            if claims
            else _PodReport(SCHEDULER_ERROR, refusal)
            if refusal
            else self._answered(pod, causes.of(one))
        )
        if report is None:
            return
        if rule.prefix:
            report = _PodReport(report.reason, rule.prefix + report.message, report.nominated)
        if rule.event:
            self._record(pod, report, moment, claims=claims)
        if rule.condition:
            self._compare(pod, report, moment)

    def _answered(self, pod: Pod, report: _PodReport) -> _PodReport:
        """A pod that is a job of its own has the answer about the job; one of a gang only what it lacks itself."""
        group = self._writing.cache.group_of_pod(pod)
        if group is None:
            return report
        worded = self._answers.of(group, report.message)
        return report if worded == report.message else _PodReport(report.reason, worded)

    def _compare_left_out(self, plan: Plan, moment: float) -> None:
        """Pods that are set aside are not always part of the plan."""
        cache = self._writing.cache
        for kind, key in cache.aside:
            pod = cache.seen((kind, key))
            if isinstance(pod, Pod) and not pod.spec.node_name and key not in plan.waiting:
                self._compare(pod, _PodReport(SCHEDULER_ERROR, cache.why_aside(pod)), moment)

    def _gated(self, pod: Pod) -> _PodReport | None:
        """The report of a pod excluded from decisions here; other controllers' gates are not ours to explain."""
        held = self._writing.cache.held(pod.key)
        why = held.why if held is not None else self._writing.cache.why_aside(pod)
        if why:
            return _PodReport(SCHEDULER_ERROR, why)
        unsupported_reason = self._dialect.unsupported_reason(pod)
        return _PodReport(UNSCHEDULABLE, unsupported_reason) if unsupported_reason else None

    def _record(self, pod: Pod, report: _PodReport, moment: float, *, claims: bool) -> None:
        """The same as an event, but rarer: changed numbers alone are not recorded."""
        notes = self._notes
        if claims:
            notes.record(pod, "Normal", PIPELINED, f"Pod {pod.key} {report.message}", moment, numbers=False)
        else:
            notes.clear(pod, PIPELINED)
            notes.record(pod, "Warning", UNSCHEDULABLE, report.message, moment, numbers=False)

    def _compare(self, pod: Pod, report: _PodReport, moment: float) -> None:
        known, ref, between = scheduled_condition(pod), (Pod, pod.key), 0.0
        new_node = report.nominated not in ("", pod.status.nominated_node_name)
        if known is not None and not new_node and (known.status, known.reason) == ("False", report.reason):
            if known.message == report.message:
                self.pace.drop(ref)
                return
            between = apart(known.message, report.message)
            # There are many pods, and their group has the latest numbers.
            if between == NUMBERS_SECONDS and self.pace.recent(ref, moment, POD_NUMBERS_SECONDS):
                return
        self.pace.submit(ref, report, between)

    def _write(self, ref: Ref, report: _PodReport) -> bool:
        cache = self._writing.cache
        aside = ref in cache.aside
        pod = cache.seen(ref) if aside else cache.get(*ref)
        waits = aside or cache.waits(ref[1])
        if not isinstance(pod, Pod) or pod.spec.node_name or not waits or self._when is None:
            return False  # it was deleted, or got its node, while the message waited for its time
        known, when = scheduled_condition(pod), self._when
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=report.reason,
            message=report.message,
            last_transition_time=since or when,
        )
        nomination = (
            report.nominated if report.nominated not in ("", pod.status.nominated_node_name) else None
        )
        port = self._writing.port
        return self._writing.submit(
            ref,
            "condition",
            _assumption(pod, condition, nomination),
            lambda: port.patch_pod_condition(pod, condition, when, nomination),
            self.pace,
        )


class _Causes:
    """The cause of each pending task, as text; equal causes are formatted once."""

    def __init__(self, plan: Plan, dialect: LiveDialect, find: Find) -> None:
        self._plan = plan
        self._dialect = dialect
        self._find = find
        self._formatted: dict[int, _PodReport] = {}  # by the record, which pods share
        self._of_job: dict[str, _PodReport] = {}

    def claiming(self, pod: str, one: WaitingPod, rule: PodReporting) -> _PodReport:
        """The report of a pod that waits for resources being released."""
        nominated = self._plan.nominations.get(pod, "") if rule.nominates else ""
        return _PodReport(UNSCHEDULABLE, BEING_RELEASED.format(node=one.node), nominated)

    def of(self, one: WaitingPod) -> _PodReport:
        if one.held_back:
            return _PodReport(REFUSED, one.reason)  # an autoscaler would add nodes for unschedulable ones
        if not one.own:
            report = self._of_job.get(one.job)
            if report is None:
                why = self._dialect.why(self._plan, one, self._find)
                report = self._of_job[one.job] = _PodReport(UNSCHEDULABLE, why)
            return report
        formatted = self._formatted.get(id(one))
        if formatted is None:
            reason = SCHEDULABLE if one.fits else UNSCHEDULABLE
            formatted = self._formatted[id(one)] = _PodReport(reason, one.reason)
        return formatted


def _assumption(pod: Pod, condition: Condition, nomination: str | None) -> Assumption:
    def change(seen: Pod) -> Pod:
        others = tuple(c for c in seen.status.conditions if c.type != POD_SCHEDULED)
        status = replace(seen.status, conditions=(*others, condition))
        if nomination is not None:
            status = replace(status, nominated_node_name=nomination)
        return replace(seen, status=status)

    def shown(seen: Pod) -> bool:
        # A pod that was bound meanwhile has a condition that says so; its reason for waiting is obsolete.
        return bool(seen.spec.node_name) or change(seen) == seen

    return Assumption(uid=pod.metadata.uid, change=change, shown=shown)
