"""Chunks of victims: in what pieces jobs give way, and in what order."""

from typing import Any

from maniple.eviction.chunks import Chunk, Pieces
from maniple.eviction.victims import VictimPool, VictimSequence
from tests.actions.allocate_scenes import Bench, gang, node, queue
from tests.support import priority_class

PARTS = [node("n1", 64), priority_class("low", 40), priority_class("high", 60)]
FIRST, SECOND = "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"


class Order:
    def __init__(self, *parts: Any, protected: str = "") -> None:
        self.bench = Bench(PARTS, *parts)
        session = self.bench.session
        self.pool = VictimPool(session, session.jobs.rows)
        spared = self.bench.job(protected) if protected else -1
        self.sequence = VictimSequence(session, self.pool, self.pool.jobs, lambda job: job != spared)

    def texts(self) -> list[str]:
        """Jobs in order; with a plus where a task is spared, with a size where the core goes."""
        return [self.text(chunk) for chunk in self.sequence.first(99)]

    def text(self, chunk: Chunk) -> str:
        name = self.bench.session.job_key(chunk.job).removeprefix("default/")
        return f"{name}:{len(chunk.rows)}" if chunk.core else f"{name}+"


def running(name: str, count: int, minimum: int | None = None, **job: Any) -> list[Any]:
    return gang(name, count, minimum, on=["n1"] * count, **job)


def test_a_job_gives_what_it_can_spare_one_by_one_and_then_the_rest() -> None:
    order = Order(queue("q"), running("a", 4, 2))
    assert order.texts() == ["a+", "a+", "a:2"]
    spare, core = Pieces(order.bench.session, order.pool.jobs).of(order.bench.job("a"))
    assert [order.bench.session.task_key(row) for rows in spare for row in rows.tolist()] == [
        "default/a-3",
        "default/a-2",
    ]
    assert len(core) == 2


def test_every_pod_set_keeps_its_minimum_until_the_core_goes() -> None:
    groups = [{"name": "x", "minMember": 1}, {"name": "y", "minMember": 2}]
    order = Order(queue("q"), running("a", 5, groups=groups, roles=["x", "x", "y", "y", "y"]))
    assert order.texts() == ["a+", "a+", "a:3"]


def test_lower_priority_first_then_surplus_then_the_youngest() -> None:
    order = Order(
        queue("q"),
        running("high", 2, 1, priority="high"),
        running("old", 2, 1, priority="low", created=FIRST),
        running("new", 1, priority="low", created=SECOND),
    )
    assert order.texts() == ["old+", "new:1", "old:1", "high+", "high:1"]


def test_jobs_that_plugins_protect_are_left_out() -> None:
    order = Order(queue("q"), running("a", 1), running("b", 1), protected="a")
    assert order.texts() == ["b:1"]


def test_queues_take_turns_by_what_they_have_left() -> None:
    queues = [queue("top"), queue("x", parent="top"), queue("y", parent="top")]
    jobs = [running(f"x{n}", 1, queue="x") for n in range(4)]
    jobs += [running(f"y{n}", 1, queue="y") for n in range(2)]
    texts = Order(queues, jobs).texts()
    assert {text[0] for text in texts[:2]} == {"x"}  # until they have as much as the others
    assert sorted(text[0] for text in texts) == ["x"] * 4 + ["y"] * 2


def test_a_barred_chunk_stays_and_so_does_what_cannot_go_without_it() -> None:
    order = Order(queue("q"), running("a", 3, 1))
    order.sequence.bar(order.sequence.first(1)[0])
    assert order.texts() == ["a+"]


def test_a_closed_queue_gives_nothing_from_there_on() -> None:
    order = Order(queue("q"), running("a", 3, 1))
    order.sequence.close(order.sequence.first(2)[1])
    assert order.texts() == ["a+"]


def test_what_has_left_or_was_served_is_not_offered_again() -> None:
    order = Order(queue("q"), running("a", 3, 1), running("b", 1), running("c", 1))
    session = order.bench.session
    order.pool.drop(order.sequence.first(1), {order.bench.job("b")}, order.bench.job("c"))
    order.sequence = VictimSequence(session, order.pool, order.pool.jobs, None)
    assert order.texts() == ["a+", "a:1"]


def test_jobs_that_only_claim_a_place_are_no_victims() -> None:
    bench = Bench(PARTS, queue("q"), gang("a", 1), running("b", 1))
    assert bench.place("a", real=False)
    pool = VictimPool(bench.session, bench.session.jobs.rows)
    assert pool.jobs.tolist() == [bench.job("b")]


def test_searches_share_an_order_unless_other_jobs_are_protected_or_ruled_out() -> None:
    order = Order(queue("q"), queue("r"), running("a", 2, 1), running("b", 1, queue="r"), running("c", 1))
    session, everybody, first = order.bench.session, order.texts(), order.sequence
    spared = order.bench.job("c")
    order.sequence = VictimSequence(session, order.pool, order.pool.jobs, lambda job: job != spared)
    assert order.texts() == [text for text in everybody if text != "c:1"]
    order.sequence = VictimSequence(session, order.pool, order.pool.jobs, lambda _: True)
    assert order.texts() == everybody
    order.sequence.bar(order.sequence.first(1)[0])
    assert order.texts() != everybody
    order.sequence = VictimSequence(session, order.pool, order.pool.jobs, lambda _: True)
    assert order.texts() == everybody
    assert first.first(99) == order.sequence.first(99)


def test_the_tasks_of_chunks_are_laid_out_in_order() -> None:
    for others in ([], [queue("r"), running("b", 1, queue="r")]):
        order = Order(queue("q"), running("a", 4, 2), running("c", 1), *others)
        chunks = order.sequence.first(99)
        rows, ends = order.sequence.laid_out(3)
        assert ends.tolist() == [sum(len(one.rows) for one in chunks[: count + 1]) for count in range(3)]
        assert rows.tolist() == [row for one in chunks[:3] for row in one.rows.tolist()]


def test_what_was_merged_is_shared_also_once_a_queue_is_closed() -> None:
    jobs = [running(f"{queue_name}{n}", 1, queue=queue_name) for queue_name in "qrs" for n in range(3)]
    order = Order(queue("q"), queue("r"), queue("s"), *jobs)
    session, everybody = order.bench.session, order.texts()
    order.sequence.close(order.sequence.first(99)[0])
    closed, merged = order.texts(), len(order.pool.merged)
    assert closed == [text for text in everybody if text[0] != everybody[0][0]]
    for closes, expected in ((True, closed), (False, everybody)):
        order.sequence = VictimSequence(session, order.pool, order.pool.jobs, lambda _: True)
        if closes:
            order.sequence.close(order.sequence.first(1)[0])
        assert order.texts() == expected
    assert len(order.pool.merged) == merged
