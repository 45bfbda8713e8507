"""nodeavailability: a hundred points for a node where the task fits into what is idle now.

Elsewhere it would have to wait for what is being released; so it would on a node whose CPU, memory or GPUs
are overcommitted, whatever it requests. A task that requests next to nothing and mounts no claim fits
anywhere.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.node_scores import NodeScore, Room
from maniple.framework.session import Session
from maniple.plugins.feasibility.volume_claims import uses_claims
from maniple.plugins.kai.bands import AVAILABILITY
from maniple.plugins.kai.node_formulas import Constant, FitsNow
from maniple.plugins.kai.storage_room import StorageRoom
from maniple.plugins.settings import takes_none


class NodeAvailability:
    """No arguments."""

    name = "nodeavailability"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        gpu, allocatable = session.gpus.dimension, session.nodes.allocatable
        of_sharing = np.array([CPU, MEMORY])  # not GPUs for tasks that request parts of them
        owed = of_sharing if gpu is None else np.append(of_sharing, gpu)
        self._fits_now = [FitsNow(Room(allocatable, some, ())) for some in (owed, of_sharing)]
        self._everywhere = Constant(1.0)

    def scorers(self) -> list[Scorer]:
        room = StorageRoom.shared(self._session)
        if room is None:
            return [self._of_nodes(lambda _: True), self._of_sharing(lambda _: True)]

        def raw(class_: TaskClass, cells: Cells) -> Scores:
            fits = self._raw_of_sharing if class_.share is not None else self._raw
            return fits(class_, cells) * ~room.waits(class_, cells)

        def others(class_: TaskClass) -> bool:
            return not room.applies(class_)

        storage = Scorer(
            f"{self.name} of storage", AVAILABILITY, Dependence.CLUSTER, raw, applies=room.applies
        )
        return [self._of_nodes(others), self._of_sharing(others), storage]

    def _of_nodes(self, concerns: Callable[[TaskClass], bool]) -> Scorer:
        def applies(class_: TaskClass) -> bool:
            return class_.share is None and _can_lack(class_) and concerns(class_)

        return Scorer.compiled(self.name, AVAILABILITY, self._of_node, applies=applies)

    def _of_sharing(self, concerns: Callable[[TaskClass], bool]) -> Scorer:
        """Of tasks that request parts of devices: which these are is not in a node's books."""

        def applies(class_: TaskClass) -> bool:
            return class_.share is not None and _can_lack(class_) and concerns(class_)

        return Scorer(self.name, AVAILABILITY, Dependence.NODE, self._raw_of_sharing, applies=applies)

    def _of_node(self, class_: TaskClass) -> NodeScore:
        # While nothing is being released, a task that fits at all fits now. A node where that changes is
        # checked again.
        if not self._session.flowing:
            return self._everywhere
        return self._fits_now[class_.share is not None]

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        return self._of_node(class_).over(cells)

    def _raw_of_sharing(self, class_: TaskClass, cells: Cells) -> Scores:
        fits = self._raw(class_, cells)
        return fits * self._has_devices(class_, cells) if self._session.flowing else fits

    def _has_devices(self, class_: TaskClass, cells: Cells) -> NDArray[np.bool_]:
        """Enough idle GPUs, and shared ones with enough left, for the requested parts."""
        gpus, nodes, rows = self._session.gpus, self._session.nodes, cells.node_rows()
        flat = rows.ravel()
        if gpus.dimension is None:
            return np.zeros(rows.shape, dtype=np.bool_)
        idle = nodes.allocatable[gpus.dimension][flat] - nodes.used[gpus.dimension][flat]
        return gpus.fits(class_, flat, idle).reshape(rows.shape)


def _can_lack(class_: TaskClass) -> bool:
    return not class_.best_effort or uses_claims(class_)
