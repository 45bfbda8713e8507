"""Gang fill for tasks that differ: nodes for consecutive tasks, decided together.

Placing one by one takes the best node for each task, and then only that node changes. Where all that is asked of
nodes is compiled, the plain loop over the tasks is, too (`greedy.pyx`): it works on a copy of the nodes' books.

Called through `engine.py`, for gangs whose tasks are classes of their own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import NodeRows
from maniple.framework.node_scores import Room
from maniple.framework.session import Session
from maniple.placement.column import node_worth, owed_dimensions
from maniple.placement.criteria import Criteria
from maniple.placement.greedy import one_by_one

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

    The classes share the criteria, all of which are compiled. Where refusals last, a node that refuses one of the
    tasks is not tried for those after it.
    """
    nodes, kinds = session.nodes, {one.spec.kind: one for one in classes}
    worths = {kind: node_worth(criteria, one) for kind, one in kinds.items()}
    found, left = one_by_one(
        Room(nodes.allocatable, np.array(owed_dimensions(session, classes[0])), criteria.limits),
        nodes.books.copy(),
        np.array([one.entries.allocated for one in classes]),
        [worths[one.spec.kind] for one in classes],
        criteria.open.view(np.uint8),
        refusals_last=refusals_last,
    )
    return MixedFill(found, left)
