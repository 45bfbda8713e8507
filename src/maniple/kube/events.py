"""Events: short notes on an object, as `kubectl describe` shows them.

`KubeCluster` records them here. A repeated note is counted on the existing event instead of creating another
one; an object that causes too many is throttled for a while. A note that cannot be written is lost with a
line in the log, never more.
"""

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from maniple.kube.client import Body, Client
from maniple.kube.errors import ApiError
from maniple.kube.kinds import EVENTS, KINDS
from maniple.objects.meta import Object

log = logging.getLogger(__name__)

# What the API server allows.
_LONGEST_NOTE = 1024
_LONGEST_NAME = 253
_LONGEST_WORD = 128
# Enough for every pending pod of a large cluster; an evicted entry only means a new event.
REMEMBERED = 50_000
# As Kubernetes' own recorder: a note that was not repeated for so long begins a new event when it comes again.
FORGOTTEN_SECONDS = 360.0

EventType = Literal["Normal", "Warning"]


class _Note(NamedTuple):
    """What makes two events the same."""

    reference: tuple[str, str, str, str, str]
    type: str
    reason: str
    action: str
    note: str


@dataclass(slots=True)
class _Series:
    """An event on the server, and how often it happened; the lock keeps its writes in order."""

    name: str = ""
    count: int = 0
    written: int = 0
    used: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    used: float


class EventRecorder:
    """`burst` events of one object at once, then one every `seconds`."""

    def __init__(
        self,
        client: Client,
        controller: str,
        instance: str,
        *,
        burst: int = 25,
        seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:_LONGEST_WORD]
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._now = now
        self._series: OrderedDict[_Note, _Series] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ...], _Bucket] = OrderedDict()

    async def record(
        self,
        regarding: Object,
        event_type: EventType,
        reason: str,
        note: str,
        action: str = "Scheduling",
        annotations: Mapping[str, str] | None = None,
    ) -> bool:
        """Write or count an event; false if it was held back or could not be written.

        An event that is counted keeps its annotations.
        """
        note = note.encode()[:_LONGEST_NOTE].decode("utf-8", "ignore")
        same = _Note(_reference_key(regarding), event_type, reason, action, note)
        now = self._clock()
        _forget(self._series, now - FORGOTTEN_SECONDS)
        _forget(self._buckets, now - FORGOTTEN_SECONDS)
        series = self._remember(same, now)
        series.count += 1
        if not self._take_token(same.reference, now):
            return False
        async with series.lock:
            if series.written >= series.count:
                return True
            try:
                await self._write(regarding, same, series, annotations or {})
            except ApiError as error:
                log.info("event %s on %s could not be written: %s", reason, regarding.key, error)
                return False
        return True

    def _remember(self, same: _Note, now: float) -> _Series:
        series = self._series.setdefault(same, _Series())
        self._series.move_to_end(same)
        series.used = now
        return series

    def _take_token(self, reference: tuple[str, ...], now: float) -> bool:
        bucket = self._buckets.setdefault(reference, _Bucket(self._burst, now))
        self._buckets.move_to_end(reference)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.used) / self._seconds)
        bucket.used = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    async def _write(
        self, regarding: Object, same: _Note, series: _Series, annotations: Mapping[str, str]
    ) -> None:
        namespace = regarding.metadata.namespace or "default"
        count = series.count
        if series.name:
            change: Body = {"series": {"count": count, "lastObservedTime": self._stamp()}}
            try:
                await self._client.patch(EVENTS, f"{namespace}/{series.name}", change)
                series.written = count
                return
            except ApiError as error:
                # The server deletes events after an hour; then a new series begins.
                if error.status != 404:
                    raise
        series.count -= series.written
        series.written = 0
        series.name = _event_name(regarding)
        event = self._event(regarding, same, series.name)
        if annotations:
            event["metadata"]["annotations"] = dict(annotations)
        try:
            await self._client.create(EVENTS, namespace, event, idempotent=True)
        except ApiError as error:
            # Our own, from an attempt whose response was lost: the name is unique.
            if error.reason != "AlreadyExists":
                series.name = ""
                raise
        series.written = 1

    def _event(self, regarding: Object, same: _Note, name: str) -> Body:
        kind, api_version, namespace, object_name, uid = same.reference
        reference = {
            "kind": kind,
            "apiVersion": api_version,
            "namespace": namespace,
            "name": object_name,
            "uid": uid,
            "resourceVersion": regarding.metadata.resource_version,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace or "default"},
            "eventTime": self._stamp(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": same.action,
            "reason": same.reason,
            "regarding": {name: value for name, value in reference.items() if value},
            "note": same.note,
            "type": same.type,
        }

    def _stamp(self) -> str:
        """A MicroTime, which must have exactly six decimals."""
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _forget(remembered: OrderedDict[Any, Any], moment: float) -> None:
    """Drop what was last used before that moment; the least recently used comes first."""
    while remembered:
        oldest: _Series | _Bucket = next(iter(remembered.values()))
        if oldest.used >= moment and len(remembered) < REMEMBERED:
            return
        remembered.popitem(last=False)


def _reference_key(regarding: Object) -> tuple[str, str, str, str, str]:
    kind = KINDS[type(regarding)]
    api_version = kind.at(kind.versions[0]).api_version
    metadata = regarding.metadata
    namespace = (metadata.namespace or "default") if kind.namespaced else ""
    return kind.struct.kind, api_version, namespace, metadata.name, metadata.uid


def _event_name(regarding: Object) -> str:
    tail = f".{uuid.uuid4().hex[:16]}"
    return regarding.metadata.name[: _LONGEST_NAME - len(tail)].rstrip(".-") + tail
