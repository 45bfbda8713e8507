"""sla: a job that is pending for longer than its waiting time goes first and is admitted.

deadline = creation + waiting time; jobs with a deadline come before those without, the earlier one first.
Once the deadline has passed, the job is permitted to be admitted and to hold its allocation while it waits
for the rest; until then this plugin abstains. The vote on holding only counts in a tier before gang's,
because gang rejects in its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.combine import Vote
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.plugins.settings import report

ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class SlaArguments:
    """`waiting_time` in seconds applies to jobs that state none; None: they have no deadline."""

    waiting_time: float | None = None

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "SlaArguments":
        given = Arguments(values, Sla.name)
        text = given.string("sla-waiting-time", "")
        report(session, given)
        return cls(_positive(session, text, "sla: argument sla-waiting-time") if text else None)


class Sla:
    name = "sla"
    triggers = Triggers(time=True)

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._arguments = SlaArguments.read(session, arguments)
        self._now = session.now.timestamp() if session.now is not None else None
        self._deadlines: dict[int, float] = {}

    def job_order(self, job: int) -> float:
        """The deadline of the job; never, for one without."""
        deadline = self._deadlines.get(job)
        if deadline is None:
            deadline = self._deadlines[job] = self._deadline(job)
        return deadline

    def job_enqueueable(self, job: int) -> Vote:
        # Without a clock every job counts as just created.
        late = self._now is not None and self.job_order(job) <= self._now
        return Vote.PERMIT if late else Vote.ABSTAIN

    def job_pipelined(self, job: int) -> Vote:
        return self.job_enqueueable(job)

    def _deadline(self, job: int) -> float:
        waiting = self._stated(job) or self._arguments.waiting_time
        return math.inf if waiting is None else float(self._session.jobs.created[job]) + waiting

    def _stated(self, job: int) -> float | None:
        """The first of the job's own annotations that can be read."""
        annotations = self._session.cluster.jobs.objects[job].metadata.annotations
        for key in ANNOTATIONS:
            if key in annotations:
                where = f"sla: job {self._session.job_key(job)}: annotation {key}"
                waiting = _positive(self._session, annotations[key], where)
                if waiting is not None:
                    return waiting
        return None


def _positive(session: Session, text: str, where: str) -> float | None:
    """A waiting time in seconds; one that is not positive or invalid is reported and left out."""
    try:
        waiting = nanoseconds(text)
    except ValueError as error:
        session.report(f"{where}: {error}, ignored")
        return None
    if waiting <= 0:
        session.report(f"{where}: must be positive, ignored")
        return None
    return waiting / _SECOND
