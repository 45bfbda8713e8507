from maniple.cluster.resources import Amounts
from maniple.framework.node_scores import NodeScore, Room

class Density(NodeScore):
    def __init__(self, allocatable: Amounts, dimension: int, highest: float, largest: int) -> None: ...

class PartLeft(NodeScore):
    def __init__(self, allocatable: Amounts, dimension: int, whole: Amounts) -> None: ...

class Constant(NodeScore):
    def __init__(self, value: float) -> None: ...

class FitsNow(NodeScore):
    def __init__(self, room: Room) -> None: ...
