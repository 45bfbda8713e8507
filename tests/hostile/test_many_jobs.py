"""Many different jobs of one tenant on a full cluster: the search for victims stays bounded, and others are served.

Work is counted in calls, as in `test_hostile.py`.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.hostile.objects import HEALTHY, Raw, Writer
from tests.hostile.test_hostile import calls_of

NOW = datetime(2026, 11, 17, tzinfo=UTC)
NODES = 60
# What the searches of all actions may take, however many jobs wait; it is a second, wherever that is short.
MOST_CALLS = 3_000_000


def full(writer: Writer) -> list[Raw]:
    """Nodes full of jobs that can spare tasks, all of one queue."""
    objects = writer.healthy(NODES, 0)
    for node in range(NODES):
        objects.append(writer.group(f"run-{node}", 1, HEALTHY, "kind"))
        for member in range(4):
            pod = writer.pod(
                f"run-{node}-{member}",
                f"run-{node}",
                HEALTHY,
                requests={"cpu": "16"},
                nodeName=f"node-{node:04}",
            )
            objects.append({**pod, "status": {"phase": "Running"}})
    return objects


def different(writer: Writer, count: int, members: int) -> list[Raw]:
    """Jobs of which none requests at least as much as another: more CPU is less memory."""
    objects = []
    for job in range(count):
        objects.append(writer.group(f"want-{job:04}", members, queue="mean"))
        for member in range(members):
            cpu, memory = 20_000 + 40 * job + member, 200_000 - 400 * job - 10 * member
            requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
            objects.append(writer.pod(f"want-{job:04}-{member}", f"want-{job:04}", requests=requests))
    return objects


def planned(profile: str, objects: list[Raw], **settings: Any) -> tuple[int, Plan]:
    planner = Planner(profile=profile, **settings)
    cluster = planner.build(objects)
    calls, plan = calls_of(lambda: planner.cycle(cluster, now=NOW))
    return calls, plan


@pytest.mark.parametrize(("profile", "members"), [("kai", 12), ("maniple", 1)])
def test_the_search_for_victims_does_not_grow_with_the_number_of_jobs(profile: str, members: int) -> None:
    writer = Writer(profile)
    objects = [*full(writer), *different(writer, 400, members)]
    plain, _ = planned(profile, objects, actions=["allocate"])
    calls, plan = planned(profile, objects)
    assert calls - plain <= MOST_CALLS
    assert plan.time_matters, "the others have their turn later, also if nothing else changes"


def test_a_job_of_another_namespace_is_served_behind_them() -> None:
    writer = Writer("maniple")
    objects = [*full(writer), *different(writer, 400, 1)]
    calm = [writer.group("zz", 1, "calm", "mean"), writer.pod("zz-0", "zz", "calm", requests={"cpu": "12"})]
    planner = Planner(profile="maniple")
    plan = planner.cycle(planner.build([*objects, *calm]), now=NOW)
    assert "calm/zz-0" in plan.pipelined
    cut_short = [key for key, job in plan.jobs.items() if any("budget" in one for one in job.reasons)]
    assert cut_short, "not all of them could be searched for"
