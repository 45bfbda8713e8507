"""Gang fill where a task may change what other nodes are worth: one task after the other, but in one go.

For scorers that can tell how their scores move as tasks are placed (`Scorer.steps`). What a node itself is worth for its 1st, 2nd, ... task is worked
out for many nodes together; a step is then a sum and a maximum over the candidates. The sequence equals asking anew for every task.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, NodeRows, Scorer, Scores
from maniple.placement.column import NOWHERE, ClassColumn
from maniple.placement.fill import best

_TOGETHER = 16  # ladders made at a time, at least


def fill_stepwise(
    column: ClassColumn, rows: NodeRows, scores: Scores, slots: Amounts, count: int, scorers: list[Scorer]
) -> NodeRows:
    """Nodes for up to `count` consecutive tasks, out of some rows, whose scores stand beside them."""
    class_, worth = column.class_, scores.copy()
    steppers = [(one.weight, one.steps(class_, rows)) for one in scorers if one.steps is not None]
    ladders = _Ladders(column, rows, slots[rows], count)
    taken: list[int] = []
    while len(taken) < count:
        total = worth.copy()
        for weight, stepper in steppers:
            total += weight * stepper.shift(worth > NOWHERE)
        place = int(total.argmax()) if len(total) else -1
        if place < 0 or total[place] == NOWHERE:
            break
        taken.append(place)
        for _, stepper in steppers:
            stepper.take(place)
        worth[place] = ladders.next(place, total)
    return rows[taken]


class _Ladders:
    """What further tasks on a node are worth, made for the nodes that are likely to be used next."""

    def __init__(self, column: ClassColumn, rows: NodeRows, room: Amounts, count: int) -> None:
        self._column = column
        self._rows = rows
        self._room = room
        self._count = count
        self._made: dict[int, list[float]] = {}
        self._climbed: dict[int, int] = {}

    def next(self, place: int, total: Scores) -> float:
        """The worth of one more task on a node that has just been given one; NOWHERE when it takes no more."""
        height = self._climbed[place] = self._climbed.get(place, 0) + 1
        if height >= self._room[place]:
            return NOWHERE
        if place not in self._made:
            self._make(place, total)
        ladder = self._made[place]
        return ladder[height] if height < len(ladder) else NOWHERE

    def _make(self, place: int, total: Scores) -> None:
        likely = best(total, max(self._count, _TOGETHER))
        places = [place, *(other for other in likely.tolist() if other != place and other not in self._made)]
        rows, room = self._rows[places], self._room[places]
        extra = np.arange(min(self._count, int(room.max())) + 1)
        cells = Cells(self._column.nodes, self._column.class_, rows[:, None], extra)
        possible: NDArray[np.bool_] = extra < room[:, None]
        self._column.rule_out(cells, possible)
        worth = np.where(possible, self._column.value(cells), NOWHERE)
        self._made.update(zip(places, worth.tolist(), strict=True))
