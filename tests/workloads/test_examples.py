"""Every file of examples/workloads: the groups of a plan are those of a scheduler on the embedded cluster."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from maniple.live.scheduler import Scheduler, Timing
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.workloads.support import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.yaml"))
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}


def manifests(path: Path, scheduler: str) -> list[dict[str, Any]]:
    """The objects of a file for another scheduler."""
    return [_for(one, scheduler) for one in yaml.safe_load_all(path.read_text()) if one]


def _for(value: Any, scheduler: str) -> Any:
    if isinstance(value, dict):
        return {
            key: scheduler if key == "schedulerName" else _for(part, scheduler) for key, part in value.items()
        }
    return [_for(one, scheduler) for one in value] if isinstance(value, list) else value


def groups(cluster: Any) -> dict[str, Any]:
    """The groups and their pods, without what differs because the store gives uids and times."""
    jobs, tasks = cluster.jobs, cluster.tasks
    found = {}
    for row, item in jobs.objects.items():
        pods = sorted(
            (tasks.keys[one], tasks.roles[tasks.role[one]] if tasks.role[one] >= 0 else "")
            for one in tasks.pods
            if tasks.job[one] == row
        )
        found[item.key] = msgspec.to_builtins(item.spec), pods
    return found


async def _live(profile: str, objects: list[dict[str, Any]], conf: str | None = None) -> dict[str, Any]:
    planner = Planner(conf=conf, profile=profile, options={"debug": True})
    world = World(copy.deepcopy(objects), table=planner.table)
    scheduler = Scheduler(
        planner,
        world.port(),
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=True,
        alone=True,
    )
    running = asyncio.create_task(scheduler.run())
    while not scheduler.cycles or not scheduler.settled:
        await asyncio.sleep(0.1)
    found = groups(scheduler.cache.cluster)
    scheduler.stop()
    await running
    return found


@pytest.mark.parametrize("profile", SCHEDULERS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_groups_of_a_plan_are_those_of_the_embedded_cluster(path: Path, profile: str) -> None:
    objects = manifests(path, SCHEDULERS[profile])
    planner = Planner(profile=profile)
    planned = groups(planner.build(copy.deepcopy(objects)))
    assert planner.problems == []
    assert planned
    assert planned == run(_live(profile, objects), virtual=True)


def test_the_same_holds_for_a_custom_resource() -> None:
    folder = EXAMPLES.parent / "custom-workload"
    objects, conf = manifests(folder / "trainingrun.yaml", "maniple"), (folder / "maniple.conf").read_text()
    planned = groups(Planner(conf=conf).build(copy.deepcopy(objects)))
    assert planned["ml/trainingrun:night"][0]["minMember"] == 3
    assert planned == run(_live("maniple", objects, conf), virtual=True)
