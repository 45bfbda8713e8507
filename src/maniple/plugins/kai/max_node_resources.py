"""Whether a pod requests more of a resource than any node has, for KAI's `predicates`.

Nothing that is freed or evicted helps such a pod, so it is not considered on any node, and its message says
what the most is.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.devices.gpu_facts import MIG_PREFIX
from maniple.framework.reasons import POD
from maniple.framework.session import Session
from maniple.plugins.kai.queue_accounts import Quantities, readable

_STORAGE = ("ephemeral-storage", "storage")
_GIGABYTE = 10**9


class MaxNodeResources:
    """For one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pool = session.options.get("nodePoolLabelValue") or "default"
        self._most: Amounts = session.nodes.allocatable.max(axis=1, initial=0)

    def problem(self, class_: TaskClass) -> str:
        """What no node has enough of; empty if there is such a node."""
        if class_.share is None and (class_.request <= self._most).all():
            return ""
        for name, asked, most, unit in self._comparisons(class_):
            if asked > most:
                return self._text(class_, name, most, unit)
        return ""

    def _comparisons(self, class_: TaskClass) -> list[tuple[str, float, float, str]]:
        """Resource, requested amount, the most that a node has, and the unit of both as text."""
        session, request, most = self._session, class_.request, self._most
        gpu = session.gpus.dimension
        found = [
            (
                "GPU",
                _gpus(session, class_),
                most[gpu] / session.resources.scale(gpu) if gpu is not None else 0,
                "",
            ),
            ("CPU", request[CPU] / 1000, most[CPU] / 1000, "cores"),
            ("memory", request[MEMORY] / _GIGABYTE, most[MEMORY] / _GIGABYTE, "GB"),
        ]
        for dimension in np.flatnonzero(request).tolist():
            name = session.resources.names[dimension]
            # Slices are left to the nodes that have any.
            if dimension in (CPU, MEMORY, gpu) or name.startswith(MIG_PREFIX):
                continue
            scale = _GIGABYTE if name in _STORAGE else session.resources.scale(dimension)
            unit = "GB" if name in _STORAGE else ""
            found.append((name, request[dimension] / scale, most[dimension] / scale, unit))
        return found

    def _text(self, class_: TaskClass, name: str, most: float, unit: str) -> str:
        asked = Quantities(*self._session.gpus.asked(class_).tolist())
        found = f"The pod {POD} requires {asked}{self._others(class_)}. "
        if not most:
            return f"{found}No node in the {self._pool} node-pool has {name} resources"
        listed = f"{readable(most)} {unit}".rstrip()
        return (
            f"{found}Max {name} resources available in a single node in the {self._pool} node-pool "
            f"is topped at {listed}"
        )

    def _others(self, class_: TaskClass) -> str:
        """Resources besides GPUs, CPU and memory, each with its amount."""
        session = self._session
        listed = ""
        for dimension in np.flatnonzero(class_.request).tolist():
            name, amount = session.resources.names[dimension], int(class_.request[dimension])
            if dimension in (CPU, MEMORY, session.gpus.dimension):
                continue
            if name in _STORAGE:
                listed += f", {name}: {readable(amount, _GIGABYTE)} (GB)"
            else:
                prefix = "mig " if name.startswith(MIG_PREFIX) else ""
                listed += f", {prefix}{name}: {readable(amount, session.resources.scale(dimension))}"
        return listed


def _gpus(session: Session, class_: TaskClass) -> float:
    """Devices that a pod needs for certain; what part of a device an amount of memory is depends on the node."""
    share, gpu = class_.share, session.gpus.dimension
    parts = share.portion * share.devices / 100 if share is not None else 0.0
    return parts + (int(class_.request[gpu]) / session.resources.scale(gpu) if gpu is not None else 0.0)
