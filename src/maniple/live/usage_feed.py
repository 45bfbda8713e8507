"""Measurements beside the running scheduler: fetched separately, used as soon as they arrive.

Past usage of queues and the real load of nodes, if the configuration names a source. A slow or failing feed does no
harm: a cycle takes what is known at that moment and never waits; only the first waits, up to the feed's own limit.
When the configuration changes, so do the feeds. When the scheduler ends, however it ends, the feeds have ended too.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from maniple.live.reload import Reload
from maniple.live.scheduler import Scheduler
from maniple.planner import Planner

log = logging.getLogger(__name__)


class Feed(Protocol):
    """Fetches measurements; `maniple.kube.usage` and `maniple.kube.node_usage` implement it."""

    @property
    def option(self) -> str:
        """The option of a cycle that they are."""
        ...

    def latest(self) -> Mapping[str, Mapping[str, Any]] | None:
        """What is known, without waiting; None before the first data."""
        ...

    async def arrived(self) -> bool:
        """Wait for the first data, with a time limit."""
        ...

    async def run(self) -> None:
        """Fetch until cancelled."""
        ...


class Feeds:
    """The feeds of a configuration; `make` makes them, or raises ValueError."""

    def __init__(self, make: Callable[[Planner], Sequence[Feed]], planner: Planner) -> None:
        self._make = make
        self._sources = _sources(planner)
        self._feeds = [*make(planner)]
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False

    def check(self, planner: Planner) -> None:
        """Whether the feeds of a configuration can be made; raises ValueError."""
        self._make(planner)

    def use(self, planner: Planner) -> None:
        """The feeds of another configuration, if they are others."""
        if _sources(planner) == self._sources:
            return
        self.stop()
        self._sources = _sources(planner)
        self._feeds = [*self._make(planner)]
        if self._running:
            self.start()

    def options(self) -> Mapping[str, Any]:
        """The `options` of a scheduler: what is known now."""
        known = ((feed.option, feed.latest()) for feed in self._feeds)
        return {option: data for option, data in known if data is not None}

    def start(self) -> None:
        self._running = True
        self._tasks = [asyncio.create_task(_fetch(feed)) for feed in self._feeds]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def first(self, scheduler: Scheduler) -> None:
        """Wait until there is data, or there will be none, or the scheduler ends."""
        await asyncio.gather(
            *(_first(*both, scheduler) for both in zip(self._feeds, self._tasks, strict=True))
        )


async def run_beside(feeds: Feeds | None, scheduler: Scheduler, reload: Reload[Any] | None = None) -> None:
    """Run the scheduler to its end, with the feeds and the reload, if there are any, beside it."""
    beside = [asyncio.create_task(reload.run())] if reload is not None else []
    try:
        if feeds is not None:
            feeds.start()
            await feeds.first(scheduler)
        await scheduler.run()
    finally:
        for one in beside:
            one.cancel()
        if feeds is not None:
            feeds.stop()
            await feeds.ended()
        if beside:
            await asyncio.wait(beside)


def _sources(planner: Planner) -> tuple[Any, ...]:
    """What feeds are made from."""
    configuration = planner.configuration
    return (
        configuration.usage,
        configuration.metrics,
        {one.name for tier in configuration.tiers for one in tier},
    )


async def _fetch(feed: Feed) -> None:
    try:
        await feed.run()
    except Exception as error:  # no error of a feed is a reason to stop scheduling
        what = {"queueUsage": "queue usage", "nodeUsage": "node usage"}.get(feed.option, feed.option)
        log.warning("%s is no longer fetched: %s: %s", what, type(error).__name__, error)


async def _first(feed: Feed, fetching: "asyncio.Task[None]", scheduler: Scheduler) -> None:
    waits = [asyncio.ensure_future(feed.arrived()), asyncio.ensure_future(scheduler.stopping())]
    try:
        await asyncio.wait([fetching, *waits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
