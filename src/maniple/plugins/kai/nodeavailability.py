"""nodeavailability: a hundred points for a node where the task fits into what is idle now.

Elsewhere it would have to wait for what is being released; so it would on a node whose CPU, memory or GPUs
are overcommitted, whatever it requests. A task that requests next to nothing and mounts no claim fits
anywhere.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.criteria import Cells, Dependence, NodeRows, Scorer, Scores
from maniple.framework.session import Session
from maniple.plugins.feasibility.volume_claims import uses_claims
from maniple.plugins.kai.bands import AVAILABILITY
from maniple.plugins.kai.storage_room import StorageRoom
from maniple.plugins.settings import takes_none


class NodeAvailability:
    """No arguments."""

    name = "nodeavailability"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def scorers(self) -> list[Scorer]:
        room = StorageRoom.shared(self._session)
        if room is None:
            return [Scorer(self.name, AVAILABILITY, Dependence.NODE, self._raw, applies=_can_lack)]

        def raw(class_: TaskClass, cells: Cells) -> Scores:
            return self._raw(class_, cells) * ~room.waits(class_, cells)

        def others(class_: TaskClass) -> bool:
            return _can_lack(class_) and not room.applies(class_)

        return [
            Scorer(self.name, AVAILABILITY, Dependence.NODE, self._raw, applies=others),
            Scorer(f"{self.name} of storage", AVAILABILITY, Dependence.CLUSTER, raw, applies=room.applies),
        ]

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        # While nothing is being released, a task that fits at all fits now. A node where that changes is
        # checked again.
        if not self._session.flowing:
            return np.array(1.0)
        nodes, rows = self._session.nodes, cells.node_rows()
        flat, asked = rows.ravel(), class_.request.nonzero()[0]
        idle = nodes.allocatable[asked[:, None], flat] - nodes.used[asked[:, None], flat]
        room = (idle // class_.request[asked][:, None]).min(axis=0).reshape(rows.shape)
        fits: NDArray[np.bool_] = (cells.extra < room) & ~self._overcommitted(class_, flat).reshape(
            rows.shape
        )
        if class_.share is not None:
            fits = fits & self._has_devices(class_, cells)
        return fits.astype(np.float64)

    def _overcommitted(self, class_: TaskClass, rows: NodeRows) -> NDArray[np.bool_]:
        """Nodes that are overcommitted in something that the task does not request."""
        nodes, gpu = self._session.nodes, self._session.gpus.dimension
        counted = [CPU, MEMORY] if gpu is None or class_.share is not None else [CPU, MEMORY, gpu]
        unasked = np.array([one for one in counted if class_.request[one] <= 0], dtype=np.intp)[:, None]
        lacking = nodes.allocatable[unasked, rows] < nodes.used[unasked, rows]
        owes: NDArray[np.bool_] = np.logical_or.reduce(lacking, axis=0)
        return owes

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
