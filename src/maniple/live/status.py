"""What a cycle decided, written where people and other controllers look: groups, pods, queues, events.

Called by the scheduler after every cycle. Everything is compared with what is believed to be there and written only if it differs;
what was written counts as there at once (see `cache.py`).
"""

from datetime import datetime

from msgspec.structs import replace

from maniple.cluster.statuses import Status
from maniple.framework.outcome import Plan, job_phases
from maniple.framework.reasons import joined
from maniple.framework.session import Session
from maniple.live.cache import Assumption, Ref
from maniple.live.dialect import LiveDialect
from maniple.live.notes import Notes
from maniple.live.pace import Pace, apart
from maniple.live.queues import QueueStatuses
from maniple.live.waiting import UNSCHEDULABLE, WaitingPods
from maniple.live.writing import Writing, now, ref_of
from maniple.objects.meta import Object

_COUNTED = [Status.RUNNING, Status.SUCCEEDED, Status.FAILED]


class StatusWriter:
    def __init__(self, writing: Writing, dialect: LiveDialect, notes: Notes) -> None:
        self._writing = writing
        self._dialect = dialect
        self._notes = notes
        self._groups: Pace[Ref, Object] = Pace(self._write_group)
        self._pods = WaitingPods(writing)
        self._queues = QueueStatuses(writing, dialect)
        self._paces = (self._groups, self._pods.pace, self._queues.pace)
        self.why: dict[str, str] = {}  # by job that waited in the last cycle

    def write(self, plan: Plan, when: datetime, cause: str) -> bool:
        """Bring every status up to a plan. True when a decision may depend on what is written now."""
        when = when.replace(microsecond=0)  # the API keeps no more
        self._compare_groups(plan.session, when, cause)
        self._pods.compare(plan, when)
        self._queues.compare(plan.session)
        # Not before: comparing reads the session, which is a view of what writing changes.
        return self.carry_out()

    def carry_out(self) -> bool:
        """Write what has been asked for or has waited for its time. True when a decision may depend on it."""
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
        self._notes.forget(item)

    def _compare_groups(self, session: Session, when: datetime, cause: str) -> None:
        self.why = {}
        counts = session.jobs.counts[_COUNTED].T.tolist()
        objects = session.cluster.jobs.objects
        for job, phase in job_phases(session).items():
            before, told = objects[job], session.conditions.get(job, [])
            running, succeeded, failed = counts[job]
            after = self._dialect.group_status(before, phase, (running, succeeded, failed), told, when, cause)
            self._tell(session, job, before, told)
            if after is before:
                self._groups.drop(ref_of(before))
                continue
            words_only = self._dialect.differ_in_words_only(before, after)
            between = apart(self._dialect.words(before), self._dialect.words(after)) if words_only else 0.0
            self._groups.ask(ref_of(before), after, between)

    def _write_group(self, ref: Ref, after: Object) -> bool:
        cache, port = self._writing.cache, self._writing.port
        current = cache.get(*ref)
        if current is None or current.metadata.uid != after.metadata.uid:
            return False  # it went while the words waited for their time
        if cache.pod_of_group(ref) is not None:
            return cache.keep_made(after)
        status = after.status  # type: ignore[attr-defined]  # every group has one
        assumption = Assumption(
            uid=after.metadata.uid,
            change=lambda seen: replace(seen, status=status),
            shown=lambda seen: bool(seen.status == status),
        )
        patch = self._dialect.group_patch(after)
        return self._writing.submit(
            ref, "status", assumption, lambda: port.patch_status(*ref, patch), self._groups
        )

    def _tell(self, session: Session, job: int, group: Object, told: list[dict[str, str]]) -> None:
        """One note for a gang that waits, on its group; a pod that is a job of its own gets the note itself."""
        pod = self._writing.cache.pod_of_group(ref_of(group))
        regarding, reason = (group, UNSCHEDULABLE) if pod is None else (pod, "FailedScheduling")
        waits = next((c["message"] for c in told if c["type"] == UNSCHEDULABLE), "")
        waits = waits or joined(session.refusals.jobs.get(job, ()))
        if waits:
            self.why[group.key] = waits
            self._notes.tell(regarding, "Warning", reason, waits, now())
        elif told:
            self._notes.over(regarding, reason)
            if pod is None and not _says_scheduled(group):
                self._notes.tell(group, "Normal", "Scheduled", "pod group is ready", now())


def _says_scheduled(group: Object) -> bool:
    conditions = group.status.conditions  # type: ignore[attr-defined]  # every group has a status
    return any(c.type == "Scheduled" and c.status == "True" for c in conditions)
