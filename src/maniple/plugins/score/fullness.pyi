from maniple.cluster.resources import Amounts
from maniple.framework.node_scores import NodeScore

class Allocated(NodeScore):
    def __init__(self, capacity: Amounts, first: int, *, most: bool) -> None: ...

class Balanced(NodeScore):
    def __init__(self, capacity: Amounts, rows: list[int]) -> None: ...
