"""usage: prefer nodes with little real usage, and reject those with too much.

- filter: average CPU and memory not above their thresholds (80 %)
- score: 100 * usage.weight * ((1 - cpu load) * cpu.weight + (1 - memory load) * memory.weight) / (cpu.weight
  + memory.weight)

The load is what was measured plus an estimate of what the monitoring does not report yet (`shadow_load.py`).
A node that was not measured in the last five minutes is neither rejected nor scored. Measurements come from
outside (`node_usage.py`); the interval of the configuration's `metrics` block, 30 s if unset, is how long a
running pod stays unreported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.cluster.statuses import Status, status_set
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.meta import ResourceList
from maniple.objects.quantity import milli, parse, units
from maniple.plugins.node_usage import NodeUsage
from maniple.plugins.score.shadow_load import Estimator, ShadowLoad
from maniple.plugins.settings import report

TOO_MUCH_CPU = "node's cpu load is above the threshold"
TOO_MUCH_MEMORY = "node's memory load is above the threshold"

_HIGHEST = 100.0
_UNSEEN = status_set(Status.ALLOCATED, Status.BINDING, Status.BOUND)
_DEFAULT_INTERVAL = timedelta(seconds=30)
_MEBIBYTE = 1024 * 1024
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class UsageSettings:
    weight: int = 5
    cpu_weight: int = 1
    memory_weight: int = 1
    cpu_threshold: int = 80
    memory_threshold: int = 80
    estimator: Estimator = field(default_factory=Estimator)

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "UsageSettings":
        given = Arguments(values, Usage.name)
        thresholds = Arguments(given.mapping("thresholds"), f"{Usage.name}: thresholds")
        estimator = Arguments(given.mapping("estimator"), f"{Usage.name}: estimator")
        settings = cls(
            weight=_within(session, given, given.int, "usage.weight", 5),
            cpu_weight=_within(session, given, given.int, "cpu.weight", 1),
            memory_weight=_within(session, given, given.int, "memory.weight", 1),
            cpu_threshold=_within(session, thresholds, thresholds.int, "cpu", 80, most=100),
            memory_threshold=_within(session, thresholds, thresholds.int, "mem", 80, most=100),
            estimator=_read_estimator(session, estimator),
        )
        for part in (given, thresholds, estimator):
            report(session, part)
        return settings


def _read_estimator(session: Session, given: Arguments) -> Estimator:
    return Estimator(
        request_ratio=_within(session, given, given.float, "request_ratio", 0.7, most=1),
        burst_ratio=_within(session, given, given.float, "burst_ratio", 0.0, most=1),
        risk_threshold=_within(session, given, given.float, "risk_threshold", 0.6, most=1),
        risk_factor=_within(session, given, given.float, "risk_factor", 1.2, least=1),
        idle_cpu=_amount(session, given, "be_cpu", "250m", 1, lambda text: milli(parse(text))),
        idle_memory=_amount(session, given, "be_mem", "200Mi", _MEBIBYTE, lambda text: units(parse(text))),
    )


def _within(
    session: Session,
    given: Arguments,
    getter: Callable[[str, Number], Number],
    key: str,
    default: Number,
    *,
    least: int = 0,
    most: int | None = None,
) -> Number:
    """A number within its bounds; one outside is reported and the default stays."""
    number = getter(key, default)
    if number < least or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        session.report(f"{given.owner}: argument {key} must be {bounds}, found {number}, keeping {default}")
        return default
    return number


def _amount(
    session: Session, given: Arguments, key: str, default: str, scale: int, exact: Callable[[str], int]
) -> int:
    """A quantity as text, or a plain number of millicores or mebibytes."""
    plain = isinstance(given.values.get(key), int)
    value = given.int(key, 0) * scale if plain else exact(default)
    if not plain:
        text = given.string(key, default)
        try:
            value = exact(text)
        except ValueError as error:
            session.report(f"{given.owner}: argument {key}: {error}, keeping {default}")
    if value < 0:
        session.report(f"{given.owner}: argument {key} must not be negative, keeping {default}")
        return exact(default)
    return value


class Usage:
    name = "usage"
    triggers = Triggers(time=True)

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = UsageSettings.read(session, arguments)
        self._usage = NodeUsage.read(session)
        measured = np.array([self._usage.cpu, self._usage.memory])
        weights = (self._settings.cpu_weight, self._settings.memory_weight)
        self._shadows = ShadowLoad(self._settings.estimator, measured, _capacity(session), weights)
        self._on_a_node = (session.tasks.node >= 0).copy()  # before anything was decided
        rows = self._unseen()
        classes = [session.classes[number] for number in session.tasks.class_of[rows].tolist()]
        self._shadows.add(rows, session.tasks.node[rows].astype(np.intp), classes)
        self._evicted: dict[int, tuple[int, int, int]] = {}
        self._verdict = self._verdicts()

    def filters(self) -> list[Filter]:
        # Not static: measurements change while the nodes stay the same.
        return [Filter("Usage", Dependence.NODE, self._check)] if self._verdict.any() else []

    def scorers(self) -> list[Scorer]:
        settings = self._settings
        if not (settings.weight and settings.cpu_weight + settings.memory_weight and self._usage.fresh.any()):
            return []
        return [Scorer("Usage", settings.weight, Dependence.NODE, self._score)]

    def on_allocate(self, event: Event) -> None:
        """Tasks got a node, or an eviction was undone: then they are again what they were."""
        before = self._on_a_node[event.rows]
        for row in event.rows[before].tolist():
            shadow = self._evicted.pop(row, None)
            if shadow is not None:
                self._shadows.restore(row, shadow)
        rows = event.rows[~before]
        if len(rows):
            self._shadows.add(rows, event.nodes[~before], [event.class_] * len(rows))

    def on_deallocate(self, event: Event) -> None:
        for row in event.rows[self._on_a_node[event.rows]].tolist():
            shadow = self._shadows.shadow(row)
            if shadow is not None:
                self._evicted[row] = shadow
        self._shadows.remove(event.rows)

    def _verdicts(self) -> Verdicts:
        """By node."""
        usage, settings, reasons = self._usage, self._settings, self._session.reasons
        verdict = np.full(len(usage.fresh), FITS, dtype=np.int16)
        memory = usage.fresh & (usage.memory > settings.memory_threshold)
        verdict[memory] = reasons.number(TOO_MUCH_MEMORY, Code.UNRESOLVABLE)
        cpu = usage.fresh & (usage.cpu > settings.cpu_threshold)
        verdict[cpu] = reasons.number(TOO_MUCH_CPU, Code.UNRESOLVABLE)
        return verdict

    def _check(self, _class: TaskClass, cells: Cells) -> Verdicts:
        verdict = self._verdict[cells.rows]
        return np.broadcast_to(verdict, np.broadcast_shapes(verdict.shape, np.shape(cells.extra)))

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        rows = cells.node_rows()
        freedom = self._shadows.freedom(class_, rows, cells.extra)
        scores: Scores = np.where(self._usage.fresh[rows], _HIGHEST * freedom, 0.0)
        return scores

    def _unseen(self) -> TaskRows:
        """Tasks on nodes that the monitoring does not report yet, in the order of their uids."""
        tasks = self._session.tasks
        unseen: NDArray[np.bool_] = _UNSEEN[tasks.status]
        running = np.flatnonzero((tasks.status == Status.RUNNING) & (tasks.node >= 0))
        unseen[running[self._is_new(running)]] = True
        rows = np.flatnonzero(unseen & (tasks.node >= 0))
        return rows[np.argsort(tasks.rank[rows])]

    def _is_new(self, rows: TaskRows) -> NDArray[np.bool_]:
        """Started less than an interval ago; without a clock only those that have not started count."""
        pods, now = self._session.cluster.tasks.pods, self._session.now
        started = [pods[row].status.start_time for row in rows.tolist()]
        latest = now - _interval(self._session) if now is not None else None
        new = [begin is None or (latest is not None and begin > latest) for begin in started]
        return np.array(new, dtype=np.bool_)


def _interval(session: Session) -> timedelta:
    text = session.configuration.metrics.get("interval", "30s")
    try:
        interval = timedelta(microseconds=nanoseconds(text) / 1000)
    except ValueError as error:
        session.report(f"{Usage.name}: metrics: interval: {error}, keeping 30s")
        return _DEFAULT_INTERVAL
    return interval if interval > timedelta(0) else _DEFAULT_INTERVAL


def _capacity(session: Session) -> Amounts:
    """CPU and memory of nodes in all, with oversubscription."""
    facts = session.nodes.facts
    if Usage not in facts.memory:
        offered = _cpu_and_memory(session, [node.status.allocatable for node in facts.objects])
        lent = session.nodes.allocatable[[CPU, MEMORY]] - offered
        facts.memory[Usage] = (
            _cpu_and_memory(session, [node.status.capacity for node in facts.objects]) + lent
        )
    return facts.memory[Usage]  # type: ignore[return-value]  # what this function put there


def _cpu_and_memory(session: Session, stated: list[ResourceList]) -> Amounts:
    units_of = session.resources.base_units
    rows = [
        [units_of(dimension, amounts.get(name, 0)) for amounts in stated]
        for dimension, name in ((CPU, "cpu"), (MEMORY, "memory"))
    ]
    return np.array(rows, dtype=np.int64)
