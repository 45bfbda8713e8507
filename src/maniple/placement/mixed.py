"""Gang fill for tasks that differ in amounts only: nodes for consecutive tasks, decided in a few steps and exactly.

Placing one by one takes the best node for each task, and then only that node changes. So all tasks are scored on
the nodes as they are, in one step, and each is assumed to get the best node that has none of the others. What is
left to look at is whether a node that has been given a task is better still for a later one: these few cells are
scored together, with the tasks imagined there. From the first task for which that is so, the rest is assumed
anew. The sequence equals asking for each task in turn; `tests/placement` checks it.

Called through `engine.py`, for gangs whose tasks are classes of their own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.criteria import MixedCells, NodeRows, Scores
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.placement.column import NOWHERE, worth_of
from maniple.placement.criteria import Criteria

Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class MixedFill:
    """Nodes for the first of some tasks."""

    nodes: NodeRows
    left: Mask  # by task, the nodes that do not refuse it, nor, where refusals last, one before it


def fill_mixed(
    session: Session, classes: list[TaskClass], criteria: Criteria, *, refusals_last: bool
) -> MixedFill:
    """Nodes for consecutive tasks, one of each class, up to the first for which there is none.

    The classes share the criteria and request the same resources. Where refusals last, a node that refuses one of
    the tasks is not tried for those after it.
    """
    return _Filling(session, classes, criteria, refusals_last).filled()


class _Filling:
    def __init__(
        self, session: Session, classes: list[TaskClass], criteria: Criteria, refusals_last: bool
    ) -> None:
        self._nodes = session.nodes
        self._refusals_last = refusals_last
        self._class = classes[0]
        self._criteria = criteria
        self._entries: Amounts = np.array([one.entries.allocated for one in classes]).T
        self._asked = self._class.request.nonzero()[0]
        self._requests: Amounts = np.array([one.request for one in classes]).T
        self._gpus = session.gpus.dimension if session.rules.placing.owed_gpus_count else None
        self._taken: list[int] = []  # by task, the place of its node among the candidates
        self._added: dict[int, Amounts] = {}  # by place, what the tasks there add to the node's books

    def filled(self) -> MixedFill:
        nodes, everywhere = self._nodes, np.arange(len(self._nodes))[None]
        fits = self._criteria.open & self._fits(
            everywhere, nodes.books[:, None], self._entries[:, :, None], self._requests[:, :, None]
        )
        left: Mask = np.logical_and.accumulate(fits, axis=0) if self._refusals_last else fits
        hopeless = np.flatnonzero(~left.any(axis=1))
        count = int(hopeless[0]) if len(hopeless) else len(left)
        if count:
            self._rows = rows = np.flatnonzero(left[:count].any(axis=0))
            self._left = left[:count, rows]
            cells = MixedCells(
                nodes,
                self._class,
                rows[None],
                nodes.books.take(rows[None], axis=1),
                self._entries[:, :count, None],
            )
            self._worth: Scores = np.where(self._left, worth_of(self._criteria, cells), NOWHERE)
            while len(self._taken) < count and self._go_on(count):
                pass
            left[:count, rows] = self._left
        else:
            self._rows = np.zeros(0, dtype=np.intp)
        return MixedFill(self._rows[self._taken], left)

    def _fits(self, rows: NodeRows, books: Amounts, entries: Amounts, requests: Amounts) -> Mask:
        """Whether tasks fit on nodes with these books."""
        size, class_ = len(self._class.request), self._class
        free = self._nodes.allocatable.take(rows, axis=1) - books[2 * size : 3 * size]
        fits: Mask = free[self._asked[0]] >= requests[self._asked[0]]
        for dimension in self._asked[1:].tolist():
            fits = fits & (free[dimension] >= requests[dimension])
        for owed in (CPU, MEMORY, self._gpus):
            if owed is not None and not class_.request[owed]:
                fits = fits & (free[owed] >= 0)
        cells = MixedCells(self._nodes, class_, rows, books, entries)
        for one in self._criteria.node_filters:
            fits = fits & (one.check(class_, cells) == FITS)
        return fits

    # -- the sequence ---------------------------------------------------------------------------------------------

    def _go_on(self, count: int) -> bool:
        """Nodes for the tasks up to one that goes where another went before; False when there is none for a task."""
        first, fresh, scores = len(self._taken), *self._assumed(count)
        places = [*self._added, *fresh]
        # For the task after the last assumed there is no node but those that have been given one.
        tasks = range(first, min(first + len(fresh) + 1, count))
        added = [*self._added.values(), *(self._entries[:, first + turn] for turn in range(len(fresh)))]
        since = [first] * len(self._added) + [first + turn + 1 for turn in range(len(fresh))]
        worth, fits = self._again(tasks, places, np.array(added).T, since) if places else ([], [])
        for task in tasks:
            turn = task - first
            rival, best = self._rival(task, places, worth[turn], fits[turn]) if places else (-1, NOWHERE)
            if turn < len(fresh) and (best < scores[turn] or (best == scores[turn] and fresh[turn] < rival)):
                self._take(task, fresh[turn])
                continue
            if best == NOWHERE:
                return False
            self._take(task, rival)
            return True
        return True

    def _assumed(self, count: int) -> tuple[list[int], list[float]]:
        """For the next tasks, the best places that have none, and what they are worth; as many as there are."""
        used, fresh, scores = list(self._added), [], []
        for task in range(len(self._taken), count):
            worth = self._worth[task].copy()
            worth[used] = NOWHERE
            place = int(worth.argmax())
            if worth[place] == NOWHERE:
                break
            used.append(place)
            fresh.append(place)
            scores.append(float(worth[place]))
        return fresh, scores

    def _again(
        self, tasks: range, places: list[int], added: Amounts, since: list[int]
    ) -> tuple[list[list[float]], list[list[bool]]]:
        """By task and place: what places are worth that have been given tasks, and whether they fit one more.

        `since`: the first task that finds the place so.
        """
        pairs = [(task, number) for task in tasks for number in range(len(places)) if since[number] <= task]
        worth = [[NOWHERE] * len(places) for _ in tasks]
        fits = [[True] * len(places) for _ in tasks]
        if pairs:
            which, numbers = np.array(pairs).T
            rows, entries = self._rows[places][numbers], self._entries.take(which, axis=1)
            books = self._nodes.books.take(rows, axis=1) + added.take(numbers, axis=1)
            fit = self._fits(rows, books, entries, self._requests.take(which, axis=1))
            value = worth_of(self._criteria, MixedCells(self._nodes, self._class, rows, books, entries))
            first = tasks[0]
            for (task, number), one, yes in zip(pairs, value.tolist(), fit.tolist(), strict=True):
                fits[task - first][number] = yes
                worth[task - first][number] = one if yes else NOWHERE
        return worth, fits

    def _rival(self, task: int, places: list[int], worth: list[float], fits: list[bool]) -> tuple[int, float]:
        """The best place that has been given a task, if it takes one more; the first among equals."""
        rival, best = -1, NOWHERE
        for place, one, yes in zip(places, worth, fits, strict=True):
            if place in self._added:
                open_ = yes and (not self._refusals_last or bool(self._left[task - 1, place]))
                self._left[task : None if self._refusals_last else task + 1, place] = open_
                if open_ and (one > best or (one == best and place < rival)):
                    rival, best = place, one
        return rival, best

    def _take(self, task: int, place: int) -> None:
        before = self._added.get(place)
        added = self._entries[:, task]
        self._added[place] = added if before is None else before + added
        self._taken.append(place)
