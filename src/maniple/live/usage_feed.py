"""Past usage of queues beside the running scheduler: fetched for itself, planned with as soon as it is there.

Called by `maniple run` when the configuration names a usage database. The feed can be as slow or as broken as it likes: a cycle takes what is known at that
moment and never waits; only the very first waits, for as long as the feed says. When the scheduler ends, however it ends, the feed has ended too.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from maniple.live.scheduler import Scheduler

log = logging.getLogger(__name__)


class Feed(Protocol):
    """Whoever fetches usage; `maniple.kube.usage` does."""

    def latest(self) -> Mapping[str, Mapping[str, float]] | None:
        """What is known, at once; None before there is anything."""
        ...

    async def arrived(self) -> bool:
        """Wait for the first data, but not for ever."""
        ...

    async def run(self) -> None:
        """Fetch until cancelled."""
        ...


def options_of(feed: Feed | None) -> Callable[[], Mapping[str, Any]] | None:
    """What a scheduler is given as `options`."""
    if feed is None:
        return None

    def options() -> Mapping[str, Any]:
        usage = feed.latest()
        return {} if usage is None else {"queueUsage": usage}

    return options


async def run_beside(feed: Feed | None, scheduler: Scheduler) -> None:
    """Run the scheduler to its end, with the feed, if there is one, beside it."""
    if feed is None:
        await scheduler.run()
        return
    fetching = asyncio.create_task(_fetch(feed))
    try:
        await _first(feed, fetching, scheduler)
        await scheduler.run()
    finally:
        fetching.cancel()
        await asyncio.wait([fetching])


async def _fetch(feed: Feed) -> None:
    try:
        await feed.run()
    except Exception as error:  # whatever it is, it is no reason to schedule nothing
        log.warning("queue usage is no longer fetched: %s: %s", type(error).__name__, error)


async def _first(feed: Feed, fetching: "asyncio.Task[None]", scheduler: Scheduler) -> None:
    """Until there is data, or there will be none, or nobody needs it any more."""
    waits = [asyncio.ensure_future(feed.arrived()), asyncio.ensure_future(scheduler.stopping())]
    try:
        await asyncio.wait([fetching, *waits], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
