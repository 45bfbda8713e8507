"""Groups that are written to the cluster, on every cluster. Listed with the other scenarios."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.framework.plans.plan import Plan
from maniple.live.group_controller import GroupController
from maniple.live.group_writer import NOT_WRITTEN
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from tests.live.beside import beside
from tests.live.group_scenarios import JOB, bound, created, job, messages, of, pods
from tests.live.objects import NAMESPACE, node
from tests.live.ports import Recorder, Withholding
from tests.live.scenarios import Scenario, Watcher, scheduling, settles
from tests.live.worlds import World, until

WRITTEN_GROUP_SCENARIOS: list[Scenario] = []
GROUP_NAME = "scheduling.k8s.io/group-name"
WRITING: dict[str, Any] = {"profile": "maniple", "groups": "write"}


def scenario(function: Scenario) -> Scenario:
    WRITTEN_GROUP_SCENARIOS.append(function)
    return function


async def groups(world: World) -> dict[str, VolcanoPodGroup]:
    return {one.metadata.name: one for one in await world.objects(VolcanoPodGroup)}


async def names_on_pods(world: World, name: str) -> set[str]:
    return {one.metadata.annotations.get(GROUP_NAME, "") for one in await of(world, name)}


async def is_written(world: World, name: str, group: str) -> bool:
    return group in await groups(world) and await names_on_pods(world, name) == {group}


async def are_bound(world: World, name: str, number: int) -> bool:
    return await bound(world, name) == number


async def gang(world: World, name: str, size: int) -> str:
    """A Job whose pods start together; the name that its group gets."""
    uid = await created(world, job(name, size, str(size)))
    await world.create(pods(name, size, uid=uid))
    return f"podgroup-{uid}"


def bare(name: str) -> dict[str, Any]:
    (one,) = pods(name, 1)
    del one["metadata"]["ownerReferences"]
    return one


@scenario
async def a_gang_is_written_with_its_owner_and_bound_once_and_whole(world: World) -> None:
    recorder, watcher = Recorder(world.port()), Watcher()
    async with scheduling(world, recorder, observer=watcher, **WRITING) as scheduler:
        await world.create([node("n1", 3)])
        name = await gang(world, "count", 4)
        await until(lambda: is_written(world, "count", name), "the group is written, and its pods name it")
        made = (await groups(world))[name]
        (owner,) = made.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("Job", "count", True)
        assert name == f"podgroup-{owner.uid}"
        assert made.metadata.labels["app.kubernetes.io/managed-by"] == "maniple"
        assert made.spec.min_member == 4

        async def says_why() -> bool:
            said = (await groups(world))[name].status.conditions
            return len(await messages(world, "count")) == 4 and any(
                one.type == "Unschedulable" for one in said
            )

        await until(says_why, "pods and group say why they wait")
        assert await bound(world, "count") == 0
        await world.create([node("n2", 1)])
        await until(lambda: are_bound(world, "count", 4), "all four are bound")

        async def runs() -> bool:
            status = (await groups(world))[name].status
            return status.phase == "Running" and status.running == 4

        await until(runs, "the group says that it runs")
        await settles(world, scheduler)
        jobs = scheduler.cache.cluster.jobs
        assert {one.key for one in jobs.objects.values()} == {f"{NAMESPACE}/{name}"}
    assert watcher.halves == []
    assert all(len(nodes) == 1 for nodes in recorder.bound.values())


@scenario
async def a_restarted_scheduler_goes_on_with_the_groups_that_it_wrote(world: World) -> None:
    recorder = Recorder(world.port())
    async with scheduling(world, recorder, **WRITING) as scheduler:
        await world.create([node("n1", 3)])
        name = await gang(world, "count", 4)
        await until(lambda: is_written(world, "count", name), "the group is written")
        await settles(world, scheduler)
    before = (await groups(world))[name].metadata.uid
    recorder = Recorder(world.port())
    async with scheduling(world, recorder, **WRITING) as scheduler:
        fewer = {"metadata": {"labels": {"maniple.dev/min-member": "3"}}}
        await world.patch(JOB, f"{NAMESPACE}/count", fewer)
        await until(lambda: are_bound(world, "count", 3), "three start")

        async def follows() -> bool:
            return (await groups(world))[name].spec.min_member == 3

        await until(follows, "the group follows its owner")
        await settles(world, scheduler)
    assert (await groups(world))[name].metadata.uid == before
    # And one that leaves grouping to others reads what is there.
    async with scheduling(world, profile="maniple", groups="given") as scheduler:
        await world.create([node("n2", 1)])
        await until(lambda: are_bound(world, "count", 4), "the last one joins")
        await settles(world, scheduler)


@scenario
async def a_group_that_is_deleted_or_changed_by_hand_is_written_again(world: World) -> None:
    recorder = Recorder(world.port())
    async with scheduling(world, recorder, **WRITING) as scheduler:
        await world.create([node("n1", 4)])
        name = await gang(world, "count", 4)
        await until(lambda: are_bound(world, "count", 4), "all four are bound")
        await until(lambda: is_written(world, "count", name), "the group is written")
        await settles(world, scheduler)
        before = (await groups(world))[name].metadata.uid
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/{name}")

        async def again() -> bool:
            found = (await groups(world)).get(name)
            return found is not None and found.metadata.uid != before and found.status.phase == "Running"

        await until(again, "it is written again, and says that it runs")
        await world.patch(VolcanoPodGroup, f"{NAMESPACE}/{name}", {"spec": {"minMember": 1}})

        async def mended() -> bool:
            return (await groups(world))[name].spec.min_member == 4

        await until(mended, "its minimum is that of its owner")
        (one, *_) = await of(world, "count")
        await world.patch(Pod, one.key, {"metadata": {"annotations": {GROUP_NAME: None}}})
        await until(lambda: is_written(world, "count", name), "the pod names its group again")
        await settles(world, scheduler)
    assert all(len(nodes) == 1 for nodes in recorder.bound.values())


@scenario
async def bare_pods_have_a_group_each_that_goes_with_them(world: World) -> None:
    async with scheduling(world, **WRITING) as scheduler:
        await world.create([node("n1", 4), bare("alone")])
        await until(lambda: are_bound(world, "alone", 1), "it is bound")
        (one,) = await of(world, "alone")
        name = f"podgroup-{one.metadata.uid}"
        await until(lambda: is_written(world, "alone", name), "its group is written")
        (owner,) = (await groups(world))[name].metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name) == ("v1", "Pod", "alone-0")
        await settles(world, scheduler)


async def pods_leave_their_group(world: World) -> None:
    """Pods that lose their owner have groups of their own, and the group that they were in is deleted."""
    name = await gang(world, "left", 2)
    await until(lambda: is_written(world, "left", name), "the group is written")
    for one in await of(world, "left"):
        await world.patch(Pod, one.key, {"metadata": {"ownerReferences": None}})
    own = {f"podgroup-{one.metadata.uid}" for one in await of(world, "left")}

    async def moved() -> bool:
        found = await groups(world)
        return await names_on_pods(world, "left") == own <= found.keys() and name not in found

    await until(moved, "they name groups of their own, and the other one is gone")


@scenario
async def a_group_that_its_pods_have_left_is_deleted(world: World) -> None:
    async with scheduling(world, **WRITING) as scheduler:
        await pods_leave_their_group(world)
        await settles(world, scheduler)


@scenario
async def a_group_of_others_is_left_alone_and_the_pods_say_so(world: World) -> None:
    async with scheduling(world, **WRITING) as scheduler:
        await world.create([node("n1", 3)])
        uid = await created(world, job("count", 4, "4"))
        name = f"podgroup-{uid}"
        api_version = "scheduling.volcano.sh/v1beta1"
        theirs = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"minMember": 1}}
        await world.create([{"apiVersion": api_version, "kind": "PodGroup", **theirs}])
        await world.create(pods("count", 4, uid=uid))

        async def all_say_so() -> bool:
            said = [one for one in await world.notes() if one.reason == NOT_WRITTEN]
            return len(said) == 4 and all(name in one.note and "Job count" in one.note for one in said)

        await until(all_say_so, "an event on each pod names the group and its owner")

        async def all_wait() -> bool:
            return len(await messages(world, "count")) == 4

        await until(all_wait, "they wait as a gang: the group in memory counts")
        assert await bound(world, "count") == 0
        assert await names_on_pods(world, "count") == {""}
        left = (await groups(world))[name]
        assert left.spec.min_member == 1
        assert not left.metadata.labels
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/{name}")
        await until(lambda: is_written(world, "count", name), "it is written once theirs is gone")
        await world.create([node("n2", 1)])
        await until(lambda: are_bound(world, "count", 4), "all four are bound")
        await settles(world, scheduler)


@scenario
async def pods_of_a_late_owner_get_its_group_and_no_other(world: World) -> None:
    port = Withholding(world.port(), JOB)
    async with scheduling(world, port, **WRITING) as scheduler:
        await world.create([node("n1", 3)])
        name = await gang(world, "late", 4)

        async def wait_for_it() -> bool:
            said = await messages(world, "late")
            return len(said) == 4 and all(f"owner Job {NAMESPACE}/late" in one for one in said)

        await until(wait_for_it, "all say that their owner has not been seen")
        assert await groups(world) == {}
        port.release()
        await until(lambda: is_written(world, "late", name), "the group of the owner is written")
        assert [*await groups(world)] == [name]
        await settles(world, scheduler)


def phases_of(scheduler: Scheduler) -> list[str]:
    """The phases of groups that cycles decide on, without repetitions, as they come."""
    found: list[str] = []
    cycle = scheduler.planner.cycle

    def noting(cluster: Cluster, *given: Any) -> Plan:
        phases = [one.status.phase for one in cluster.jobs.objects.values()]  # type: ignore[attr-defined]
        found.extend(one for one in phases if one not in found[-1:])
        return cycle(cluster, *given)

    scheduler.planner.cycle = noting  # type: ignore[assignment, method-assign]
    return found


@scenario
async def nothing_changes_when_the_written_group_comes_back_late(world: World) -> None:
    for profile in ("maniple", "volcano"):
        await _comes_back_late(world, profile)


async def _comes_back_late(world: World, profile: str) -> None:
    name, options = f"late-{profile}", {"schedulerName": ["maniple"]}
    port = Withholding(world.port(), VolcanoPodGroup)
    recorder = Recorder(port)
    async with scheduling(world, recorder, profile=profile, groups="write", options=options) as scheduler:
        phases = phases_of(scheduler)
        await world.create([node(f"n-{profile}", 4)])
        group = await gang(world, name, 4)
        await until(lambda: are_bound(world, name, 4), "the gang does not wait for its group")

        async def runs() -> bool:
            found = scheduler.cache.get(VolcanoPodGroup, f"{NAMESPACE}/{group}")
            return isinstance(found, VolcanoPodGroup) and found.status.phase == "Running"

        await until(runs, "it runs, in memory")
        assert await names_on_pods(world, name) == {""}
        port.release()
        await until(lambda: is_written(world, name, group), "its pods name it")

        async def says_so() -> bool:
            return (await groups(world))[group].status.phase == "Running"

        await until(says_so, "the written group says that it runs")
        await world.create([node(f"last-{profile}", 0)])  # one more cycle
        await settles(world, scheduler)
        assert scheduler.evicted == {}
    assert phases[-1] == "Running"
    assert phases == list(dict.fromkeys(phases)), "no phase comes back"
    assert all(len(nodes) == 1 for nodes in recorder.bound.values())
    for one in await of(world, name):
        await world.delete(Pod, one.key)
    await world.delete(VolcanoPodGroup, f"{NAMESPACE}/{group}")


@asynccontextmanager
async def controlling(world: World, port: Any = None, **options: Any) -> AsyncIterator[GroupController]:
    """The controller alone, while it lasts."""
    controller = GroupController(
        Planner(profile="maniple", options={"debug": True, **options}),
        world.port() if port is None else port,
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=world.inline,
    )
    async with beside(controller.run(), controller.stop):
        yield controller


@scenario
async def the_controller_alone_groups_for_a_scheduler_that_is_given_its_groups(world: World) -> None:
    async with controlling(world) as controller:
        await world.create([node("n1", 4)])
        name = await gang(world, "count", 4)
        await until(lambda: is_written(world, "count", name), "the group is written, and its pods name it")
        assert await bound(world, "count") == 0
        assert controller.cycles == 0
        recorder = Recorder(world.port())
        async with scheduling(world, recorder, profile="maniple", groups="given") as scheduler:
            await until(lambda: are_bound(world, "count", 4), "the scheduler binds the gang")
            other = await gang(world, "large", 5)
            await until(lambda: is_written(world, "large", other), "the next one is written")

            async def waits() -> bool:
                return len(await messages(world, "large")) == 5

            await until(waits, "the next one waits, whole")
            await world.create([node("n2", 5)])
            await until(lambda: are_bound(world, "large", 5), "and is bound, whole")
            await settles(world, scheduler)
        assert all(len(nodes) == 1 for nodes in recorder.bound.values())
        await until(lambda: _settled(controller), "all is written")


async def _settled(scheduler: Scheduler) -> bool:
    return scheduler.settled


@scenario
async def a_tree_of_sets_is_written_in_the_form_of_kai(world: World) -> None:
    async with scheduling(world, **WRITING) as scheduler:
        made = job("close", 2, "2")
        made["metadata"]["annotations"] = {
            "kai.scheduler/topology": "racks",
            "kai.scheduler/topology-preferred-placement": "rack",
        }
        uid = await created(world, made)
        await world.create([node("n1", 2), *pods("close", 2, uid=uid)])

        async def written() -> bool:
            names = {one.metadata.name for one in await world.objects(KaiPodGroup)}
            on_pods = {one.metadata.annotations.get("pod-group-name") for one in await of(world, "close")}
            return names == on_pods == {f"pg-close-{uid}"}

        await until(written, "the group is KAI's, and its pods name it")
        (group,) = await world.objects(KaiPodGroup)
        assert group.spec.topology_constraint.preferred_topology_level == "rack"
        assert await groups(world) == {}
        await until(lambda: _settled(scheduler), "all is written")
