"""gpupack: of a node's GPUs, the most used first, an unused one last."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.classes import TaskClass
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class GpuPack:
    """No arguments."""

    name = "gpupack"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._gpus = session.gpus

    def gpu_order(self, _: TaskClass, node: int, group: str) -> float:
        return self._gpus.portion_used(node, group) if group else 0.0
