"""Binds that fail, on every cluster: what is claimed meanwhile, and what becomes of the gang.

`test_on_sim` and `test_on_plane` run each of these, unchanged.
"""

import asyncio

from maniple.live.overview import overview
from maniple.live.scheduler import Scheduler
from maniple.objects.volcano import VolcanoQueue
from tests.live.objects import NAMESPACE, gang, node
from tests.live.ports import Denying
from tests.live.scenarios import Scenario, conditions, group_of, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

FAULT_SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    FAULT_SCENARIOS.append(function)
    return function


# -- claims ------------------------------------------------------------------------------------------------------------


def line_of(scheduler: Scheduler, job: str) -> tuple[int, int]:
    """How many pods of a job start, and how many of these are being bound, as shown to people."""
    (line,) = [one for one in overview(scheduler).jobs if one.key == f"{NAMESPACE}/{job}"]
    return line.starting + line.running, line.binding


@scenario
async def a_group_does_not_say_that_it_is_scheduled_before_all_binds_are_confirmed(world: World) -> None:
    denying = Denying(world.port(), lambda pod, node: 500 if pod == "train-7" else 0)
    async with scheduling(world, denying) as scheduler:
        await world.create([node("n1", 8), *gang("train", 8)])

        async def seven_are_bound() -> bool:
            return sum(bool(p.spec.node_name) for p in await pods_of(world, "train")) == 7

        async def is_told() -> bool:
            notes = [n for n in await world.notes() if n.regarding == f"Pod {NAMESPACE}/train-7"]
            return any(n.reason == "FailedScheduling" and "refused by the test" in n.note for n in notes)

        await until(seven_are_bound, "seven of eight are bound")
        await until(is_told, "the pod that cannot be bound says so")
        while denying.denied["train-7", "n1"] < 5:  # all of them attempts of one decision
            await asyncio.sleep(0.1)
            written = await group_of(world, "train")
            assert written.status.phase != "Running"
            assert conditions(written).get("Scheduled", ("", ""))[0] != "True"
            assert [n for n in await world.notes() if n.note == "pod group is ready"] == []
            held = {
                q.metadata.name: q.status.allocated.get("cpu", "0") for q in await world.objects(VolcanoQueue)
            }
            assert int(held.get("default", "0")) <= 7
            assert line_of(scheduler, "train") == (8, 1)

        denying.status = lambda pod, node: 0
        await until(lambda: runs(world, "train", 8), "the gang runs whole")

        async def claims_it() -> bool:
            written = await group_of(world, "train")
            held = {q.metadata.name: q.status.allocated.get("cpu") for q in await world.objects(VolcanoQueue)}
            return (
                written.status.phase == "Running"
                and conditions(written).get("Scheduled", ("", ""))[0] == "True"
                and held["default"] == "8"
            )

        await until(claims_it, "group and queue say that it is")
        assert line_of(scheduler, "train") == (8, 0)
        await settles(world, scheduler)
