"""What /healthz and /readyz say, and why."""

import asyncio
import time

import pytest

from maniple.live.leadership import Election, Leadership
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.web.stage import Stage


def test_a_loop_that_stands_still_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        health = Stage().health
        assert health.not_alive() == []
        later = time.monotonic() + 60
        monkeypatch.setattr("maniple.web.health.time.monotonic", lambda: later)
        assert health.not_alive() == ["the event loop did not run for 60 s"]

    run(main(), virtual=True)


def test_a_cycle_that_does_not_end_is_not_alive() -> None:
    async def main() -> None:
        stage = Stage()
        stage.scheduler.cycles = 7
        stage.scheduler.cycle_began = time.monotonic() - 10
        assert stage.health.not_alive() == []
        stage.scheduler.cycle_began = time.monotonic() - 400
        assert stage.health.not_alive() == ["cycle 7 has been running for 400 s"]

    run(main(), virtual=True)


def test_the_role_is_said() -> None:
    async def main() -> None:
        world = World()
        first, second = (
            Leadership(world.port(), Election(name), world.clock, asyncio.get_running_loop().time)
            for name in ("one", "two")
        )
        tasks = [asyncio.create_task(one.run()) for one in (first, second)]
        await asyncio.sleep(5)
        told = []
        for leadership in (first, second):
            stage = Stage()
            stage.scheduler.leadership = leadership
            told.append((stage.health.leads, stage.health.role()))
        for task in tasks:
            task.cancel()
        assert told == [
            (True, "leader of lease kube-system/maniple"),
            (False, "standby: lease kube-system/maniple is held by one"),
        ]

    run(main(), virtual=True)


def test_beats_measure_how_late_the_loop_is() -> None:
    async def main() -> None:
        health = Stage().health
        task = asyncio.create_task(health.run())
        await asyncio.sleep(0)
        time.sleep(1.2)
        await asyncio.sleep(0.05)
        task.cancel()
        assert 0.1 < health.lag < 5

    asyncio.run(main())
