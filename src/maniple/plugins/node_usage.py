"""What nodes really use, as measured from outside, in columns by node.

Used by the plugins about load: usage and rescheduling. Measurements come in as the option `nodeUsage`, since
the core does no I/O: {node: {"cpu": percent, "memory": percent, "at": time}}, averages over some minutes. A
measurement older than five minutes, or without a time, is not `fresh`; without a clock all with a time are.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from maniple.framework.session import Session

FRESH_FOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, eq=False)
class NodeUsage:
    """Percentages by node row; 0 where nothing was measured."""

    cpu: NDArray[np.float64]
    memory: NDArray[np.float64]
    fresh: NDArray[np.bool_]

    @classmethod
    def read(cls, session: Session) -> "NodeUsage":
        size, index = len(session.nodes), session.nodes.facts.index
        usage = cls(np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.bool_))
        for name, measured in session.options.get("nodeUsage", {}).items():
            row = index.get(name)
            if row is not None:
                usage.cpu[row] = measured.get("cpu", 0)
                usage.memory[row] = measured.get("memory", 0)
                usage.fresh[row] = _is_fresh(measured.get("at"), session.now)
        return usage


def _is_fresh(at: str | None, now: datetime | None) -> bool:
    return at is not None and (now is None or now - datetime.fromisoformat(at) <= FRESH_FOR)
