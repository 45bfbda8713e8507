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
from maniple.live.cache import Assumption
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
        self._words = Pace()
        self._amounts = Pace()
        self._pods = WaitingPods(writing, self._words)
        self._queues = QueueStatuses(writing, dialect, self._amounts)
        self.why: dict[str, str] = {}  # by job that waited in the last cycle

    def write(self, plan: Plan, when: datetime, cause: str) -> bool:
        """Bring every status up to a plan. True when a decision may depend on what is written now."""
        when = when.replace(microsecond=0)  # the API keeps no more
        self._write_groups(plan.session, when, cause)
        self._pods.write(plan, when)
        self._queues.write(plan.session)
        return self._writing.carry_out()

    def flush(self) -> bool:
        """Write what has waited for its time. True when a decision may depend on it."""
        return self._words.flush(now()) | self._amounts.flush(now())

    def next_due(self) -> float | None:
        due = [pace.next_due() for pace in (self._words, self._amounts)]
        return min((moment for moment in due if moment is not None), default=None)

    def forget(self, item: Object) -> None:
        """The object is gone."""
        self._words.forget(ref_of(item))
        self._amounts.forget(ref_of(item))
        self._notes.forget(item)

    def _write_groups(self, session: Session, when: datetime, cause: str) -> None:
        self.why = {}
        counts = session.jobs.counts[_COUNTED].T.tolist()
        objects = session.cluster.jobs.objects
        for job, phase in job_phases(session).items():
            before, told = objects[job], session.conditions.get(job, [])
            running, succeeded, failed = counts[job]
            after = self._dialect.group_status(before, phase, (running, succeeded, failed), told, when, cause)
            self._tell(session, job, before, told)
            if after is before:
                self._words.drop(ref_of(before))
            else:
                self._write_group(before, after)

    def _write_group(self, before: Object, after: Object) -> None:
        ref, cache, port = ref_of(before), self._writing.cache, self._writing.port
        if cache.pod_of_group(ref) is not None:
            self._writing.keep(after)
            return
        status = after.status  # type: ignore[attr-defined]  # every group has one
        assumption = Assumption(
            uid=after.metadata.uid,
            change=lambda seen: replace(seen, status=status),
            shown=lambda seen: bool(seen.status == status),
        )
        patch = self._dialect.group_patch(after)
        words = [self._dialect.words(group) for group in (before, after)]
        self._writing.ask(
            ref,
            "status",
            assumption,
            lambda: port.patch_status(*ref, patch),
            self._words,
            apart=apart(*words) if self._dialect.differ_in_words_only(before, after) else 0.0,
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
