"""Past usage of queues, fetched from a Prometheus server, for the option `queueUsage` of a cycle.

`UsageFeed.run` fetches periodically; `latest` returns what is known, without waiting. A failed fetch leaves
the previous data; stale data is still used, with a report. The queries and their parsing are in
`usage_query`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp

from maniple.kube.measuring import MeasuringError, connect, post
from maniple.kube.usage_query import (
    RESOURCES,
    Usage,
    UsageSettings,
    capacity_of,
    parts,
    query,
    used_by_queue,
)


def _now() -> datetime:
    return datetime.now(UTC)


class UsageError(Exception):
    """The server could not be queried, or did not respond as it should."""


@dataclass(frozen=True, slots=True)
class Fetched:
    usage: Usage
    at: datetime


class UsageFeed:
    """Fetches usage while `run` runs; errors go to `report`."""

    option = "queueUsage"

    def __init__(
        self,
        settings: UsageSettings,
        *,
        clock: Callable[[], datetime] = _now,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._report = report
        self._fetched: Fetched | None = None
        self._called_stale: Fetched | None = None
        self._failure = ""  # of the last fetch, if it failed
        self._arrived = asyncio.Event()

    def latest(self) -> Usage | None:
        """What is known; None before the first response.

        Stale data is reported, once.
        """
        if self._fetched is None:
            return None
        age = self._clock() - self._fetched.at
        if age > self._settings.staleness and self._called_stale is not self._fetched:
            self._called_stale = self._fetched
            self._report(
                f"queue usage is {age.total_seconds():.0f}s old: the last fetch that worked was at {self._fetched.at}"
            )
        return self._fetched.usage

    async def arrived(self) -> bool:
        """Wait for the first data, as long as is configured; whether it has come."""
        try:
            async with asyncio.timeout(self._settings.wait.total_seconds()):
                await self._arrived.wait()
        except TimeoutError:
            self._report(
                f"no queue usage after {self._settings.wait.total_seconds():.0f}s; continuing without"
            )
            return False
        return True

    async def run(self) -> None:
        """Fetch now and then, until cancelled."""
        async with connect() as http:
            while True:
                await self._try(http)
                await asyncio.sleep(self._settings.fetch_interval.total_seconds())

    async def _try(self, http: aiohttp.ClientSession) -> None:
        now = self._clock()
        try:
            usage = await fetch(http, self._settings, now)
        except UsageError as error:
            if str(error) != self._failure:
                self._report(f"queue usage cannot be fetched: {error}")
            self._failure = str(error)
            return
        self._failure = ""
        self._fetched = Fetched(usage, now)
        self._arrived.set()


async def fetch(http: aiohttp.ClientSession, settings: UsageSettings, now: datetime) -> Usage:
    """Usage of all queues over the window that contains `now`; raises UsageError."""
    seconds = settings.query_timeout.total_seconds()
    try:
        async with asyncio.timeout(seconds):
            asked = [settings.capacity[one] for one in RESOURCES] + [
                settings.allocation[one] for one in RESOURCES
            ]
            asking = (_ask(http, settings, expression, now) for expression in asked)
            answers = await asyncio.gather(*asking, return_exceptions=True)
    except TimeoutError:
        raise UsageError(f"no answer from {settings.place} within {seconds:g}s") from None
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    count = len(RESOURCES)
    if None in answers:
        return {}
    try:
        capacity = {one: capacity_of(answer) for one, answer in zip(RESOURCES, answers[:count], strict=True)}
        used = {one: used_by_queue(answer) for one, answer in zip(RESOURCES, answers[count:], strict=True)}
    except ValueError as error:
        raise UsageError(str(error)) from None
    return parts(used, capacity)


async def _ask(
    http: aiohttp.ClientSession, settings: UsageSettings, expression: str, now: datetime
) -> object:
    """The server's response, decoded; None if there is nothing to query yet."""
    text = query(expression, settings, now)
    if text is None:
        return None
    form = {"query": text, "time": f"{now.timestamp():.3f}"}
    try:
        return (await post(http, f"{settings.address}/api/v1/query", data=form))[1]
    except MeasuringError as error:
        raise UsageError(str(error)) from None


__all__ = ["UsageError", "UsageFeed", "fetch"]
