"""The queries to a Prometheus server about the past usage of queues, and how responses are read; pure.

Usage of a queue is what it had allocated, summed over a window of time, as a part of the cluster's capacity
in that window; with a half-life, older usage counts for less. A *sliding* window ends now and has a constant
length; a *tumbling* one restarts periodically, counted from a start; a *cron* window restarts at the moments
of an expression. The last two are queried like the first, with their current length (the server rejects KAI's
own queries for them). Right after a window has begun nothing has been used.

Called by `usage`, which sends the queries.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from maniple.framework.configuration.durations import long_nanoseconds
from maniple.kube.cron import last_due, read_cron
from maniple.kube.measuring import without_login

RESOURCES = ("gpu", "cpu", "memory")
_ALLOCATION = {
    "gpu": "kai_queue_allocated_gpus",
    "cpu": "kai_queue_allocated_cpu_cores",
    "memory": "kai_queue_allocated_memory_bytes",
}
_CAPACITY = {
    resource: f'sum(kube_node_status_capacity{{resource="{label}"}})'
    for resource, label in (("gpu", "nvidia_com_gpu"), ("cpu", "cpu"), ("memory", "memory"))
}
_QUEUE = "queue_name"
Usage = dict[str, dict[str, float]]  # queue -> resource -> part of the capacity


@dataclass(frozen=True, slots=True)
class Window:
    """The span of time over which usage is summed."""

    size: timedelta = timedelta(weeks=1)
    start: datetime | None = None  # of the first tumbling window
    cron: str | None = None  # as `read_cron` returns it

    def length(self, now: datetime) -> timedelta:
        """From the beginning of the window until now; zero if it has not begun."""
        if self.cron is not None:
            return now - last_due(self.cron, now)
        if self.start is not None:
            return (now - self.start) % self.size if now > self.start else timedelta()
        return self.size


@dataclass(frozen=True, slots=True)
class UsageSettings:
    """`usageDBConfig`, checked."""

    address: str
    window: Window = Window()
    half_life: timedelta | None = None
    resolution: timedelta = timedelta(minutes=1)
    query_timeout: timedelta = timedelta(seconds=10)
    fetch_interval: timedelta = timedelta(minutes=1)
    staleness: timedelta = timedelta(minutes=5)
    wait: timedelta = timedelta(minutes=1)
    allocation: Mapping[str, str] = field(default_factory=lambda: _ALLOCATION)
    capacity: Mapping[str, str] = field(default_factory=lambda: _CAPACITY)

    def __post_init__(self) -> None:
        # Data is not stale before it could have been fetched again.
        object.__setattr__(self, "staleness", max(self.staleness, self.fetch_interval))

    @property
    def place(self) -> str:
        """The address without name and password."""
        return without_login(self.address)


# -- reading the configuration --------------------------------------------------------------------------------------


def read_settings(block: Mapping[str, Any], environment: Mapping[str, str]) -> UsageSettings:
    """The `usage` of a configuration; raises ValueError naming the field."""
    kind = block.get("clientType", "")
    if kind != "prometheus":
        raise ValueError(f"usageDBConfig.clientType: only prometheus is read, found {str(kind)[:40]!r}")
    given = block.get("usageParams") or {}
    extra = given.get("extraParams") or {}
    half_life = _duration(given, "halfLifePeriod", timedelta())
    return UsageSettings(
        address=_address(block, environment),
        window=_window(given),
        half_life=half_life if half_life > timedelta() else None,
        resolution=_positive(extra, "queryResolution", timedelta(minutes=1)),
        query_timeout=_positive(extra, "usageQueryTimeout", timedelta(seconds=10)),
        fetch_interval=_positive(given, "fetchInterval", timedelta(minutes=1)),
        staleness=_positive(given, "stalenessPeriod", timedelta(minutes=5)),
        wait=_duration(given, "waitTimeout", timedelta(minutes=1)),
        allocation={one: extra.get(f"{one}AllocationMetric") or _ALLOCATION[one] for one in RESOURCES},
        capacity={one: extra.get(f"{one}CapacityMetric") or _CAPACITY[one] for one in RESOURCES},
    )


def _address(block: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    name = block.get("connectionStringEnvVar", "")
    field_, text = "connectionString", str(block.get("connectionString", ""))
    if name:
        field_, text = "connectionStringEnvVar", environment.get(str(name), "")
    if not text.startswith(("http://", "https://")):
        found = f"the variable {name} is {text[:60]!r}" if name else f"found {text[:60]!r}"
        raise ValueError(f"usageDBConfig.{field_}: must be an address with http:// or https://, {found}")
    return text.rstrip("/")


def _window(given: Mapping[str, Any]) -> Window:
    size = _positive(given, "windowSize", timedelta(weeks=1))
    match given.get("windowType", "sliding"):
        case "tumbling":
            start = given.get("tumblingWindowStartTime")
            if not start:
                raise _wrong("tumblingWindowStartTime", "is needed for a tumbling window")
            return Window(size, start=_moment(str(start)))
        case "cron":
            try:
                return Window(size, cron=read_cron(str(given.get("cronString", ""))))
            except ValueError as error:
                raise _wrong("cronString", str(error)) from None
        case "sliding":
            return Window(size)
        case other:
            raise _wrong("windowType", f"must be sliding, tumbling or cron, found {str(other)[:40]!r}")


def _wrong(name: str, complaint: str) -> ValueError:
    return ValueError(f"usageDBConfig.usageParams.{name}: {complaint}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _wrong(
            "tumblingWindowStartTime", f"not a time such as 2026-01-01T00:00:00Z: {text[:60]!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _duration(given: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    if name not in given:
        return default
    try:
        return timedelta(microseconds=long_nanoseconds(str(given[name])) // 1000)
    except ValueError as error:
        raise _wrong(name, str(error)) from None


def _positive(given: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    duration = _duration(given, name, default)
    if duration <= timedelta():
        raise _wrong(name, "must be positive")
    return duration


# -- queries and responses ------------------------------------------------------------------------------------------


def query(expression: str, settings: UsageSettings, now: datetime) -> str | None:
    """The sum of an expression over the window at `now`; None if the window is too young for one sample."""
    length = settings.window.length(now)
    if length < settings.resolution:
        return None
    if settings.half_life is not None:
        seconds = settings.half_life.total_seconds()
        expression = f"({expression}) * (0.5 ^ (({now.timestamp():.0f} - time()) / {seconds:.6f}))"
    return f"sum_over_time(({expression})[{_span(length)}:{_span(settings.resolution)}])"


def _span(duration: timedelta) -> str:
    """A duration in Prometheus' syntax: whole seconds, or milliseconds."""
    thousandths = round(duration / timedelta(milliseconds=1))
    return f"{thousandths // 1000}s" if thousandths % 1000 == 0 else f"{thousandths}ms"


def read_vector(answer: Any) -> list[tuple[Mapping[str, str], float]]:
    """Labels and value of every series of a response; NaN and infinities are left out.

    Raises ValueError for anything else.
    """
    if not isinstance(answer, Mapping) or answer.get("status") != "success":
        error = answer.get("error", "no reason given") if isinstance(answer, Mapping) else "not a JSON object"
        raise ValueError(f"the query failed: {str(error)[:200]}")
    data = answer.get("data")
    if not isinstance(data, Mapping) or data.get("resultType") != "vector":
        raise ValueError("the response is not a vector")
    series = []
    for one in data.get("result") or ():
        try:
            labels, value = one.get("metric", {}), float(one["value"][1])
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise ValueError("the response is not a vector") from None
        if not isinstance(labels, Mapping):
            raise ValueError("the response is not a vector")
        if math.isfinite(value):
            series.append((labels, value))
    return series


def used_by_queue(answer: Any) -> dict[str, float]:
    """Sum the series of each queue: a queue has several if their exporter was restarted."""
    used: dict[str, float] = {}
    for labels, value in read_vector(answer):
        queue = labels.get(_QUEUE)
        if queue and isinstance(queue, str):
            used[queue] = used.get(queue, 0.0) + max(value, 0.0)
    return used


def capacity_of(answer: Any) -> float:
    """The capacity; 0 if unknown."""
    return sum(max(value, 0.0) for _, value in read_vector(answer))


def parts(used: Mapping[str, Mapping[str, float]], capacity: Mapping[str, float]) -> Usage:
    """Usage (resource -> queue -> sum) as fractions of the capacity; resources without any are left out."""
    usage: Usage = {}
    for resource, by_queue in used.items():
        for queue, amount in by_queue.items():
            if capacity.get(resource, 0.0) > 0:
                usage.setdefault(queue, {})[resource] = amount / capacity[resource]
    return usage


__all__ = [
    "RESOURCES",
    "Usage",
    "UsageSettings",
    "Window",
    "capacity_of",
    "parts",
    "query",
    "read_settings",
    "read_vector",
    "used_by_queue",
]
