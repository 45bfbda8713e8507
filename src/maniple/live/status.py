"""The results of a cycle, written to groups, pods, queues and events.

Called by the scheduler after every cycle. Everything is compared with the believed state and written only if
it differs; what is written counts at once (see `cache.py`). That a gang is placed is written once the cluster has
confirmed all of its binds (see `binding.py`).
"""

from collections.abc import Sequence
from datetime import datetime

from maniple.framework.plans.plan import Plan
from maniple.live.binding import Binding
from maniple.live.cache import Assumption
from maniple.live.dialect import LiveDialect, Patch, Report
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
        self._pods = WaitingPods(writing, dialect, notes)
        self._queues = QueueStatuses(writing, dialect, binding)
        self._paces = (self._groups, self._pods.pace, self._queues.pace)
        self._last: Plan | None = None  # whose outcome has been written
        self.why: dict[Ref, str] = {}  # by the group of each job that was pending after the last cycle

    def write(self, plan: Plan, when: datetime, cause: str) -> bool:
        """Bring every status up to a plan; returns whether a decision may depend on what is written now."""
        when = when.replace(microsecond=0)  # the API's precision
        self._compare_groups(plan, when, cause)
        self._pods.compare(plan, when)
        if self._dialect.writes_queue_status:
            self._queues.compare(plan)
        return self.carry_out()

    def compare_all(self) -> None:
        """The next plan is for a cluster that was built anew."""
        self._last = None

    def carry_out(self) -> bool:
        """Write what has been asked for and is due; returns whether a decision may depend on it."""
        for ref in [one for one in self._unconfirmed if one not in self._binding.groups]:
            self._compare_group(self._unconfirmed.pop(ref))
        self._queues.confirm()
        said = [pace.carry_out(now()) for pace in self._paces]
        return any(said)

    def next_due(self) -> float | None:
        """When to call `carry_out` again."""
        due = (pace.next_due() for pace in self._paces)
        return min((moment for moment in due if moment is not None), default=None)

    def forget(self, item: Object) -> None:
        """The object is gone."""
        for pace in self._paces:
            pace.forget(ref_of(item))
        self._unconfirmed.pop(ref_of(item), None)
        self._notes.forget(item)

    def _compare_groups(self, plan: Plan, when: datetime, cause: str) -> None:
        self.why = {}
        groups, self._last = plan.groups_since(self._last), plan
        for report in self._dialect.reports(plan, groups, self._writing.cache.get, when, cause):
            if report.why:
                self.why[ref_of(report.before)] = report.why
            self._compare_group(report)

    def _compare_group(self, report: Report) -> None:
        before, after, ref = report.before, report.after, ref_of(report.before)
        self._unconfirmed.pop(ref, None)
        if ref in self._binding.groups and not self._writing.cache.is_made(ref):
            after = self._dialect.unconfirmed(before, report.after)
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

    def _record(self, report: Report) -> None:
        """Events about a gang go to its group. Where that exists only in memory, the one about waiting goes to the
        owner of the pods, or to a pod that is a job of its own."""
        group = report.before
        cache = self._writing.cache
        instead = cache.regarded(ref_of(group)) if report.events else None
        for event in report.events:
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
