import numpy as np
from numpy.typing import NDArray

from maniple.framework.criteria import NodeRows, Scores

def best(scores: Scores, count: int) -> NodeRows: ...
def in_turn(worth: Scores, room: NodeRows, count: int) -> tuple[NodeRows, Scores, NDArray[np.bool_]]: ...
