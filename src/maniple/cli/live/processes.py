"""The processes that a live measurement starts: a scheduler, or the client that only binds.

Each is a process of its own, so that its CPU time and memory are its own.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click

_STOP_SECONDS = 20.0
_TAIL = 2000


class Process:
    """A running process, with what it has used so far."""

    def __init__(self, running: "subprocess.Popen[bytes]") -> None:
        self._running = running

    @property
    def pid(self) -> int:
        return self._running.pid

    def runs(self) -> bool:
        return self._running.poll() is None

    def cpu_seconds(self) -> float:
        """User and system time of all its threads; zero where the system has no /proc."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        except OSError:
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    async def quiet(self, seconds: float = 1.0, patience: float = 300.0) -> None:
        """Until it has used next to no CPU time for a while."""
        end = asyncio.get_running_loop().time() + patience
        before, since = self.cpu_seconds(), 0.0
        while since < seconds and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.25)
            used = self.cpu_seconds()
            since = since + 0.25 if used - before < 0.02 else 0.0
            before = used


def maniple(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "maniple.cli.main", *arguments]


@asynccontextmanager
async def process(command: Sequence[str]) -> AsyncIterator[Process]:
    """A process while it is needed; if it ended by itself with an error, the last of its output is raised."""
    with tempfile.TemporaryFile() as output:
        try:
            running = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise click.ClickException(f"{command[0]}: {error.strerror}") from None
        try:
            yield Process(running)
        except BaseException:
            code = running.poll()
            if code:
                output.seek(0)
                words = output.read().decode(errors="replace")[-_TAIL:].strip()
                raise click.ClickException(f"{command[0]} ended with code {code}:\n{words}") from None
            raise
        finally:
            await asyncio.to_thread(_end, running)


def _end(running: "subprocess.Popen[bytes]") -> None:
    if running.poll() is None:
        running.send_signal(signal.SIGTERM)
    try:
        running.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
