"""What a running scheduler needs around it, on any cluster: settings, a view, a log and signals.

Called by `run_embedded` and `run_cluster`.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maniple.cli import InputError

if TYPE_CHECKING:
    from maniple.cli.run_view import Lines, Tables, View
    from maniple.kube.client import Client
    from maniple.live.leadership import Election
    from maniple.live.scheduler import Scheduler
    from maniple.web.settings import Listen

TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of the command line."""

    period: float
    files: tuple[str, ...]
    until_done: bool
    virtual_time: bool
    kubeconfig: Path | None
    context: str
    in_cluster: bool
    bind: str
    shard: str
    election: "Election | None" = None
    listen: "Listen | None" = None

    @property
    def on_cluster(self) -> bool:
        return self.kubeconfig is not None or bool(self.context) or self.in_cluster


def open_view(title: str) -> "Lines | Tables":
    from maniple.cli.render import console
    from maniple.cli.run_view import Lines, Tables

    out = console()
    return Tables(out, f"maniple · {title}") if out.is_terminal else Lines(click.echo)


def observer(view: "View", elapsed: Callable[[], float]) -> Callable[["Scheduler"], None]:
    from maniple.live.overview import overview

    return lambda scheduler: view.show(elapsed(), overview(scheduler))


async def tick(view: "View", elapsed: Callable[[], float], running: "asyncio.Task[None]") -> None:
    """Advance the clock on the screen while nothing happens."""
    while not running.done():
        view.tick(elapsed())
        await asyncio.wait([running], timeout=TICK_SECONDS)


@contextmanager
def log_to(view: "View", elapsed: Callable[[], float]) -> Iterator[None]:
    """Log records become lines among the others."""

    class ViewHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            view.say(elapsed(), f"{record.levelname.lower()}: {record.getMessage()}")

    handler, logger = ViewHandler(logging.WARNING), logging.getLogger("maniple")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@asynccontextmanager
async def served(
    scheduler: "Scheduler", listen: "Listen | None", client: "Client | None" = None
) -> AsyncIterator[None]:
    """Serve health and metrics while it lasts, if that was asked for."""
    if listen is None:
        yield
        return
    from maniple.web.server import Server

    try:
        server = Server(scheduler, listen, client)
    except ValueError as error:
        raise InputError(str(error)) from None
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(server.serving())
        except OSError as error:
            raise InputError(f"cannot listen on {listen.address}: {error.strerror or error}") from None
        yield


def stop_on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # where loops cannot, Ctrl-C still ends the program
            asyncio.get_running_loop().add_signal_handler(number, stop)
