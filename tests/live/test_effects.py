"""Effects: bounded, in order for one object, tried again when that can help, and never lost without a word."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maniple.live.effects import MOST_SLOW_OF_NAMESPACE, MOST_SUSPECTS, Effect, Effects, Lane, Urgency
from maniple.sim.clock import run
from maniple.sim.errors import ApiError


class Bench:
    """Effects under test, with a record of what was called and how it ended."""

    def __init__(self, concurrency: int = 4, **settings: Any) -> None:
        self.effects = Effects(concurrency, **settings)
        self.calls: list[str] = []
        self.ends: list[tuple[str, int | None]] = []
        self.under_way = self.most_under_way = 0

    def submit(
        self,
        name: str,
        lane: str = "",
        *,
        answers: list[int] | None = None,
        urgency: Urgency = Urgency.DECISION,
        aspect: str = "x",
        replaces: tuple[str, ...] = (),
        seconds: float = 1.0,
        retry_after: float | None = None,
    ) -> None:
        left = list(answers or [])

        async def call() -> None:
            self.calls.append(name)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            await asyncio.sleep(seconds)
            self.under_way -= 1
            if left:
                raise ApiError(left.pop(0), "Refused", name, retry_after)

        def done(error: BaseException | None) -> None:
            self.ends.append((name, getattr(error, "status", None)))

        self.effects.submit(Effect(Lane("Pod", lane or name), aspect, urgency, call, done), replaces)


def played(scene: Callable[[Bench], Coroutine[Any, Any, None]], **settings: Any) -> Bench:
    """Run a scene in virtual time, then until everything is carried out."""

    async def main() -> Bench:
        bench = Bench(**settings)
        working = asyncio.create_task(bench.effects.run())
        await scene(bench)
        assert await bench.effects.drain(1000.0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return bench

    return run(main(), virtual=True)


def test_no_more_than_allowed_at_once() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(20):
            bench.submit(str(number), seconds=0.1)

    bench = played(scene, concurrency=3)
    assert bench.most_under_way == 3
    assert len(bench.ends) == 20


def test_one_object_in_order_while_others_go_on() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("a1", "a", seconds=5)
        bench.submit("a2", "a")
        bench.submit("b1", "b")

    assert [name for name, _ in played(scene).ends] == ["b1", "a1", "a2"]


def test_decisions_before_statuses_before_notes() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("note", urgency=Urgency.NOTE)
        bench.submit("status", urgency=Urgency.STATUS)
        bench.submit("bind", urgency=Urgency.DECISION)

    assert played(scene, concurrency=1).calls == ["bind", "status", "note"]


def test_what_others_wait_for_goes_first() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(20):
            bench.submit(f"bind {number}")
        bench.submit("Inqueue", urgency=Urgency.AWAITED)

    assert played(scene, concurrency=1).calls[0] == "Inqueue"


def test_a_burst_of_decisions_leaves_some_turns_to_statuses_and_notes() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(100):
            bench.submit(f"bind {number}", seconds=0.01)
            bench.submit(f"status {number}", urgency=Urgency.STATUS, seconds=0.01)
            bench.submit(f"note {number}", urgency=Urgency.NOTE, seconds=0.01)

    begun = [call.split()[0] for call in played(scene, concurrency=1).calls[:68]]
    assert [begun.count(kind) for kind in ("bind", "status", "note")] == [64, 2, 2]


def test_statuses_do_not_save_up_turns_while_there_are_none_to_write() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(100):
            bench.submit(f"bind {number}", seconds=0.01)
        await asyncio.sleep(0.505)
        for number in range(100):
            bench.submit(f"status {number}", urgency=Urgency.STATUS, seconds=0.01)

    begun = [call.split()[0] for call in played(scene, concurrency=1).calls[51:84]]
    assert begun.count("bind") == 32


def test_namespaces_take_turns() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(50):
            bench.submit(f"large/{number}", seconds=0.01)
        for number in range(3):
            bench.submit(f"small/{number}", seconds=0.01)

    calls = played(scene, concurrency=1).calls
    assert [calls.index(f"small/{number}") for number in range(3)] == [1, 3, 5]


def test_slow_failures_of_some_delay_others_by_less_than_a_second() -> None:
    times: list[float] = []

    async def scene(bench: Bench) -> None:
        for number in range(48):
            bench.submit(f"team/bad{number}", answers=[500] * 100, seconds=10.0)
        for wave in range(30):
            await asyncio.sleep(2.0)
            begin = asyncio.get_running_loop().time()
            bench.submit(f"team/good{wave}", seconds=0.01)
            while (f"team/good{wave}", None) not in bench.ends:
                await asyncio.sleep(0.01)
            times.append(asyncio.get_running_loop().time() - begin)

    bench = played(scene, concurrency=32)
    assert max(times) < 1.0
    assert len([name for name, status in bench.ends if status == 500]) == 48


def test_what_was_slow_and_failed_is_retried_a_few_at_a_time() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(40):
            bench.submit(f"team/bad{number}", answers=[500] * 100, seconds=10.0)
        await asyncio.sleep(12.0)  # their first attempts are over
        bench.most_under_way = bench.under_way

    bench = played(scene, concurrency=32)
    assert bench.most_under_way <= MOST_SUSPECTS
    assert len(bench.calls) == 40 * 6


def test_a_namespace_does_not_take_all_places_of_slow_writes() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(500):
            bench.submit(f"team/bad{number}", seconds=20.0)
        await asyncio.sleep(5.0)
        assert bench.under_way <= MOST_SLOW_OF_NAMESPACE + 32
        bench.submit("other/good", seconds=0.01)
        await asyncio.sleep(0.5)
        assert ("other/good", None) in bench.ends

    played(scene, concurrency=32)


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_a_passing_refusal_is_tried_again(status: int) -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("a", answers=[status, status, status])

    bench = played(scene)
    assert bench.calls == ["a"] * 4
    assert bench.ends == [("a", None)]


@pytest.mark.parametrize(("status", "calls"), [(404, 1), (403, 1), (422, 1), (409, 2)])
def test_a_lasting_refusal_ends_it(status: int, calls: int) -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("a", answers=[status] * 10)

    bench = played(scene)
    assert len(bench.calls) == calls
    assert bench.ends == [("a", status)]


def test_after_enough_tries_it_is_given_up() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("a", answers=[503] * 100)

    bench = played(scene)
    assert len(bench.calls) == 6
    assert bench.ends == [("a", 503)]


def test_a_pause_before_another_try_blocks_only_its_own_object() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("a1", "a", answers=[429], retry_after=60.0)
        bench.submit("a2", "a")
        for number in range(10):
            bench.submit(f"b{number}")

    bench = played(scene, concurrency=1)
    assert bench.calls[-2:] == ["a1", "a2"]
    assert bench.calls[0] == "a1"


def test_the_pause_that_the_cluster_asks_for_is_kept() -> None:
    times: list[float] = []

    async def scene(bench: Bench) -> None:
        bench.submit("a", answers=[429], retry_after=30.0, seconds=0.0)
        while len(bench.calls) < 2:
            await asyncio.sleep(0.5)
        times.append(asyncio.get_running_loop().time())

    played(scene)
    assert times[0] >= 30.0


def test_what_has_not_begun_is_replaced_and_what_has_is_finished() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("status 1", "pod", aspect="status", replaces=("status",))
        await asyncio.sleep(0.1)
        bench.submit("status 2", "pod", aspect="status", replaces=("status",))
        bench.submit("status 3", "pod", aspect="status", replaces=("status",))
        bench.submit("bind", "pod", aspect="bind", replaces=("condition",))

    assert played(scene).calls == ["status 1", "status 3", "bind"]


def test_a_replaced_status_does_not_hold_back_the_decision_that_replaced_it() -> None:
    async def scene(bench: Bench) -> None:
        bench.submit("busy", seconds=10)
        await asyncio.sleep(0.1)
        for number in range(5):
            bench.submit(f"status {number}", urgency=Urgency.STATUS)
        bench.submit("condition", "pod", aspect="condition", urgency=Urgency.STATUS)
        bench.submit("bind", "pod", aspect="bind", replaces=("condition",))

    assert played(scene, concurrency=1).calls[:2] == ["busy", "bind"]


def test_notes_beyond_what_can_wait_are_not_accepted_and_counted() -> None:
    async def scene(bench: Bench) -> None:
        for number in range(10):
            bench.submit(f"note {number}", urgency=Urgency.NOTE)
        bench.submit("bind")

    bench = played(scene, most_notes=4)
    assert bench.effects.dropped == 6
    assert len(bench.ends) == 5


def test_a_fault_of_ours_is_not_taken_for_a_refusal() -> None:
    async def main() -> None:
        effects = Effects(1)

        async def broken() -> None:
            raise ZeroDivisionError

        ends: list[BaseException | None] = []
        effects.submit(Effect(Lane("Pod", "a"), "x", Urgency.DECISION, broken, ends.append))
        with pytest.raises(ZeroDivisionError):
            await effects.run()
        assert len(ends) == 1

    run(main(), virtual=True)


def test_draining_gives_up_in_time() -> None:
    async def main() -> bool:
        bench = Bench(1)
        working = asyncio.create_task(bench.effects.run())
        bench.submit("slow", seconds=100)
        done = await bench.effects.drain(5.0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return done

    assert run(main(), virtual=True) is False
