from maniple.framework.criteria import Cells, Scores

class NodeScore:
    def over(self, cells: Cells) -> Scores: ...

class NodeWorth:
    def __init__(
        self, fixed: Scores | None, scores: tuple[NodeScore, ...], weights: tuple[float, ...]
    ) -> None: ...
    def over(self, cells: Cells) -> Scores: ...
