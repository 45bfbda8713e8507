"""What a running scheduler needs around it, on any cluster: settings, a view, a log and signals.

Called by `run_embedded` and `run_cluster`.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from maniple.cli import InputError
from maniple.cli.echo import echo
from maniple.cli.journal_flags import JournalFlags
from maniple.cli.log_flags import Logging
from maniple.cli.process_flags import Process

if TYPE_CHECKING:
    from maniple.cli.run_view import Lines, Tables, View
    from maniple.kube.client import Client
    from maniple.live.leadership import Election
    from maniple.live.port import Clock
    from maniple.live.rate import WriteRate
    from maniple.live.scheduler import Scheduler
    from maniple.web.settings import Listen

TICK_SECONDS = 0.5

log = logging.getLogger(__name__)


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
    process: Process = field(default_factory=Process)
    listens: "tuple[Listen, ...]" = ()
    logs: Logging = field(default_factory=Logging)
    recording: JournalFlags | None = None
    keeps_queues: bool | None = None  # by the profile and the cluster
    groups: str = ""

    @property
    def on_cluster(self) -> bool:
        named = self.kubeconfig is not None or bool(self.context) or self.in_cluster
        return named or bool(self.process.master)


def open_view(title: str) -> "Lines | Tables":
    from maniple.cli.render import console
    from maniple.cli.run_view import Lines, Tables

    out = console()
    return Tables(out, f"maniple · {title}") if out.is_terminal else Lines(echo)


def observer(view: "View", elapsed: Callable[[], float]) -> Callable[["Scheduler"], None]:
    from maniple.live.overview import Board

    board = Board()
    return lambda scheduler: view.show(elapsed(), board.state(scheduler))


async def tick(view: "View", elapsed: Callable[[], float], running: "asyncio.Task[None]") -> None:
    """Advance the clock on the screen while nothing happens."""
    while not running.done():
        view.tick(elapsed())
        await asyncio.wait([running], timeout=TICK_SECONDS)


@asynccontextmanager
async def served(
    scheduler: "Scheduler", listens: "Sequence[Listen]", client: "Client | None" = None
) -> AsyncIterator[None]:
    """Serve health and metrics while it lasts, if that was asked for."""
    async with AsyncExitStack() as stack:
        for listen in listens:
            from maniple.web.server import Server

            try:
                await stack.enter_async_context(Server(scheduler, listen, client).serving())
            except ValueError as error:
                raise InputError(str(error)) from None
            except OSError as error:
                raise InputError(f"cannot listen on {listen.address}: {error.strerror or error}") from None
        yield


def stop_on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # where loops cannot, Ctrl-C still ends the program
            asyncio.get_running_loop().add_signal_handler(number, stop)


def write_rate(process: Process) -> "WriteRate | None":
    """The limit of writes, if one was given."""
    from maniple.live.rate import WriteRate

    return WriteRate(*process.write_rate) if process.write_rate is not None else None


def dump_on_signals(scheduler: "Scheduler", clock: "Clock", process: Process) -> None:
    """Write what is known of the cluster to a file, as Volcano's scheduler does."""
    from maniple.kube.kinds import KINDS
    from maniple.live.dump import dump

    def write() -> None:
        objects = [
            (KINDS[type(item)].at(KINDS[type(item)].versions[0]).api_version, item)
            for item in scheduler.cache.objects()
        ]
        try:
            path = dump(objects, Path(process.dump_folder), clock.now())
        except OSError as error:
            log.warning("the cache cannot be written to %s: %s", process.dump_folder, error.strerror)
        else:
            log.warning("the cache was written to %s: %d objects", path, len(objects))

    for number in (signal.SIGUSR1, signal.SIGUSR2) if process.dumps_cache else ():
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, write)
