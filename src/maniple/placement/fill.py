"""Gang fill: the greedy placement of k equal tasks in one step.

Placing one by one takes, each time, the best node (the first by name among equals), and then only that node's
score changes. So at most the k best nodes can ever be used, and the plain loop over these is compiled (`greedy.pyx`).
What a node is worth for its 2nd, 3rd, ... task comes from compiled scores as the loop gets there, or else from the
array functions of plugins, for all nodes and numbers as one matrix.
`tests/placement` holds the sequence to asking every plugin again for every task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.placement.column import NOWHERE, ClassColumn, node_worth
from maniple.placement.greedy import Ladder, NodeSteps, Steps, best, in_turn


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
        rows, scores, shift = rows[among], scores[among], None if shift is None else shift[among]
    room = slots[rows]
    places, turns, last = in_turn(scores, _ladder(column, rows, room, count, shift), room, count)
    return Filled(rows[places], turns, last)


def _ladder(column: ClassColumn, rows: NodeRows, room: Amounts, count: int, shift: Scores | None) -> Ladder:
    """What further tasks are worth on each row: asked as it goes where that is compiled, else all at once."""
    nodes, class_ = column.nodes, column.class_
    if column.criteria.compiled is not None and not column.checked:
        worth = node_worth(column.criteria, class_)
        return NodeSteps(worth, rows, nodes.books, class_.entries.allocated, shift)
    depth = min(count, int(room.max())) + 1  # one more, to know whether anything fits after the last
    cells = Cells(nodes, class_, rows[:, None], np.arange(depth))
    value = column.value(cells)
    if shift is not None:
        value = value + shift[:, None]
    if column.checked:
        possible = np.ones((len(rows), depth), dtype=np.bool_)
        column.check(cells, possible)
        value = np.where(possible, value, NOWHERE)
    # Where no score looks at how many tasks there are, there is a single column.
    return Steps(np.broadcast_to(value, (len(rows), depth)))
