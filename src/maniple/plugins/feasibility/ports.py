"""NodePorts: two pods on a node do not share a host port.

Ports conflict if number and protocol are equal and the host addresses are equal or one of them is 0.0.0.0
(which is also the meaning of an empty address). Init containers count only if they are sidecars.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.plugins.feasibility.placed import Placements, Weights, classes_in_use

TAKEN = "node(s) didn't have free ports for the requested pod ports"
_EVERY_ADDRESS = "0.0.0.0"

HostPort = tuple[str, str, int]  # address, protocol, number


class Ports:
    """The filter, for one session."""

    def __init__(self, session: Session, placements: Placements) -> None:
        self._session = session
        self._placements = placements
        self._taken = session.reasons.number(TAKEN)

    def filter(self) -> Filter:
        return Filter("NodePorts", Dependence.NODE, self._check, _uses_ports)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        # A pod conflicts with a copy of itself.
        clash = np.asarray(cells.extra) > 0
        for wanted in host_ports(class_.spec.pod):
            column = self._placements.column(("port", wanted), partial(self._users, wanted))
            clash = clash | (column.amounts[cells.rows] > 0)
        return np.where(clash, self._taken, FITS).astype(np.int16)

    def _users(self, wanted: HostPort) -> Weights:
        """Classes that use a port which conflicts with the wanted one."""
        return {
            class_.number: 1
            for class_ in classes_in_use(self._session)
            if any(_clash(wanted, used) for used in host_ports(class_.spec.pod))
        }


def host_ports(pod: Pod) -> Sequence[HostPort]:
    containers = (
        *(c for c in pod.spec.init_containers if c.restart_policy == "Always"),
        *pod.spec.containers,
    )
    return [
        (port.host_ip or _EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    ]


def _uses_ports(class_: TaskClass) -> bool:
    return bool(host_ports(class_.spec.pod))


def _clash(one: HostPort, other: HostPort) -> bool:
    same_address = one[0] == other[0] or _EVERY_ADDRESS in (one[0], other[0])
    return same_address and one[1:] == other[1:]
