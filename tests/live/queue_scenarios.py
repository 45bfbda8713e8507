"""Queues as people see them: their status, closing, draining and deleting, and jobs that are suspended.

`test_maniple_on_sim` and `test_maniple_on_plane` run each of these, unchanged.
"""

from typing import Any

from maniple.live.essence import scheduled_condition
from maniple.objects.core import Namespace, Pod
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.switches import STATE, SUSPEND
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.live import kai_objects, objects
from tests.live.maniple_scenarios import OPTIONS, QUEUE, QUEUES, gang, maniple_scheduling
from tests.live.objects import NAMESPACE, node
from tests.live.scenarios import Scenario, conditions, group_of, runs, scheduling, settles
from tests.live.worlds import World, pods_of, until

QUEUE_SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    QUEUE_SCENARIOS.append(function)
    return function


async def volcano_queue(world: World, name: str = QUEUE) -> VolcanoQueue:
    found: VolcanoQueue = next(one for one in await world.objects(VolcanoQueue) if one.metadata.name == name)
    return found


async def kai_queue(world: World, name: str = QUEUE) -> KaiQueue:
    found: KaiQueue = next(one for one in await world.objects(KaiQueue) if one.metadata.name == name)
    return found


async def is_in_state(world: World, state: str) -> bool:
    return (await volcano_queue(world)).status.state == state


async def annotate(world: World, kind: type[Any], key: str, **annotations: str | None) -> None:
    notes = {{"state": STATE, "suspend": SUSPEND}[name]: value for name, value in annotations.items()}
    await world.patch(kind, key, {"metadata": {"annotations": notes}})


async def pods_say(world: World, name: str, words: str) -> bool:
    found = [scheduled_condition(one) for one in await pods_of(world, name)]
    return bool(found) and all(one is not None and words in one.message for one in found)


@scenario
async def the_status_of_queues_has_the_fields_of_both_systems(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        fixed = gang("fixed", 1, kai=True, preemptibility="non-preemptible")
        free, cpu = kai_objects.FREE, {**kai_objects.FREE, "quota": 1000}  # non-preemptible jobs need a quota
        resources = {"gpu": free, "cpu": cpu, "memory": {**free, "quota": -1}}
        above = kai_objects.queue("above", resources=resources)
        below = kai_objects.queue("below", parent="above", resources=resources)
        await world.create([*QUEUES, above, below, node("n1", 4)])
        await world.create([*gang("runs", 2, kai=False), *gang("waits", 8, kai=False)])
        for raw in fixed:
            if raw["kind"] == "PodGroup":
                raw["spec"]["queue"] = "below"
        await world.create(fixed)

        async def volcanos() -> bool:
            status = (await volcano_queue(world)).status
            counts = (status.running, status.pending + status.inqueue, status.completed, status.unknown)
            return status.state == "Open" and counts == (1, 1, 0, 0) and status.allocated.get("cpu") == "2"

        await until(volcanos, "state, counts and amounts of Volcano's queue")

        async def kais() -> bool:
            top, leaf, team = [await kai_queue(world, name) for name in ("above", "below", QUEUE)]
            return (
                top.status.child_queues == ("below",)
                and [one.status.allocated.get("cpu") for one in (top, leaf, team)] == ["1", "1", "2"]
                and leaf.status.allocated_non_preemptible.get("cpu") == "1"
                and team.status.allocated_non_preemptible.get("cpu") == "0"
                and team.status.requested.get("cpu") == "10"
            )

        await until(kais, "children and amounts of KAI's queues")
        await settles(world, scheduler)


@scenario
async def a_queue_that_is_closed_takes_no_new_jobs_and_is_closed_when_the_last_one_is_gone(
    world: World,
) -> None:
    async with maniple_scheduling(world) as scheduler:
        await world.create([*QUEUES, node("n1", 8), *gang("old", 2, kai=False)])
        await until(lambda: runs(world, "old", 2), "a job runs")
        await until(lambda: is_in_state(world, "Open"), "the queue is open")

        await annotate(world, VolcanoQueue, QUEUE, state="Closed")
        await until(lambda: is_in_state(world, "Closing"), "the queue is closing while the job runs")
        await world.create([*gang("new-v", 2, kai=False), *gang("new-k", 2, kai=True)])
        refused = f"queue {QUEUE} is closed and accepts no new jobs"
        await until(lambda: pods_say(world, "new-v", refused), "a new job says that it is closed")
        await until(lambda: pods_say(world, "new-k", refused), "so does one of the other system")
        assert await runs(world, "old", 2), "what runs is left alone"

        for name in ("new-v", "new-k"):
            for each in await pods_of(world, name):
                await world.delete(Pod, each.key)
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/new-v")
        await world.delete(KaiPodGroup, f"{NAMESPACE}/new-k")
        for each in await pods_of(world, "old"):
            await world.delete(Pod, each.key)
        await world.delete(VolcanoPodGroup, f"{NAMESPACE}/old")
        await until(lambda: is_in_state(world, "Closed"), "the queue is closed once it has no jobs")

        await annotate(world, VolcanoQueue, QUEUE, state="Open")
        await world.create(gang("later", 2, kai=True))
        await until(lambda: runs(world, "later", 2), "jobs start again when it is opened")
        await until(lambda: is_in_state(world, "Open"), "the queue is open again")
        await settles(world, scheduler)


@scenario
async def a_queue_of_kai_alone_is_closed_by_the_same_annotation(world: World) -> None:
    async with scheduling(world, profile="kai", options=OPTIONS, bind="direct") as scheduler:
        closed = kai_objects.queue(QUEUE)
        closed["metadata"]["annotations"] = {STATE: "Closed"}
        await world.create([closed, node("n1", 8), *gang("new", 2, kai=True)])
        await until(lambda: pods_say(world, "new", f"queue {QUEUE} is closed"), "the pods say why they wait")
        await annotate(world, KaiQueue, QUEUE, state=None)
        await until(lambda: runs(world, "new", 2), "they run once it is open")
        await settles(world, scheduler)


@scenario
async def jobs_of_a_deleted_queue_say_which_is_missing_and_what_runs_stays(world: World) -> None:
    async with scheduling(world, options={"schedulerName": ["volcano"]}) as scheduler:
        running, waiting = objects.gang("runs", 2), objects.gang("waits", 8)
        for raws in (running, waiting):
            raws[0]["spec"]["queue"] = "gold"
        await world.create([objects.queue("gold"), node("n1", 4), *running, *waiting])
        await until(lambda: runs(world, "runs", 2), "one job runs")
        before = {one.metadata.uid for one in await pods_of(world, "runs")}
        await world.delete(VolcanoQueue, "gold")
        missing = "queue 'gold' does not exist; create it, or name another queue"
        await until(lambda: pods_say(world, "waits", missing), "pods name the queue and what to do")

        async def group_says() -> bool:
            return missing in conditions(await group_of(world, "waits"))["Unschedulable"][1]

        await until(group_says, "so does their group")

        async def recorded() -> bool:
            return any(
                one.reason == "QueueDoesNotExist" and missing in one.note for one in await world.notes()
            )

        await until(recorded, "and an event")
        told = [one for one in scheduler.problems if "Queue gold: deleted while 2 jobs name it" in str(one)]
        assert told, "the log tells of it"
        assert {one.metadata.uid for one in await pods_of(world, "runs")} == before
        assert await runs(world, "runs", 2)
        await world.create([objects.queue("gold"), node("n2", 8)])
        await until(lambda: runs(world, "waits", 8), "jobs go on when the queue is there again")
        await settles(world, scheduler)


@scenario
async def a_suspended_job_waits_and_what_runs_of_it_stays(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        head, *pods = gang("train", 2, kai=False)
        head["metadata"]["annotations"] = {SUSPEND: "true"}
        await world.create([*QUEUES, node("n1", 8), head, *pods])
        suspended = f"suspended by annotation {SUSPEND}"
        await until(lambda: pods_say(world, "train", suspended), "the pods say that they are suspended")
        await annotate(world, VolcanoPodGroup, f"{NAMESPACE}/train", suspend=None)
        await until(lambda: runs(world, "train", 2), "it runs when it is resumed")
        await annotate(world, VolcanoPodGroup, f"{NAMESPACE}/train", suspend="true")
        more = objects.pod("train-more", "train")
        await world.create([more])

        async def one_waits() -> bool:
            found = {one.metadata.name: one for one in await pods_of(world, "train")}
            told = scheduled_condition(found["train-more"])
            return told is not None and suspended in told.message

        await until(one_waits, "a new pod of it waits")
        assert sum(1 for one in await pods_of(world, "train") if one.spec.node_name) == 2
        await settles(world, scheduler)


@scenario
async def a_group_that_names_no_queue_is_in_that_of_its_namespace(world: World) -> None:
    async with maniple_scheduling(world) as scheduler:
        if NAMESPACE not in {one.metadata.name for one in await world.objects(Namespace)}:
            await world.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        named = {"metadata": {"annotations": {"maniple.dev/queue": "small"}}}
        await world.patch(Namespace, NAMESPACE, named)
        small, large = objects.queue("small", capability={"cpu": "1"}), objects.queue("large")
        head, *pods = gang("train", 2, kai=False)
        head["spec"]["queue"] = ""
        await world.create([small, large, node("n1", 4), head, *pods])
        await until(lambda: pods_say(world, "train", "queue small"), "the limit of that queue counts")
        await world.patch(Namespace, NAMESPACE, {"metadata": {"annotations": {"maniple.dev/queue": "large"}}})
        await until(lambda: runs(world, "train", 2), "the job follows to another queue")

        async def counted() -> bool:
            return (await volcano_queue(world, "large")).status.running == 1

        await until(counted, "and counts there")
        await settles(world, scheduler)
