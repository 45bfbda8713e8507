"""tdm: nodes that are lent out by the hour (time division multiplexing).

A node's zone is its label volcano.sh/revocable-zone; `tdm.revocable-zone.<zone>` says when the zone is open.
While it is, its nodes accept tasks that allow it: annotation volcano.sh/revocable-zone "*", or
volcano.sh/preemptable "true" and no zone stated.
- filter: node without a zone, or zone open now and task allows it; then the score is 100 on nodes with a zone
- preemptable: of jobs' preemptable running tasks on nodes without a zone, as many as each job may lose, for a
  task that is neither preemptable nor allows zones
- victim tasks: once per `tdm.evict.period`, preemptable running tasks on nodes of closed zones, as many as
  each job may lose

Jobs that are not preemptable come first, and starve while any task of theirs is pending; `job_budget.py` says
what a job may lose.

A window over midnight is open after midnight too, and a zone with an invalid window is closed but not
cleared; in Volcano neither (`placing.windows_cross_midnight`, `victims.unreadable_zones_are_cleared`).
Without a clock every zone is closed and nothing is cleared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.combine import Vote
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.configuration.scalars import parse_bool
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import TaskRows
from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.plugins.candidates import place_in_group, served_jobs
from maniple.plugins.feasibility.windows import Window
from maniple.plugins.job_budget import may_lose
from maniple.plugins.settings import report

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"
ANY_ZONE = "*"

UNKNOWN_ZONE = "node's revocable zone is not configured"
CLOSED_ZONE = "node's revocable zone is closed at this time"
NOT_ALLOWED = "task does not allow revocable nodes"

_PREFIX = "tdm.revocable-zone."
_SCORE = 100.0
LAST_CLEARED = "tdm: last cleared at"
_REVOCABLE = 1  # the mark of tasks that allow zones


@dataclass(frozen=True, slots=True)
class TdmSettings:
    """`zones` by name; None for an invalid window."""

    zones: Mapping[str, Window | None]
    evict_period: timedelta = timedelta(minutes=1)

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "TdmSettings":
        given = Arguments(values, Tdm.name)
        zones = {
            key.removeprefix(_PREFIX): _window(session, key, given.string(key, ""))
            for key in sorted(values)
            if key.startswith(_PREFIX)
        }
        period = given.string("tdm.evict.period", "1m")
        report(session, given, (_PREFIX,))
        return cls(zones, _period(session, period))


def _window(session: Session, key: str, text: str) -> Window | None:
    try:
        return Window.read(text)
    except ValueError as error:
        session.report(f"{Tdm.name}: argument {key}: {error}; the zone stays closed")
        return None


def _period(session: Session, text: str) -> timedelta:
    try:
        return timedelta(microseconds=nanoseconds(text) / 1000)
    except ValueError as error:
        session.report(f"{Tdm.name}: argument tdm.evict.period: {error}, keeping 1m")
        return timedelta(minutes=1)


class Tdm:
    name = "tdm"
    triggers = Triggers(time=True)

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = TdmSettings.read(session, arguments)
        self._served = served_jobs(session)
        column = session.nodes.facts.label(ZONE)
        self._zones = column.values
        named = np.array(
            [*map(bool, self._zones), False], dtype=np.bool_
        )  # the last: nodes without the label
        self._zone_of = column.codes
        self._in_zone = named[column.codes]
        self._verdict = self._verdicts()
        refused = session.reasons.number(NOT_ALLOWED, Code.UNRESOLVABLE)
        open_ = self._in_zone & (self._verdict == FITS)
        self._verdict_of_others: Verdicts = np.where(open_, refused, self._verdict).astype(np.int16)
        self._pods = session.cluster.tasks.pods
        if self._in_zone.any():
            self._mark_tasks()

    # -- nodes ----------------------------------------------------------------------------------------------------

    def filters(self) -> list[Filter]:
        # Not static: what holds now need not hold in the next session.
        return [Filter("RevocableZone", Dependence.NODE, self._check)] if self._in_zone.any() else []

    def scorers(self) -> list[Scorer]:
        if not self._in_zone.any():
            return []
        return [Scorer("RevocableZone", 1.0, Dependence.STATIC, self._score, applies=self._allows)]

    def _verdicts(self) -> Verdicts:
        """By node, for a task that allows zones."""
        numbers = [self._refusal(zone) if zone else FITS for zone in self._zones]
        return np.array([*numbers, FITS], dtype=np.int16)[self._zone_of]

    def _refusal(self, zone: str) -> int:
        if zone not in self._settings.zones:
            return self._session.reasons.number(UNKNOWN_ZONE, Code.UNRESOLVABLE)
        if not self._is_open(zone):
            return self._session.reasons.number(CLOSED_ZONE, Code.UNRESOLVABLE)
        return FITS

    def _is_open(self, zone: str) -> bool:
        window, now = self._settings.zones[zone], self._session.now
        return (
            window is not None
            and now is not None
            and window.holds(now, since_yesterday=self._session.rules.placing.windows_cross_midnight)
        )

    def _allows(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = self._verdict if self._allows(class_) else self._verdict_of_others
        chosen = verdict[cells.rows]
        return np.broadcast_to(chosen, np.broadcast_shapes(chosen.shape, np.shape(cells.extra)))

    def _score(self, _class: TaskClass, cells: Cells) -> Scores:
        return np.where(self._in_zone & (self._verdict == FITS), _SCORE, 0.0)[cells.rows]

    def _mark_tasks(self) -> None:
        tasks = self._session.tasks
        waiting = np.flatnonzero((tasks.status == Status.PENDING) & (tasks.job >= 0)).tolist()
        rows = np.array(
            [row for row in waiting if allows_zones(self._pods[row].metadata.annotations)], dtype=np.int64
        )
        self._session.refine(self.name, rows, np.full(len(rows), _REVOCABLE, dtype=np.int64))

    # -- jobs -----------------------------------------------------------------------------------------------------

    def job_order(self, job: int) -> int:
        return int(self._session.job_facts(job).preemptable)

    def job_pipelined(self, job: int) -> Vote:
        session, jobs = self._session, self._session.jobs
        there = session.ready(job) + session.pipelined(job) + int(jobs.pending_best_effort[job])
        return Vote.PERMIT if there >= jobs.minimum[job] else Vote.REJECT

    def job_starving(self, job: int) -> bool:
        counts = self._session.jobs.counts[:, job]
        waits = counts[Status.PENDING] + counts[Status.GATED] > 0
        return bool(waits) and not self._session.job_facts(job).preemptable

    # -- victims --------------------------------------------------------------------------------------------------

    def preemptable(self, task: int, candidates: TaskRows) -> TaskRows:
        if self._session.tasks.preemptable[task] or allows_zones(self._pods[task].metadata.annotations):
            return candidates[:0]
        return self._as_many_as_allowed(self._on(candidates, ~self._in_zone))

    def victim_tasks(self, running: TaskRows) -> TaskRows:
        if not self._is_time_to_clear():
            return running[:0]
        closed = np.array([*map(self._is_to_be_cleared, self._zones), False], dtype=np.bool_)
        return self._as_many_as_allowed(self._on(running, closed[self._zone_of]))

    def victim_reason(self, task: int) -> str | None:
        node = int(self._session.tasks.node[task])
        zone = self._zones[self._zone_of[node]] if self._in_zone[node] else None
        return f"its revocable zone {zone} is closed now" if zone and self._is_to_be_cleared(zone) else None

    def _on(self, rows: TaskRows, chosen: NDArray[np.bool_]) -> TaskRows:
        """The tasks on chosen nodes."""
        rows = rows[self._session.tasks.node[rows] >= 0]
        return rows[chosen[self._session.tasks.node[rows]]]

    def _is_to_be_cleared(self, zone: str) -> bool:
        if not zone or zone not in self._settings.zones:
            return False
        readable = self._settings.zones[zone] is not None
        return (readable or self._session.rules.victims.unreadable_zones_are_cleared) and not self._is_open(
            zone
        )

    def _is_time_to_clear(self) -> bool:
        """At most once per period, over all sessions of the cluster."""
        now, memory = self._session.now, self._session.cluster.memory
        last = memory.get(LAST_CLEARED)
        if now is None or (isinstance(last, datetime) and last + self._settings.evict_period > now):
            return False
        memory[LAST_CLEARED] = now
        return True

    def _as_many_as_allowed(self, rows: TaskRows) -> TaskRows:
        """Of each job's preemptable running tasks the first ones, up to what the job may lose."""
        tasks = self._session.tasks
        suitable = (
            tasks.preemptable[rows] & (tasks.status[rows] == Status.RUNNING) & self._served[tasks.job[rows]]
        )
        rows = rows[suitable]
        jobs = tasks.job[rows]
        most = {job: may_lose(self._session, job) for job in set(jobs.tolist())}
        places = place_in_group(jobs).tolist()
        allowed = [place < most[job] for job, place in zip(jobs.tolist(), places, strict=True)]
        return rows[np.array(allowed, dtype=np.bool_)]


def allows_zones(annotations: Mapping[str, str]) -> bool:
    """A task can only name the zone "*"; a label, unlike an annotation, does not set zones."""
    if ZONE in annotations:
        return annotations[ZONE] == ANY_ZONE
    return bool(parse_bool(annotations.get(PREEMPTABLE, "")))
