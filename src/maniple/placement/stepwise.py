"""Gang fill, task by task but in one go, where a task may change which other nodes are open or their scores.

For filters and scorers that can tell how their answers change as tasks are placed (`Filter.steps`,
`Scorer.steps`). What a node itself is worth for its 1st, 2nd, ... task is worked out for many nodes together,
once a second task may go there; a step is then a sum and a maximum over the candidates. The sequence equals
asking anew for every task.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, Gate, NodeRows, Scorer, Scores, Stepper
from maniple.placement.column import NOWHERE, ClassColumn
from maniple.placement.greedy import best

_TOGETHER = 16  # ladders made at a time, at least


def fill_stepwise(
    column: ClassColumn, rows: NodeRows, scores: Scores, slots: Amounts, count: int, scorers: list[Scorer]
) -> NodeRows:
    """Nodes for up to `count` consecutive tasks, out of some rows, given with their scores."""
    class_, worth = column.class_, scores.copy()
    gates = [one.steps(class_, rows) for one in column.criteria.cluster_filters if one.steps is not None]
    steppers = [(one, one.steps(class_, rows)) for one in scorers if one.steps is not None]
    steps = _Steps(column, rows, worth, gates, steppers)
    ladders = _Ladders(column, rows, slots[rows], count)
    taken: list[int] = []
    outdated: set[int] = set()  # places whose worth is still that of a task before the next
    while len(taken) < count:
        open_ = steps.open()
        for place in sorted(outdated):
            if open_[place]:
                outdated.remove(place)
                worth[place] = ladders.worth(place, steps.last)
                open_[place] = worth[place] > NOWHERE
        best_place = steps.best(open_)
        if best_place is None:
            break
        taken.append(best_place)
        if len(taken) < count:
            steps.take(best_place)
            ladders.climb(best_place)
            outdated.add(best_place)
    return rows[taken]


class _Steps:
    """The candidates of the next task and what they are worth."""

    def __init__(
        self,
        column: ClassColumn,
        rows: NodeRows,
        worth: Scores,
        gates: list[Gate],
        steppers: list[tuple[Scorer, Stepper]],
    ) -> None:
        self._worth = worth
        self._gates = gates
        self._steppers = steppers
        self._static = [(one.scorer, one.raw[rows]) for one in column.criteria.relative]
        self.last: Scores = worth  # of every node, as the last task saw it

    def open(self) -> NDArray[np.bool_]:
        open_: NDArray[np.bool_] = self._worth > NOWHERE
        for gate in self._gates:
            open_ &= gate.fits()
        return open_

    def best(self, open_: NDArray[np.bool_]) -> int | None:
        """The best of the open places, the first among equals."""
        places = open_.nonzero()[0]
        if not len(places):
            return None
        sums = np.zeros(len(places))
        for scorer, raw in self._static:
            sums += _weighted(scorer, raw[places])
        for scorer, stepper in self._steppers:
            sums += _weighted(scorer, stepper.shift(open_)[places])
        total = self._worth[places] + sums
        self.last = np.full(len(open_), NOWHERE)
        self.last[places] = total
        return int(places[total.argmax()])

    def take(self, place: int) -> None:
        for gate in self._gates:
            gate.take(place)
        for _, stepper in self._steppers:
            stepper.take(place)


def _weighted(scorer: Scorer, raw: Scores) -> Scores:
    weighted: Scores = scorer.weight * (raw if scorer.normalise is None else scorer.normalise(raw))
    return weighted


class _Ladders:
    """What further tasks on a node are worth, made for the nodes that are likely to be used next."""

    def __init__(self, column: ClassColumn, rows: NodeRows, room: Amounts, count: int) -> None:
        self._column = column
        self._rows = rows
        self._room = room
        self._count = count
        self._made: dict[int, list[float]] = {}
        self._climbed: dict[int, int] = {}

    def climb(self, place: int) -> None:
        """A node has been given one more task."""
        self._climbed[place] = self._climbed.get(place, 0) + 1

    def worth(self, place: int, total: Scores) -> float:
        """What one more task is worth on a node that has been given some; NOWHERE when it takes no more."""
        height = self._climbed[place]
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
        self._column.check(cells, possible)
        worth = np.where(possible, self._column.value(cells), NOWHERE)
        self._made.update(zip(places, worth.tolist(), strict=True))
