"""Past usage of queues: the queries to Prometheus, and how responses are read.

The fetch runs against a real server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from maniple.kube.usage import UsageError, UsageFeed, fetch
from maniple.kube.usage_query import (
    UsageSettings,
    Window,
    capacity_of,
    parts,
    query,
    read_settings,
    used_by_queue,
)
from tests.kube.prometheus import vector

NOW = datetime(2026, 3, 11, 12, 30, tzinfo=UTC)
BLOCK = {"clientType": "prometheus", "connectionString": "http://prometheus:9090/"}


def settings(parameters: Mapping[str, Any] | None = None, **block: Any) -> UsageSettings:
    return read_settings({**BLOCK, "usageParams": dict(parameters or {}), **block}, {})


# -- the configuration ----------------------------------------------------------------------------------------------


def test_defaults_are_kai_s() -> None:
    told = settings()
    assert told.address == "http://prometheus:9090"
    assert told.window == Window(timedelta(weeks=1))
    assert told.half_life is None
    assert (told.fetch_interval, told.staleness, told.wait) == (
        timedelta(minutes=1),
        timedelta(minutes=5),
        timedelta(minutes=1),
    )
    assert (told.resolution, told.query_timeout) == (timedelta(minutes=1), timedelta(seconds=10))
    assert told.allocation["gpu"] == "kai_queue_allocated_gpus"
    assert told.allocation["cpu"] == "kai_queue_allocated_cpu_cores"
    assert told.allocation["memory"] == "kai_queue_allocated_memory_bytes"
    assert told.capacity["gpu"] == 'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})'


def test_metrics_and_times_can_be_said() -> None:
    extra = {
        "gpuAllocationMetric": "mine",
        "cpuCapacityMetric": "sum(all)",
        "queryResolution": "30s",
        "usageQueryTimeout": "2s",
    }
    told = settings(
        {"extraParams": extra, "windowSize": "2d", "halfLifePeriod": "1h", "fetchInterval": "20s"}
    )
    assert (told.allocation["gpu"], told.capacity["cpu"]) == ("mine", "sum(all)")
    assert (told.resolution, told.query_timeout) == (timedelta(seconds=30), timedelta(seconds=2))
    assert (told.window.size, told.half_life) == (timedelta(days=2), timedelta(hours=1))


def test_a_half_life_of_nothing_is_none() -> None:
    assert settings({"halfLifePeriod": "0s"}).half_life is None
    assert settings({"halfLifePeriod": "-1h"}).half_life is None


def test_data_is_not_stale_before_it_is_fetched_again() -> None:
    assert settings({"fetchInterval": "10m", "stalenessPeriod": "1m"}).staleness == timedelta(minutes=10)


def test_the_address_may_come_from_a_variable() -> None:
    block = {"clientType": "prometheus", "connectionStringEnvVar": "WHERE"}
    assert read_settings(block, {"WHERE": "https://there/prefix"}).address == "https://there/prefix"
    with pytest.raises(ValueError, match=r"connectionStringEnvVar.*WHERE"):
        read_settings(block, {})


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({"clientType": "fake"}, "clientType"),
        ({"connectionString": "prometheus:9090"}, "connectionString"),
        ({"usageParams": {"windowType": "tumbling"}}, "tumblingWindowStartTime"),
        (
            {"usageParams": {"windowType": "tumbling", "tumblingWindowStartTime": "noon"}},
            "tumblingWindowStartTime",
        ),
        ({"usageParams": {"windowType": "cron"}}, "cronString"),
        ({"usageParams": {"windowType": "cron", "cronString": "0 25 * * *"}}, "cronString: bad hour"),
        ({"usageParams": {"windowType": "rolling"}}, "windowType"),
        ({"usageParams": {"windowSize": "long"}}, "windowSize"),
        ({"usageParams": {"windowSize": "0s"}}, "windowSize"),
    ],
)
def test_what_is_wrong_is_named(block: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        read_settings({**BLOCK, **block}, {})


# -- windows and queries --------------------------------------------------------------------------------------------


def test_a_sliding_window_is_always_as_long() -> None:
    assert query("metric", settings({"windowSize": "1h"}), NOW) == "sum_over_time((metric)[3600s:60s])"


def test_a_tumbling_window_is_as_long_as_it_has_lasted() -> None:
    told = settings(
        {"windowType": "tumbling", "windowSize": "1h", "tumblingWindowStartTime": "2026-03-01T00:10:00Z"}
    )
    assert query("metric", told, NOW) == "sum_over_time((metric)[1200s:60s])"


def test_a_cron_window_begins_at_the_last_moment_named() -> None:
    told = settings({"windowType": "cron", "cronString": "0 0 * * *"})
    assert query("metric", told, NOW) == f"sum_over_time((metric)[{12 * 3600 + 1800}s:60s])"


def test_a_window_that_has_just_begun_or_not_yet_is_not_asked_about() -> None:
    fresh = UsageSettings("", Window(timedelta(hours=1), start=NOW - timedelta(hours=5, seconds=20)))
    future = UsageSettings("", Window(timedelta(hours=1), start=NOW + timedelta(hours=1)))
    assert [query("metric", one, NOW) for one in (fresh, future)] == [None] * 2


def test_with_a_half_life_samples_are_weighed_by_their_age() -> None:
    told = settings({"windowSize": "1h", "halfLifePeriod": "30m"})
    stamp = int(NOW.timestamp())
    assert query("metric", told, NOW) == (
        f"sum_over_time(((metric) * (0.5 ^ (({stamp} - time()) / 1800.000000)))[3600s:60s])"
    )


def test_a_start_without_a_zone_is_in_utc() -> None:
    told = settings(
        {"windowType": "tumbling", "windowSize": "1h", "tumblingWindowStartTime": "2026-03-01T00:10:00"}
    )
    assert told.window.length(NOW) == timedelta(minutes=20)


# -- answers --------------------------------------------------------------------------------------------------------


def test_series_of_one_queue_add_up() -> None:
    answer = vector(
        ({"queue_name": "a", "pod": "1"}, "2"),
        ({"queue_name": "a", "pod": "2"}, "3"),
        ({"queue_name": "b"}, "NaN"),
        ({}, "9"),
    )
    assert used_by_queue(answer) == {"a": 5.0}


def test_usage_is_a_part_of_the_capacity() -> None:
    used = {"gpu": {"a": 2.0, "b": 6.0}, "cpu": {"a": 5.0}, "memory": {"a": 1.0}}
    assert parts(used, {"gpu": 8.0, "cpu": 10.0, "memory": 0.0}) == {
        "a": {"gpu": 0.25, "cpu": 0.5},
        "b": {"gpu": 0.75},
    }


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"status": "error", "error": "bad"},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}},
        {"status": "success", "data": {"resultType": "vector", "result": ["x"]}},
        {
            "status": "success",
            "data": {"resultType": "vector", "result": [{"metric": [], "value": [1, "1"]}]},
        },
        {"status": "success"},
    ],
)
def test_what_is_no_vector_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"vector|failed"):
        capacity_of(answer)


# -- fetching -------------------------------------------------------------------------------------------------------

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serving(handler: Handler, check: Callable[[str], Awaitable[None]]) -> None:
    """Run a check against a server that answers queries with the handler."""

    async def go() -> None:
        application = web.Application()
        application.router.add_post("/prefix/api/v1/query", handler)
        async with TestServer(application) as server:
            await check(str(server.make_url("/prefix")))

    asyncio.run(go())


async def prometheus(request: web.Request) -> web.Response:
    """Four GPUs, of which queue a had one and b two, over the whole window; no cpu or memory."""
    form = await request.post()
    text, moment = str(form["query"]), str(form["time"])
    assert moment == f"{NOW.timestamp():.3f}"
    if "nvidia_com_gpu" in text:
        return web.json_response(vector(({}, "240")))
    if "allocated_gpus" in text:
        return web.json_response(vector(({"queue_name": "a"}, "60"), ({"queue_name": "b"}, "120")))
    return web.json_response(vector())


def test_usage_is_fetched() -> None:
    async def check(address: str) -> None:
        async with aiohttp.ClientSession() as http:
            usage = await fetch(http, UsageSettings(address), NOW)
        assert usage == {"a": {"gpu": 0.25}, "b": {"gpu": 0.5}}

    serving(prometheus, check)


def test_a_young_window_is_fetched_without_asking() -> None:
    async def never(request: web.Request) -> web.Response:
        raise AssertionError

    async def check(address: str) -> None:
        young = UsageSettings(address, Window(start=NOW))
        async with aiohttp.ClientSession() as http:
            assert await fetch(http, young, NOW) == {}

    serving(never, check)


async def broken(request: web.Request) -> web.Response:
    return web.Response(status=502, text="<html>")


async def refusing(request: web.Request) -> web.Response:
    return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error"}, status=400)


@pytest.mark.parametrize(("handler", "words"), [(broken, "502"), (refusing, "parse error")])
def test_what_goes_wrong_is_reported(handler: Handler, words: str) -> None:
    async def check(address: str) -> None:
        async with aiohttp.ClientSession() as http:
            with pytest.raises(UsageError, match=words):
                await fetch(http, UsageSettings(address), NOW)

    serving(handler, check)


def test_a_fetch_ends_at_the_timeout() -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async def check(address: str) -> None:
        hasty = UsageSettings(address, query_timeout=timedelta(milliseconds=50))
        async with aiohttp.ClientSession() as http:
            with pytest.raises(UsageError, match=r"0\.05s"):
                await fetch(http, hasty, NOW)

    serving(slow, check)


def test_a_server_that_is_not_there_is_reported() -> None:
    async def check() -> None:
        async with aiohttp.ClientSession() as http:
            with pytest.raises(UsageError, match=r"127\.0\.0\.1:1"):
                await fetch(http, UsageSettings("http://127.0.0.1:1"), NOW)

    asyncio.run(check())


def test_a_password_in_the_address_is_not_reported() -> None:
    async def check() -> None:
        async with aiohttp.ClientSession() as http:
            with pytest.raises(UsageError) as caught:
                await fetch(http, UsageSettings("http://me:secret@127.0.0.1:1/prefix"), NOW)
        assert "http://127.0.0.1:1/prefix/" in str(caught.value)
        assert "secret" not in str(caught.value)

    asyncio.run(check())


def test_the_feed_keeps_what_it_has_and_says_when_that_is_old() -> None:
    works = [True]

    async def sometimes(request: web.Request) -> web.Response:
        return await prometheus(request) if works[0] else await broken(request)

    async def check(address: str) -> None:
        told: list[str] = []
        times = [NOW]
        quick = UsageSettings(address, fetch_interval=timedelta(milliseconds=10))
        feed = UsageFeed(quick, clock=lambda: times[0], report=told.append)
        assert feed.latest() is None
        running = asyncio.create_task(feed.run())
        assert await feed.arrived()
        assert feed.latest() == {"a": {"gpu": 0.25}, "b": {"gpu": 0.5}}
        assert told == []
        works[0] = False
        while not told:
            await asyncio.sleep(0.005)
        assert "cannot be fetched" in told[0]
        running.cancel()
        times[0] = NOW + timedelta(minutes=6)
        assert feed.latest() == {"a": {"gpu": 0.25}, "b": {"gpu": 0.5}}
        assert "360s old" in told[-1]
        times[0] += timedelta(minutes=1)
        feed.latest()
        assert ["old" in one for one in told] == [False, True]  # each is said once, however often it is met

    serving(sometimes, check)


def test_without_data_one_goes_on_after_a_while() -> None:
    async def check(address: str) -> None:
        told: list[str] = []
        feed = UsageFeed(UsageSettings(address, wait=timedelta(milliseconds=20)), report=told.append)
        running = asyncio.create_task(feed.run())
        assert not await feed.arrived()
        assert "continuing without" in told[-1]
        running.cancel()

    serving(broken, check)
