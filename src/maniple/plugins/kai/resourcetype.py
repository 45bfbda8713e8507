"""resourcetype: ten points for a node without GPUs if a task requests none."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.kai.bands import RESOURCE_TYPE
from maniple.plugins.kai.gpu_requests import requests_gpu
from maniple.plugins.settings import takes_none


class ResourceType:
    """No arguments."""

    name = "resourcetype"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def scorers(self) -> list[Scorer]:
        return [Scorer(self.name, RESOURCE_TYPE, Dependence.STATIC, self._raw, applies=self._applies)]

    def _applies(self, class_: TaskClass) -> bool:
        return not requests_gpu(self._session, class_)

    def _raw(self, _: TaskClass, cells: Cells) -> Scores:
        without: Scores = self._session.gpus.cpu_only[cells.rows].astype(np.float64)
        return without
