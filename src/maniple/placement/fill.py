"""Gang fill: the greedy placement of k equal tasks in one step.

Placing one by one takes, each time, the best node (the first by name among equals), and then only that node's
score changes. So at most the k best nodes can ever be used: each of them is scored for its 1st, 2nd, ... task as
one matrix, by array functions of plugins or by compiled ones, and the plain loop goes through it (`greedy.pyx`).
`tests/placement` holds the sequence to asking every plugin again for every task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.placement.column import NOWHERE, ClassColumn
from maniple.placement.greedy import best, in_turn


class Filled(NamedTuple):
    """Nodes for consecutive tasks."""

    nodes: NodeRows
    turns: Scores | None = None  # the score by which each task's turn came, if scores alone decide
    exhausted: NDArray[np.bool_] | None = (
        None  # which task was the last that its node could take, if others follow
    )


def fill(
    column: ClassColumn,
    rows: NodeRows,
    scores: Scores,
    slots: Amounts,
    count: int,
    shift: Scores | None = None,
) -> Filled:
    """Nodes for up to `count` consecutive tasks.

    `rows` are the candidates, at least one; `scores` are those of the next task on each of them, `shift` is
    what these hold on top of the column's own worth; `slots` is how many tasks fit, by node.
    """
    if count == 1:
        first = np.array([scores.argmax()])
        turns = scores[first]
        return Filled(rows[first], turns) if turns[0] > NOWHERE else Filled(first[:0])
    if count < len(rows):
        among = best(scores, count)
        rows, shift = rows[among], None if shift is None else shift[among]
    room = slots[rows]
    depth = min(count, int(room.max())) + 1  # one more, to know whether anything fits after the last
    shape = len(rows), depth
    # With one node to choose from, what it is worth does not matter.
    cells = Cells(column.nodes, column.class_, rows[:, None], np.arange(depth))
    worth = column.value(cells) if len(rows) > 1 else np.zeros(shape)
    if shift is not None:
        worth = worth + shift[:, None]
    if column.checked:
        possible = np.ones(shape, dtype=np.bool_)
        column.check(cells, possible)
        worth = np.where(possible, worth, NOWHERE)
    # Where no score looks at how many tasks there are, worth has a single column.
    places, turns, last = in_turn(np.broadcast_to(worth, shape), room, count)
    return Filled(rows[places], turns, last)
