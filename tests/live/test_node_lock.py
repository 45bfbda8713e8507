"""Parts of GPUs on a running cluster: a choice counts at once, and a node assigns one device at a time."""

import asyncio

from maniple.objects.core import Node, Pod
from maniple.sim.faults import Fault
from maniple.sim.store import Raw, moment
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import NAMESPACE, node, pod
from tests.plugins.devices.cards import CORES, MEMORY, NUMBER, card

LOCK = "hamivgpu"
ASSIGNED = "volcano.sh/vgpu-ids-new"


def conf(lock: bool) -> str:
    return f"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {{deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: {str(lock).lower()}}}
"""


def gpu_node(*cards: str) -> Raw:
    raw = node("n1", annotations={"volcano.sh/node-vgpu-register": "".join(cards)})
    for part in ("capacity", "allocatable"):
        raw["status"][part] = {**raw["status"][part], NUMBER: "100", MEMORY: "100000", CORES: "1000"}
    return raw


def asking(name: str, memory: int) -> Raw:
    raw = pod(name)
    amounts = {NUMBER: "1", MEMORY: str(memory)}
    raw["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": {"cpu": "1", **amounts}}
    return raw


def notes(stage: KaiStage, kind: type[Pod] | type[Node], name: str) -> dict[str, str]:
    found: dict[str, str] = stage.of_kind(kind)[name]["metadata"].get("annotations", {})
    return found


def lock(stage: KaiStage, stamp: str | None) -> None:
    stage.store.patch(Node, "n1", {"metadata": {"annotations": {LOCK: stamp}}})


def test_a_card_is_taken_from_the_decision_on() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(gpu_node(card("GPU-0"), card("GPU-1")))
        # The first bind is refused for a while, so that nothing but the decision tells what it has.
        stage.port.faults.plan(Fault("bind", 503, times=3, key=f"{NAMESPACE}/a"))
        stage.create(asking("a", 800))
        await asyncio.sleep(0.1)
        stage.create(asking("b", 800))
        await asyncio.sleep(10)
        assert set(stage.phases().values()) == {"Running"}
        devices = {notes(stage, Pod, name)[ASSIGNED].partition(",")[0] for name in ("a", "b")}
        assert devices == {"GPU-0", "GPU-1"}

    played(scene, profile="volcano", conf=conf(lock=False))


def test_the_node_is_locked_before_the_pod_is_bound_and_the_next_waits_for_the_lock() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(gpu_node(card("GPU-0")), asking("a", 100), asking("b", 100))
        await asyncio.sleep(5)
        assert sorted(stage.phases().values()) == ["Pending", "Running"]
        assert LOCK in notes(stage, Node, "n1")
        runs = next(name for name, phase in stage.phases().items() if phase == "Running")
        assert "maniple.dev/lock-node" not in notes(stage, Pod, runs)
        lock(stage, None)  # as the device plugin does when it has handed the device over
        await asyncio.sleep(20)
        assert set(stage.phases().values()) == {"Running"}

    played(scene, profile="volcano", conf=conf(lock=True))


def test_a_foreign_lock_is_respected_until_it_expires() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(gpu_node(card("GPU-0")))
        lock(stage, moment(stage.world.clock.now()))
        stage.create(asking("a", 100))
        await asyncio.sleep(200)
        assert stage.phases() == {"a": "Pending"}
        await asyncio.sleep(200)
        assert stage.phases() == {"a": "Running"}

    played(scene, profile="volcano", conf=conf(lock=True))


def test_a_lock_that_was_taken_for_nothing_is_given_back() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("bind", 422))
        stage.create(gpu_node(card("GPU-0")), asking("a", 100))
        await asyncio.sleep(0.5)
        assert stage.phases() == {"a": "Pending"}
        assert LOCK not in notes(stage, Node, "n1")
        await asyncio.sleep(5)
        assert stage.phases() == {"a": "Running"}

    played(scene, profile="volcano", conf=conf(lock=True))
