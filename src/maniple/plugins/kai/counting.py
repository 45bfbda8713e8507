"""How tasks count with queues: which resources, in what units.

Used by the plugins that divide a cluster among queues. The first three resources are always millicores, bytes
of memory and GPUs as quotas count them (parts of devices, slices by the number in their names); then as many
others as requested. Shares are computed from whole GPUs and whole units of the others; accounts are kept in
the smallest parts that can be requested, `units` of which make one, so that sums are exact and an undo
restores them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.framework.devices.gpu_facts import GPU as GPU_NAME
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

Amount = list[float]
Floats = NDArray[np.float64]
GPU = 2  # behind CPU and MEMORY
HUNDREDTHS = 100.0
UNITS: Floats = np.array([[1.0], [1.0], [HUNDREDTHS]])  # per millicore, byte, GPU


def in_units(amounts: Floats) -> Floats:
    """Millicores, bytes and GPUs (3 x n) in units.

    A part of a GPU is a whole number of hundredths unless it is an estimate.
    """
    units: Floats = amounts * UNITS
    # Only fractions are rounded here; rounding bytes would lose precision.
    units[GPU] = np.round(units[GPU], 6)
    return units


class Counting:
    """The resources of one session that queues divide; `others`: dimensions beyond CPU, memory and GPUs."""

    def __init__(self, session: Session, others: Sequence[int] = ()) -> None:
        self._session = session
        self.others = np.array(others, dtype=np.intp)
        self.names = ("cpu", "memory", GPU_NAME, *(session.resources.names[one] for one in others))
        scales = [float(session.resources.scale(one)) for one in others]
        self.units: Floats = np.concatenate([UNITS[:, 0], scales])[:, None]
        self.nothing: Amount = [0.0] * len(self.names)
        self._classes: Floats = np.zeros((len(self.names), 0))

    def asked(self, class_: TaskClass) -> Amount:
        """What a task counts with before its node is known."""
        known = self._classes if self._classes.size else self._of_classes()
        if class_.share is None and class_.number < known.shape[1]:
            amount: Amount = known[:, class_.number].tolist()
            return amount
        return self._with_others(class_, self._session.gpus.asked(class_))

    def accepted(self, class_: TaskClass, node: int) -> Amount:
        """What a task counts with on a node."""
        return self._with_others(class_, self._session.gpus.accepted(class_, node))

    def _with_others(self, class_: TaskClass, amounts: Floats) -> Amount:
        first: Amount = in_units(amounts[:, None])[:, 0].tolist()
        return first + class_.request[self.others].astype(np.float64).tolist() if len(self.others) else first

    def of_tasks(self, rows: TaskRows) -> Floats:
        """A column per task: as accepted if it is on a node, as requested otherwise."""
        session, gpus = self._session, self._session.gpus
        class_of = session.tasks.class_of[rows]
        amounts: Floats = self._of_classes().take(class_of, axis=1)
        for place in gpus.sharing(class_of):
            class_, node = session.classes[class_of[place]], int(session.tasks.node[rows[place]])
            amounts[:, place] = self.accepted(class_, node) if node >= 0 else self.asked(class_)
        return amounts

    def _of_classes(self) -> Floats:
        """A column per class; parts of devices, which may depend on the node, separately."""
        if self._classes.shape[1] < len(self._session.classes):
            others = self._session.class_requests.T[self.others]
            self._classes = np.concatenate([in_units(self._session.gpus.of_classes), others])
        return self._classes


__all__ = ["GPU", "UNITS", "Amount", "Counting", "Floats", "in_units"]
