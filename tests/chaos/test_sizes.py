"""What a scheduler keeps does not grow with the number of jobs that it has seen."""

import asyncio
from typing import Any

import pytest

from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from maniple.sim.clock import run
from tests.chaos.sizes import grown, sizes
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node
from tests.live.worlds import EmbeddedWorld, until


async def wave(world: EmbeddedWorld, scheduler: Scheduler, number: int) -> tuple[dict[str, int], int]:
    """Gangs come, run or wait, and go; returns what is left, and how many tasks there are."""
    names = [f"wave{number}-{index}" for index in range(12)]
    await world.create([raw for name in names for raw in gang(name, 8)])

    async def settled() -> bool:
        return scheduler.settled

    await asyncio.sleep(5.0)
    await until(settled, "everything is decided and written")
    for name in names:
        for index in range(8):
            await world.delete(Pod, f"{NAMESPACE}/{name}-{index}")
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/{name}")
    await asyncio.sleep(700.0)  # longer than anything is remembered
    await until(settled, "everything is decided and written")
    found = {path: size for path, size in sizes(scheduler).items() if not path.startswith(".port")}
    return found, len(asyncio.all_tasks())  # without the embedded cluster, which keeps its history


@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_nothing_grows_with_jobs_that_are_gone(profile: str) -> None:
    found: list[Any] = []

    async def main() -> None:
        world = EmbeddedWorld()
        scheduler = Scheduler(
            Planner(profile=profile, options={"schedulerName": ["volcano"]}),
            world.port(),
            clock=world.clock,
            timing=Timing(),
            inline=True,
        )
        async with beside(scheduler.run(), scheduler.stop):
            await world.create([node(f"n{index}", 16) for index in range(4)])
            found.extend([await wave(world, scheduler, number) for number in range(4)])

    run(main(), virtual=True)
    (second, tasks), (last, tasks_at_the_end) = found[1], found[3]
    assert grown(second, last) == {}
    assert tasks_at_the_end <= tasks
    assert len(last) > 30, "the walk finds what a scheduler keeps"
