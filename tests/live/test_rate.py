"""A limit on writes: a burst at once, then so many a second, in the usual order."""

import asyncio

import pytest

from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.rate import WriteRate
from maniple.sim.clock import run
from tests.live.beside import beside


def test_tokens_are_kept_up_to_the_burst_and_come_back() -> None:
    rate = WriteRate(2.0, 3)
    for _ in range(3):
        assert rate.pause(100.0) == 0
        rate.take(100.0)
    assert rate.pause(100.0) == pytest.approx(0.5)
    assert rate.pause(100.5) == 0
    rate.take(100.5)
    assert rate.pause(200.0) == 0
    for _ in range(3):
        rate.take(200.0)
    assert rate.pause(200.0) == pytest.approx(0.5)


@pytest.mark.parametrize("arguments", [(0.0, 1), (1.0, 0), (-1.0, 1)])
def test_a_rate_that_would_never_write_is_refused(arguments: tuple[float, int]) -> None:
    with pytest.raises(ValueError, match="a rate needs"):
        WriteRate(*arguments)


def test_writes_honour_it_retries_included_and_keep_their_order() -> None:
    begun: list[tuple[float, str]] = []

    class RefusedError(Exception):
        status = 503

    async def main() -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        effects = Effects(rate=WriteRate(10.0, 2))

        def submit(name: str, urgency: Urgency, fails: int = 0) -> None:
            async def call() -> None:
                begun.append((loop.time() - start, name))
                if sum(one == name for _, one in begun) <= fails:
                    raise RefusedError

            effects.submit(Effect(Lane("Pod", f"a/{name}"), "bind", urgency, call, lambda error: None))

        async with beside(effects.run()):
            await asyncio.sleep(0)
            for number in range(6):
                submit(f"bind-{number}", Urgency.DECISION, fails=int(number == 0))
            submit("admitted", Urgency.AWAITED)
            assert await effects.drain(60.0)

    run(main(), virtual=True)
    assert len(begun) == 8
    for number, (at, _) in enumerate(begun[2:], start=1):
        assert at >= number / 10 - 1e-6
    names = [name for _, name in begun]
    assert names.index("admitted") <= 2  # what controllers wait for does not queue behind binds
