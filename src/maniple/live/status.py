"""The results of a cycle, written to groups, pods, queues and events.

Called by the scheduler after every cycle. Everything is compared with the believed state and written only if
it differs; what is written counts at once (see `cache.py`). That a gang is placed is written once the cluster has
confirmed all of its binds (see `binding.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import structs

from maniple.framework.plans.outcome import GroupOutcome
from maniple.framework.plans.plan import Plan
from maniple.live.answers import Answers, Question
from maniple.live.assumptions import Assumption
from maniple.live.binding import Binding
from maniple.live.dialect import LiveDialect, Patch, Report
from maniple.live.native_groups import NativeGroups
from maniple.live.notes import Notes
from maniple.live.pace import Pace, apart
from maniple.live.port import Port
from maniple.live.queues import QueueStatuses
from maniple.live.refs import Ref, ref_of
from maniple.live.waiting import UNSCHEDULABLE, WaitingPods
from maniple.live.writing import Writing, now
from maniple.objects.meta import Object


class StatusWriter:
    def __init__(self, writing: Writing, dialect: LiveDialect, notes: Notes, binding: Binding) -> None:
        self._writing = writing
        self._binding = binding
        self._unconfirmed: dict[Ref, Report] = {}  # of groups whose binds are unfinished
        self._dialect = dialect
        self._notes = notes
        self._groups: Pace[Ref, Object] = Pace(self._write_group)
        self.answers = Answers()
        self._pods = WaitingPods(writing, dialect, notes, self.answers)
        self._queues = QueueStatuses(writing, dialect, binding)
        self._native = NativeGroups(writing, binding)
        self._paces = (self._groups, self._pods.pace, self._queues.pace, self._native.pace)
        self._last: Plan | None = None  # whose outcome has been written
        self._moment: tuple[datetime, str] | None = None  # when that was, and by what name
        self.why: dict[
            Ref, str
        ] = {}  # by the group of each job that was pending after the last cycle, briefly

    def write(self, plan: Plan, when: datetime, cause: str) -> bool:
        """Bring every status up to a plan; returns whether a decision may depend on what is written now."""
        when = when.replace(microsecond=0)  # the API's precision
        self._moment = when, cause
        self._native.begin(plan, when)
        self._compare_groups(plan, when, cause)
        self._pods.compare(plan, when)
        if self._dialect.writes_queue_status:
            self._queues.compare(plan)
        return self.carry_out()

    def explained(self, group: Ref, job: str) -> None:
        """There is another answer why a job waits: word its messages anew, as of the last plan."""
        plan, moment = self._last, self._moment
        outcome = plan.group(job) if plan is not None else None
        if plan is None or moment is None or outcome is None:
            return
        self._compare({job: outcome}, plan, *moment)
        pod = self._writing.cache.lone_pod(group)
        if pod is not None:
            self._pods.compare_one(plan, pod.key)

    def compare_all(self) -> None:
        """The next plan is for a cluster that was built anew."""
        self._last = None

    def carry_out(self) -> bool:
        """Write what has been asked for and is due; returns whether a decision may depend on it."""
        for ref in [one for one in self._unconfirmed if one not in self._binding.groups]:
            self._compare_group(self._unconfirmed.pop(ref))
        self._queues.confirm()
        self._native.carry_out()
        said = [pace.carry_out(now()) for pace in self._paces]
        return any(said)

    def next_due(self) -> float | None:
        """When to call `carry_out` again."""
        due = (pace.next_due() for pace in self._paces)
        return min((moment for moment in due if moment is not None), default=None)

    def seen(self, item: Object) -> None:
        """The watch showed an object; called before the cache takes it in."""
        self._native.seen(item)

    def forget(self, item: Object) -> None:
        """The object is gone."""
        self._native.forget(ref_of(item))
        for pace in self._paces:
            pace.forget(ref_of(item))
        self._unconfirmed.pop(ref_of(item), None)
        self._queues.forget(item)
        self.answers.forget(ref_of(item))
        self._notes.forget(item)

    def _compare_groups(self, plan: Plan, when: datetime, cause: str) -> None:
        self.why = {}
        groups, self._last = plan.groups_since(self._last), plan
        self._compare(groups, plan, when, cause)

    def _compare(self, groups: Mapping[str, GroupOutcome], plan: Plan, when: datetime, cause: str) -> None:
        find = self._writing.cache.get
        for report in self._dialect.reports(plan, groups, find, when, cause, self._worded):
            ref = ref_of(report.before)
            if report.why:
                self.why.setdefault(ref, report.why)
            else:
                self.answers.forget(ref)
            self._compare_group(report)
            self._native.compare(report)

    def _worded(self, job: str, group: Object, brief: str) -> str:
        self.why[ref_of(group)] = brief
        return self.answers.worded(ref_of(group), Question(job, brief, getattr(group, "spec", None), now()))

    def _compare_group(self, report: Report) -> None:
        before, after, ref = report.before, report.after, ref_of(report.before)
        self._unconfirmed.pop(ref, None)
        if ref in self._binding.groups and not self._writing.cache.is_made(ref):
            after = self._dialect.unconfirmed(before, report.after)
        self._queues.count(after, report.queue)
        if after is report.after:
            self._record(report)
        else:
            self._unconfirmed[ref] = report
        if after is before:
            self._groups.drop(ref)
            return
        messages_only = self._dialect.differ_in_messages_only(before, after)
        between = (
            apart(self._dialect.messages(before), self._dialect.messages(after)) if messages_only else 0.0
        )
        self._groups.submit(ref, after, between)

    def _write_group(self, ref: Ref, after: Object) -> bool:
        cache, port, dialect = self._writing.cache, self._writing.port, self._dialect
        current = cache.get(*ref)
        if current is None or current.metadata.uid != after.metadata.uid:
            return False  # it was deleted while the message waited for its time
        if cache.is_made(ref):
            return cache.keep_made(after)
        patches = dialect.group_patches(current, after)
        assumption = Assumption(
            uid=after.metadata.uid,
            change=lambda seen: dialect.adopted(seen, after),
            shown=lambda seen: dialect.adopted(seen, after) is seen,
        )
        return self._writing.submit(
            ref,
            "status",
            assumption,
            lambda: _send(port, ref, patches),
            self._groups,
            # A gang that is being bound has its pods: no controller waits to create them.
            awaited=dialect.is_awaited(current, after) and ref not in self._binding.groups,
        )

    def carry_over(self, ref: Ref, before: Object) -> bool:
        """A group that existed only in memory is in the cluster now: it says there what it said here.

        Returns whether a decision may depend on that.
        """
        current = self._writing.cache.get(*ref)
        if current is None or type(current) is not type(before):
            return False
        known = {**current.metadata.annotations, **before.metadata.annotations}
        metadata = structs.replace(current.metadata, annotations=known)
        after = structs.replace(current, metadata=metadata, status=before.status)  # type: ignore[attr-defined]
        nothing = before.status == type(before.status)()  # type: ignore[attr-defined]
        return not nothing and after != current and self._write_group(ref, after)

    def _record(self, report: Report) -> None:
        """Events about a gang go to its group. Where that exists only in memory, the one about waiting goes to the
        owner of the pods, or to a pod that is a job of its own."""
        group, ref = report.before, ref_of(report.before)
        cache = self._writing.cache
        instead = cache.regarded(ref) if report.events else None
        for event in report.events:
            if event.text and event.text == report.why and self.answers.awaited(ref, now()):
                continue  # one event for each constraint, with the whole answer
            regarding, reason = group, event.reason
            if instead is not None:
                if event.reason != UNSCHEDULABLE:
                    continue
                regarding, reason = instead, "FailedScheduling"
            if event.text:
                self._notes.record(regarding, event.type, reason, event.text, now())
            else:
                self._notes.clear(regarding, reason)


async def _send(port: Port, ref: Ref, patches: Sequence[Patch]) -> None:
    for patch in patches:
        await port.patch_status(*ref, patch.body, patch.subresource)
