"""What nodes really use, measured by a monitoring system, for the option `nodeUsage` of a cycle.

The block `metrics` of Volcano's configuration names the source: a Prometheus server with node-exporter's series,
the custom metrics API of the cluster (`prometheus_adaptor`), or Elasticsearch with Metricbeat's documents. One
request for each quantity covers all nodes. A failed fetch leaves the previous data, which the plugins stop trusting
after five minutes.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from maniple.framework.configuration.durations import nanoseconds
from maniple.kube.client import Client
from maniple.kube.credentials import basic
from maniple.kube.errors import ApiError
from maniple.kube.measuring import MeasuringError, connect, post, without_login
from maniple.objects.quantity import parse

PERIOD = "10m"  # over which usage is averaged
TIMEOUT_SECONDS = 10.0
FIRST_WAIT_SECONDS = 10.0
TYPES = ("prometheus", "prometheus_adaptor", "elasticsearch")
QUERIES = {
    "cpu": '100 * avg_over_time((1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])))'
    f"[{PERIOD}:30s])",
    "memory": "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)"
    f"[{PERIOD}:30s])",
}
CUSTOM_METRICS = {"cpu": "node_cpu_usage_avg", "memory": "node_memory_usage_avg"}
FIELDS = {"cpu": "host.cpu.usage", "memory": "system.memory.actual.used.pct"}
_MOST_HOSTS = 20_000
OK = 200

# By node: percentages of cpu and memory, and when they were measured.
NodeUsage = dict[str, dict[str, Any]]


class NodeUsageError(Exception):
    """The source could not be queried, or did not respond as it should."""


@dataclass(frozen=True, slots=True)
class NodeUsageSettings:
    """The block `metrics`, read."""

    type: str
    address: str = ""
    interval: float = 30.0
    verify: bool = True
    index: str = "metricbeat-*"
    username: str = ""
    password: str = ""
    hostname_field: str = "host.hostname"


def read_metrics(given: Mapping[str, str]) -> NodeUsageSettings:
    """The settings of a block; raises ValueError."""
    kind = given.get("type", "prometheus")
    if kind not in TYPES:
        raise ValueError(f"metrics: type: must be one of {', '.join(TYPES)}: {kind[:60]!r}")
    address = given.get("address", "").rstrip("/")
    if kind != "prometheus_adaptor" and not address.startswith(("http://", "https://")):
        raise ValueError("metrics: address: must begin with http:// or https://")
    try:
        interval = nanoseconds(given.get("interval", "30s")) / 1e9
    except ValueError as error:
        raise ValueError(f"metrics: interval: {error}") from None
    return NodeUsageSettings(
        kind,
        address,
        interval if interval > 0 else 30.0,
        verify=given.get("tls.insecureSkipVerify", "false") != "true",
        index=given.get("elasticsearch.index") or "metricbeat-*",
        username=given.get("elasticsearch.username", ""),
        password=given.get("elasticsearch.password", ""),
        hostname_field=given.get("elasticsearch.hostnameFieldName") or "host.hostname",
    )


class NodeUsageFeed:
    """Fetches while `run` runs; problems go to `report`. `client` is needed for the custom metrics API."""

    option = "nodeUsage"

    def __init__(
        self,
        settings: NodeUsageSettings,
        client: Client | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        if settings.type == "prometheus_adaptor" and client is None:
            raise ValueError("metrics: type: prometheus_adaptor needs a cluster, which serves custom metrics")
        self._settings = settings
        self._place = without_login(settings.address)
        self._client = client
        self._clock = clock
        self._report = report
        self._failure = ""
        self._usage: NodeUsage | None = None
        self._arrived = asyncio.Event()
        self.fetches = 0
        self.failures = 0

    def latest(self) -> NodeUsage | None:
        """What is known; None before the first response."""
        return self._usage

    async def arrived(self) -> bool:
        """Wait for the first data, a moment; without it nodes count as unmeasured."""
        try:
            async with asyncio.timeout(FIRST_WAIT_SECONDS):
                return await self._arrived.wait()
        except TimeoutError:
            return False

    async def run(self) -> None:
        """Fetch now and then, until cancelled."""
        async with connect(TIMEOUT_SECONDS) as http:
            while True:
                await self._try(http)
                await asyncio.sleep(self._settings.interval)

    async def _try(self, http: aiohttp.ClientSession) -> None:
        sources: Mapping[str, Callable[[], Awaitable[NodeUsage]]] = {
            "prometheus": lambda: self._from_prometheus(http),
            "prometheus_adaptor": self._from_custom_metrics,
            "elasticsearch": lambda: self._from_elasticsearch(http),
        }
        self.fetches += 1
        try:
            self._usage = await sources[self._settings.type]()
        except (NodeUsageError, ApiError, aiohttp.ClientError, OSError, TimeoutError) as error:
            self.failures += 1
            text = str(error) or type(error).__name__
            if text != self._failure:
                self._report(f"node usage cannot be fetched: {text}")
            self._failure = text
            return
        self._failure = ""
        self._arrived.set()

    # -- sources -----------------------------------------------------------------------------------------------------

    async def _from_prometheus(self, http: aiohttp.ClientSession) -> NodeUsage:
        found: NodeUsage = {}
        address = f"{self._settings.address}/api/v1/query"
        for quantity, query in QUERIES.items():
            answer = await self._post(http, address, data={"query": query})
            for instance, percent in _samples(answer):
                found.setdefault(instance, self._now())[quantity] = percent
        return found

    async def _from_custom_metrics(self) -> NodeUsage:
        assert self._client is not None
        found: NodeUsage = {}
        for quantity, name in CUSTOM_METRICS.items():
            body = await self._client.request("GET", f"/apis/custom.metrics.k8s.io/v1beta1/nodes/*/{name}")
            for item in _items(body):
                measured = found.setdefault(item["describedObject"]["name"], self._now())
                measured[quantity] = float(parse(item["value"])) * 100
                if item.get("timestamp"):
                    measured["at"] = item["timestamp"]
        return found

    async def _from_elasticsearch(self, http: aiohttp.ClientSession) -> NodeUsage:
        settings = self._settings
        averages = {quantity: {"avg": {"field": name}} for quantity, name in FIELDS.items()}
        query = {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}},
            "aggs": {
                "hosts": {"terms": {"field": settings.hostname_field, "size": _MOST_HOSTS}, "aggs": averages}
            },
        }
        login = basic(settings.username, settings.password) if settings.username else None
        answer = await self._post(
            http,
            f"{settings.address}/{settings.index}/_search",
            json=query,
            headers={"Authorization": login} if login else {},
        )
        try:
            buckets = answer["aggregations"]["hosts"]["buckets"]
            return {
                str(one["key"]): {
                    **self._now(),
                    **{q: float(one[q]["value"]) * 100 for q in FIELDS if one[q]["value"] is not None},
                }
                for one in buckets
            }
        except (KeyError, TypeError, ValueError):
            raise NodeUsageError(f"{self._place}: not a response of Elasticsearch") from None

    def _now(self) -> dict[str, Any]:
        return {"at": self._clock().isoformat()}

    async def _post(self, http: aiohttp.ClientSession, address: str, **request: Any) -> Any:
        try:
            status, answer = await post(http, address, verify=self._settings.verify, **request)
        except MeasuringError as error:
            raise NodeUsageError(str(error)) from None
        if status != OK:
            raise NodeUsageError(f"{self._place}: status {status}")
        return answer


def _samples(answer: Any) -> list[tuple[str, float]]:
    """The instances of a vector, without their ports, and their values."""
    try:
        if answer["status"] != "success" or answer["data"]["resultType"] != "vector":
            raise NodeUsageError(f"Prometheus: {answer.get('error', 'not a vector')}")
        rows = answer["data"]["result"]
        found = [(str(one["metric"]["instance"]), float(one["value"][1])) for one in rows]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NodeUsageError("not a response of Prometheus") from None
    # Relabelled to the node's name, as Volcano requires, or with the port of the exporter behind it.
    return [
        (name.rpartition(":")[0] or name, max(0.0, value)) for name, value in found if math.isfinite(value)
    ]


def _items(body: bytes) -> list[dict[str, Any]]:
    try:
        items = msgspec.json.decode(body)["items"]
        for item in items:
            parse(item["value"])
            item["describedObject"]["name"]
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, ValueError):
        raise NodeUsageError("not a response of the custom metrics API") from None
    return list(items)


__all__ = ["NodeUsageError", "NodeUsageFeed", "NodeUsageSettings", "read_metrics"]
