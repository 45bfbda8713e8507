"""Whether a node has a slot for one more pod, and for the reservation pod of a shared GPU, for `predicates`.

A task that opens a GPU for sharing adds another pod, the reservation that holds the device: it needs two
slots. One that joins a shared GPU needs only its own. Reservations for GPUs opened in this session do not
exist yet; the other pods leave room for them. With strict rules they do not, and a task that joins a shared
GPU needs two slots as well, unless the GPU's name is a number: the original takes every other name for that
of a GPU yet to be opened.
"""

import re

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS, Amounts
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session
from maniple.placement.shares import WHOLE, devices_in_order
from maniple.plugins.feasibility.pod_count import FULL, pods_detail

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class PodSlots:
    """The filter, for one session.

    If no task shares GPUs, tasks with requests have their slot counted as a resource.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._joining_takes_two = session.rules.devices.joining_takes_two_places
        self._full = session.reasons.number(FULL)
        # Reservations only exist where tasks share GPUs.
        shared = any(class_.share is not None for class_ in session.classes)
        self._for_all = shared and session.rules.devices.reservations_have_places

    def filter(self) -> Filter:
        return Filter(
            "PodSlots",
            Dependence.NODE,
            self._check,
            lambda class_: self._for_all or class_.best_effort or class_.share is not None,
            by_amounts=True,
            counts_pods=True,
            detail=lambda _, node: pods_detail(self._session, node),
        )

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        free = _free(cells)
        if self._for_all:
            free = free - self._session.gpus.unreserved[cells.rows]
        short = free < 1
        if class_.share is not None:
            short = self._lack_reservation(class_, cells, free)
        return np.where(short, self._full, FITS).astype(np.int16)

    def _lack_reservation(
        self, class_: TaskClass, cells: Cells, free: Amounts
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        short = free < 2
        rows = np.broadcast_to(cells.node_rows(), short.shape)
        for place in zip(*np.nonzero(short & (free >= 1)), strict=True):
            short[place] = self._opens_a_device(class_, int(rows[place]))
        return short

    def _opens_a_device(self, class_: TaskClass, node: int) -> bool:
        devices = devices_in_order(self._session, class_, node)
        if devices is None or WHOLE in devices:
            return True
        return self._joining_takes_two and not all(_NUMBER.fullmatch(device) for device in devices)


def _free(cells: Cells) -> Amounts:
    nodes, rows = cells.nodes, cells.rows
    waiting: Amounts = nodes.releasing[PODS][rows] - nodes.pipelined[PODS][rows]
    return cells.allocatable(PODS) - cells.used(PODS) + waiting
