"""What a running scheduler remembers: nothing of objects that are gone, and a bounded number of anything else.

The first test looks at every container that the scheduler can reach, whatever it is for: one that grows with each
round of objects that came and went is a leak.
"""

import asyncio
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from maniple.cluster import classes, cluster
from maniple.live import meter as meter_module
from maniple.live import problems as problems_module
from maniple.live.barred import Barred
from maniple.live.problems import Problems
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Pod
from maniple.objects.load import load
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.faults import Fault
from maniple.sim.world import World
from maniple.web.health import Health
from maniple.web.metrics import Metrics
from maniple.web.view import View
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw, group, node, pod, queue

EACH = 15
ROUNDS = 4
# Not the scheduler's own: the cluster that it runs on, and plans, which are values.
ELSEWHERE = ("maniple.sim", "maniple.objects", "maniple.framework.plans")
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}


def sizes(root: object) -> dict[str, int]:
    """How many things each container has, by the attributes that lead to it."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("scheduler", root)]
    while pending:
        path, thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict | set | frozenset | list | deque):
            found[path] = found.get(path, 0) + len(thing)
            pending += [(f"{path}[]", one) for one in (thing.values() if isinstance(thing, dict) else thing)]
        elif isinstance(thing, np.ndarray):
            found[path] = found.get(path, 0) + thing.size
        elif type(thing).__module__.startswith("maniple.") and not type(thing).__module__.startswith(
            ELSEWHERE
        ):
            pending += [(f"{path}.{name}", value) for name, value in _attributes(thing).items()]
    return found


def _attributes(thing: object) -> dict[str, Any]:
    slots = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    found = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {**found, **getattr(thing, "__dict__", {})}


def hostile(tag: str, scheduler: str) -> list[Raw]:
    """One of each kind of object, with names that no other has."""

    def own(name: str, group: str = "", cpu: str = "100m", **annotations: str) -> Raw:
        raw = pod(f"{name}-{tag}", group, cpu, **annotations)
        raw["spec"]["schedulerName"] = scheduler
        return raw

    resource, selecting, apart, volume = own("resource"), own("selecting"), own("apart"), own("volume")
    amounts = {f"example.com/{tag}": "1"}
    resource["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    selecting["spec"]["nodeSelector"] = {f"key-{tag}": tag}
    term = {"labelSelector": {"matchLabels": {"a": tag}}, "topologyKey": f"topology-{tag}"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    apart["spec"]["affinity"] = {"podAntiAffinity": terms}
    volume["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"claim-{tag}"}}]
    return [
        *(own("runs"), own("refused"), own("deleted"), resource, selecting, apart, volume),
        *(group(f"queued-{tag}", 1, f"queue-{tag}"), own("queued", f"queued-{tag}")),
        *(group(f"role-{tag}", 1), own("role", f"role-{tag}", **{"volcano.sh/task-spec": f"role-{tag}"})),
        own("odd", **{"volcano.sh/preemptable": f"maybe-{tag}", "gpu-fraction": f"x{tag}"}),
        own("orphan", f"missing-{tag}"),
    ]


@pytest.mark.parametrize("groups", ["memory", "write"])
@pytest.mark.parametrize("profile", [*SCHEDULERS])
def test_nothing_grows_with_objects_that_came_and_went(
    profile: str, groups: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((classes, "_MANY_SPECS"), (cluster, "_MANY_RESOURCES"), (cluster, "_MANY_ROLES")):
        monkeypatch.setattr(module, name, 10)
    monkeypatch.setattr(problems_module, "MOST", 10)

    async def main() -> list[dict[str, int]]:
        world = World([node("n1", cpu=64), queue("default")], start_seconds=0.1)
        port = world.port()
        planner = Planner(profile=profile, options={"debug": True})
        scheduler = Scheduler(planner, port, clock=world.clock, inline=True, alone=True, groups=groups)
        measured = []
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(5)
            for number in range(ROUNDS):
                made = [raw for one in range(EACH) for raw in hostile(f"{number}-{one}", SCHEDULERS[profile])]
                for raw in made:
                    name = f"{NAMESPACE}/{raw['metadata']['name']}"
                    if "refused" in name or "deleted" in name:
                        port.faults.plan(Fault("bind", 403, key=name))
                    world.store.create(raw)
                await asyncio.sleep(8)
                for raw in made:
                    kind = Pod if raw["kind"] == "Pod" else VolcanoPodGroup
                    world.store.remove(kind, f"{NAMESPACE}/{raw['metadata']['name']}")
                await asyncio.sleep(130)  # longer than any back-off
                measured.append(sizes(scheduler))
        return measured

    measured = run(main(), virtual=True)
    growing = {
        path: [one.get(path, 0) for one in measured]
        for path in measured[-1]
        if all(after.get(path, 0) - before.get(path, 0) >= EACH for before, after in pairwise(measured[1:]))
    }
    assert growing == {}


# -- problems --------------------------------------------------------------------------------------------------------


def test_a_problem_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    problems = Problems()
    for _ in range(3):
        problems.report("Pod a/b: broken", 0.0)
    assert [*problems] == ["Pod a/b: broken"]
    assert problems.found == 1
    assert [record.getMessage() for record in caplog.records] == ["Pod a/b: broken"]


def test_the_oldest_problems_are_forgotten_and_one_that_persists_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(problems_module, "MOST", 100)
    problems = Problems()
    for number in range(1000):
        problems.report("persists", 0.0)
        problems.report(f"Pod a/p{number}: broken", 0.0)
    assert len(problems) == 100
    assert "persists" in problems
    assert problems.found == 1001


def test_a_long_problem_is_cut() -> None:
    problems = Problems()
    problems.report("x" * 1_000_000, 0.0)
    (kept,) = problems
    assert len(kept) < 2000


def test_a_flood_of_problems_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    problems = Problems()
    for number in range(5000):
        problems.report(f"p{number}", 0.0)
    assert len(caplog.records) == problems_module.BURST
    problems.report("later", 10.0)
    assert [record.getMessage() for record in caplog.records[-2:]] == [
        "too many problems at once: 4000 more were not logged",
        "later",
    ]


# -- what a deleted pod leaves behind --------------------------------------------------------------------------------


def test_a_bind_that_fails_after_its_pod_was_deleted_leaves_nothing() -> None:
    async def main() -> Scheduler:
        world = World([node("n1"), queue("default")], start_seconds=0.1)
        scheduler = Scheduler(Planner(profile="volcano"), world.port(), clock=world.clock, inline=True)
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(2)
            world.store.create(pod("p"))
            await asyncio.sleep(2)
            bound = scheduler.cache.pod(f"{NAMESPACE}/p")
            assert bound is not None
            world.store.remove(Pod, f"{NAMESPACE}/p")
            await asyncio.sleep(2)
            retries = scheduler._decisions._retries
            assert not retries.failed(bound, "failed to bind: not found", "n1")
            retries.struggles(bound, "failed to bind: not found")
            assert (retries._failures, retries._since) == ({}, {})
            assert (Pod, bound.key) not in scheduler.notes._recorded
        return scheduler

    assert run(main(), virtual=True).bind_failures == 1


# -- metrics ---------------------------------------------------------------------------------------------------------


def test_the_times_of_a_pod_without_a_group_go_with_it() -> None:
    async def main() -> tuple[str, str]:
        world = World([node("n1"), queue("default")], start_seconds=0.1)
        scheduler = Scheduler(
            Planner(profile="volcano"), world.port(), clock=world.clock, inline=True, alone=True
        )
        metrics = Metrics(View(scheduler), Health(scheduler))
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(2)
            world.store.create(pod("alone"))
            await asyncio.sleep(5)
            before = metrics.page().decode()
            world.store.remove(Pod, f"{NAMESPACE}/alone")
            await asyncio.sleep(5)
            return before, metrics.page().decode()

    before, after = run(main(), virtual=True)
    assert 'job_name="pod:alone"' in before
    assert "alone" not in after


def test_the_series_of_jobs_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "MOST_JOBS", 5)

    async def main() -> list[str]:
        world = World([node("n1", cpu=64), queue("default")], start_seconds=0.1)
        scheduler = Scheduler(Planner(profile="volcano"), world.port(), clock=world.clock, inline=True)
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(2)
            for number in range(12):
                world.store.create(pod(f"p{number}", cpu="100m"))
                await asyncio.sleep(2)
            return [*scheduler.meter.jobs]

    assert run(main(), virtual=True) == [f"{NAMESPACE}/pod:p{number}" for number in range(7, 12)]


def test_what_refused_pods_have_in_common_is_remembered_in_a_few_bytes() -> None:
    raw = pod("p")
    raw["spec"]["nodeSelector"] = {f"key-{number}": "x" for number in range(10_000)}
    large = load(raw)
    assert isinstance(large, Pod)
    barred = Barred()
    barred.refused(large, "n1", 1.0, "no")
    assert [len(signature) for signature in barred._alike] == [32]
    assert barred.refused(replace(large, metadata=replace(large.metadata, uid="other")), "n1", 1.0, "no")
