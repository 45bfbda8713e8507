"""Past usage beside the running scheduler: every cycle uses the latest, and no feed delays one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maniple.live.scheduler import Scheduler
from maniple.live.usage_feed import Feeds, run_beside
from maniple.objects.core import Pod
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.beside import beside
from tests.live.kai_objects import gang, node, queue

HALF = {"a": {"gpu": 0.5, "cpu": 0.5, "memory": 0.5}}
LONG = 3600.0


class FakeFeed:
    """Knows what it is told, and waits for it for as long as it is told."""

    option = "queueUsage"

    def __init__(self, wait: float = LONG, failure: Exception | None = None) -> None:
        self.usage: Any = None
        self.wait = wait
        self.failure = failure
        self.running = False
        self._there = asyncio.Event()

    def tell(self, usage: Any) -> None:
        self.usage = usage
        self._there.set()

    def latest(self) -> Any:
        return self.usage

    async def arrived(self) -> bool:
        try:
            async with asyncio.timeout(self.wait):
                return await self._there.wait()
        except TimeoutError:
            return False

    async def run(self) -> None:
        self.running = True
        try:
            if self.failure is not None:
                raise self.failure
            await asyncio.Event().wait()
        finally:
            self.running = False


class Stage:
    """Two queues with equal rights want eight GPUs each; there are eight."""

    def __init__(self, feed: FakeFeed) -> None:
        self.world = World(start_seconds=0.1)
        self.feed = feed
        planner = Planner(profile="kai", options={"debug": True})
        self.feeds = Feeds(lambda _: [feed], planner)
        self.scheduler = Scheduler(
            planner, self.world.port(), clock=self.world.clock, inline=True, options=self.feeds.options
        )
        works = [
            raw for name in "ab" for number in range(8) for raw in gang(f"{name}{number}", 1, queue=name)
        ]
        for raw in (node("n1", 8), queue("all"), queue("a", "all"), queue("b", "all"), *works):
            self.world.store.create(raw)

    def placed(self) -> dict[str, int]:
        """How many pods of each queue have a node and are to keep it."""
        pods = [raw for raw in self.world.store.list(Pod)[0] if raw["spec"].get("nodeName")]
        kept = [raw["metadata"]["name"] for raw in pods if "deletionTimestamp" not in raw["metadata"]]
        return {name: sum(one.startswith(name) for one in kept) for name in "ab"}


def played(scene: Callable[[Stage], Coroutine[Any, Any, None]], **feed: Any) -> None:
    """Play a scene while scheduler and feed run, then stop the scheduler: the feed has ended with it."""

    async def main() -> None:
        stage = Stage(FakeFeed(**feed))
        async with beside(run_beside(stage.feeds, stage.scheduler), stage.scheduler.stop):
            await scene(stage)
        assert not stage.feed.running

    run(main(), virtual=True)


def test_a_queue_that_used_much_gets_less_of_what_is_over() -> None:
    async def scene(stage: Stage) -> None:
        stage.feed.tell(HALF)
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 3, "b": 5}

    played(scene)


def test_queues_that_used_the_same_get_the_same() -> None:
    async def scene(stage: Stage) -> None:
        stage.feed.tell({**HALF, "b": HALF["a"]})
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 4, "b": 4}

    played(scene)


def test_new_usage_is_planned_with_though_nothing_else_changes() -> None:
    async def scene(stage: Stage) -> None:
        stage.feed.tell({})
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 4, "b": 4}
        stage.feed.tell(HALF)
        await asyncio.sleep(60)
        assert stage.placed() == {"a": 3, "b": 5}

    played(scene)


def test_the_same_usage_once_more_is_no_reason_for_a_cycle() -> None:
    async def scene(stage: Stage) -> None:
        stage.feed.tell(HALF)
        await asyncio.sleep(60)
        before = stage.scheduler.cycles
        stage.feed.tell({queue: dict(used) for queue, used in HALF.items()})
        await asyncio.sleep(60)
        assert stage.scheduler.cycles == before

    played(scene)


def test_nothing_is_decided_before_the_first_usage_or_the_end_of_the_wait() -> None:
    async def scene(stage: Stage) -> None:
        await asyncio.sleep(29)
        assert stage.scheduler.cycles == 0
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 4, "b": 4}

    played(scene, wait=30.0)


def test_who_stops_does_not_wait_for_the_first_usage() -> None:
    async def scene(stage: Stage) -> None:
        await asyncio.sleep(1)
        stage.scheduler.stop()
        await asyncio.sleep(10)
        assert not stage.feed.running
        assert stage.scheduler.cycles == 0

    played(scene)


def test_a_cancelled_scheduler_takes_its_feed_with_it() -> None:
    async def main() -> None:
        stage = Stage(FakeFeed())
        async with beside(run_beside(stage.feeds, stage.scheduler)) as running:
            await asyncio.sleep(1)
            assert stage.feed.running
        assert running.cancelled()
        assert not stage.feed.running

    run(main(), virtual=True)


def test_a_feed_that_breaks_is_reported_and_the_scheduler_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 4, "b": 4}

    played(scene, failure=RuntimeError("out of order"))
    assert [one for one in caplog.messages if "usage" in one] == [
        "queue usage is no longer fetched: RuntimeError: out of order"
    ]


@pytest.mark.parametrize("wrong", [3, {"a": {"gpus": 1}}, {"a": {"gpu": float("inf")}}, {"a": {"gpu": -1}}])
def test_usage_that_makes_no_sense_is_reported_once_and_the_last_that_did_is_kept(wrong: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.feed.tell(HALF)
        await asyncio.sleep(20)
        stage.feed.tell(wrong)
        for raw in gang("b9", 1, queue="b"):
            stage.world.store.create(raw)
        await asyncio.sleep(20)
        assert stage.placed() == {"a": 3, "b": 5}
        told = [problem for problem in stage.scheduler.problems if "queueUsage" in problem]
        assert len(told) == 1

    played(scene)


def test_what_is_added_for_a_cycle_leaves_the_planner_s_own_options_as_they_are() -> None:
    planner = Planner(profile="kai", options={"schedulerName": "mine", "fullHierarchyFairness": False})
    before = dict(planner.options)
    assert planner.with_options({"queueUsage": HALF}) == {**before, "queueUsage": HALF}
    assert planner.options == before
