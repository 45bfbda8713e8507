"""Virtual time jumps over pauses, in order, and comes to an end instead of hanging."""

import asyncio
import time
from datetime import timedelta

import pytest

from maniple.sim.clock import VIRTUAL_START, Clock, run


def test_an_hour_of_virtual_time_is_over_at_once_and_in_order() -> None:
    async def main() -> list[str]:
        told: list[str] = []

        async def say(after: float, word: str) -> None:
            await asyncio.sleep(after)
            told.append(word)

        await asyncio.gather(say(3600, "last"), say(10, "first"), say(1800, "second"))
        return told

    begin = time.process_time()
    assert run(main(), virtual=True) == ["first", "second", "last"]
    assert time.process_time() - begin < 60


def test_the_clock_tells_virtual_time() -> None:
    async def main() -> tuple[float, object]:
        clock = Clock()
        await clock.sleep(90)
        return clock.elapsed(), clock.now()

    elapsed, now = run(main(), virtual=True)
    assert elapsed == 90
    assert now == VIRTUAL_START + timedelta(seconds=90)


def test_timeouts_are_virtual_too() -> None:
    async def main() -> None:
        async with asyncio.timeout(1000):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(main(), virtual=True)


def test_when_nothing_can_happen_any_more_it_says_so() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="virtual time cannot advance"):
        run(main(), virtual=True)


def test_real_time_is_the_machines() -> None:
    async def main() -> float:
        clock = Clock()
        await clock.sleep(0.01)
        return clock.elapsed()

    assert run(main(), virtual=False) >= 0.01
