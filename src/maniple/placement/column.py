"""A class's column: for every node, how many more of its tasks fit there and what the next one is worth.

Kept current by the session's change log: a look costs as much as there are nodes that changed since the last one.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.criteria import EVERY_NODE, Cells, NodeRows, Scores
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.placement.criteria import Criteria

NOWHERE = -np.inf
_UNLIMITED = 2**31


class ClassColumn:
    """Slots and scores of one class over all nodes (rows by name)."""

    def __init__(self, session: Session, class_: TaskClass, criteria: Criteria) -> None:
        self._session = session
        self.nodes = session.nodes
        self.class_ = class_
        self.criteria = criteria
        self._asked = [(d, int(a)) for d, a in enumerate(class_.request.tolist()) if a > 0]
        self._unasked = [d for d in (CPU, MEMORY) if class_.request[d] <= 0]
        self.open = criteria.verdict == FITS  # nothing lasting speaks against the node
        size = len(session.nodes)
        self.slots: Amounts = np.zeros(size, dtype=np.int64)  # on what is idle now
        self.later: Amounts = self.slots  # on what is idle once everything under way is released
        self._worth: Scores = np.zeros(size)
        self._seen = self._scored = -1
        self._flowing = False

    def refresh(self) -> None:
        """Catch up with the nodes that changed, as far as room goes; scores follow when somebody wants them."""
        session = self._session
        if self._seen < 0 or session.flowing != self._flowing:
            self._flowing = session.flowing
            size = len(session.nodes)
            self.later = np.zeros(size, dtype=np.int64) if self._flowing else self.slots
            self._look(EVERY_NODE)
        elif self._seen < len(session.changes):
            self._look(self._changed_since(self._seen))
        self._seen = len(session.changes)

    @property
    def worth(self) -> Scores:
        """What the next task is worth on each node, without what is relative to other candidates."""
        if self._scored < len(self._session.changes):
            rows = EVERY_NODE if self._scored < 0 else self._changed_since(self._scored)
            self._worth[rows] = self.value(Cells(self.nodes, self.class_, rows))
            self._scored = len(self._session.changes)
        return self._worth

    def _changed_since(self, place: int) -> NodeRows:
        missed = self._session.changes[place:]
        return missed[0] if len(missed) == 1 else np.unique(np.concatenate(missed))

    def fits(self, cells: Cells) -> NDArray[np.bool_]:
        """What the filters that look at one node say of cells."""
        fits = np.ones(
            np.broadcast_shapes(np.shape(cells.node_rows()), np.shape(cells.extra)), dtype=np.bool_
        )
        for one in self.criteria.node_filters:
            fits &= one.check(self.class_, cells) == FITS
        return fits

    def value(self, cells: Cells) -> Scores:
        """What cells are worth, without what is relative to other candidates."""
        value: Scores = self.criteria.fixed[cells.rows]
        for scorer in self.criteria.node_scorers:
            value = value + scorer.weight * scorer.raw(self.class_, cells)
        return value

    def _look(self, rows: NodeRows | slice) -> None:
        cells = Cells(self.nodes, self.class_, rows)
        if self.class_.best_effort:
            slots = later = np.full(len(self.open[rows]), _UNLIMITED, dtype=np.int64)
        else:
            slots, later = self._slots(rows)
        possible = self.open[rows]
        for one in self.criteria.node_filters:
            possible = possible & (one.check(self.class_, cells) == FITS)
        self.slots[rows] = np.where(possible, slots, 0)
        if self._flowing:
            self.later[rows] = np.where(possible, later, 0)

    def _slots(self, rows: NodeRows | slice) -> tuple[Amounts, Amounts]:
        """How many tasks fit on idle resources, and on those that will be idle. Fitting now needs both."""
        nodes = self.nodes
        idle = nodes.allocatable[:, rows] - nodes.used[:, rows]
        now = self._whole(idle)
        if not self._flowing:
            return now, now
        later = self._whole(idle + nodes.releasing[:, rows] - nodes.pipelined[:, rows])
        return np.minimum(now, later), later

    def _whole(self, free: Amounts) -> Amounts:
        """How often the request goes into what is free."""
        (dimension, amount), *more = self._asked
        slots: Amounts = free[dimension] // amount
        for dimension, amount in more:
            np.minimum(slots, free[dimension] // amount, out=slots)
        # A node that owes cpu or memory takes nobody, not even a task that asks for none of it.
        for dimension in self._unasked:
            slots[free[dimension] < 0] = 0
        np.maximum(slots, 0, out=slots)
        return slots
