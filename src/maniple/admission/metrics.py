"""What the webhook counts, as Prometheus reads it; docs/admission.md describes each."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from maniple.live.meter import Tallies
from maniple.objects.meta import Object
from maniple.web.exposition import encoded
from maniple.web.families import counter, counters, gauge, gauges, histograms

ALLOWED, REFUSED, FAILED, PATCHED = "allowed", "refused", "failed", "patched"
# An answer takes less than a millisecond, a look at the API server some more.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Counts:
    """Plain numbers, by the path of the request."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str, str]] = Counter()
        self.seconds = Tallies(BOUNDS)
        self.bad_requests = 0
        self.lookups = 0

    def note(self, path: str, operation: str, kind: type[Object] | None, result: str, seconds: float) -> None:
        known = operation if operation in ("CREATE", "UPDATE", "DELETE") else "other"
        group = kind.api_group if kind is not None else ""
        name = "other" if kind is None else f"{kind.kind}.{group}" if group else kind.kind
        self.requests[path.removeprefix("/"), known, name, result] += 1
        self.seconds[path.removeprefix("/")].observe(seconds)


class _Webhook(Collector):
    def __init__(
        self, counts: Counts, is_ready: Callable[[], bool], expiries: Callable[[], Mapping[str, datetime]]
    ) -> None:
        self._counts, self._is_ready, self._expiries = counts, is_ready, expiries

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield counters(
            "maniple_admission_requests_total",
            "Requests by what came of them; failed: allowed because a rule or a lookup failed",
            ("webhook", "operation", "kind", "result"),
            sorted(counts.requests.items()),
        )
        yield histograms(
            "maniple_admission_seconds",
            "Time to answer a request",
            ("webhook",),
            [((path,), tally) for path, tally in sorted(counts.seconds.items())],
        )
        yield counter(
            "maniple_admission_bad_requests_total",
            "Bodies that are not an AdmissionReview",
            counts.bad_requests,
        )
        yield counter(
            "maniple_admission_lookups_total",
            "Names that were read from the API server because the caches did not have them",
            counts.lookups,
        )
        yield gauges(
            "maniple_admission_certificate_expiry_timestamp_seconds",
            "When a certificate ends",
            ("certificate",),
            [((name,), end.timestamp()) for name, end in sorted(self._expiries().items())],
        )
        yield gauge("maniple_admission_ready", "1 if /readyz answers 200", self._is_ready())


class Metrics:
    def __init__(
        self, counts: Counts, is_ready: Callable[[], bool], expiries: Callable[[], Mapping[str, datetime]]
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._registry.register(_Webhook(counts, is_ready, expiries))

    def page(self) -> bytes:
        return encoded(self._registry.collect())
