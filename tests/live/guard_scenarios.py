"""Objects on which planning fails, on every cluster: they are set aside, and everybody else is scheduled.

A plugin fails on them on purpose, each time in another place; `test_on_sim` and `test_on_plane` run each of these.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from maniple.framework.configuration.registry import Extensions
from maniple.framework.session import Session
from maniple.live.essence import scheduled_condition
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw, gang, group, node, pod
from tests.live.scenarios import Scenario, runs, settles
from tests.live.worlds import World, pods_of, until

GUARD_SCENARIOS: list[Scenario] = []
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: trap
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
MARK = "example.com/trap"
OTHERS = "others"
Failing = Callable[[Session], None]


def scenario(function: Scenario) -> Scenario:
    GUARD_SCENARIOS.append(function)
    return function


# -- ways to fail ------------------------------------------------------------------------------------------------------


def marked_pods(session: Session) -> list[str]:
    return sorted(key for key, pod in _pods(session).items() if MARK in pod.metadata.annotations)


def _pods(session: Session) -> dict[str, Pod]:
    return {pod.key: pod for pod in session.cluster.tasks.pods.values()}


def while_working_on_a_pod(session: Session) -> None:
    for member in session.cluster.tasks.pods.values():
        if MARK in member.metadata.annotations:
            raise KeyError(member.key)


def without_saying_on_what(session: Session) -> None:
    if marked_pods(session):
        raise ValueError("there is something wrong")


def on_the_shape_of_a_group(session: Session) -> None:
    for job, facts in session.cluster.jobs.objects.items():
        if isinstance(facts, VolcanoPodGroup) and facts.spec.min_task_member:
            raise RecursionError(f"job {job}")


def always(session: Session) -> None:
    raise RuntimeError("a plugin that is broken altogether")


def trap(failing: Failing) -> Extensions:
    class Trap:
        name = "trap"

        def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
            failing(session)

        def overused(self, queue: int) -> bool:
            return False

    return Extensions(plugins={"trap": Trap})


def trapped(world: World, failing: Failing) -> Scheduler:
    options = {"extensions": trap(failing)}
    planner = Planner(CONF, profile="volcano", options=options)
    return Scheduler(planner, world.port(), clock=world.clock, timing=Timing(period=0.5), inline=world.inline)


def hostile(name: str, minimum: int = 1) -> list[Raw]:
    return [group(name, minimum), pod(f"{name}-0", name, **{MARK: "here"})]


def moved(raw: Raw, namespace: str) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "namespace": namespace}}


async def runs_in(world: World, namespace: str, size: int) -> bool:
    pods = [p for p in await world.objects(Pod) if p.metadata.namespace == namespace]
    return len(pods) == size and all(p.spec.node_name for p in pods)


async def told(world: World, key: str) -> str:
    """What the pod says of why it waits, if it has been set aside."""
    (found,) = [p for p in await world.objects(Pod) if p.metadata.name == key]
    condition = scheduled_condition(found)
    return condition.message if condition is not None and condition.reason == "SchedulerError" else ""


# -- one object --------------------------------------------------------------------------------------------------------


async def one_pod_waits_and_the_others_run(world: World, failing: Failing) -> None:
    scheduler = trapped(world, failing)
    async with beside(scheduler.run(), scheduler.stop):
        await world.create([node("n1", 8), *hostile("bad"), *gang("good", 4)])
        await until(lambda: runs(world, "good", 4), "the healthy gang runs")
        await until(lambda: told(world, "bad-0"), "the owner is told")
        assert "plugin 'trap', which is not part of Maniple" in await told(world, "bad-0")
        notes = [n for n in await world.notes() if n.reason == "SetAside"]
        assert {n.regarding for n in notes} == {f"Pod {NAMESPACE}/bad-0"}
        assert scheduler.guard.set_aside == 1

        await world.create(gang("later", 4))
        await until(lambda: runs(world, "later", 4), "a gang that comes later runs")
        assert scheduler.guard.set_aside == 1, "it is not tried again before it has changed"

        await world.patch(Pod, f"{NAMESPACE}/bad-0", {"metadata": {"annotations": {MARK: None}}})
        await world.create([node("n2", 8)])
        await until(lambda: runs(world, "bad", 1), "it runs once it has been mended")
        await settles(world, scheduler)


@scenario
async def a_pod_on_which_planning_fails_waits_alone(world: World) -> None:
    await one_pod_waits_and_the_others_run(world, while_working_on_a_pod)


@scenario
async def a_pod_that_is_found_only_by_leaving_it_out_waits_alone(world: World) -> None:
    await one_pod_waits_and_the_others_run(world, without_saying_on_what)


@scenario
async def pods_of_a_group_that_is_set_aside_wait_with_it(world: World) -> None:
    scheduler = trapped(world, on_the_shape_of_a_group)
    async with beside(scheduler.run(), scheduler.stop):
        bad, *members = gang("bad", 2)
        bad["spec"]["minTaskMember"] = {"worker": 1}
        await world.create([node("n1", 8), bad, *members, *gang("good", 4)])
        await until(lambda: runs(world, "good", 4), "the healthy gang runs")
        await until(lambda: told(world, "bad-0"), "a pod says why it waits")
        await until(lambda: told(world, "bad-1"), "and the other too")
        notes = [n for n in await world.notes() if n.reason == "SetAside"]
        assert {n.regarding for n in notes} == {f"PodGroup {NAMESPACE}/bad"}
        assert not [p for p in await pods_of(world, "bad") if p.spec.node_name]

        key = f"{NAMESPACE}/bad"
        await world.patch(VolcanoPodGroup, key, {"spec": {"minTaskMember": None}})
        await until(lambda: runs(world, "bad", 2), "it runs once its group has been mended")
        await settles(world, scheduler)


@scenario
async def a_bound_pod_on_which_planning_fails_keeps_its_room(world: World) -> None:
    scheduler = trapped(world, without_saying_on_what)
    async with beside(scheduler.run(), scheduler.stop):
        await world.create([node("n1", 8), *gang("first", 1, cpu="6")])
        await until(lambda: runs(world, "first", 1), "it runs")
        await world.patch(Pod, f"{NAMESPACE}/first-0", {"metadata": {"annotations": {MARK: "now"}}})
        await world.create([*gang("small", 1, cpu="2"), *gang("large", 1, cpu="3")])
        await until(lambda: runs(world, "small", 1), "there is room for two")
        await asyncio.sleep(2)
        assert not await runs(world, "large", 1), "and not for three"
        assert scheduler.guard.set_aside == 1


# -- many, and none ----------------------------------------------------------------------------------------------------


@scenario
async def a_flood_of_them_costs_other_namespaces_a_few_attempts(world: World) -> None:
    scheduler = trapped(world, while_working_on_a_pod)
    async with beside(scheduler.run(), scheduler.stop):
        await world.create(
            [node("n1", 100), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}}]
        )
        await world.create(raw for number in range(200) for raw in hostile(f"bad-{number}"))
        await world.create(moved(raw, OTHERS) for raw in gang("good", 4))
        await until(
            lambda: runs_in(world, OTHERS, 4), "the healthy gang of another namespace runs", seconds=20
        )
        assert scheduler.guard.set_aside < 100, "most of them are set aside together"
        assert not scheduler.guard.blocked


@scenario
async def what_was_set_aside_with_a_flood_is_tried_again(world: World) -> None:
    scheduler = trapped(world, while_working_on_a_pod)
    async with beside(scheduler.run(), scheduler.stop):
        await world.create([node("n1", 100)])
        await world.create(
            [*(raw for number in range(5) for raw in hostile(f"bad-{number}")), *gang("good", 4)]
        )
        await until(lambda: runs(world, "good", 4), "the healthy gang of the same namespace runs")
        assert not scheduler.guard.blocked


@scenario
async def a_plugin_that_always_fails_does_not_end_the_process(world: World) -> None:
    faults: list[Failing] = [always]

    def fails(session: Session) -> None:
        faults[0](session)

    scheduler = trapped(world, fails)
    async with beside(scheduler.run(), scheduler.stop):
        await world.create([node("n1", 8), *gang("good", 4)])

        async def says_so() -> bool:
            return (
                "plugin 'trap'" in scheduler.guard.blocked and "broken altogether" in scheduler.guard.blocked
            )

        await until(says_so, "it says that nothing can be planned, and whose fault that is")
        faults[0] = lambda session: None
        await until(lambda: runs(world, "good", 4), "scheduling goes on once it is mended")
        assert not scheduler.guard.blocked
        await settles(world, scheduler)
