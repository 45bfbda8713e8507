"""gpuspread: of a node's GPUs, an unused one first, then the least used."""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.classes import TaskClass
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class GpuSpread:
    """No arguments."""

    name = "gpuspread"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._gpus = session.gpus

    def gpu_order(self, _: TaskClass, node: int, group: str) -> float:
        return 1.0 - self._gpus.portion_used(node, group) if group else 1.0
