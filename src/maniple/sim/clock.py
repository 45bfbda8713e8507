"""Time for the embedded cluster: the machine's, or virtual time that skips every idle pause.

Virtual time is the event loop's own: `asyncio.sleep`, time-outs and `call_later` need no change. A program
that runs on it in one thread and without outside input does the same things in the same order every time.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Result = TypeVar("Result")

# The start of virtual time, so that runs can be compared.
VIRTUAL_START = datetime(2026, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: a pause of the loop is added to the clock instead."""

    clock = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("virtual time cannot advance: everything waits and no timer is set")
        self.clock += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer whenever nothing can run now."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.clock


class Clock:
    """The time of day by the running loop; make it inside the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begin = self._loop.time()
        self._start = VIRTUAL_START if isinstance(self._loop, VirtualLoop) else datetime.now(UTC)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed())

    def elapsed(self) -> float:
        """Seconds since the clock was made."""
        return self._loop.time() - self._begin

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, Result], *, virtual: bool) -> Result:
    """Run to the end in virtual or in real time."""
    with asyncio.Runner(loop_factory=VirtualLoop if virtual else None) as runner:
        return runner.run(main)
