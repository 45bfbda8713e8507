"""Past usage of queues beside the running scheduler: fetched separately, used as soon as it arrives.

Called by `maniple run` if the configuration names a usage database. A slow or failing feed does no harm: a
cycle takes what is known at that moment and never waits; only the first waits, up to the feed's own limit.
When the scheduler ends, however it ends, the feed has ended too.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from maniple.live.reload import Reload
from maniple.live.scheduler import Scheduler

log = logging.getLogger(__name__)


class Feed(Protocol):
    """Fetches usage; `maniple.kube.usage` implements it."""

    def latest(self) -> Mapping[str, Mapping[str, float]] | None:
        """What is known, without waiting; None before the first data."""
        ...

    async def arrived(self) -> bool:
        """Wait for the first data, with a time limit."""
        ...

    async def run(self) -> None:
        """Fetch until cancelled."""
        ...


def options_of(feed: Feed | None) -> Callable[[], Mapping[str, Any]] | None:
    """The `options` of a scheduler."""
    if feed is None:
        return None

    def options() -> Mapping[str, Any]:
        usage = feed.latest()
        return {} if usage is None else {"queueUsage": usage}

    return options


async def run_beside(feed: Feed | None, scheduler: Scheduler, reload: Reload[Any] | None = None) -> None:
    """Run the scheduler to its end, with the feed and the reload, if there are any, beside it."""
    beside = [asyncio.create_task(reload.run())] if reload is not None else []
    try:
        if feed is not None:
            fetching = asyncio.create_task(_fetch(feed))
            beside.append(fetching)
            await _first(feed, fetching, scheduler)
        await scheduler.run()
    finally:
        for one in beside:
            one.cancel()
        if beside:
            await asyncio.wait(beside)


async def _fetch(feed: Feed) -> None:
    try:
        await feed.run()
    except Exception as error:  # no error of the feed is a reason to stop scheduling
        log.warning("queue usage is no longer fetched: %s: %s", type(error).__name__, error)


async def _first(feed: Feed, fetching: "asyncio.Task[None]", scheduler: Scheduler) -> None:
    """Wait until there is data, or there will be none, or the scheduler ends."""
    waits = [asyncio.ensure_future(feed.arrived()), asyncio.ensure_future(scheduler.stopping())]
    try:
        await asyncio.wait([fetching, *waits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
