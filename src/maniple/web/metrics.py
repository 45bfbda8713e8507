"""`/metrics`: a collector that reads the scheduler's plain numbers when it is asked, by profile."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from maniple.web.exposition import encoded
from maniple.web.health import Health
from maniple.web.kai_metrics import kai_metrics
from maniple.web.own_metrics import own_metrics
from maniple.web.view import View
from maniple.web.volcano_metrics import volcano_metrics


class _Scheduler(Collector):
    def __init__(self, view: View, health: Health, prefix: str) -> None:
        self._view = view
        self._health = health
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        view, planner = self._view, self._view.scheduler.planner
        profile = planner.profile.name
        yield from own_metrics(view, self._health)
        if profile in ("volcano", "maniple"):
            yield from volcano_metrics(view)
        if profile in ("kai", "maniple"):
            yield from kai_metrics(view, self._prefix)


class Metrics:
    """All that is served of one scheduler; `prefix`: of the metrics under KAI's names."""

    def __init__(self, view: View, health: Health, prefix: str = "kai") -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.registry.register(_Scheduler(view, health, prefix))

    def page(self) -> bytes:
        return encoded(self.registry.collect())
