"""What nodes use, from each source, as its server responds; and what is said if it does not."""

import asyncio
import base64
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from maniple.kube.client import Client
from maniple.kube.configuration import at_address
from maniple.kube.node_usage import NodeUsageFeed, NodeUsageSettings, read_metrics
from maniple.live.scheduler import Scheduler
from maniple.live.usage_feed import Feeds, run_beside
from maniple.planner import Planner
from maniple.sim.world import World
from tests.kube.prometheus import vector
from tests.live.beside import beside
from tests.live.objects import node, pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT = NOW.isoformat()
Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


def fetched(
    handler: Handler, kind: str, times: int = 1, **settings: Any
) -> tuple[Any, list[str], NodeUsageFeed]:
    """What a feed knows after some fetches, and what it reported."""
    told: list[str] = []

    async def go() -> tuple[Any, NodeUsageFeed]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with TestServer(application) as server:
            address = str(server.make_url("/")).rstrip("/")
            async with Client(at_address(address)) as client:
                chosen = NodeUsageSettings(kind, address, interval=0.01, **settings)
                feed = NodeUsageFeed(chosen, client, clock=lambda: NOW, report=told.append)
                async with beside(feed.run()), asyncio.timeout(30):
                    while feed.fetches <= times:
                        await asyncio.sleep(0.01)
                return feed.latest(), feed

    usage, feed = asyncio.run(go())
    return usage, told, feed


async def prometheus(request: web.Request) -> web.StreamResponse:
    query = str((await request.post())["query"])
    if "cpu" in query:
        return web.json_response(vector(({"instance": "n1:9100"}, "12.5"), ({"instance": "n2"}, "NaN")))
    return web.json_response(vector(({"instance": "n1"}, "50"), ({"instance": "n2"}, "75")))


def test_prometheus() -> None:
    usage, told, _ = fetched(prometheus, "prometheus")
    assert usage == {"n1": {"cpu": 12.5, "memory": 50.0, "at": AT}, "n2": {"memory": 75.0, "at": AT}}
    assert told == []


async def slowly(request: web.Request) -> web.StreamResponse:
    body = (await prometheus(request)).body  # type: ignore[attr-defined]
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in (body[:40], body[40:]):
        await response.write(piece)
        await asyncio.sleep(0.01)
    return response


def test_a_response_that_comes_in_pieces() -> None:
    usage, told, _ = fetched(slowly, "prometheus")
    assert told == []
    assert usage["n1"] == {"cpu": 12.5, "memory": 50.0, "at": AT}


async def endless_load(request: web.Request) -> web.StreamResponse:
    return web.json_response(vector(({"instance": "n1"}, "+Inf"), ({"instance": "n2"}, "1")))


def test_an_infinite_load_is_not_a_measurement() -> None:
    assert fetched(endless_load, "prometheus")[0] == {"n2": {"cpu": 1.0, "memory": 1.0, "at": AT}}


async def elsewhere(request: web.Request) -> web.StreamResponse:
    """Redirects once; whatever follows the redirect gets an answer."""
    if request.path == "/taken":
        return await prometheus(request)
    return web.Response(status=307, headers={"Location": "/taken"})


def test_a_redirect_is_not_followed() -> None:
    usage, told, _ = fetched(elsewhere, "prometheus")
    assert usage is None
    assert "redirects are not followed" in told[0]


async def custom_metrics(request: web.Request) -> web.StreamResponse:
    assert request.path.startswith("/apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_")
    value = "250m" if "cpu" in request.path else "0.5"
    item = {
        "describedObject": {"kind": "Node", "name": "n1"},
        "value": value,
        "timestamp": "2026-01-01T11:59:00Z",
    }
    return web.json_response({"kind": "MetricValueList", "items": [item]})


def test_the_custom_metrics_api() -> None:
    usage, _, _ = fetched(custom_metrics, "prometheus_adaptor")
    assert usage == {"n1": {"cpu": 25.0, "memory": 50.0, "at": "2026-01-01T11:59:00Z"}}


async def elasticsearch(request: web.Request) -> web.StreamResponse:
    assert request.path == "/metricbeat-*/_search"
    login = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
    assert login == "reader:secret"
    asked = (await request.json())["aggs"]["hosts"]
    assert asked["terms"]["field"] == "host.name"
    buckets = [
        {"key": "n1", "cpu": {"value": 0.2}, "memory": {"value": 0.4}},
        {"key": "n2", "cpu": {"value": None}, "memory": {"value": 0.1}},
    ]
    return web.json_response({"aggregations": {"hosts": {"buckets": buckets}}})


def test_elasticsearch() -> None:
    usage, told, _ = fetched(
        elasticsearch, "elasticsearch", username="reader", password="secret", hostname_field="host.name"
    )
    assert usage == {"n1": {"cpu": 20.0, "memory": 40.0, "at": AT}, "n2": {"memory": 10.0, "at": AT}}
    assert told == []


async def broken(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, text="<html>")


async def odd(request: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "error", "error": "too many samples"})


@pytest.mark.parametrize("kind", ["prometheus", "prometheus_adaptor", "elasticsearch"])
@pytest.mark.parametrize("handler", [broken, odd])
def test_a_source_that_fails_is_reported_once_and_leaves_nodes_unmeasured(
    handler: Handler, kind: str
) -> None:
    usage, told, feed = fetched(handler, kind, times=3, username="reader", password="secret")
    assert usage is None
    assert len(told) == 1
    assert told[0].startswith("node usage cannot be fetched: ")
    assert "secret" not in told[0]
    assert feed.failures >= 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "graphite"}, "metrics: type: must be one of"),
        ({"type": "prometheus"}, "metrics: address"),
        ({"type": "elasticsearch", "address": "es:9200"}, "metrics: address"),
        ({"address": "http://p", "interval": "soon"}, "metrics: interval"),
    ],
)
def test_a_wrong_block_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_metrics(given)


def test_the_block_is_read() -> None:
    found = read_metrics(
        {
            "type": "prometheus",
            "address": "http://p:9090/",
            "interval": "10s",
            "tls.insecureSkipVerify": "true",
        }
    )
    assert (found.address, found.interval, found.verify) == ("http://p:9090", 10.0, False)
    with pytest.raises(ValueError, match="needs a cluster"):
        NodeUsageFeed(read_metrics({"type": "prometheus_adaptor"}))


def test_a_loaded_node_gets_no_pod() -> None:
    """From the server to the decision, in real time."""
    conf = {
        "actions": "enqueue, allocate",
        "tiers": [
            {
                "plugins": [
                    {"name": "predicates"},
                    {"name": "usage", "arguments": {"thresholds": {"cpu": 80, "mem": 80}}},
                ]
            }
        ],
    }

    async def busy(request: web.Request) -> web.StreamResponse:
        return web.json_response(vector(({"instance": "n1"}, "95"), ({"instance": "n2"}, "5")))

    async def go() -> list[str]:
        application = web.Application()
        application.router.add_post("/api/v1/query", busy)
        async with TestServer(application) as server:
            settings = NodeUsageSettings("prometheus", str(server.make_url("/")).rstrip("/"), interval=0.1)
            planner = Planner(conf, profile="volcano", options={"debug": True})
            feeds = Feeds(lambda _: [NodeUsageFeed(settings)], planner)
            world = World([node("n1"), node("n2"), *(pod(f"p{number}") for number in range(4))])
            scheduler = Scheduler(planner, world.port(), clock=world.clock, options=feeds.options)
            async with beside(run_beside(feeds, scheduler), scheduler.stop), asyncio.timeout(30):
                while True:
                    pods = [item for item in scheduler.cache.objects() if item.kind == "Pod"]
                    placed = [str(item.spec.node_name) for item in pods if item.spec.node_name]  # type: ignore[attr-defined]
                    if len(placed) == 4:
                        return placed
                    await asyncio.sleep(0.01)

    assert asyncio.run(go()) == ["n2"] * 4
