"""Tasks beside a scene: they end with it, however it ends; one that does not end is a failure."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def beside(
    work: Coroutine[Any, Any, None], stop: Callable[[], None] | None = None
) -> AsyncIterator["asyncio.Task[None]"]:
    """Run it while the block lasts; then stop it or, after a failure or without a way to stop it, cancel it."""
    running = asyncio.create_task(work)
    try:
        yield running
        if stop is not None:
            stop()
            await ended(running)
    finally:
        await cancelled(running)


async def ended(task: "asyncio.Task[None]") -> None:
    """Its end, which must come by itself. What went wrong in it goes wrong here."""
    await asyncio.wait([task], timeout=PATIENCE_SECONDS)
    assert task.done(), "it does not end when it is asked to"
    await task


async def cancelled(task: "asyncio.Task[None]") -> None:
    """Its end by cancellation, if it runs still. A cancellation that is lost shows here."""
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE_SECONDS)
    assert task.done(), "it does not end when it is cancelled"
    if not task.cancelled():
        await task
