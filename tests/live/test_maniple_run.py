"""Both systems' objects in one cluster: each group has its own system's format, and pods are bound either
way."""

import asyncio

from maniple.live.dialects import dialect_of
from maniple.live.overview import overview
from maniple.objects.core import PersistentVolumeClaim, Pod
from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import BindRequest, KaiPodGroup
from maniple.objects.load import load
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.live import kai_objects, objects
from tests.live import need_objects as needs
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import NAMESPACE

NAMES = {"schedulerName": ["maniple", "volcano", "kai-scheduler"]}


def run(scene: object) -> None:
    played(scene, profile="maniple", options=NAMES)  # type: ignore[arg-type]


def test_gangs_of_both_run_directly_and_say_so_each_in_its_own_way() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue(), kai_objects.node("n1"))
        stage.create(*kai_objects.gang("theirs", 2), *objects.gang("ours", 2))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.requests() == {}
        status = stage.store.get(VolcanoPodGroup, f"{NAMESPACE}/ours")["status"]
        assert (status["phase"], status["running"]) == ("Running", 2)
        assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Scheduled", "True")]
        assert "kai.scheduler/last-start-timestamp" in stage.annotations("theirs")

    run(scene)


def test_gangs_of_both_say_why_they_wait() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue(), kai_objects.node("n1", 1))
        stage.create(*kai_objects.gang("theirs", 2), *objects.gang("ours", 2, cpu="100"))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Pending"}
        (told,) = stage.told("theirs")
        assert told["type"] == "UnschedulableOnNodePool"
        conditions = stage.store.get(VolcanoPodGroup, f"{NAMESPACE}/ours")["status"]["conditions"]
        assert [(c["type"], c["status"]) for c in conditions] == [("Unschedulable", "True")]
        assert conditions[0]["message"]
        for name in stage.phases():
            assert stage.condition(name)["status"] == "False"

    run(scene)


def test_pods_of_kai_that_share_devices_are_bound_by_request_and_the_rest_of_their_gang_directly() -> None:
    async def scene(stage: KaiStage) -> None:
        half = kai_objects.pod("mixed-1", "mixed", 0, **{"gpu-fraction": "0.5"})
        stage.create(kai_objects.queue(), kai_objects.node("n1", 2, **{"nvidia.com/gpu.memory": "1000"}))
        stage.create(kai_objects.group("mixed", 2), kai_objects.pod("mixed-0", "mixed"), half)
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.requests().keys() == {"mixed-1"}

    run(scene)


def test_pods_of_kai_that_need_volumes_and_devices_of_claims_are_bound_directly() -> None:
    async def scene(stage: KaiStage) -> None:
        mine = needs.resource_claim("mine")
        mine["metadata"]["labels"] = {"kai.scheduler/queue": kai_objects.QUEUE}
        needy = needs.claiming(needs.mounting(kai_objects.pod("one-0", "one", 0), "c"), "mine")
        stage.create(kai_objects.queue(), kai_objects.node("n1", 0), needs.csi_node("n1"))
        stage.create(needs.storage_class(needs.MADE), needs.claim("c", needs.MADE))
        stage.create(needs.device_class(), needs.devices("n1", 1), mine, kai_objects.group("one", 1), needy)
        await asyncio.sleep(5)
        assert stage.phases() == {"one-0": "Running"}
        assert stage.requests() == {}
        users = stage.of_kind(ResourceClaim)["mine"]["status"]["reservedFor"]
        assert [user["name"] for user in users] == ["one-0"]
        assert stage.of_kind(PersistentVolumeClaim)["c"]["status"]["phase"] == "Bound"

    run(scene)


def test_without_bind_requests_they_wait_and_say_so() -> None:
    dialect = dialect_of("maniple", NAMES, ())
    half = load(kai_objects.pod("a", "g", 0, **{"gpu-fraction": "0.5"}))
    plain = load(kai_objects.pod("b", "g"))
    assert isinstance(half, Pod)
    assert isinstance(plain, Pod)
    assert dialect.unsupported_reason(half) == ""
    assert dialect.kind_is(BindRequest, there=False)
    assert "shares devices" in dialect.unsupported_reason(half)
    assert dialect.read(half).spec.scheduling_gates
    assert dialect.unsupported_reason(plain) == ""
    assert dialect.kind_is(BindRequest, there=True)
    assert dialect.unsupported_reason(half) == ""


def test_groups_of_one_name_are_two_jobs_and_each_is_reported_its_own_state() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue(), kai_objects.node("n1", 2))
        members = [kai_objects.pod(f"k-{number}", "train") for number in range(2)]
        huge = [objects.pod(f"v-{number}", "train", cpu="100") for number in range(2)]
        stage.create(kai_objects.group("train", 2), *members, objects.group("train", 2), *huge)
        await asyncio.sleep(5)
        phases = stage.phases()
        assert {name for name, phase in phases.items() if phase == "Running"} == {"k-0", "k-1"}
        assert stage.told("train") == []
        assert "kai.scheduler/last-start-timestamp" in stage.annotations("train")
        (told,) = stage.store.get(VolcanoPodGroup, f"{NAMESPACE}/train")["status"]["conditions"]
        assert (told["type"], told["status"]) == ("Unschedulable", "True")
        lines = {line.key: line for line in overview(stage.scheduler).jobs}
        assert {key: (line.running, bool(line.why)) for key, line in lines.items()} == {
            f"{NAMESPACE}/train@kai": (2, False),
            f"{NAMESPACE}/train@volcano": (0, True),
        }
        stage.store.remove(KaiPodGroup, f"{NAMESPACE}/train")
        for name in ("k-0", "k-1"):
            stage.store.remove(Pod, f"{NAMESPACE}/{name}")
        await asyncio.sleep(5)
        assert [line.key for line in overview(stage.scheduler).jobs] == [f"{NAMESPACE}/train"]

    run(scene)


def test_queues_of_one_name_are_one_queue_that_volcanos_object_tells_the_whole_of() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue("default"), objects.queue("default", capability={"cpu": "3"}))
        stage.create(kai_objects.node("n1", 4), *objects.gang("ours", 2))
        await asyncio.sleep(5)
        members = [kai_objects.pod(f"theirs-{number}", "theirs") for number in range(2)]
        stage.create(kai_objects.group("theirs", 2, queue="default"), *members)
        await asyncio.sleep(5)
        running = {name for name, phase in stage.phases().items() if phase == "Running"}
        assert running == {"ours-0", "ours-1"}
        queue = stage.store.get(VolcanoQueue, "default")
        assert queue["status"]["allocated"]["cpu"] == "2"
        stage.store.remove(VolcanoQueue, "default")  # and its limit with it
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}

    run(scene)


def test_a_volcano_group_is_let_in_so_that_its_pods_are_made() -> None:
    """Volcano's controller makes the pods of a job once its group is Inqueue."""

    async def scene(stage: KaiStage) -> None:
        def phase() -> str:
            said: str = stage.store.get(VolcanoPodGroup, f"{NAMESPACE}/ours")["status"]["phase"]
            return said

        group, *pods = objects.gang("ours", 2)
        stage.create(kai_objects.node("n1"), group)
        await asyncio.sleep(5)
        assert phase() == "Inqueue"
        stage.create(*pods)
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        assert phase() == "Running"

    run(scene)


def test_a_pod_without_a_group_is_a_job_of_one_in_the_default_queue() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.node("n1"), objects.pod("alone"))
        await asyncio.sleep(5)
        assert stage.phases() == {"alone": "Running"}
        assert stage.of_kind(VolcanoQueue).keys() == {"default"}

    run(scene)


def test_no_default_queue_is_made_where_the_other_system_has_one_of_that_name() -> None:
    dialect = dialect_of("maniple", NAMES, ())
    assert [raw["metadata"]["name"] for raw in dialect.missing_objects([])] == ["default"]
    assert dialect.missing_objects([load(kai_objects.queue("default"))]) == []
