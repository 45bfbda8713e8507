from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, Limit, NodeRows, Scores

class NodeScore:
    def over(self, cells: Cells) -> Scores: ...

class Room:
    def __init__(self, allocatable: Amounts, owed: NodeRows, limits: tuple[Limit, ...]) -> None: ...

class NodeWorth:
    def __init__(
        self, fixed: Scores | None, scores: tuple[NodeScore, ...], weights: tuple[float, ...]
    ) -> None: ...
    def over(self, cells: Cells) -> Scores: ...
