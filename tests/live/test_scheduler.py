"""The loop itself, on the embedded cluster in virtual time: when it decides, and what it makes of a bad day."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maniple.kube.informer import Change
from maniple.live.overview import Board, overview
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Node, Pod, PriorityClass
from maniple.objects.load import load
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.cluster import SimCluster
from maniple.sim.faults import Fault
from maniple.sim.world import World
from tests.live.beside import beside, cancelled
from tests.live.objects import NAMESPACE, gang, group, node, pod, queue


class Stage:
    """An embedded cluster with one scheduler on it."""

    def __init__(
        self, conf: str | None = None, *, period: float = 1.0, debug: bool = True, **settings: Any
    ) -> None:
        self.world = World(start_seconds=0.1)
        self.store = self.world.store
        self.port: SimCluster = self.world.port(**settings)
        self.scheduler = Scheduler(
            Planner(profile="volcano", conf=conf, options={"debug": debug}),
            self.port,
            clock=self.world.clock,
            timing=Timing(period=period),
            inline=True,
            observer=self._check_board,
        )
        self._board = Board()

    def _check_board(self, scheduler: Scheduler) -> None:
        """What is kept between views is what one afresh would show."""
        assert self._board.state(scheduler) == overview(scheduler)

    def create(self, *raws: dict[str, Any]) -> None:
        for raw in raws:
            self.store.create(raw)

    def phases(self) -> dict[str, str]:
        return {raw["metadata"]["name"]: raw["status"]["phase"] for raw in self.store.list(Pod)[0]}

    def nodes(self) -> dict[str, str]:
        return {raw["metadata"]["name"]: raw["spec"].get("nodeName", "") for raw in self.store.list(Pod)[0]}

    def group_status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.store.get(VolcanoPodGroup, f"{NAMESPACE}/{name}").get("status", {})
        return status


def played(scene: Callable[[Stage], Coroutine[Any, Any, None]], **settings: Any) -> Stage:
    """Play a scene while the scheduler runs, then stop it."""

    async def main() -> Stage:
        stage = Stage(**settings)
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            await scene(stage)
        return stage

    return run(main(), virtual=True)


# -- when it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(6))
def test_a_cancellation_that_comes_with_a_change_is_not_lost(steps: int) -> None:
    """In the same turn of the event loop as the change, or some turns after it."""

    async def main() -> bool:
        stage = Stage()
        running = asyncio.create_task(stage.scheduler.run())
        await asyncio.sleep(10)
        stage.create(node("n1", 4))
        # The embedded cluster tells it a moment later; from then on the loop is on its way out of its pause.
        while not stage.scheduler._wake.is_set():
            await asyncio.sleep(0)
        for _ in range(steps):
            await asyncio.sleep(0)
        await cancelled(running)
        return running.cancelled()

    assert run(main(), virtual=True)


# -- when it decides ---------------------------------------------------------------------------------------------------


def test_pods_that_start_in_a_burst_of_binds_are_told_of_now_and_then_without_a_cycle() -> None:
    async def scene(stage: Stage) -> None:
        # Ten seconds of binds, 32 at a time.
        stage.create(*(node(f"n{number}", 64) for number in range(25)))
        for number in range(200):
            stage.create(*gang(f"gang-{number}", 8))
        await asyncio.sleep(1)
        before, plans = stage.scheduler.cycles, {id(stage.scheduler.plan): stage.scheduler.plan}
        for _ in range(600):
            await asyncio.sleep(0.01)
            plans.setdefault(id(stage.scheduler.plan), stage.scheduler.plan)
        assert stage.scheduler.binding.pods
        assert list(stage.phases().values()).count("Running") > 500
        # Every two seconds, instead of whenever pods start.
        assert 2 <= len(plans) - 1 <= 4
        await asyncio.sleep(60)
        assert stage.scheduler.cycles == before
        assert {stage.group_status(f"gang-{number}")["running"] for number in range(200)} == {8}

    played(scene, write_seconds=0.2)


def test_a_gang_that_arrives_bit_by_bit_is_decided_once() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("n1", 8))
        await asyncio.sleep(5)
        before = stage.scheduler.cycles
        for raw in gang("train", 8):
            stage.create(raw)
            await asyncio.sleep(0.012)
        await asyncio.sleep(0.05)
        assert (stage.scheduler.cycles - before, set(stage.nodes().values())) == (1, {"n1"})

    played(scene)


def test_a_gang_that_runs_has_taken_one_cycle_and_says_so() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("n1", 8))
        await asyncio.sleep(5)
        before = stage.scheduler.cycles
        stage.create(*gang("train", 8))
        await asyncio.sleep(5)
        assert stage.scheduler.cycles - before == 1
        status = stage.group_status("train")
        assert (status["phase"], status["running"]) == ("Running", 8)
        plan = stage.scheduler.plan
        assert plan is not None
        assert (plan.jobs[f"{NAMESPACE}/train"].state, plan.binds) == ("running", {})

    played(scene)


def test_a_pod_that_starts_while_another_waits_leads_to_a_cycle() -> None:
    """Which pods may be evicted for it can depend on that."""

    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("n1", 4), *gang("train", 4), *gang("large", 8))
        await asyncio.sleep(0.08)
        assert (stage.nodes()["train-0"], stage.phases()["train-0"]) == ("n1", "Pending")
        before = stage.scheduler.cycles
        await asyncio.sleep(5)
        assert stage.phases()["train-0"] == "Running"
        assert stage.scheduler.cycles > before

    played(scene)


def test_a_gang_of_which_pods_are_missing_is_admitted() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(queue("default"), node("n1", 8), group("train", 8), pod("train-0", "train"))
        await asyncio.sleep(1)
        assert stage.group_status("train")["phase"] == "Inqueue"

    played(scene)


def test_a_hopeless_gang_is_not_tried_again_while_nothing_changes() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 4), *gang("train", 8))
        await asyncio.sleep(20)
        before = stage.scheduler.cycles
        await asyncio.sleep(3600)
        assert stage.scheduler.cycles == before
        stage.create(node("n2", 4))
        await asyncio.sleep(1)
        assert set(stage.phases().values()) == {"Running"}

    played(scene)


def test_heartbeats_and_own_writes_start_no_cycle() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 4), *gang("train", 8))
        await asyncio.sleep(20)
        before = stage.scheduler.cycles
        for number in range(100):
            beat = {
                "type": "Ready",
                "status": "True",
                "lastHeartbeatTime": f"2026-01-01T00:{number % 60:02d}:00Z",
            }
            stage.store.patch(Node, "n1", {"status": {"conditions": [beat]}})
            await asyncio.sleep(1)
        assert stage.scheduler.cycles == before

    played(scene)


def test_a_plugin_that_looks_at_the_clock_is_asked_once_a_period() -> None:
    conf = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: sla\n'

    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 4), *gang("train", 8))
        await asyncio.sleep(10)
        before = stage.scheduler.cycles
        await asyncio.sleep(50)
        assert 8 <= stage.scheduler.cycles - before <= 12

    played(scene, conf=conf, period=5.0)


def test_a_burst_of_changes_is_decided_together() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 4), node("n2", 4))
        await asyncio.sleep(5)
        before = stage.scheduler.cycles
        stage.create(group("train", 8))
        for raw in gang("train", 8)[1:]:
            stage.create(raw)
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert all(stage.nodes().values())
        assert stage.scheduler.cycles - before <= 4

    played(scene)


def test_the_same_input_gives_the_same_output() -> None:
    def once() -> list[tuple[str, str, str]]:
        async def scene(stage: Stage) -> None:
            for number in range(6):
                stage.create(node(f"n{number}", 5))
                stage.create(*gang(f"gang-{number}", 4))
                await asyncio.sleep(0.3)
            await asyncio.sleep(10)

        return played(scene).port.binds

    assert once() == once()


def test_nothing_is_decided_on_half_a_cluster() -> None:
    """The gang is known before the nodes are; all of it comes first."""

    async def scene(stage: Stage) -> None:
        await asyncio.sleep(5)
        assert "Unschedulable" not in str(stage.port.events)

    async def main() -> None:
        stage = Stage()
        stage.create(queue("default"), *gang("train", 8), node("n1"))
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            await scene(stage)

    run(main(), virtual=True)


# -- bad days ----------------------------------------------------------------------------------------------------------


def test_a_lagging_watch_causes_no_double_decision() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 6), *gang("first", 4))
        await asyncio.sleep(3)
        stage.create(*gang("second", 4))
        await asyncio.sleep(30)
        assert len(stage.port.binds) == 4
        assert stage.scheduler.effects.refused == 0

    played(scene, watch_seconds=0.5)


@pytest.mark.parametrize("status", [0, 503])
def test_an_answer_that_got_lost_is_asked_for_again_and_the_pod_bound_once(status: int) -> None:
    async def scene(stage: Stage) -> None:
        for number in range(8):
            stage.port.faults.plan(Fault("bind", status, key=f"{NAMESPACE}/train-{number}", done=True))
        stage.create(node("n1"), *gang("train", 8))
        await asyncio.sleep(5)
        assert set(stage.phases().values()) == {"Running"}
        assert len(stage.port.binds) == len({uid for _, uid, _ in stage.port.binds}) == 8

    played(scene)


def test_a_cluster_that_refuses_every_write_is_not_stormed() -> None:
    async def scene(stage: Stage) -> None:
        for verb in ("bind", "patch_status", "patch_pod_condition", "record_event"):
            stage.port.faults.plan(Fault(verb, 403, times=-1))
        stage.create(queue("default"), node("n1"), *gang("train", 8), *gang("big", 16))
        await asyncio.sleep(600)
        # Eight binds, a few statuses; each is tried again after a pause that doubles up to a minute.
        assert stage.port.faults.happened < 1200
        assert stage.scheduler.cycles < 400

    played(scene)


def test_when_the_cluster_takes_writes_again_everything_is_made_good() -> None:
    async def scene(stage: Stage) -> None:
        for verb in ("bind", "patch_status", "patch_pod_condition"):
            stage.port.faults.plan(Fault(verb, 503, times=40))
        stage.create(queue("default"), node("n1"), *gang("train", 8))
        await asyncio.sleep(300)
        assert set(stage.phases().values()) == {"Running"}
        assert stage.group_status("train")["phase"] == "Running"
        assert stage.scheduler.settled

    played(scene)


def test_bad_objects_are_reported_once_and_cost_only_themselves(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1"), group("broken", 2), *gang("train", 8))
        # As an API server without the schema would: the embedded one refuses such an object on arrival.
        bad = {"spec": {"minResources": {"cpu": "many"}}}
        stage.store.patch(VolcanoPodGroup, f"{NAMESPACE}/broken", bad)
        for number in range(5):
            await asyncio.sleep(2)
            stage.create(node(f"more-{number}"))
        stage.store.cut()
        stage.store.create(node("yet-more"))
        stage.store.compact()
        await asyncio.sleep(2)
        assert set(stage.phases().values()) == {"Running"}
        assert [p for p in stage.scheduler.problems if "broken" in p] == [
            f"PodGroup {NAMESPACE}/broken: spec.minResources.cpu: " + _rest(stage)
        ]

    with caplog.at_level(logging.WARNING):
        played(scene)
    assert sum("broken" in record.getMessage() for record in caplog.records) == 1


def _rest(stage: Stage) -> str:
    return next(p for p in stage.scheduler.problems if "broken" in p).split(": ", 2)[2]


def test_a_pod_deleted_before_its_bind_landed_leaves_no_trace() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 8))
        await asyncio.sleep(1)
        stage.create(*gang("train", 4))
        await asyncio.sleep(0.0075)  # decided, not written yet
        assert stage.scheduler.cache.unconfirmed
        stage.store.remove(Pod, f"{NAMESPACE}/train-0")
        await asyncio.sleep(10)
        assert stage.scheduler.settled
        assert stage.scheduler.cache.cluster.nodes.used[0].sum() == 3000

    played(scene, write_seconds=0.02)


# -- what it writes ----------------------------------------------------------------------------------------------------


def test_counts_and_phases_follow_the_pods_to_the_end() -> None:
    async def scene(stage: Stage) -> None:
        members = [pod(f"train-{n}", "train", **{"maniple.dev/run-for": "5s"}) for n in range(3)]
        failing = pod("train-3", "train", **{"maniple.dev/fail-after": "5s"})
        stage.create(node("n1"), group("train", 4), *members, failing)
        await asyncio.sleep(2)
        assert {k: stage.group_status("train")[k] for k in ("phase", "running")} == {
            "phase": "Running",
            "running": 4,
        }
        await asyncio.sleep(10)
        status = stage.group_status("train")
        assert [status[k] for k in ("phase", "running", "succeeded", "failed")] == ["Completed", 0, 3, 1]
        held = stage.store.get(VolcanoQueue, "default")["status"]["allocated"]
        assert held == {"cpu": "0", "memory": "0"}

    played(scene)


def test_queues_above_hold_what_the_queues_below_hold() -> None:
    async def scene(stage: Stage) -> None:
        below = gang("train", 2)
        below[0]["spec"]["queue"] = "below"
        stage.create(queue("above"), queue("below", parent="above"), node("n1"), *below)
        await asyncio.sleep(5)
        held = {
            raw["metadata"]["name"]: raw["status"]["allocated"]["cpu"]
            for raw in stage.store.list(VolcanoQueue)[0]
        }
        assert held == {"above": "2", "below": "2", "root": "2", "default": "0"}

    played(scene)


def test_a_gang_that_waits_all_day_has_few_events_and_few_writes() -> None:
    async def scene(stage: Stage) -> None:
        stage.create(node("n1", 4), *gang("train", 8))
        for number in range(200):
            stage.create(node(f"small-{number}", 0))
            await asyncio.sleep(0.1)
        told = [event for event in stage.port.events if event.reason == "Unschedulable"]
        assert len(told) <= 2
        # Nine objects, each reworded at most every few seconds, over twenty seconds of constant change.
        assert stage.scheduler.effects.carried_out < 120

    played(scene)


def test_an_evicted_pod_is_marked_deleted_and_its_place_taken() -> None:
    conf = (
        'actions: "enqueue, allocate, preempt"\n'
        "tiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: predicates\n  - name: nodeorder\n"
    )

    async def scene(stage: Stage) -> None:
        urgent = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
        }
        stage.create(queue("default"), {**urgent, "value": 1000}, node("n1", 4), *gang("low", 4, minimum=1))
        await asyncio.sleep(5)
        assert stage.store.find(PriorityClass, "urgent") is not None
        high = gang("high", 2)
        high[0]["spec"]["priorityClassName"] = "urgent"
        for raw in high[1:]:
            raw["spec"]["priority"] = 1000
        stage.create(*high)
        await asyncio.sleep(0.2)
        shown = {line.key: line for line in overview(stage.scheduler).jobs}
        assert {key: line.state for key, line in shown.items()} == {
            "team/low": "evicted",
            "team/high": "pipelined",
        }
        assert shown["team/low"].evicted == 2
        assert shown["team/low"].evicted_why.startswith("preempt: makes room for job team/high")
        assert shown["team/high"].starts.startswith("starts when team/low-")
        await asyncio.sleep(10)
        assert {line.state for line in overview(stage.scheduler).jobs} == {"runs"}
        phases = stage.phases()
        assert [phases["high-0"], phases["high-1"]] == ["Running", "Running"]
        assert sum(name.startswith("low") for name in phases) == 2
        evicted = [event for event in stage.port.events if event.reason == "Evict"]
        assert len(evicted) == 2
        words = "Pod is evicted, because of preempt: makes room for job team/high, which comes before it in the same queue"
        assert {event.note for event in evicted} == {words}

    played(scene, conf=conf)


# -- its end -----------------------------------------------------------------------------------------------------------


def test_stopping_finishes_what_is_being_written() -> None:
    async def main() -> tuple[int, bool]:
        stage = Stage(write_seconds=0.5)
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            stage.create(queue("default"), node("n1"), *gang("train", 8))
            async with asyncio.timeout(60):
                while not stage.scheduler.cache.unconfirmed:
                    await asyncio.sleep(0.001)
        return len(stage.port.binds), stage.scheduler.effects.idle

    binds, idle = run(main(), virtual=True)
    assert (binds, idle) == (8, True)


def test_stopping_before_anything_was_listed_ends_at_once() -> None:
    async def main() -> float:
        stage = Stage()
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            pass
        return asyncio.get_running_loop().time()

    assert run(main(), virtual=True) < 1


def test_pods_that_are_listed_before_their_owner_join_its_group_at_once() -> None:
    """Otherwise each would be a job of its own for a moment, forty thousand of them in a large cluster."""

    async def play() -> None:
        stage = Stage()
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
        pods = [pod(f"train-{number}", "") for number in range(3)]
        for raw in pods:
            raw["metadata"] |= {"annotations": {}, "ownerReferences": [owner]}
        labels = {"maniple.dev/min-member": "3"}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": NAMESPACE, "uid": "u", "labels": labels},
            "spec": {"parallelism": 3},
        }
        made: list[int] = []
        for raw in [*pods, job]:
            stage.scheduler._inbox.append(Change("put", None, load(raw)))
            stage.scheduler._take_in()
            made.append(len(stage.scheduler.cache.made()))
        stage.scheduler._inbox.append(Change("synced", None))
        stage.scheduler._take_in()
        assert made == [0, 0, 0, 0]
        (group,) = stage.scheduler.cache.made()
        assert group.metadata.name == "job:train"

    run(play(), virtual=True)
