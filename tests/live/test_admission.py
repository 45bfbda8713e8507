"""The scheduling gate of queue admission is removed when the queue has room, and nothing else is."""

import asyncio

from maniple.objects.core import Pod
from maniple.sim.faults import Fault
from tests.live.kai_stage import KaiStage, played
from tests.live.need_objects import GATE, gated
from tests.live.objects import NAMESPACE, Raw, node, pod, queue

BY_CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: capacity
"""


def small(name: str) -> Raw:
    return pod(name, "", "1", **{"scheduling.volcano.sh/queue-name": "small"})


def test_the_gate_of_queue_admission_goes_when_the_queue_has_room_and_no_other_gate_does() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(node("n1"), queue("small", capability={"cpu": "1", "memory": "64Gi"}))
        stage.create(gated(small("first")), gated(small("second")), gated(small("third"), "somebody/else"))
        await asyncio.sleep(5)
        gates = {name: raw["spec"].get("schedulingGates") for name, raw in stage.of_kind(Pod).items()}
        assert gates["first"] is None
        assert gates["second"] == [{"name": GATE}]
        assert len(gates["third"]) == 2
        assert stage.phases() == {"first": "Running", "second": "Pending", "third": "Pending"}

    played(scene, profile="volcano", conf=BY_CAPACITY)


def test_a_gate_that_cannot_be_removed_is_tried_again_after_a_pause() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.port.faults.plan(Fault("patch_status", 422, key=f"{NAMESPACE}/first", times=2))
        stage.create(node("n1"), queue("small"), gated(small("first")))
        await asyncio.sleep(0.5)
        cycles = stage.scheduler.cycles
        assert "gate" in stage.condition("first")["message"]
        await asyncio.sleep(0.4)
        assert stage.scheduler.cycles == cycles
        await asyncio.sleep(20)
        assert stage.phases() == {"first": "Running"}

    played(scene, profile="volcano", conf=BY_CAPACITY)
