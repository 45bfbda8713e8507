"""Why a job waits, as its group says it: the constraint that binds, on every cluster and in every profile.

`test_explained_on_sim` and `test_explained_on_plane` run each of these. In the profiles `volcano` and `kai` the words
of the original stand before the answer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from tests.live import kai_objects, objects
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, Raw
from tests.live.scenarios import runs, settles
from tests.live.worlds import SLOW, World, until

Explained = Callable[[World, str], Awaitable[None]]

EXPLAINED: list[Explained] = []
PROFILES = ("volcano", "kai", "maniple")
OTHERS = "rivals"  # a namespace whose names are not for others
HIGH: Raw = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 75,
}
VOLCANO = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: nodeorder
"""


def scenario(function: Explained) -> Explained:
    EXPLAINED.append(function)
    return function


@asynccontextmanager
async def scheduling(world: World, profile: str, **options: Any) -> AsyncIterator[Scheduler]:
    planner = Planner(
        VOLCANO if profile == "volcano" else None,
        profile=profile,
        actions=None if profile == "volcano" else ("allocate",),
        options={"debug": True, **options},
    )
    scheduler = Scheduler(
        planner,
        world.port(),
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=world.inline,
        bind="direct" if profile == "kai" else "",
    )
    async with beside(scheduler.run(), scheduler.stop):
        yield scheduler


def form(profile: str) -> Any:
    return objects if profile == "volcano" else kai_objects


def queues(profile: str, limit: int | None = None) -> list[Raw]:
    """Queues `own` and `other` below `both`, which has a limit of cpu."""
    if profile == "volcano":
        capability = {} if limit is None else {"capability": {"cpu": str(limit)}}
        own, other = (objects.queue(name, parent="both") for name in ("own", "other"))
        return [objects.queue("both", parent="root", **capability), own, other]
    free = kai_objects.FREE
    cpu = free if limit is None else {"quota": 0, "overQuotaWeight": 1, "limit": 1000 * limit}
    return [
        kai_objects.queue("both", resources={"gpu": free, "cpu": cpu, "memory": free}),
        kai_objects.queue("own", "both"),
        kai_objects.queue("other", "both"),
    ]


def gang(profile: str, name: str, size: int, queue: str, namespace: str = NAMESPACE) -> list[Raw]:
    """Pods of one CPU each."""
    head = form(profile).group(name, size, queue)
    pods = [form(profile).pod(f"{name}-{number}", name, *_no_gpus(profile)) for number in range(size)]
    for raw in (head, *pods):
        raw["metadata"]["namespace"] = namespace
    for raw in pods:
        raw["spec"]["schedulerName"] = "kai-scheduler" if profile == "kai" else profile
    return [head, *pods]


def _no_gpus(profile: str) -> tuple[Any, ...]:
    return () if profile == "volcano" else (0,)


async def message(world: World, profile: str, name: str) -> str:
    """What a group says of why it waits; empty if it says nothing."""
    kind: type[Any] = VolcanoPodGroup if profile == "volcano" else KaiPodGroup
    group = next(one for one in await world.objects(kind) if one.metadata.name == name)
    if profile == "volcano":
        said = [one.message for one in group.status.conditions if one.type == "Unschedulable"]
    else:
        said = [one.message for one in group.status.scheduling_conditions]
    return said[-1] if said else ""


async def notes_of(world: World, name: str) -> list[str]:
    regarding = f"PodGroup {NAMESPACE}/{name}"
    found = [one for one in await world.notes() if one.regarding == regarding]
    return [one.note for one in found if one.reason == "Unschedulable"]


async def says(world: World, scheduler: Scheduler, profile: str, sentence: str) -> None:
    """The waiting gang says so, its only event says so, and the words of the original are there as well."""

    async def said() -> bool:
        return sentence in await message(world, profile, "train")

    async def noted() -> bool:
        return any(sentence in one for one in await notes_of(world, "train"))

    await until(said, f"the group says: {sentence}")
    await until(noted, f"an event says: {sentence}")
    await settles(world, scheduler)
    written = await message(world, profile, "train")
    assert OTHERS not in written
    assert [one for one in await notes_of(world, "train") if sentence not in one] == []
    if profile == "maniple":
        assert "\n" not in written
    else:
        original, _, plain = written.partition("\n")
        assert original
        assert sentence in plain


@scenario
async def an_untolerated_taint_on_a_full_cluster(world: World, profile: str) -> None:
    tainted = objects.node("n1", 4)
    tainted["spec"] = {"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]}
    holder = gang(profile, "holder", 4, "other")
    for raw in holder[1:]:
        raw["spec"]["tolerations"] = [{"operator": "Exists"}]
    async with scheduling(world, profile) as scheduler:
        await world.create([*queues(profile), tainted, *holder])
        await until(lambda: runs(world, "holder", 4), "the cluster is full")
        await world.create(gang(profile, "train", 2, "own"))
        await says(world, scheduler, profile, "taint dedicated=research:NoSchedule is not tolerated")


@scenario
async def a_parent_queue_at_its_limit(world: World, profile: str) -> None:
    async with scheduling(world, profile) as scheduler:
        await world.create([*queues(profile, 4), objects.node("n1", 16), *_namespace()])
        await world.create(gang(profile, "secret", 4, "other", OTHERS))
        await until(lambda: runs(world, "secret", 4), "the parent queue is at its limit")
        await world.create(gang(profile, "train", 2, "own"))
        limit = "queue both has a limit of 4 of cpu: 4 is allocated and 2 more is requested"
        await says(world, scheduler, profile, f"{limit} (held by jobs of other namespaces)")


@scenario
async def a_rival_ahead(world: World, profile: str) -> None:
    """What leaves is for a job of higher priority; it stays for long, so that both wait."""
    async with scheduling(world, profile) as scheduler:
        head, slow = gang(profile, "slow", 1, "other")
        slow["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
        slow["metadata"]["finalizers"] = [SLOW]
        await world.create([*queues(profile), HIGH, objects.node("n1", 4), *_namespace(), head, slow])
        await until(lambda: runs(world, "slow", 1), "a pod has all of the node")
        await world.begin_to_leave(f"{NAMESPACE}/slow-0")
        rival = gang(profile, "secret", 4, "own", OTHERS)
        rival[0]["spec"]["priorityClassName"] = "high"
        for raw in rival[1:]:
            raw["spec"] |= {"priorityClassName": "high", "priority": 75}
        await world.create([*rival, *gang(profile, "train", 2, "own")])
        ahead = "jobs ahead of it take the room in this cycle: 1 job of other namespaces"
        await says(world, scheduler, profile, f"{ahead}; it would start if it were alone")


def _namespace() -> list[Raw]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}}]
