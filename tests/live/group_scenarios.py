"""Pods without a PodGroup, on every cluster: they are grouped by their owners. Listed with the other scenarios."""

from typing import Any

from maniple.live.essence import scheduled_condition
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Pod
from maniple.objects.owners import OWNER_KINDS
from tests.live.objects import NAMESPACE, node
from tests.live.ports import Withholding
from tests.live.scenarios import Scenario, scheduling, settles
from tests.live.worlds import World, until

GROUP_SCENARIOS: list[Scenario] = []
JOB = next(kind for kind in OWNER_KINDS if (kind.api_group, kind.kind) == ("batch", "Job"))
_CONTAINER = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}


def scenario(function: Scenario) -> Scenario:
    GROUP_SCENARIOS.append(function)
    return function


def job(name: str, size: int, minimum: str) -> dict[str, Any]:
    """A Job; its controller runs on neither cluster."""
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "maniple", "containers": [_CONTAINER]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"maniple.dev/min-member": minimum},
        },
        "spec": {"parallelism": size, "completions": size, "template": template},
    }


def pods(name: str, size: int, owner: dict[str, Any] | None = None, uid: str = "") -> list[dict[str, Any]]:
    """The pods of an owner, as its controller creates them."""
    kind = owner or {"apiVersion": "batch/v1", "kind": "Job"}
    reference = {**kind, "name": name, "uid": uid, "controller": True}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": NAMESPACE,
                "labels": {"job-name": name},
                "ownerReferences": [reference],
            },
            "spec": {"schedulerName": "maniple", "restartPolicy": "Never", "containers": [_CONTAINER]},
        }
        for number in range(size)
    ]


async def created(world: World, owner: dict[str, Any]) -> str:
    """Create an owner; returns its uid."""
    await world.create([owner])
    name = owner["metadata"]["name"]
    found = [one for one in await world.objects(JOB) if one.metadata.name == name]
    return str(found[0].metadata.uid)


async def of(world: World, name: str) -> list[Pod]:
    found = await world.objects(Pod)
    return [one for one in found if isinstance(one, Pod) and one.metadata.name.rpartition("-")[0] == name]


async def bound(world: World, name: str) -> int:
    return sum(bool(one.spec.node_name) for one in await of(world, name))


async def messages(world: World, name: str) -> list[str]:
    said = [scheduled_condition(one) for one in await of(world, name)]
    return [one.message for one in said if one is not None and one.status == "False"]


def jobs(scheduler: Scheduler) -> dict[str, int]:
    """The minimum of each job that is known."""
    table = scheduler.cache.cluster.jobs
    return {table.objects[row].key: table.facts[row].minimum for row in table.objects}


@scenario
async def a_job_with_a_minimum_is_bound_whole_or_not_at_all(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 3)])
        uid = await created(world, job("count", 4, "4"))
        await world.create(pods("count", 4, uid=uid))

        async def all_wait() -> bool:
            said = await messages(world, "count")
            return len(said) == 4 and any("4 pods" in one for one in said)

        await until(all_wait, "all four say why they wait")
        assert await bound(world, "count") == 0
        assert jobs(scheduler) == {f"{NAMESPACE}/job:count": 4}
        await world.create([node("n2", 1)])
        await until(lambda: _bound(world, "count", 4), "all four are bound")
        await settles(world, scheduler)


async def _bound(world: World, name: str, number: int) -> bool:
    return await bound(world, name) == number


@scenario
async def pods_wait_for_an_owner_that_arrives_after_them(world: World) -> None:
    port = Withholding(world.port(), JOB)
    async with scheduling(world, port, profile="maniple") as scheduler:
        await world.create([node("n1", 3)])
        uid = await created(world, job("late", 4, "4"))
        await world.create(pods("late", 4, uid=uid))

        async def wait_for_it() -> bool:
            said = await messages(world, "late")
            return len(said) == 4 and all(f"owner Job {NAMESPACE}/late" in one for one in said)

        await until(wait_for_it, "all say that their owner has not been seen")
        port.release()

        async def wait_together() -> bool:
            said = await messages(world, "late")
            return len(said) == 4 and any("4 pods" in one for one in said)

        await until(wait_together, "they wait as a gang")
        assert await bound(world, "late") == 0
        await world.create([node("n2", 1)])
        await until(lambda: _bound(world, "late", 4), "all four are bound")
        await settles(world, scheduler)


@scenario
async def pods_whose_owner_never_arrives_are_scheduled_after_a_while(world: World) -> None:
    uid = "11111111-2222-4333-8444-555555555555"
    async with scheduling(world, profile="maniple") as scheduler:
        # An owner of that name which is not theirs does not count.
        await world.create([node("n1", 3), job("lost", 4, "4"), *pods("lost", 4, uid=uid)])

        async def wait_for_it() -> bool:
            said = await messages(world, "lost")
            return len(said) == 4 and all("which has not been seen yet" in one for one in said)

        await until(wait_for_it, "all say that their owner has not been seen")
        await until(lambda: _bound(world, "lost", 3), "those that fit are bound")
        await until(lambda: _settled(scheduler), "all is written")


async def _settled(scheduler: Scheduler) -> bool:
    return scheduler.settled


@scenario
async def a_group_stays_when_its_owner_is_deleted_early(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 3)])
        uid = await created(world, job("orphan", 4, "4"))
        await world.create(pods("orphan", 4, uid=uid))

        async def all_wait() -> bool:
            return len(await messages(world, "orphan")) == 4

        await until(all_wait, "all four wait")
        await world.delete(JOB, f"{NAMESPACE}/orphan")
        if await world.objects(JOB):  # on a real API server it stays until a controller has released its pods
            await world.patch(JOB, f"{NAMESPACE}/orphan", {"metadata": {"finalizers": None}})
        assert not await world.objects(JOB)
        await world.create([node("n2", 0)])  # a cycle without the owner
        await until(lambda: _settled(scheduler), "all is written")
        assert jobs(scheduler) == {f"{NAMESPACE}/job:orphan": 4}
        await world.create([node("n3", 1)])
        await until(lambda: _bound(world, "orphan", 4), "all four are bound together")


@scenario
async def pods_of_an_unknown_kind_are_scheduled_one_by_one_and_as_a_gang_if_they_say_so(world: World) -> None:
    owner = {"apiVersion": "example.org/v1", "kind": "Simulation"}
    gang = pods("gang", 3, owner, uid="11111111-2222-4333-8444-555555555556")
    for one in gang:
        one["metadata"]["labels"]["maniple.dev/min-member"] = "3"
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create(
            [node("n1", 3), *pods("loose", 2, owner, uid="11111111-2222-4333-8444-555555555557")]
        )
        await until(lambda: _bound(world, "loose", 2), "both are bound")
        await world.create(gang)

        async def all_wait() -> bool:
            return len(await messages(world, "gang")) == 3

        await until(all_wait, "the gang waits")
        assert await bound(world, "gang") == 0
        found = jobs(scheduler)
        assert found[f"{NAMESPACE}/simulation:gang"] == 3
        assert found[f"{NAMESPACE}/simulation:loose"] == 1
        await settles(world, scheduler)


@scenario
async def a_malformed_owner_keeps_its_own_pods_waiting_and_no_others(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 8)])
        bad, good = await created(world, job("bad", 2, "all")), await created(world, job("good", 2, "2"))
        await world.create([*pods("bad", 2, uid=bad), *pods("good", 2, uid=good)])
        await until(lambda: _bound(world, "good", 2), "the healthy gang is bound")

        async def says_which_field() -> bool:
            said = await messages(world, "bad")
            field = f"Job {NAMESPACE}/bad: metadata.labels.maniple.dev/min-member: must be a whole number"
            return len(said) == 2 and all(one.startswith(field) for one in said)

        await until(says_which_field, "the pods of the other name owner and field")
        assert await bound(world, "bad") == 0
        assert any(f"Job {NAMESPACE}/bad" in one for one in scheduler.problems)
        await world.patch(JOB, f"{NAMESPACE}/bad", {"metadata": {"labels": {"maniple.dev/min-member": "2"}}})
        await until(lambda: _bound(world, "bad", 2), "it is bound once it is mended")


@scenario
async def a_minimum_that_changes_is_followed(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 2)])
        uid = await created(world, job("elastic", 4, "4"))
        await world.create(pods("elastic", 4, uid=uid))

        async def all_wait() -> bool:
            return len(await messages(world, "elastic")) == 4

        await until(all_wait, "all four wait")
        fewer = {"metadata": {"labels": {"maniple.dev/min-member": "2"}}}
        await world.patch(JOB, f"{NAMESPACE}/elastic", fewer)
        await until(lambda: _bound(world, "elastic", 2), "it starts with two")
        await world.create([node("n2", 2)])
        await until(lambda: _bound(world, "elastic", 4), "it grows to four")
        await settles(world, scheduler)
