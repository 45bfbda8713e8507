"""The recorder: what it keeps is bounded, a reload is followed, and extenders are answered again."""

import asyncio
from pathlib import Path
from typing import Any

from maniple import journal
from maniple.journal.extenders import Listening, Playing
from maniple.journal.recorder import Recorder
from maniple.journal.writer import Writer
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.load import load
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.journal.recording import Keeping, Recorded, check
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, pod, queue


def scheduler_of(world: World, recorder: Recorder, planner: Planner, **given: Any) -> Scheduler:
    return Scheduler(
        planner,
        world.port(),
        clock=world.clock,
        timing=Timing(period=0.5),
        inline=True,
        alone=True,
        journal=recorder,
        **given,
    )


def test_nothing_is_kept_before_the_first_cycle_and_while_the_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    recorder = Recorder(Writer(tmp_path / "file", waits=True))

    async def main() -> None:
        world = World([node("n1", 4), queue("default")], start_seconds=0.1)
        scheduler = scheduler_of(world, recorder, Planner(profile="volcano"))
        scheduler.cache.put(load(pod("early")))
        scheduler.cache.gone(load(pod("early")))
        assert recorder_changes(recorder) == []
        async with beside(scheduler.run(), scheduler.stop):
            for number in range(5):
                world.store.create(pod(f"p{number}"))
                await asyncio.sleep(2)
                recorder.writer.flush()
        assert scheduler.cycles > 3

    run(main(), virtual=True)
    assert recorder.writer.rests
    assert recorder_changes(recorder) == []
    recorder.close()


def recorder_changes(recorder: Recorder) -> list[Any]:
    return [*recorder._changed]


def test_a_changed_configuration_and_measurements_are_followed(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path / "0")
    usage: dict[str, Any] = {}

    async def main() -> None:
        world = World([node("n1", 4), queue("default")], start_seconds=0.1)
        conf = "actions: {}\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}]\n"
        planner = Planner(conf.format("enqueue"), "volcano")
        scheduler = scheduler_of(world, keeping, planner, options=lambda: dict(usage))
        async with beside(scheduler.run(), scheduler.stop):
            for raw in gang("train", 2):
                world.store.create(raw)
            await asyncio.sleep(2)
            scheduler.adopt(Planner(conf.format('"enqueue, allocate"'), "volcano"))
            await asyncio.sleep(2)
            usage["nodeUsage"] = {"n1": {"cpu": 50, "memory": 10, "at": "2026-01-01T00:00:00Z"}}
            await asyncio.sleep(2)
            world.store.create(pod("late"))
            await asyncio.sleep(2)

    run(main(), virtual=True)
    keeping.close()
    assert check(Recorded(tmp_path, recorders=[keeping])) > 2
    steps = [
        (step.moment().planner().actions, dict(step.state.more))
        for step in journal.read(tmp_path / "0").steps()
    ]
    assert steps[0] == (("enqueue",), {})
    assert steps[-1] == (("enqueue", "allocate"), usage)
    bound = [step for step in journal.read(tmp_path / "0").steps() if step.decided("binds")]
    assert {pod for step in bound for pod in step.decided("binds")} >= {
        f"{NAMESPACE}/train-0",
        f"{NAMESPACE}/train-1",
    }


def test_answers_of_extenders_are_given_again() -> None:
    given = iter([(200, b"one"), (200, b"two"), None])

    def transport(url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        answer = next(given)
        if answer is None:
            raise OSError("it is gone")
        return answer

    def asked(ask: Any) -> list[Any]:
        found: list[Any] = []
        for body in (b"a", b"a", b"b"):
            try:
                found.append(ask("http://extender/filter", body, 1.0))
            except OSError as error:
                found.append(str(error))
        return found

    listening = Listening(transport)
    first = asked(listening)
    assert first == [(200, b"one"), (200, b"two"), "it is gone"]
    assert asked(Playing(listening.answers)) == first
    assert asked(Playing(())) == ["the journal has no answer to this request"] * 3


EXTENDER = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - name: extender
    arguments:
      extender.urlPrefix: http://extender
      extender.predicateVerb: predicate
"""


def test_a_cycle_that_asked_an_extender_is_planned_again_without_it(tmp_path: Path) -> None:
    keeping, asked = Keeping(tmp_path / "0"), list[str]()

    def transport(url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        asked.append(url)
        return 200, b'{"status": {"code": 1, "reason": "not here"}}' if b'"n1"' in body else b"{}"

    async def main() -> None:
        world = World([node("n1", 4), node("n2", 4), queue("default")], start_seconds=0.1)
        planner = Planner(EXTENDER, "volcano", options={"extenderTransport": transport})
        scheduler = scheduler_of(world, keeping, planner)
        async with beside(scheduler.run(), scheduler.stop):
            for raw in gang("train", 2):
                world.store.create(raw)
            await asyncio.sleep(3)

    run(main(), virtual=True)
    keeping.close()
    assert asked
    number = len(asked)
    assert check(Recorded(tmp_path, recorders=[keeping]))
    assert len(asked) == number
