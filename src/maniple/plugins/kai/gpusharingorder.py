"""gpusharingorder: a thousand points for a node where a shared GPU has enough left for the task.

With strict rules also for tasks that request no part of a GPU: any shared GPU has enough for them, so CPU
tasks are drawn to nodes with shared GPUs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.kai.bands import GPU_SHARING
from maniple.plugins.kai.gpu_requests import requests_device_plugin
from maniple.plugins.settings import takes_none


class GpuSharingOrder:
    """No arguments."""

    name = "gpusharingorder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._gpus = session.gpus

    def scorers(self) -> list[Scorer]:
        return [Scorer(self.name, GPU_SHARING, Dependence.NODE, self._raw, applies=self._applies)]

    def _applies(self, class_: TaskClass) -> bool:
        # A whole GPU is never left of a shared one.
        return class_.share is not None or (
            self._session.rules.devices.sharing_attracts_all
            and not requests_device_plugin(self._session, class_)
        )

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        rows = cells.node_rows()
        if class_.share is not None:
            return self._gpus.has_group(class_, rows).astype(np.float64)
        found = [self._has_group(node) for node in rows.ravel().tolist()]
        return np.array(found, dtype=np.float64).reshape(rows.shape)

    def _has_group(self, node: int) -> bool:
        return any(
            group.used != 0
            and group.allocated != group.releasing
            and group.allocated - group.releasing <= self._gpus.memory[node]
            for group in self._gpus.groups(node).values()
        )
