"""A class's column: for every node, how many more of its tasks fit there and what the next one is worth.

Kept current by the session's change log: a look costs as much as there are nodes that changed since the last one.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, PODS, Amounts
from maniple.framework.criteria import EVERY_NODE, Cells, Limit, NodeRows, Scores
from maniple.framework.node_scores import NodeWorth
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.placement.criteria import Criteria
from maniple.placement.slots import Slots

NOWHERE = -np.inf
_UNLIMITED = 2**31
_NONE: Amounts = np.zeros(0, dtype=np.int64)


class ClassColumn:
    """Slots and scores of one class over all nodes (rows by name)."""

    def __init__(self, session: Session, class_: TaskClass, criteria: Criteria) -> None:
        self._session = session
        self.nodes = session.nodes
        self.class_ = class_
        self.criteria = criteria
        self.open = criteria.open  # nothing lasting speaks against the node
        counts = not class_.best_effort and class_.share is None
        self._checks = criteria.checks if counts else criteria.node_filters
        self._on_resources = self._counted(criteria.limits if counts else ())
        # Filled by the first look, and by the first one while something is being released.
        self.slots: Amounts = _NONE  # on what is idle now
        self.later: Amounts = _NONE  # on what is idle once everything under way is released
        self._room = -1  # the sum of `later`, filled on first use
        self._worth: Scores | None = None  # not a number where it is not known, or not any more
        self._seen = self._scored = -1
        self._flowing = False

    def _counted(self, limits: tuple[Limit, ...]) -> Slots:
        request = self.class_.request
        asked = request.nonzero()[0]
        owed = [d for d in owed_dimensions(self._session, self.class_) if not request[d]]
        nodes = self.nodes
        open_ = self.open.view(np.uint8)
        owed_rows = np.array(owed, dtype=np.intp)
        return Slots(nodes.allocatable, nodes.books, asked, request[asked], owed_rows, limits, open_)

    def refresh(self) -> None:
        """Catch up with the nodes that changed, as far as room goes; scores follow when they are read."""
        session, now = self._session, len(self._session.changes)
        if self._seen < 0 or session.flowing != self._flowing:
            self._flowing = session.flowing
            self.slots, self.later = self._look(EVERY_NODE)
            self._room = -1
        elif self._seen < now:
            rows = session.changes.since(self._seen)
            self.slots[rows], self.later[rows] = self._look(rows)
            self._room = -1
        self._seen = now

    def exhausted(self, rows: NodeRows) -> None:
        """The last change was that tasks of the class took all places on these nodes: there is no need to look."""
        self.slots[rows] = self.later[rows] = self._room = 0
        self._seen = len(self._session.changes)

    @property
    def room(self) -> int:
        """For how many tasks there will be room, all nodes together."""
        if self._room < 0:
            self._room = int(self.later.sum())
        return self._room

    def worth(self, rows: NodeRows) -> Scores:
        """What the next task is worth on some nodes, without what is relative to other candidates."""
        changes, known = self._session.changes, self._worth
        if known is None:
            self._worth = known = np.full(len(self.nodes), np.nan)
            self._scored = len(changes)
            worth = known[rows] = self.value(Cells(self.nodes, self.class_, rows))
            return worth
        if self._scored < len(changes):
            known[changes.since(self._scored)] = np.nan
            self._scored = len(changes)
        worth = known.take(rows)
        missing = np.isnan(worth).nonzero()[0]
        if len(missing):
            some = rows[missing]
            worth[missing] = known[some] = self.value(Cells(self.nodes, self.class_, some))
        return worth

    def rule_out(self, cells: Cells, possible: NDArray[np.bool_]) -> None:
        """Remove from what is possible the cells that the filters which look at one node refuse."""
        for one in self.criteria.node_filters:
            possible &= one.check(self.class_, cells) == FITS

    @property
    def checked(self) -> bool:
        """Whether some filters have a say that slots do not tell."""
        return bool(self._checks)

    def check(self, cells: Cells, possible: NDArray[np.bool_]) -> None:
        """As `rule_out`, where it is known that there is a slot for the task."""
        for one in self._checks:
            possible &= one.check(self.class_, cells) == FITS

    def fits_all(self, cells: Cells) -> bool:
        """The same in one word, for all of the cells."""
        return all((one.check(self.class_, cells) == FITS).all() for one in self.criteria.node_filters)

    def value(self, cells: Cells) -> Scores:
        """What cells are worth, without what is relative to other candidates."""
        return worth_of(self.criteria, cells)

    def _look(self, rows: NodeRows | slice) -> tuple[Amounts, Amounts]:
        """How many more tasks some nodes take now, and later; the same thing while nothing is being released."""
        placing = self._session.rules.placing
        if self.class_.best_effort and not placing.owed_gpus_count:
            slots, later = self._places(rows)
        else:
            slots, later = self._on_resources.count(None if isinstance(rows, slice) else rows, self._flowing)
            if self.class_.best_effort:
                # It does not wait for what it hardly asks for, but for a place.
                needs_place = placing.pods_without_requests_need_places
                slots = np.minimum(later, self._places(rows)[0]) if needs_place else later
        if self.class_.share is not None:
            slots, later = self._shared(rows, slots, later)
        if not self._checks and not self.class_.best_effort:
            return slots, later
        possible = self.open[rows]
        cells = Cells(self.nodes, self.class_, rows)
        for one in self._checks:
            possible = possible & (one.check(self.class_, cells) == FITS)
        slots = slots * possible
        return slots, later * possible if self._flowing else slots

    def _shared(self, rows: NodeRows | slice, slots: Amounts, later: Amounts) -> tuple[Amounts, Amounts]:
        """A task that shares devices is placed by itself: it fits once, or not at all."""
        gpus, nodes = self._session.gpus, self.nodes
        if gpus.dimension is None:
            return slots * 0, later * 0
        some = np.arange(len(nodes))[rows] if isinstance(rows, slice) else rows
        idle = nodes.allocatable[gpus.dimension, some] - nodes.used[gpus.dimension, some]
        future = idle + nodes.releasing[gpus.dimension, some] - nodes.pipelined[gpus.dimension, some]
        fits_later = gpus.fits(self.class_, some, future)
        fits_now = gpus.fits(self.class_, some, idle) & fits_later
        return np.minimum(slots, fits_now), np.minimum(later, fits_later)

    def _places(self, rows: NodeRows | slice) -> tuple[Amounts, Amounts]:
        """For tasks that ask for nothing: the places for pods that are left, where these count."""
        nodes = self.nodes
        if not self._session.rules.placing.pods_without_requests_need_places:
            unlimited = np.full(len(self.open[rows]), _UNLIMITED, dtype=np.int64)
            return unlimited, unlimited
        now: Amounts = np.maximum(nodes.allocatable[PODS, rows] - nodes.used[PODS, rows], 0)
        if not self._flowing:
            return now, now
        later = nodes.allocatable[PODS, rows] - nodes.used[PODS, rows] + nodes.releasing[PODS, rows]
        later = np.maximum(later - nodes.pipelined[PODS, rows], 0)
        return np.minimum(now, later), later


def owed_dimensions(session: Session, class_: TaskClass) -> tuple[int, ...]:
    """A node overcommitted in one of these fits no task of the class, not even if it requests none of it."""
    gpu = session.gpus.dimension
    devices = gpu is not None and session.rules.placing.owed_gpus_count and class_.share is None
    return (CPU, MEMORY, gpu) if devices and gpu is not None else (CPU, MEMORY)


def node_worth(criteria: Criteria, class_: TaskClass) -> NodeWorth:
    """What nodes themselves are worth for a class, where all scores are compiled."""
    each = tuple([of_node(class_) for of_node in criteria.compiled or ()])
    known = criteria.worths.get(each)
    if known is None:
        known = criteria.worths[each] = NodeWorth(criteria.fixed, each, criteria.weights)
    return known


def worth_of(criteria: Criteria, cells: Cells) -> Scores:
    """What nodes themselves are worth."""
    if criteria.compiled is not None:
        return node_worth(criteria, cells.class_).over(cells)
    value: Scores = criteria.fixed[cells.rows]
    for scorer in criteria.node_scorers:
        raw = scorer.raw(cells.class_, cells)
        value = value + (raw if scorer.weight == 1 else scorer.weight * raw)
    return value
