"""What a running scheduler counts and measures: plain numbers, read by `web` when metrics are asked for.

The scheduler and its port (`metered.py`) call it. It costs a few additions for each cycle and each write; whatever
takes more, the collector works out from the last plan when it is asked. Nothing here knows about metrics' names.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from maniple.cluster.facts import job_key
from maniple.objects.meta import Object
from maniple.profiles.maniple import KAI, VOLCANO

if TYPE_CHECKING:
    from maniple.framework.plans.plan import Plan

# Upper bounds of buckets, in seconds: from a millisecond to some minutes, and from a tenth of a second to a day.
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LONG = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
MOST_JOBS = (
    20_000  # that have times or evictions of their own; beyond that, those that were first to have them go
)
PREEMPTING = ("preempt", "gangpreempt")


class Tally:
    """A histogram: how many values were at most each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = SHORT) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # not cumulative; the last is above all bounds
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class Tallies(dict[str, Tally]):
    """Histograms by one label."""

    def __init__(self, bounds: tuple[float, ...] = SHORT) -> None:
        super().__init__()
        self._bounds = bounds

    def __missing__(self, key: str) -> Tally:
        made = self[key] = Tally(self._bounds)
        return made


@dataclass(slots=True)
class JobTimes:
    """Of one job: when it was created, and when it first and last got nodes."""

    queue: str
    created: datetime
    first: datetime
    last: datetime
    labels: str = ""  # kept here by the collector, which would make the same ones for every scrape


def _make_room(jobs: dict[str, Any], job: str) -> None:
    if len(jobs) >= MOST_JOBS and job not in jobs:
        del jobs[next(iter(jobs))]


class Meter:
    def __init__(self) -> None:
        self.cycle = Tally()
        self.steps = Tallies()  # open, close and the actions
        self.plugins = Tallies()  # opening each
        self.last_cycle = 0.0
        self.last_steps: dict[str, float] = {}
        self.last_plugins: dict[str, float] = {}
        self.job_waits = Tallies(LONG)  # by the cause for which jobs were pending
        self.pods_decided = Tally(LONG)
        self.pods_bound = Tally(LONG)
        self.jobs: dict[str, JobTimes] = {}  # by name, of jobs that exist
        self.evictions: Counter[str] = Counter()  # pods, by action
        self.transactions: Counter[str] = Counter()  # jobs for which pods were evicted, by action
        self.evicted_of: dict[str, Counter[tuple[str, str]]] = {}  # by job: pods, by its uid and action
        self.last_victims = 0
        self.writes: Counter[tuple[str, str]] = Counter()  # by write and result
        self.write_seconds = Tallies()

    # -- cycles -------------------------------------------------------------------------------------------------------

    def cycled(
        self, plan: "Plan", before: "Plan | None", when: datetime, seconds: float, plugins: dict[str, float]
    ) -> None:
        """A cycle is over; `before` is the plan of the last one."""
        self.cycle.observe(seconds)
        self.last_cycle, self.last_steps, self.last_plugins = seconds, plan.timings, dict(plugins)
        for step, taken in plan.timings.items():
            self.steps[step].observe(taken)
        for plugin, taken in plugins.items():
            self.plugins[plugin].observe(taken)
        if plan.binds or plan.held:
            self._started(plan, before, when)
        if plan.evictions:
            self._evicted(plan)

    def _started(self, plan: "Plan", before: "Plan | None", when: datetime) -> None:
        for one in plan.backlog.started():
            if one.created is None:
                continue
            cause = before.backlog.cause(one) if before is not None else ""
            self.job_waits[cause or "none"].observe(max(0.0, (when - one.created).total_seconds()))
            known = self.jobs.get(one.job)
            if known is None or known.created != one.created:
                _make_room(self.jobs, one.job)
                self.jobs[one.job] = JobTimes(one.queue, one.created, when, when)
            else:
                known.last = when

    def _evicted(self, plan: "Plan") -> None:
        actors = {(one.action, one.actor) for one in plan.evicted}
        self.transactions.update(action for action, _ in actors)
        victims = 0
        for one in plan.evicted:
            self.evictions[one.action] += 1
            victims += one.action in PREEMPTING
            if one.job:
                group = plan.group_of(one.job)
                uid = group.metadata.uid if group is not None else ""
                _make_room(self.evicted_of, one.job)
                self.evicted_of.setdefault(one.job, Counter())[uid, one.action] += 1
        self.last_victims = victims or self.last_victims

    def forget(self, item: Object) -> None:
        """An object is gone; if it was the group of a job, so are its times."""
        for name in (item.key, *(job_key(item.key, system) for system in (VOLCANO, KAI))):
            self.jobs.pop(name, None)
            self.evicted_of.pop(name, None)

    # -- writes -------------------------------------------------------------------------------------------------------

    def wrote(self, write: str, seconds: float, status: int | None) -> None:
        """A write was answered; `status`: None if it was carried out, else why not (0: no response)."""
        result = "ok" if status is None else "refused" if 400 <= status < 500 else "failed"
        self.writes[write, result] += 1
        self.write_seconds[write].observe(seconds)

    def decided(self, created: datetime | None, when: datetime) -> None:
        if created is not None:
            self.pods_decided.observe(max(0.0, (when - created).total_seconds()))

    def bound(self, created: datetime | None, when: datetime) -> None:
        if created is not None:
            self.pods_bound.observe(max(0.0, (when - created).total_seconds()))
