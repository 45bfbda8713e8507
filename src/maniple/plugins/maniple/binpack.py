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
from maniple.framework.criteria import Cells, Scorer
from maniple.framework.devices.gpu_facts import GPU, UNIT
from maniple.framework.session import Session
from maniple.plugins.score import binpack
from maniple.plugins.score.binpack import BinpackArguments, Packing, requested


class Binpack:
    name = binpack.Binpack.name

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._gpus = session.gpus
        settings = BinpackArguments.read(session, arguments)
        self._packing = Packing(session, settings, self._in_use, self._counted)
        weight = settings.resources.get(GPU)
        if weight is not None:
            for dimension in np.flatnonzero(self._gpus.units).tolist():
                self._packing.weights.setdefault(dimension, weight)

    def scorers(self) -> list[Scorer]:
        return self._packing.scorers()

    def _in_use(self, cells: Cells, dimension: int) -> Amounts:
        used = cells.requested(dimension)
        if dimension == self._gpus.dimension:
            used = used + UNIT * self._gpus.shared[cells.rows]
        return used

    def _counted(self, class_: TaskClass) -> list[int]:
        gpu = self._gpus.dimension
        return requested(class_) + ([gpu] if class_.share is not None and gpu is not None else [])


__all__ = ["Binpack"]
