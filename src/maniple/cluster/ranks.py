"""The order of tasks by their unique ids, kept between cycles. Called by `Cluster`; read by snapshots."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.tables import TaskTable

_Key = tuple[str, str, str, int]  # unique id, name and key of the pod, and its row
# Of so many changes, sorting everything is faster than moving them one by one.
_FEW = 256


class TaskRanks:
    """The place of every task row in the order of unique ids, as of the last `renew`."""

    def __init__(self) -> None:
        self.places: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._order: list[_Key] = []
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # in that order
        self._known: dict[int, _Key] = {}
        self._changed: set[int] = set()

    def note(self, row: int) -> None:
        """A task came to this row, or left it."""
        self._changed.add(row)

    def renew(self, tasks: TaskTable) -> None:
        """Put what was noted in its place."""
        changed = [row for row in self._changed if self._known.get(row) != _key(tasks, row)]
        self._changed.clear()
        if not changed and len(self.places) == len(tasks):
            return
        if len(changed) <= _FEW:
            self._move(changed, tasks)
        else:
            self._sort(changed, tasks)
        self.places = np.zeros(len(tasks), dtype=np.int64)
        self.places[self._rows] = np.arange(len(self._rows))

    def _move(self, changed: list[int], tasks: TaskTable) -> None:
        order = self._order
        gone = [key for row in changed if (key := self._known.pop(row, None)) is not None]
        places = sorted(bisect_left(order, key) for key in gone)
        for place in reversed(places):
            del order[place]
        self._rows = np.delete(self._rows, places)
        new = sorted(key for row in changed if (key := _key(tasks, row)) is not None)
        places = [bisect_left(order, key) for key in new]
        self._rows = np.insert(self._rows, places, [row for *_, row in new])
        for place, key in zip(reversed(places), reversed(new), strict=True):
            order.insert(place, key)
            self._known[key[-1]] = key

    def _sort(self, changed: list[int], tasks: TaskTable) -> None:
        for row in changed:
            self._known.pop(row, None)
            if (key := _key(tasks, row)) is not None:
                self._known[row] = key
        self._order = sorted(self._known.values())
        self._rows = np.array([row for *_, row in self._order], dtype=np.int64)


def _key(tasks: TaskTable, row: int) -> _Key | None:
    pod = tasks.pods.get(row)
    return None if pod is None else (pod.metadata.uid, pod.metadata.name, tasks.keys[row], row)
