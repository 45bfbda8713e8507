"""rescheduling: periodically, pods of overloaded nodes are evicted, so that they start again elsewhere.

Once per `interval` (the first time one interval after the start), for each of `strategies`; there is one,
lowNodeUtilization:
- low: schedulable nodes that use less than `thresholds` of CPU and of memory
- high: other nodes that use more than `targetThresholds` of one of them
- room: over the low nodes, what is left up to the target

If some nodes are low, not all, and some are high: from the most loaded high node on, running tasks by
priority and then by quality of service, the lowest first, until the node is under its targets or the room is
used up. A task counts with its request.

Usage is measured outside (`node_usage.py`). Better than in Volcano, whose behaviour the rules `budgets` can
restore (`compat: strict` does):
- measurements are used whatever `metricsPeriod` says (Volcano keeps them under "10m" only, so that with its
  default "5m" nothing ever happens);
- a node that was not measured in the last five minutes is neither low nor high (in Volcano it counts as
  idle);
- nothing is evicted once the room has run out (Volcano stops only if it comes out at exactly 0).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.document import quoted, suggestion
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.meta import ResourceList
from maniple.objects.quality import quality_of
from maniple.plugins.node_usage import NodeUsage
from maniple.plugins.settings import report

LOW_NODE_UTILIZATION = "lowNodeUtilization"
OVERUSED = "its node is used above the target thresholds of lowNodeUtilization, and others have room"
KEPT_PERIOD = "10m"  # under which Volcano finds measurements

_RESOURCES = ("cpu", "memory")
LAST_RUN = "rescheduling: last run at"
_UNSTATED = -(2**31) - 1  # a pod without a priority comes before all that have one
Percentages = NDArray[np.float64]  # of cpu and memory


@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    low: Percentages
    target: Percentages


@dataclass(frozen=True, slots=True)
class ReschedulingSettings:
    """`thresholds` is None if no existing strategy is configured."""

    interval: timedelta
    metrics_period: str
    thresholds: Thresholds | None

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "ReschedulingSettings":
        given = Arguments(values, Rescheduling.name)
        interval = given.string("interval", "5m")
        settings = cls(
            _interval(session, interval),
            given.string("metricsPeriod", "5m") or "5m",
            _strategies(session, given.list("strategies")),
        )
        report(session, given)
        return settings


def _interval(session: Session, text: str) -> timedelta:
    try:
        return timedelta(microseconds=nanoseconds(text) / 1000)
    except ValueError as error:
        session.report(f"{Rescheduling.name}: argument interval: {error}, keeping 5m")
        return timedelta(minutes=5)


def _strategies(session: Session, listed: list[Any]) -> Thresholds | None:
    """The thresholds of the strategy; of several entries the last counts."""
    found = None
    for place, entry in enumerate(listed or [{"name": LOW_NODE_UTILIZATION}]):
        where = f"{Rescheduling.name}: strategies[{place}]"
        if not isinstance(entry, Mapping):
            session.report(f"{where} must be a mapping with name and params, ignored")
            continue
        given = Arguments(entry, where)
        name, params = given.string("name", ""), given.mapping("params")
        report(session, given)
        if name == LOW_NODE_UTILIZATION:
            found = _thresholds(session, params, f"{where}.params")
        else:
            hint = suggestion(name, (LOW_NODE_UTILIZATION,))
            session.report(f"{where}: there is no strategy {quoted(name)}, ignored{hint}")
    return found


def _thresholds(session: Session, params: Mapping[str, Any], where: str) -> Thresholds:
    given = Arguments(params, where)
    both = []
    for key in ("thresholds", "targetThresholds"):
        percentages = Arguments(given.mapping(key), f"{where}.{key}")
        both.append(np.array([percentages.float(name, 100.0) for name in _RESOURCES], dtype=np.float64))
        percentages.float("pods", 100.0)  # known to Volcano, but it measures no pods
        report(session, percentages)
    # Known to Volcano, but it never reads them.
    given.bool("nodeFit", True)
    given.string("thresholdPriorityClassName", "")
    report(session, given)
    return Thresholds(both[0], both[1])


class Rescheduling:
    name = "rescheduling"
    triggers = Triggers(time=True)

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = ReschedulingSettings.read(session, arguments)
        self._named: set[int] = set()

    def victim_tasks(self, running: TaskRows) -> TaskRows:
        if self._settings.thresholds is None or not self._is_time():
            return running[:0]
        victims = _Balance(self._session, self._settings, self._settings.thresholds).victims(running)
        self._named.update(victims.tolist())
        return victims

    def victim_reason(self, task: int) -> str | None:
        return OVERUSED if task in self._named else None

    def _is_time(self) -> bool:
        """Once per interval, over all sessions of the cluster; never without a clock."""
        now, memory = self._session.now, self._session.cluster.memory
        if now is None:
            return False
        last = memory.setdefault(LAST_RUN, now)
        if not isinstance(last, datetime) or last + self._settings.interval >= now:
            return False
        memory[LAST_RUN] = now
        return True


class _Balance:
    """One run of the strategy."""

    def __init__(self, session: Session, settings: ReschedulingSettings, thresholds: Thresholds) -> None:
        self._session = session
        self._target = thresholds.target
        usage = NodeUsage.read(session)
        known = usage.fresh
        rules = session.rules.budgets
        if rules.unmeasured_nodes_are_idle:
            known = np.ones(len(usage.fresh), dtype=np.bool_)
        read = not rules.measured_only_in_ten_minutes or settings.metrics_period == KEPT_PERIOD
        self._used: Percentages = np.array([usage.cpu, usage.memory]) * read
        open_ = ~session.nodes.facts.unschedulable
        self._low = known & open_ & (self._used < thresholds.low[:, None]).all(axis=0)
        self._high = known & ~self._low & (self._used > thresholds.target[:, None]).any(axis=0)

    def victims(self, running: TaskRows) -> TaskRows:
        if not self._low.any() or self._low.all() or not self._high.any():
            return running[:0]
        room = self._room()
        nodes = np.flatnonzero(self._high)
        victims: list[int] = []
        for node in nodes[np.argsort(-self._used[:, nodes].sum(axis=0), kind="stable")].tolist():
            victims += self._relieve(node, self._in_order(running, node), room)
        return np.array(victims, dtype=np.int64)

    def _room(self) -> Amounts:
        """What the low nodes can still take, in millicores and bytes."""
        room = np.zeros(2, dtype=np.int64)
        for node in np.flatnonzero(self._low).tolist():
            status = self._session.nodes.facts.objects[node].status
            size = self._amounts(status.allocatable or status.capacity).astype(np.float64)
            room += (self._target * size * 0.01).astype(np.int64)
            room -= (self._used[:, node] * size * 0.01).astype(np.int64)
        return room

    def _relieve(self, node: int, rows: list[int], room: Amounts) -> list[int]:
        """Tasks to evict from a node, in order; they use up the room."""
        capacity = self._amounts(self._session.nodes.facts.objects[node].status.capacity)
        used, victims = self._used[:, node].copy(), []
        for row in rows:
            if not (used >= self._target).any() or self._is_used_up(room):
                break
            request = self._session.requests(np.array([row]))[[CPU, MEMORY], 0]
            room -= request
            used -= np.divide(100.0 * request, capacity, out=np.zeros(2), where=capacity > 0)
            victims.append(row)
        return victims

    def _is_used_up(self, room: Amounts) -> bool:
        overdraws = self._session.rules.budgets.rescheduling_overdraws
        return bool((room == 0).any() if overdraws else (room <= 0).any())

    def _in_order(self, running: TaskRows, node: int) -> list[int]:
        """A node's running tasks, the ones to go first first."""
        tasks, pods = self._session.tasks, self._session.cluster.tasks.pods
        here = running[(tasks.node[running] == node) & (tasks.status[running] == Status.RUNNING)]

        def turn(row: int) -> tuple[int, int, int]:
            priority = pods[row].spec.priority
            return (
                _UNSTATED if priority is None else priority,
                quality_of(pods[row]),
                int(tasks.rank[row]),
            )

        return sorted(here.tolist(), key=turn)

    def _amounts(self, stated: ResourceList) -> Amounts:
        units = self._session.resources.base_units
        return np.array(
            [units(CPU, stated.get("cpu", 0)), units(MEMORY, stated.get("memory", 0))], dtype=np.int64
        )
