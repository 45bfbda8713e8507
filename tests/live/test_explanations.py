"""Explanations between cycles, on the embedded cluster: bounded, one event for a constraint, made again in turn."""

import asyncio
import threading
from typing import Any

import pytest

from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.model import Cause
from maniple.live import explanations
from maniple.live.scheduler import Scheduler, Timing
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live import kai_objects, objects
from tests.live.beside import beside
from tests.live.kai_objects import FREE
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import NAMESPACE, Raw

HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 75,
}
TAINT = "taint dedicated=research:NoSchedule is not tolerated"


def tainted(name: str, gpus: int = 8) -> Raw:
    raw = kai_objects.node(name, gpus)
    raw["spec"] = {"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]}
    return raw


def gang(name: str, size: int, scheduler: str = "kai-scheduler", **spec: Any) -> list[Raw]:
    raws = kai_objects.gang(name, size, **spec)
    for raw in raws[1:]:
        raw["spec"]["schedulerName"] = scheduler
    return raws


def messages(stage: KaiStage, name: str = "train") -> list[str]:
    return [one["message"] for one in stage.told(name)]


async def one_that_waits(stage: KaiStage) -> None:
    scheduler = "maniple" if stage.scheduler.planner.profile.name == "maniple" else "kai-scheduler"
    stage.create(kai_objects.queue(), tainted("n1"), *gang("train", 2, scheduler))
    await asyncio.sleep(5)


def test_the_answer_of_the_default_profile_replaces_the_brief_cause() -> None:
    stage = played(one_that_waits, profile="maniple")
    (said,) = messages(stage)
    assert said.startswith(
        "gang needs 2 pods placed together, each requesting cpu 1, nvidia.com/gpu 1; none can"
    )
    assert TAINT in said
    assert (f"PodGroup {NAMESPACE}/train", said) in stage.events("Unschedulable")


def test_strict_compatibility_keeps_to_the_words_of_the_original() -> None:
    (said,) = messages(played(one_that_waits, conf="compat: strict\n"))
    assert TAINT not in said
    (said,) = messages(played(one_that_waits))
    assert TAINT in said


def test_a_pod_that_is_a_job_of_its_own_has_the_answer_in_its_condition() -> None:
    async def scene(stage: KaiStage) -> None:
        single = objects.pod("single")
        single["spec"]["schedulerName"] = "maniple"
        stage.create(objects.queue("default"), tainted("n1"), single)
        await asyncio.sleep(5)

    stage = played(scene, profile="maniple")
    assert TAINT in stage.condition("single")["message"]
    (event,) = stage.events("FailedScheduling")
    assert TAINT in event[1]


def test_jobs_are_explained_in_turn_within_the_budget_of_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "BUDGET", 20)
    monkeypatch.setattr(explanations, "LEAST", 10)

    async def scene(stage: KaiStage) -> None:
        names = [f"job-{number}" for number in range(6)]
        stage.create(kai_objects.queue(), tainted("n1"))
        for name in names:
            stage.create(*gang(name, 1))
        seen = []
        for _ in range(40):
            await asyncio.sleep(0.25)
            seen.append(sum(any(TAINT in one for one in messages(stage, name)) for name in names))
        gained = [after - before for before, after in zip(seen[:-4:4], seen[4::4], strict=True)]
        assert max(gained) <= 4, "no more than two in each of the periods that this touches"
        assert seen[4] < len(names), "not all of them at once"
        assert seen[-1] == len(names), "all of them in the end"

    played(scene)


def test_messages_do_not_alternate_while_only_numbers_change() -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue(), tainted("n1"), *gang("train", 2))
        await asyncio.sleep(5)
        said = set[str]()
        for number in range(2, 8):
            stage.create(tainted(f"n{number}"))
            for _ in range(10):
                await asyncio.sleep(0.1)
                said.update(messages(stage))
        assert all(TAINT in one for one in said), "never without the answer in between"
        assert len(said) <= 2, "numbers are written once in a while"
        await asyncio.sleep(60)
        (last,) = messages(stage)
        assert "7 nodes" in last

    stage = played(scene)
    on_group = [note for regarding, note in stage.events("Unschedulable") if "PodGroup" in regarding]
    assert all(TAINT in one for one in on_group)


def test_an_answer_follows_the_cluster_although_the_brief_cause_stays() -> None:
    """The jobs that hold the limit are not part of it."""

    async def scene(stage: KaiStage) -> None:
        limit = {"quota": 0, "overQuotaWeight": 1, "limit": 2000}
        stage.create(kai_objects.queue(resources={"gpu": FREE, "cpu": limit, "memory": FREE}), HIGH)
        stage.create(kai_objects.node("n1"), *gang("first", 2))
        await asyncio.sleep(3)
        stage.create(*gang("train", 2))
        await asyncio.sleep(5)
        assert f"(held by {NAMESPACE}/first 2)" in messages(stage)[0]
        stage.create(*gang("second", 2, priorityClassName="high"))
        await asyncio.sleep(40)
        assert stage.phases()["second-0"] == "Running"
        assert f"(held by {NAMESPACE}/second 2)" in messages(stage)[0]

    played(scene)


def test_a_failure_leaves_the_brief_cause_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("maniple.explaining.diagnosis.Diagnosis.answer", fail)
    (said,) = messages(played(one_that_waits, options={"debug": False}))
    assert said
    assert TAINT not in said
    assert [one for one in caplog.messages if one == f"cannot explain why job {NAMESPACE}/train waits"]


def test_watches_are_read_while_a_job_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a scheduler that does not plan inline, the event loop goes on while a question is asked."""
    asked, went_on, found, threads = threading.Event(), threading.Event(), list[Cause | None](), set[int]()
    answer = Diagnosis.answer

    def waits_for_the_loop(self: Diagnosis, name: str) -> Cause | None:
        threads.add(threading.get_ident())
        asked.set()
        assert went_on.wait(30), "the event loop waits for the answer"
        found.append(answer(self, name))
        return found[-1]

    monkeypatch.setattr(Diagnosis, "answer", waits_for_the_loop)

    async def scene() -> None:
        world = World([kai_objects.queue(), tainted("n1"), *gang("train", 2, "maniple")])
        planner = Planner(profile="maniple")
        scheduler = Scheduler(
            planner, world.port(), clock=world.clock, timing=Timing(period=0.05), alone=True
        )
        async with beside(scheduler.run(), scheduler.stop):
            while not asked.is_set():
                await asyncio.sleep(0.01)
            went_on.set()
            while not found:
                await asyncio.sleep(0.01)

    run(asyncio.wait_for(scene(), 60), virtual=False)
    assert found[0] is not None
    assert TAINT in found[0].sentence
    assert threading.get_ident() not in threads
