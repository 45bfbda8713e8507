"""The order of tasks by their unique ids, kept between cycles. Called by `Cluster.settle`; read by snapshots."""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.tables import TaskTable


class TaskRanks:
    """The place of every task row in the order of unique ids, as of the last `renew`."""

    def __init__(self) -> None:
        self.places: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._order: list[int] = []

    def renew(self, tasks: TaskTable) -> None:
        # The list is nearly sorted after a few additions, which is the case that Python's sort is linear in.
        pods, keys, known = tasks.pods, tasks.keys, set(self._order)
        order = [row for row in self._order if row in pods]
        order += [row for row in pods if row not in known]
        order.sort(key=lambda row: (pods[row].metadata.uid, pods[row].metadata.name, keys[row]))
        self._order = order
        self.places = np.zeros(len(tasks), dtype=np.int64)
        self.places[order] = np.arange(len(order))
