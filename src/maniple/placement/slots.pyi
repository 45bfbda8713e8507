import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Limit, NodeRows

class Slots:
    def __init__(
        self,
        allocatable: Amounts,
        books: Amounts,
        asked: NodeRows,
        amounts: Amounts,
        owed: NodeRows,
        limits: tuple[Limit, ...],
        open_: NDArray[np.uint8],
    ) -> None: ...
    def count(self, rows: NodeRows | None, flowing: bool) -> tuple[Amounts, Amounts]: ...
