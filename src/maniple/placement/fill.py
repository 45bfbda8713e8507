"""Gang fill: the greedy placement of k equal tasks in one step.

Placing one by one takes, each time, the best node (the first by name among equals), and then only that node's
score changes. So at most the k best nodes can ever be used; score each of them for its 1st, 2nd, ... task as
one matrix. A task becomes available when those before it on its node are placed, so its turn comes by the
lowest score on the way to it: sort all cells by that running minimum, equal ones by node and then by depth,
and the first k are the greedy sequence. `tests/placement` checks the equality.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.placement.column import NOWHERE, ClassColumn


class Filled(NamedTuple):
    """Nodes for consecutive tasks."""

    nodes: NodeRows
    turns: Scores | None = None  # the score by which each task's turn came, if scores alone decide
    exhausted: NDArray[np.bool_] | None = (
        None  # which task was the last that its node could take, if others follow
    )


def best(scores: Scores, count: int) -> NodeRows:
    """Rows of the `count` highest scores, fewer if there are not as many; by row, ties won by the lower row."""
    size = len(scores)
    if count < size:
        # the lowest score that is still among the best
        ordered = scores.copy()
        ordered.partition(size - count)
        least = ordered[size - count]
        if least > NOWHERE:
            above = scores > least
            level = (scores == least).nonzero()[0][: count - int(np.count_nonzero(above))]
            above[level] = True
            return np.flatnonzero(above)
    return (scores > NOWHERE).nonzero()[0]


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
    extra: Amounts = np.arange(depth)
    cells = Cells(column.nodes, column.class_, rows[:, None], extra, climbs=True)
    possible = extra < room[:, None]
    column.rule_out(cells, possible)
    # With one node to choose from, what it is worth does not matter.
    worth = column.value(cells) if len(rows) > 1 else np.zeros((1, depth))
    value = worth if shift is None else worth + shift[:, None]
    reach = np.minimum.accumulate(np.where(possible, value, NOWHERE), axis=1)
    order = (-reach).ravel().argsort(kind="stable")[:count]
    chosen, depths = order // depth, order % depth
    turns = reach[chosen, depths]
    placed = turns > NOWHERE
    if not placed.all():
        chosen, depths, turns = chosen[placed], depths[placed], turns[placed]
    exhausted = ~possible[chosen, np.minimum(depths + 1, depth - 1)]
    return Filled(rows[chosen], turns, exhausted)
