"""Kubernetes' own PodGroups on every cluster: their conditions, and that they are evicted whole. Listed with the other
scenarios."""

import asyncio
from typing import Any

from maniple.objects.core import Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.owners import OWNER_KINDS, WorkloadOwner
from tests.live import kai_objects
from tests.live.need_objects import device_class, devices, resource_claim
from tests.live.objects import NAMESPACE, Raw, node
from tests.live.ports import Between, RefusedError, Refusing
from tests.live.scenarios import Scenario, scheduling, settles
from tests.live.worlds import World, until

NATIVE_SCENARIOS: list[Scenario] = []
POD_GROUP = next(
    kind for kind in OWNER_KINDS if (kind.api_group, kind.kind) == ("scheduling.k8s.io", "PodGroup")
)
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 75,
}
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}


def scenario(function: Scenario) -> Scenario:
    NATIVE_SCENARIOS.append(function)
    return function


def pod_group(name: str, minimum: int, queue: str = "", **spec: Any) -> Raw:
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    labels = {"maniple.dev/queue": queue} if queue else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name: str, group: str, scheduler: str = "maniple", **spec: Any) -> Raw:
    container = {"name": "main", "image": "work:1", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": scheduler,
            "schedulingGroup": {"podGroupName": group},
            "containers": [container],
            **spec,
        },
    }


def members(group: str, size: int, scheduler: str = "maniple", **spec: Any) -> list[Raw]:
    return [member(f"{group}-{number}", group, scheduler, **spec) for number in range(size)]


async def conditions(world: World, name: str) -> dict[str, Raw]:
    """By type."""
    found = [one for one in await world.objects(POD_GROUP) if one.metadata.name == name]
    assert isinstance(found[0], WorkloadOwner)
    return {one["type"]: one for one in (found[0].status or {}).get("conditions", ())}


async def states(world: World, name: str) -> dict[str, tuple[str, str]]:
    return {kind: (one["status"], one["reason"]) for kind, one in (await conditions(world, name)).items()}


async def is_scheduled(world: World, name: str) -> bool:
    return (await states(world, name)).get("PodGroupScheduled") == ("True", "Scheduled")


async def bound(world: World, group: str) -> list[str]:
    pods = [one for one in await world.objects(Pod) if isinstance(one, Pod)]
    return [
        one.metadata.name
        for one in pods
        if one.metadata.name.rpartition("-")[0] == group
        and one.spec.node_name
        and one.metadata.deletion_timestamp is None
    ]


async def _waits_and_runs(world: World, profile: str, **settings: Any) -> None:
    """The condition is False with the sentence, then True, and its time changes once."""
    scheduler_name, queue = SCHEDULERS[profile], "team" if profile == "kai" else ""
    async with scheduling(world, profile=profile, **settings) as scheduler:
        await world.create([node("n1", 3), *([kai_objects.queue("team")] if queue else [])])
        await world.create([pod_group("train", 4, queue)])
        await world.create(members("train", 4, scheduler_name))

        async def says_why() -> bool:
            said = (await conditions(world, "train")).get("PodGroupScheduled", {})
            return said.get("status") == "False" and "cpu" in said["message"]

        await until(says_why, "the group says why it waits")
        before = (await conditions(world, "train"))["PodGroupScheduled"]
        assert before["reason"] == "Unschedulable"
        assert not await bound(world, "train")
        await asyncio.sleep(1.5)  # times of the API are in whole seconds
        await world.create([node("n2", 1)])

        await until(lambda: is_scheduled(world, "train"), "the group says that it is scheduled")
        after = (await conditions(world, "train"))["PodGroupScheduled"]
        assert after["lastTransitionTime"] > before["lastTransitionTime"]
        assert len(await bound(world, "train")) == 4
        await settles(world, scheduler)


@scenario
async def a_native_group_says_why_it_waits_and_that_it_is_scheduled(world: World) -> None:
    await _waits_and_runs(world, "maniple")


@scenario
async def a_native_group_says_so_in_profile_volcano(world: World) -> None:
    await _waits_and_runs(world, "volcano")


@scenario
async def a_native_group_says_so_in_profile_kai(world: World) -> None:
    await _waits_and_runs(world, "kai", alone=True, bind="direct")


@scenario
async def a_group_whose_pods_are_placed_one_by_one_is_scheduled_with_the_first(world: World) -> None:
    """In profile kai each pod is a job of its own; the group is one all the same."""
    async with scheduling(world, profile="kai", alone=True, bind="direct") as scheduler:
        await world.create([node("n1", 1), kai_objects.queue("team"), pod_group("train", 0, "team")])
        await world.create(members("train", 2, "kai-scheduler"))
        await until(lambda: is_scheduled(world, "train"), "the group says that it is scheduled")
        await settles(world, scheduler)
        assert len(await bound(world, "train")) == 1
        assert await is_scheduled(world, "train")


class Counting(Between):
    """Counts the writes to PodGroups, and refuses the first ones with these answers."""

    def __init__(self, port: Any, *answers: int) -> None:
        super().__init__(port)
        self._answers = [*answers]
        self.writes = 0

    async def patch_status(self, kind: type, key: str, *more: Any) -> object:
        if kind is POD_GROUP:
            if self._answers:
                raise RefusedError(self._answers.pop(0))
            self.writes += 1
        return await self._port.patch_status(kind, key, *more)


@scenario
async def a_native_group_that_does_not_change_is_written_once(world: World) -> None:
    port = Counting(world.port())
    async with scheduling(world, port, profile="maniple") as scheduler:
        await world.create([node("n1", 4), pod_group("train", 2)])
        await world.create(members("train", 3))

        await until(lambda: is_scheduled(world, "train"), "the group says that it is scheduled")
        await settles(world, scheduler)
        # One more than fits: the group has been scheduled, which stays so.
        await world.create([member(f"train-{number}", "train") for number in (3, 4)])

        async def one_waits() -> bool:
            return len(await bound(world, "train")) == 4 and scheduler.settled

        await until(one_waits, "four of five are bound")
        assert await states(world, "train") == {"PodGroupScheduled": ("True", "Scheduled")}
        assert port.writes == 1


@scenario
async def a_condition_that_was_refused_is_written_later(world: World) -> None:
    port = Counting(world.port(), 403, 403)
    async with scheduling(world, port, profile="maniple"):
        await world.create([node("n1", 4), pod_group("train", 2)])
        await world.create(members("train", 2))

        await until(lambda: is_scheduled(world, "train"), "the group says that it is scheduled")


@scenario
async def conditions_of_others_stay(world: World) -> None:
    theirs = {
        "type": "Seen",
        "status": "True",
        "reason": "Looked",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await world.create([pod_group("train", 2)])
    await world.port().patch_status(
        POD_GROUP, f"{NAMESPACE}/train", {"status": {"conditions": [theirs]}}, True
    )
    async with scheduling(world, profile="maniple"):
        await world.create([node("n1", 4), *members("train", 2)])

        async def both() -> bool:
            said = await states(world, "train")
            return said == {"Seen": ("True", "Looked"), "PodGroupScheduled": ("True", "Scheduled")}

        await until(both, "both conditions are there")


@scenario
async def a_group_that_cannot_be_read_has_the_reason_of_an_error(world: World) -> None:
    broken = pod_group("train", 2)
    broken["metadata"]["labels"] = {"maniple.dev/min-member": "many"}
    async with scheduling(world, profile="maniple"):
        await world.create([node("n1", 4), broken])
        await world.create(members("train", 2))

        async def says_so() -> bool:
            said = (await conditions(world, "train")).get("PodGroupScheduled", {})
            return said.get("reason") == "SchedulerError" and "min-member" in said["message"]

        await until(says_so, "the group says that it cannot be read")


@scenario
async def a_preempted_group_is_evicted_whole_and_says_so(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 2), node("n2", 2), HIGH])
        await world.create([pod_group("train", 1, disruptionMode="PodGroup")])
        await world.create(members("train", 4))

        async def all_run() -> bool:
            return len(await bound(world, "train")) == 4

        await until(all_run, "four pods run")
        await world.create([pod_group("now", 1, priorityClassName="urgent")])
        await world.create(members("now", 1))

        async def disrupted() -> bool:
            return (await states(world, "train")).get("DisruptionTarget") == ("True", "PreemptionByScheduler")

        await until(disrupted, "the group says that it is preempted")
        said = (await conditions(world, "train"))["DisruptionTarget"]["message"]
        assert "podgroup:now" in said, said

        async def replaced() -> bool:
            return len(await bound(world, "now")) == 1 and not await bound(world, "train")

        await until(replaced, "all four are gone, and the other runs")
        assert (await states(world, "train"))["PodGroupScheduled"] == ("True", "Scheduled")
        await settles(world, scheduler)
        # Its pods come again, and the group is no target any more.
        await world.create([member(f"train-{number}", "train") for number in (4, 5)])

        async def runs_again() -> bool:
            said = await states(world, "train")
            return (
                said["DisruptionTarget"] == ("False", "Scheduled") and len(await bound(world, "train")) == 2
            )

        await until(runs_again, "the group is scheduled again")
        await settles(world, scheduler)


# -- claims of the group -----------------------------------------------------------------------------------------------

SHARED = [{"name": "gpus", "resourceClaimName": "shared"}]


async def claim(world: World, name: str) -> ResourceClaim:
    (found,) = [one for one in await world.objects(ResourceClaim) if one.metadata.name == name]
    assert isinstance(found, ResourceClaim)
    return found


async def _owner(world: World, name: str) -> dict[str, Any]:
    """A reference to a PodGroup, as its controller sets it on what it creates."""
    (found,) = [one for one in await world.objects(POD_GROUP) if one.metadata.name == name]
    reference = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": name}
    return {**reference, "uid": found.metadata.uid, "controller": True}


async def _all_share(world: World, name: str, size: int, uid: str) -> bool:
    """The pods run where the devices are, and the claim is reserved once, for the group."""
    status = (await claim(world, name)).status
    users = [(one.api_group, one.resource, one.name, one.uid) for one in status.reserved_for]
    pods = [one for one in await world.objects(Pod) if isinstance(one, Pod) and one.spec.node_name]
    nodes = {one.spec.node_name for one in pods}
    theirs = ("scheduling.k8s.io", "podgroups", "train", uid)
    return status.allocation is not None and users == [theirs] and len(pods) == size and nodes == {"n1"}


@scenario
async def pods_share_a_claim_of_their_group(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 4), node("n2", 4), device_class(), devices("n1", 1)])
        await world.create([resource_claim("shared"), pod_group("train", 2, resourceClaims=SHARED)])
        uid = (await _owner(world, "train"))["uid"]
        await world.create(members("train", 2, resourceClaims=SHARED))
        await until(lambda: _all_share(world, "shared", 2, uid), "both use the claim, reserved for the group")
        # One that comes later joins them.
        await world.create([member("train-2", "train", resourceClaims=SHARED)])
        await until(lambda: _all_share(world, "shared", 3, uid), "the third uses it, too")
        await settles(world, scheduler)


@scenario
async def pods_share_a_claim_from_a_template_of_their_group(world: World) -> None:
    """The claim belongs to the PodGroup, and the status of each pod names it, as the controller writes it."""
    entry = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 4), node("n2", 4), device_class(), devices("n1", 1)])
        await world.create([pod_group("train", 2, resourceClaims=entry)])
        await world.create(members("train", 2, resourceClaims=entry))

        async def says_so() -> bool:
            said = (await conditions(world, "train")).get("PodGroupScheduled", {})
            return "spec.resourceClaims[0].resourceClaimTemplateName" in said.get("message", "")

        await until(says_so, "the claim has not been created, which the group says")
        owner = await _owner(world, "train")
        made = resource_claim("train-gpus")
        made["metadata"]["ownerReferences"] = [owner]
        await world.create([made])
        named = {"status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "train-gpus"}]}}
        for number in (0, 1):
            await world.patch(Pod, f"{NAMESPACE}/train-{number}", named, status=True)
        await until(lambda: _all_share(world, "train-gpus", 2, owner["uid"]), "both use the group's claim")
        await settles(world, scheduler)


@scenario
async def a_group_without_pods_on_nodes_gives_up_its_claim(world: World) -> None:
    async with scheduling(world, profile="maniple") as scheduler:
        await world.create([node("n1", 4), device_class(), devices("n1", 1)])
        await world.create([resource_claim("shared"), pod_group("train", 1, resourceClaims=SHARED)])
        uid = (await _owner(world, "train"))["uid"]
        await world.create(members("train", 1, resourceClaims=SHARED))
        await until(lambda: _all_share(world, "shared", 1, uid), "the pod uses the claim")
        await world.delete(Pod, f"{NAMESPACE}/train-0")

        async def is_free() -> bool:
            status = (await claim(world, "shared")).status
            return status.allocation is None and not status.reserved_for

        await until(is_free, "the claim is free")
        await settles(world, scheduler)


@scenario
async def a_bind_that_fails_frees_the_claim_of_the_group_if_no_other_pod_uses_it(world: World) -> None:
    port = Refusing(world.port(), {"train-0": [422]})
    async with scheduling(world, port, profile="maniple") as scheduler:
        await world.create([node("n1", 4), device_class(), devices("n1", 1)])
        await world.create([resource_claim("shared"), pod_group("train", 2, resourceClaims=SHARED)])
        uid = (await _owner(world, "train"))["uid"]
        await world.create(members("train", 2, resourceClaims=SHARED))
        await until(lambda: _all_share(world, "shared", 2, uid), "both run in the end")
        await settles(world, scheduler)
