"""What happened to a job, and what evictions cost: from the journal of a scheduler in virtual time."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from maniple import journal
from maniple.explaining import losses
from maniple.journal import history, writer
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.journal.recording import Keeping
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, queue

CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in (("low", 1), ("high", 1000))
]
CONF = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def with_priority(raws: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    for raw in raws:
        raw["spec"]["priorityClassName"] = name  # type: ignore[index]
        if raw["kind"] == "Pod":
            raw["metadata"].setdefault("annotations", {})["volcano.sh/preemptable"] = "true"  # type: ignore[attr-defined]
    return raws


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> journal.Journal:
    return record(tmp_path_factory.mktemp("journal"))


def record(folder: Path) -> journal.Journal:
    """A gang is too large and waits, another runs for 60 s and is evicted for a third."""

    async def main() -> None:
        world = World([node("n1", 4), queue("default"), *CLASSES], start_seconds=0.1)
        keeping = Keeping(folder)
        scheduler = Scheduler(
            Planner(CONF, "volcano"),
            world.port(),
            clock=world.clock,
            timing=Timing(period=0.5),
            inline=True,
            alone=True,
            journal=keeping,
        )
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(1)
            for raw in with_priority(gang("large", 6), "low"):
                world.store.create(raw)
            await asyncio.sleep(2)
            for raw in with_priority(gang("victim", 4), "low"):
                world.store.create(raw)
            await asyncio.sleep(60)
            for raw in with_priority(gang("winner", 4), "high"):
                world.store.create(raw)
            await asyncio.sleep(30)
            for index in range(4):
                world.store.remove(Pod, f"{NAMESPACE}/winner-{index}")
            await asyncio.sleep(2)
        keeping.close()

    run(main(), virtual=True)
    return journal.read(folder)


def story(recorded: journal.Journal, job: str) -> list[str]:
    return [event.what for event in history.events(recorded.steps(), f"{NAMESPACE}/{job}")]


def test_a_job_arrives_is_placed_runs_and_is_evicted(recorded: journal.Journal) -> None:
    what = [one for one in story(recorded, "victim") if one != "waits"]
    assert what[0] == "arrived"
    assert what.index("placed") < what.index("runs") < what.index("evicted")
    told = [
        event for event in history.events(recorded.steps(), f"{NAMESPACE}/victim") if event.what == "evicted"
    ]
    assert sum(event.pods for event in told) == 4
    assert f"for {NAMESPACE}/winner, by preempt" in told[0].text
    assert "core hours" in told[0].text


def test_the_winner_is_promised_room_placed_and_deleted(recorded: journal.Journal) -> None:
    what = story(recorded, "winner")
    assert what[0] == "arrived"
    assert what.index("promised") < what.index("placed") < what.index("runs") < what.index("deleted")


def test_why_a_job_waits_is_there_once_as_long_as_it_stays_the_same(recorded: journal.Journal) -> None:
    events = [
        event for event in history.events(recorded.steps(), f"{NAMESPACE}/large") if event.what == "waits"
    ]
    texts = [event.text for event in events]
    assert "Insufficient cpu" in " ".join(texts)
    assert all(before != after for before, after in pairwise(texts))


def test_the_ledger_has_who_lost_what_to_whom(recorded: journal.Journal) -> None:
    losses = [*history.losses(recorded.steps())]
    assert len(losses) == 4
    for loss in losses:
        assert (loss.job, loss.by, loss.action) == (f"{NAMESPACE}/victim", f"{NAMESPACE}/winner", "preempt")
        assert (loss.queue, loss.by_queue, loss.node) == ("default", "default", "n1")
        assert loss.requests["cpu"] == 1.0
        assert 55 < loss.ran < 65
        assert loss.lost["cpu"] == pytest.approx(loss.ran)
        assert loss.allowed_by


def test_segments_that_repeat_everything_are_no_news(
    recorded: journal.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PIECES", 2**30)
    often = record(tmp_path)
    assert len(often.paths) > 2
    assert [*history.events(often.steps())] == [*history.events(recorded.steps())]
    assert [*history.losses(often.steps())] == [*history.losses(recorded.steps())]


def test_times_and_cycles_lead_to_the_same_moment(recorded: journal.Journal) -> None:
    steps = [(step.number, step.when) for step in recorded.steps()]
    number, when = steps[len(steps) // 2]
    assert recorded.at(number).now == when
    assert recorded.at(when).cycle == max(each for each, at in steps if at <= when)
    with pytest.raises(journal.JournalError, match="no cycle 100000"):
        recorded.at(100_000)
    with pytest.raises(journal.JournalError, match="nothing is known of"):
        recorded.at(steps[0][1] - timedelta(seconds=1))


def test_summaries_add_up(recorded: journal.Journal) -> None:
    rows = [*history.summaries(recorded.steps())]
    assert sum(row.evicted for row in rows) == 4
    assert sum(row.placed for row in rows) >= 8
    assert [row.cycle for row in rows] == [*range(1, len(rows) + 1)]


def test_durations_and_amounts_are_readable() -> None:
    assert [losses.duration(seconds) for seconds in (12, 200, 3900)] == ["12s", "3m 20s", "1h 5m"]
    lost = {"cpu": 7200.0, "memory": 2.0**30 * 3600, "nvidia.com/gpu": 1800.0}
    assert losses.amounts(lost) == "2 core hours, 0.5 nvidia.com/gpu hours"
    assert losses.amounts({"memory": 2.0**30 * 3600}) == "1 GiB hours of memory"
    assert losses.amounts({}) == "nothing"
