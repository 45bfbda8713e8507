"""The order of jobs by the tree of queues: how heaps sift, what is put right and when, victims, depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from maniple.actions.order import Heap, JobsByQueue
from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_kai
from maniple.framework.points import Key
from maniple.framework.session import Session
from maniple.profiles.catalogue import KAI
from maniple.profiles.kai import KaiDialect
from tests.actions.allocate_scenes import Bench, cycle, flat, gang, node, placed, queue

ACTIONS = ("allocate",)


# -- the heap ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20)))
def test_a_heap_hands_out_the_smallest_first(numbers: list[int]) -> None:
    heap = Heap[int](lambda a, b: a < b)
    for number in numbers:
        heap.push(number)
    assert [heap.pop() for _ in numbers] == sorted(numbers)


def test_equal_items_are_sifted_as_in_go() -> None:
    """No item goes before an equal: the first stays on top, and a pop brings up the last, which stays there."""
    heap = Heap[tuple[int, str]](lambda a, b: a[0] < b[0])
    for name in "abcde":
        heap.push((0, name))
    assert "".join(heap.pop()[1] for _ in range(5)) == "aedcb"


def test_not_before_is_an_order_too() -> None:
    """Victims are compared by "not before": an equal goes before an equal.

    It moves up when it is new and when the top has gone.
    """
    heap = Heap[tuple[int, str]](lambda a, b: not a[0] < b[0])
    for name in "abc":
        heap.push((0, name))
    assert "".join(heap.pop()[1] for _ in range(3)) == "cab"


def test_removing_from_the_middle_keeps_the_order() -> None:
    heap = Heap[int](lambda a, b: a < b)
    for number in (1, 5, 2, 6, 7, 3, 4):
        heap.push(number)
    assert heap.remove(1) == 5
    assert [heap.pop() for _ in range(len(heap))] == [1, 2, 3, 4, 6, 7]


def test_only_the_top_is_put_right() -> None:
    worth = {"a": 1, "b": 2, "c": 3}
    heap = Heap[str](lambda a, b: worth[a] < worth[b])
    for name in worth:
        heap.push(name)
    worth["c"] = 0
    assert heap.top() == "a"
    worth["a"] = 5
    heap.fix_top()
    assert heap.top() == "c"


# -- queues -----------------------------------------------------------------------------------------------------------


class Turns:
    """Queues have their turn by numbers that a test sets, jobs by their names."""

    name = "turns"

    def __init__(self, session: Session, worth: dict[str, int]) -> None:
        self._session = session
        self.worth = worth
        self.asked: list[tuple[str, str, list[str]]] = []

    def queue_turn(self, queue: int, job: int, victims: Sequence[int]) -> Key:
        name = self._session.queue_name(queue)
        told = [self._session.job_key(one).removeprefix("default/") for one in (*victims, job) if one >= 0]
        self.asked.append((name, told[-1] if job >= 0 else "", told if job < 0 else []))
        return (self.worth.get(name, 0),)


class Line:
    """Jobs named after their queue (`x1` is of queue x), in line."""

    def __init__(
        self,
        queues: dict[str, str],
        jobs: str,
        worth: dict[str, int] | None = None,
        *,
        strict: bool = False,
        created: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        conf = load_kai(
            {
                "actions": "allocate",
                "tiers": [{"plugins": [{"name": "proportion"}]}],
                "compat": "strict" if strict else "better",
            },
            known_actions=ACTIONS,
        )
        objects = [queue(name, parent=parent) for name, parent in queues.items()]
        ages = dict.fromkeys(jobs.split(), "2026-01-01T00:00:00Z") | dict(created or {})
        objects += flat(gang(name, 1, queue=name[:-1], created=age) for name, age in ages.items())
        cluster = Cluster.from_objects(KaiDialect(strict=strict), objects)
        rules = KAI.rules_for(conf)
        self.session = Session(
            snapshot.take(cluster), conf, rules=rules, actions=ACTIONS, now=None, options={}
        )
        self.turns = Turns(self.session, worth or {})
        self.session.use([[(conf.tiers[0][0], self.turns)]])
        self.rows = {
            key.removeprefix("default/"): row for row, key in enumerate(self.session.cluster.jobs.keys)
        }
        self.line = JobsByQueue(self.session, [self.rows[name] for name in jobs.split()], **options)

    def pop(self, count: int = 1) -> str:
        names = {row: name for name, row in self.rows.items()}
        popped = [self.line.pop() for _ in range(count)]
        return " ".join("-" if row is None else names[row] for row in popped)

    def push(self, name: str) -> None:
        self.line.push(self.rows[name])


def test_queues_by_their_turn_and_jobs_by_their_order() -> None:
    line = Line({"a": "", "b": ""}, "a2 a1 b1 b2", {"a": 1, "b": 0})
    assert len(line.line) == 4
    assert line.pop(5) == "b1 b2 a1 a2 -"


def _with_uid(item: Any, uid: str) -> Any:
    return structs.replace(item, metadata=structs.replace(item.metadata, uid=uid))


@pytest.mark.parametrize("strict", [False, True])
def test_jobs_of_one_age_come_by_name_whatever_their_unique_ids(strict: bool) -> None:
    (first, *tasks), (second, *others) = gang("b", 1), gang("a", 1)
    jobs = [_with_uid(first, "1"), *tasks, _with_uid(second, "2"), *others]
    assert set(placed(cycle(queue("q"), node("n1", 1), jobs, strict=strict))) == {"a-0"}


@pytest.mark.parametrize(("strict", "order"), [(False, ["a", "b", "shrunk"]), (True, ["a", "shrunk", "b"])])
def test_a_job_that_lost_its_tasks_in_line_keeps_its_place_unless_it_is_sifted(
    strict: bool, order: list[str]
) -> None:
    """It was whole, so the others came first.

    As the oldest of those that lack tasks it comes up when the top leaves.
    """
    first, second = (
        gang(name, 1, created=f"2026-01-01T0{hour}:00:00Z") for hour, name in ((2, "a"), (3, "b"))
    )
    shrunk = gang("shrunk", 3, 2, on=["n1", "n1"], created="2026-01-01T01:00:00Z")
    bench = Bench(queue("q"), node("n1", 2), first, second, shrunk, strict=strict)
    line = JobsByQueue(bench.session, [bench.job(name) for name in ("a", "b", "shrunk")])
    bench.evict("shrunk-0", "shrunk-1")
    assert [line.pop() for _ in order] == [bench.job(name) for name in order]


def test_queues_that_nothing_tells_apart_come_by_name_whatever_their_unique_ids() -> None:
    queues = [_with_uid(queue("y"), "1"), _with_uid(queue("x"), "2")]
    jobs = [gang("b", 1, queue="y"), gang("a", 1, queue="x")]
    assert set(placed(cycle(queues, node("n1", 1), jobs))) == {"a-0"}


def test_a_queue_that_was_served_is_looked_at_again_before_its_next_turn() -> None:
    line = Line({"a": "", "b": ""}, "a1 a2 b1 b2", {"a": 0, "b": 1})
    assert line.pop() == "a1"
    line.turns.worth["a"] = 2
    assert line.pop() == "b1"
    line.turns.worth["b"] = 3
    assert line.pop(2) == "a2 b2"


def test_a_queue_is_compared_with_the_job_that_it_would_send() -> None:
    line = Line({"a": "", "b": ""}, "a1 a2 b1")
    line.pop(3)
    assert ("a", "a1", []) in line.turns.asked
    assert ("a", "a2", []) in line.turns.asked


def test_queues_above_are_compared_with_the_best_job_below() -> None:
    tree = {"top": "", "other": "", "x": "top", "y": "top", "z": "other"}
    line = Line(tree, "x1 y1 z1", {"x": 1, "y": 0, "other": 1})
    assert line.pop(3) == "y1 x1 z1"
    assert ("top", "y1", []) in line.turns.asked
    assert ("other", "z1", []) in line.turns.asked


def test_a_tree_of_any_depth_is_walked_down() -> None:
    tree = {"r": "", "s": "", "m": "r", "n": "r", "x": "m", "y": "m", "z": "n", "w": "s"}
    line = Line(tree, "x1 y1 z1 w1", {"n": 0, "m": 1, "s": 2, "y": 0, "x": 1})
    assert line.pop(5) == "z1 y1 x1 w1 -"


def test_an_emptied_queue_comes_back_with_its_next_job() -> None:
    tree = {"top": "", "x": "top", "y": "top"}
    line = Line(tree, "x1 y1", {"x": 0, "y": 1})
    assert line.pop() == "x1"
    line.push("x1")
    assert line.pop(3) == "x1 y1 -"
    line.push("y1")
    assert line.pop(2) == "y1 -"


def test_a_job_that_is_put_back_has_its_place_in_the_order_of_jobs() -> None:
    line = Line({"a": ""}, "a1 a2 a3")
    assert line.pop() == "a1"
    line.push("a1")
    assert line.pop(3) == "a1 a2 a3"


@pytest.mark.parametrize("parent", ["nowhere", "a"])
def test_jobs_of_queues_that_hang_nowhere_or_are_no_leaves_are_left_out(parent: str) -> None:
    line = Line({"a": "", "b": parent}, "a1 b1")
    served = {"nowhere": "a1 -", "a": "b1 -"}
    assert line.pop(2) == served[parent]


def test_of_queues_that_nothing_tells_apart_the_original_keeps_the_one_on_top() -> None:
    jobs = "a1 a2 b1 b2"
    strict, better = (Line({"a": "", "b": ""}, jobs, {"b": 1}, strict=one) for one in (True, False))
    for line in (strict, better):
        assert line.pop() == "a1"
        line.turns.worth["a"] = 2
        assert line.pop() == "b1"
        line.turns.worth["b"] = 2
    assert strict.pop() == "b2"
    assert better.pop() == "a2"


# -- victims ----------------------------------------------------------------------------------------------------------


def test_victims_come_in_the_opposite_order() -> None:
    line = Line({"a": "", "b": ""}, "a1 a2 b1 b2", {"a": 0, "b": 1}, victims=True)
    assert line.pop(4) == "b2 b1 a2 a1"


def test_a_queue_is_asked_with_all_that_it_gave_up_and_would_give_up_next() -> None:
    line = Line({"a": "", "b": ""}, "a1 a2 a3 b1", {"a": 1, "b": 0}, victims=True)
    assert line.pop(2) == "a3 a2"
    line.pop()
    assert [asked for asked in line.turns.asked if asked[0] == "a"] == [
        ("a", "", ["a3"]),
        ("a", "", ["a3", "a2"]),
        ("a", "", ["a3", "a2", "a1"]),
    ]


def test_a_victim_that_is_put_back_is_next_again() -> None:
    line = Line({"a": ""}, "a1 a2 a3", victims=True)
    assert line.pop() == "a3"
    line.push("a3")
    assert line.pop(3) == "a3 a2 a1"


# -- depth ------------------------------------------------------------------------------------------------------------


def test_beyond_the_depth_the_lowest_ranked_are_left_out() -> None:
    line = Line({"a": "", "b": ""}, "a3 a1 a2 b1", {"b": 1}, depth=2)
    assert len(line.line) == 3
    assert line.pop(4) == "a1 a2 b1 -"


def test_a_job_that_is_put_back_may_push_another_out() -> None:
    line = Line({"a": ""}, "a1 a2 a3", depth=2)
    assert line.pop() == "a1"
    line.push("a1")
    line.push("a3")
    assert line.pop(3) == "a1 a2 -"


@pytest.mark.parametrize(("strict", "kept"), [(True, "a1 a2"), (False, "a1 a3")])
def test_the_original_drops_whoever_stands_last_in_the_heap(strict: bool, kept: str) -> None:
    """They come in the order of their unique ids, that is the oldest, the youngest and the one between."""
    created = {"a1": "2026-01-01T01:00:00Z", "a2": "2026-01-01T03:00:00Z", "a3": "2026-01-01T02:00:00Z"}
    line = Line({"a": ""}, "a1 a2 a3", created=created, strict=strict, depth=2)
    assert line.pop(2) == kept
    assert line.pop() == "-"


@pytest.mark.parametrize("strict", [False, True])
def test_no_depth_means_all_and_none_means_nobody(strict: bool) -> None:
    assert Line({"a": ""}, "a1 a2", strict=strict, depth=-1).pop(2) == "a1 a2"
    assert Line({"a": ""}, "a1 a2", strict=strict, depth=0).pop() == "-"


# -- what is remembered -----------------------------------------------------------------------------------------------


def test_a_queue_that_loses_something_meanwhile_is_seen_anew() -> None:
    """As in reclaim, where the victims of the job that was handed out are of other queues."""
    line = Line({"a": "", "b": "", "c": ""}, "a1 a2 b1 c1", {"a": 0, "b": 1, "c": 2})
    assert line.pop() == "a1"
    line.turns.worth |= {"a": 5, "c": 0}
    line.session.changes.append(np.zeros(0, dtype=np.intp))
    assert line.pop() == "c1"


def test_where_only_jobs_that_were_handed_out_change_the_others_are_not_asked_again() -> None:
    line = Line({"a": "", "b": "", "c": ""}, "a1 a2 b1 c1", {"a": 0, "b": 1, "c": 2}, steady=True)
    assert line.pop() == "a1"
    line.turns.asked.clear()
    line.session.changes.append(np.zeros(0, dtype=np.intp))
    assert line.pop() == "a2"
    assert {name for name, _, _ in line.turns.asked} == {"a"}
