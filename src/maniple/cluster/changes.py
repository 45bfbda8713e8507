"""The nodes that changed, and when: a number for each change, and on each node the number of its last one.

Kept by the session; whatever is worked out per node remembers the number up to which it has looked and asks
for the nodes that changed since. Undoing a change is a change too, so numbers only grow. A question costs one
look at all nodes, however long the session lasts: trials and their undoing leave nothing to go through.
"""

import numpy as np
from numpy.typing import NDArray

NodeRows = NDArray[np.intp]


class ChangeLog:
    """Its length is the number of changes so far."""

    def __init__(self, nodes: int) -> None:
        self._count = 0
        self._last: NodeRows = np.zeros(0, dtype=np.intp)
        self._stamps = np.zeros(nodes, dtype=np.int64)  # by node, the number of its last change

    def __len__(self) -> int:
        return self._count

    def append(self, rows: NodeRows) -> None:
        """These nodes changed; each of them is named once."""
        self._count += 1
        self._last = rows
        self._stamps[rows] = self._count

    def since(self, count: int) -> NodeRows:
        """The nodes that changed after so many changes, each of them once."""
        if count == self._count - 1:
            return self._last
        return (self._stamps > count).nonzero()[0]

    def spared(self, rows: NodeRows, count: int | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these nodes did not change after so many changes, for all of them or for each."""
        spared: NDArray[np.bool_] = self._stamps[rows] <= count
        return spared


__all__ = ["ChangeLog"]
