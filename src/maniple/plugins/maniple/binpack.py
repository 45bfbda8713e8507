"""binpack: the fuller a node would be, the better, without what this cycle evicts.

Formula and arguments are those of `plugins/score/binpack.py`. There, what is being released counts as used
until it is gone. A pod that is evicted to move closer to others would then find the node that it leaves as
full as the others, and stay. Shared GPUs count as in use, for tasks that request parts as well; a weight for
GPUs applies to those of every vendor and to slices.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells
from maniple.framework.gpu_facts import GPU, UNIT
from maniple.framework.session import Session
from maniple.plugins.score import binpack


class Binpack(binpack.Binpack):
    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        super().__init__(session, arguments)
        self._gpus = session.gpus
        weight = self._arguments.resources.get(GPU)
        if weight is not None:
            for dimension in np.flatnonzero(self._gpus.units).tolist():
                self._weights.setdefault(dimension, weight)

    def _counted(self, cells: Cells, dimension: int) -> Amounts:
        used = cells.requested(dimension)
        if dimension == self._gpus.dimension:
            used = used + UNIT * self._gpus.shared[cells.rows]
        return used

    def _asked(self, class_: TaskClass) -> list[int]:
        gpu = self._gpus.dimension
        return super()._asked(class_) + ([gpu] if class_.share is not None and gpu is not None else [])


__all__ = ["Binpack"]
