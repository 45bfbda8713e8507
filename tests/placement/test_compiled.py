"""What is compiled does what is written out here in Python, for any numbers and in every form of cells."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.snapshot import Book
from maniple.framework.criteria import Limit
from maniple.framework.node_scores import NodeWorth, Room
from maniple.framework.transactions.booking import book
from maniple.placement.greedy import NodeSteps, Steps, best, in_turn
from maniple.placement.slots import Slots
from maniple.plugins.kai.node_formulas import Constant, Density, FitsNow, PartLeft

NOWHERE = -np.inf
DIMENSIONS = 3

scores = st.lists(st.sampled_from([NOWHERE, -1.0, 0.0, 0.5, 2.0, 7.25]), max_size=12)


@given(scores, st.integers(1, 14))
def test_the_best_rows_are_those_that_sorting_would_give(values: list[float], count: int) -> None:
    ordered = sorted(range(len(values)), key=lambda row: (-values[row], row))
    expected = sorted(row for row in ordered[:count] if values[row] > NOWHERE)
    assert best(np.array(values), count).tolist() == expected


@given(st.data())
def test_rows_in_turn_are_those_that_a_plain_loop_takes(data: st.DataObject) -> None:
    size, count = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 10))
    worth = np.array(
        [data.draw(st.lists(st.integers(-3, 3), min_size=count + 1, max_size=count + 1)) for _ in range(size)]
    ).astype(float)
    closed = data.draw(st.lists(st.integers(0, count + 1), min_size=size, max_size=size))
    for row, height in enumerate(closed):
        worth[row, height:] = NOWHERE
    room = np.array(data.draw(st.lists(st.integers(0, count), min_size=size, max_size=size)))
    heights, taken, reach = [0] * size, [], worth[:, 0].tolist()
    for _ in range(count):
        here = [row for row in range(size) if heights[row] < room[row] and reach[row] > NOWHERE]
        if not here:
            break
        row = max(here, key=lambda one: (reach[one], -one))
        heights[row] += 1
        last = heights[row] >= room[row] or worth[row, heights[row]] == NOWHERE
        taken.append((row, reach[row], bool(last)))
        reach[row] = min(reach[row], worth[row, heights[row]])
    rows, turns, lasts = in_turn(worth[:, 0], Steps(worth), room, count)
    assert list(zip(rows.tolist(), turns.tolist(), lasts.tolist(), strict=True)) == taken


def test_a_row_that_takes_more_tasks_than_have_a_worth_is_refused() -> None:
    with pytest.raises(
        ValueError, match="row 0 could take more than the 1 tasks after which its worth is known"
    ):
        in_turn(np.zeros(1), Steps(np.zeros((1, 2))), np.array([3]), 3)
    with pytest.raises(ValueError, match="1 rows have a worth, 2 have room"):
        in_turn(np.zeros(1), Steps(np.zeros((1, 2))), np.array([1, 1]), 1)


# -- nodes with books -------------------------------------------------------------------------------------------------

amounts = st.integers(0, 20)


def matrix(data: st.DataObject, height: int, width: int) -> Any:
    row = st.lists(amounts, min_size=width, max_size=width)
    return np.array([data.draw(row) for _ in range(height)], dtype=np.int64)


class Scene:
    """Some nodes: what they have and their books, as random as can be, and what one task adds to the books."""

    def __init__(self, data: st.DataObject) -> None:
        self.size = data.draw(st.integers(1, 5))
        self.allocatable = matrix(data, DIMENSIONS, self.size)
        self.books = matrix(data, 4 * DIMENSIONS + 2, self.size)
        self.entry = matrix(data, 4 * DIMENSIONS + 2, 1)[:, 0]

    def book(self, part: Book, dimension: int, node: int, extra: int = 0) -> int:
        row = part * DIMENSIONS + dimension
        return int(self.books[row, node] + extra * self.entry[row])

    def cells(self, rows: Any, extra: Any) -> Any:
        class_ = SimpleNamespace(entries=SimpleNamespace(allocated=self.entry))
        nodes = SimpleNamespace(books=self.books)
        return SimpleNamespace(rows=rows, extra=extra, nodes=nodes, class_=class_)

    def left(self, dimension: int, node: int, extra: int) -> int:
        coming = self.book(Book.RELEASING, dimension, node, extra) - self.book(
            Book.PIPELINED, dimension, node, extra
        )
        return int(self.allocatable[dimension, node]) - self.book(Book.USED, dimension, node, extra) + coming


@given(st.data())
def test_the_slots_of_a_class_are_what_division_gives(data: st.DataObject) -> None:
    scene = Scene(data)
    request = data.draw(st.lists(st.integers(0, 4), min_size=DIMENSIONS, max_size=DIMENSIONS).filter(any))
    asked = [one for one in range(DIMENSIONS) if request[one]]
    owed = [one for one in data.draw(st.sets(st.integers(0, DIMENSIONS - 1))) if one not in asked]
    opened = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=scene.size, max_size=scene.size)), np.uint8
    )
    capacity = matrix(data, 1, scene.size)[0]
    limited = data.draw(st.booleans())
    row = Book.REQUESTED * DIMENSIONS
    slots = Slots(
        scene.allocatable,
        scene.books,
        np.array(asked, dtype=np.intp),
        np.array([request[one] for one in asked], dtype=np.int64),
        np.array(owed, dtype=np.intp),
        (Limit(capacity, row),) if limited else (),
        opened,
    )

    def fit(node: int, *, later: bool) -> int:
        def free(one: int) -> int:
            idle = int(scene.allocatable[one, node]) - scene.book(Book.USED, one, node)
            return scene.left(one, node, 0) if later else idle

        if not opened[node] or any(free(one) < 0 for one in owed):
            return 0
        most = min(max(free(one), 0) // request[one] for one in asked)
        return min(most, max(int(capacity[node] - scene.books[row, node]), 0)) if limited else most

    rows = data.draw(st.none() | st.lists(st.integers(0, scene.size - 1), min_size=1, max_size=6))
    some = range(scene.size) if rows is None else rows
    given_rows = None if rows is None else np.array(rows, dtype=np.intp)
    now, same = slots.count(given_rows, False)
    assert now is same
    assert now.tolist() == [fit(node, later=False) for node in some]
    now, later = slots.count(given_rows, True)
    assert later.tolist() == [fit(node, later=True) for node in some]
    assert now.tolist() == [min(fit(node, later=False), fit(node, later=True)) for node in some]


large = st.integers(2**52, 2**60) | st.integers(2**53 - 3, 2**53 + 3) | st.integers(0, 10)


@given(large, large.filter(bool))
def test_slots_are_exact_for_any_amounts(free: int, amount: int) -> None:
    allocatable, books = np.full((1, 1), free, dtype=np.int64), np.zeros((6, 1), dtype=np.int64)
    only, nothing = np.zeros(1, dtype=np.intp), np.zeros(0, dtype=np.intp)
    slots = Slots(allocatable, books, only, np.array([amount]), nothing, (), np.ones(1, dtype=np.uint8))
    assert slots.count(None, False)[0].tolist() == [free // amount]


@given(st.data())
def test_an_entry_is_booked_for_each_time_that_a_node_is_listed(data: st.DataObject) -> None:
    scene = Scene(data)
    nodes = data.draw(st.lists(st.integers(-1, scene.size - 1), max_size=8))
    expected = scene.books.copy()
    for node in nodes:
        if node >= 0:
            expected[:, node] += scene.entry
    books = scene.books.copy()
    changed = book(books, np.array(nodes, dtype=np.intp), scene.entry, +1)
    assert books.tolist() == expected.tolist()
    assert changed.tolist() == [node for node in dict.fromkeys(nodes) if node >= 0]
    book(books, np.array(nodes, dtype=np.intp), scene.entry, -1)
    assert books.tolist() == scene.books.tolist()


def test_what_cannot_be_booked_is_refused() -> None:
    books = np.zeros((6, 2), dtype=np.int64)
    with pytest.raises(IndexError, match="node 2 has no books; there are 2 nodes"):
        book(books, np.array([2]), np.zeros(6, dtype=np.int64), +1)
    with pytest.raises(ValueError, match="an entry of 5 rows does not fit into books of 6"):
        book(books, np.array([0]), np.zeros(5, dtype=np.int64), +1)


@given(st.data())
def test_worth_is_the_weighted_sum_of_the_formulas_in_every_form_of_cells(data: st.DataObject) -> None:
    scene = Scene(data)
    dimension, largest = data.draw(st.integers(0, DIMENSIONS - 1)), data.draw(st.integers(1, 30))
    whole, owed = matrix(data, 1, scene.size)[0], (0, 2)
    formulas = (
        Density(scene.allocatable, dimension, 9.0, largest),
        PartLeft(scene.allocatable, dimension, whole),
        FitsNow(Room(scene.allocatable, np.array(owed), ())),
        Constant(0.25),
    )
    weights = (1.0, 10.0, 100.0, 2.0)
    fixed = np.arange(scene.size, dtype=np.float64) if data.draw(st.booleans()) else None
    worth = NodeWorth(fixed, formulas, weights)

    def idle(one: int, node: int, extra: int) -> int:
        return int(scene.allocatable[one, node]) - scene.book(Book.USED, one, node, extra)

    def expected(node: int, extra: int) -> float:
        there = scene.allocatable[dimension, node] > 0
        asked = scene.entry[Book.USED * DIMENSIONS : (Book.USED + 1) * DIMENSIONS]
        counted = [one for one in range(DIMENSIONS) if asked[one] > 0 or one in owed]
        found = 0.0 if fixed is None else float(fixed[node])
        found += 9.0 * (1 - scene.left(dimension, node, extra) / largest) if there else 0.0
        found += 10.0 * (scene.left(dimension, node, extra) / int(whole[node]) if whole[node] else 0.0)
        found += 100.0 * all(idle(one, node, extra) >= asked[one] for one in counted)
        return found + 2.0 * 0.25

    every, extra = range(scene.size), data.draw(st.integers(0, 3))
    rows = np.array(data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=6)), dtype=np.intp)
    extras = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    for form, wanted in (
        (scene.cells(slice(None), extra), [expected(node, extra) for node in every]),
        (scene.cells(rows, extra), [expected(node, extra) for node in rows.tolist()]),
        (
            scene.cells(rows, extras),
            [expected(*one) for one in zip(rows.tolist(), extras.tolist(), strict=True)],
        ),
        (
            scene.cells(rows[:, None], np.arange(3)),
            [[expected(node, e) for e in range(3)] for node in rows.tolist()],
        ),
    ):
        assert worth.over(form).tolist() == wanted


@given(st.data())
def test_rows_in_turn_by_the_nodes_themselves_are_those_by_a_matrix_of_them(data: st.DataObject) -> None:
    scene = Scene(data)
    worth = NodeWorth(None, (Density(scene.allocatable, 0, 9.0, 30), Constant(0.25)), (1.0, 2.0))
    nodes = np.arange(scene.size)[:: data.draw(st.sampled_from([1, 2]))].copy()
    shift = data.draw(st.sampled_from([None, np.linspace(0.0, 2.0, len(nodes))]))
    count = data.draw(st.integers(1, 6))
    room = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(nodes), max_size=len(nodes))))
    values = worth.over(scene.cells(nodes[:, None], np.arange(count + 1)))
    values = values if shift is None else values + shift[:, None]
    expected = in_turn(values[:, 0], Steps(values), room, count)
    found = in_turn(values[:, 0], NodeSteps(worth, nodes, scene.books, scene.entry, shift), room, count)
    assert [one.tolist() for one in found] == [one.tolist() for one in expected]


def test_what_cannot_be_scored_is_refused() -> None:
    scene: Any = SimpleNamespace(
        rows=np.zeros((2, 2), dtype=np.intp),
        extra=0,
        nodes=SimpleNamespace(books=np.zeros((14, 2), dtype=np.int64)),
        class_=SimpleNamespace(entries=SimpleNamespace(allocated=np.zeros(14, dtype=np.int64))),
    )
    with pytest.raises(ValueError, match="cells of 2 columns of nodes cannot be scored"):
        NodeWorth(None, (Constant(1.0),), (1.0,)).over(scene)
    with pytest.raises(ValueError, match="1 scores have 2 weights"):
        NodeWorth(None, (Constant(1.0),), (1.0, 2.0))
    with pytest.raises(TypeError):
        NodeWorth(None, (object(),), (1.0,))  # type: ignore[arg-type]
