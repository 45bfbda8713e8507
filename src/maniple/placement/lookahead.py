"""Nodes for the next tasks of a class, decided before they are asked for, and for how long they hold.

Kept by `engine.py`. Tasks of other classes that are placed meanwhile change some nodes. What was foreseen on
the other nodes still holds, up to the task for which one of the changed nodes is better now. Nodes for tasks of
several classes (`Foreseen`) hold while no other node changes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.changes import ChangeLog
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import NodeRows, Scores
from maniple.framework.points import TaskRows
from maniple.placement.column import ClassColumn

Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Lookahead:
    """The first `taken` of the nodes are in use already."""

    column: ClassColumn | None  # None for tasks of several classes
    nodes: NodeRows
    waits: Mask  # beside each node: on resources that are being released
    stamp: int  # the number of changes when this was true
    turns: Scores | None  # beside each node: what it was chosen by. None where more than single nodes decides
    taken: int = 0

    def __len__(self) -> int:
        return len(self.nodes) - self.taken

    def catch_up(self, changes: ChangeLog, slots: Amounts) -> bool:
        """Drop what does not hold any more.

        False when nothing is left or it cannot be decided; nothing is dropped then. `slots` is how many tasks
        fit on each node now. Of two nodes with equal scores the first by row is the better one.
        """
        if self.stamp == len(changes):
            return True
        if self.turns is None or self.column is None:
            return False
        nodes, turns = self.nodes[self.taken :], self.turns[self.taken :]
        changed = changes.since(self.stamp)
        kept = changes.spared(nodes, self.stamp)
        rivals = changed[slots[changed] > 0]
        if len(rivals):
            worth = self.column.worth(rivals)
            best = worth.max()
            kept &= (turns > best) | ((turns == best) & (nodes < rivals[worth == best].min()))
        if not kept.any():
            return False
        if not kept.all():
            self.nodes = np.concatenate([self.nodes[: self.taken], nodes[kept]])
            self.waits = np.concatenate([self.waits[: self.taken], self.waits[self.taken :][kept]])
            self.turns = np.concatenate([self.turns[: self.taken], turns[kept]])
        self.stamp = len(changes)
        return True


@dataclass(slots=True, eq=False)
class Proposal:
    """Nodes for the next tasks of a class, and which tasks wait there for resources that are being released."""

    source: Lookahead
    nodes: NodeRows
    waits: Mask

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(slots=True, eq=False)
class Foreseen:
    """Nodes that were decided together for consecutive tasks of several classes."""

    rows: TaskRows  # these tasks, and maybe more that follow
    ahead: Lookahead
    left: Mask  # by task: the nodes that do not refuse it (`mixed.MixedFill`)

    def next(self, row: int, changes: int) -> Proposal | None:
        """The node of a task, if it is the next one and nothing but the tasks before it has changed a node."""
        ahead, place = self.ahead, self.ahead.taken
        if not len(ahead) or ahead.stamp != changes or self.rows[place] != row:
            return None
        return Proposal(ahead, ahead.nodes[place : place + 1], ahead.waits[place : place + 1])
