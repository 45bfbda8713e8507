import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import NodeRows, Scores
from maniple.framework.node_scores import NodeWorth, Room

class Ladder: ...

class Steps(Ladder):
    def __init__(self, worth: Scores) -> None: ...

class NodeSteps(Ladder):
    def __init__(
        self, worth: NodeWorth, nodes: NodeRows, books: Amounts, entry: Amounts, shift: Scores | None
    ) -> None: ...

def best(scores: Scores, count: int) -> NodeRows: ...
def in_turn(
    scores: Scores, ladder: Ladder, room: NodeRows, count: int
) -> tuple[NodeRows, Scores, NDArray[np.bool_]]: ...
def one_by_one(
    room: Room,
    books: Amounts,
    entries: Amounts,
    worths: list[NodeWorth],
    open_: NDArray[np.uint8],
    *,
    refusals_last: bool,
) -> tuple[NodeRows, NDArray[np.bool_]]: ...
