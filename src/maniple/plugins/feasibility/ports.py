"""NodePorts: two pods on a node do not share a host port.

Ports conflict if number and protocol are equal and the host addresses are equal or one of them is 0.0.0.0
(which is also the meaning of an empty address). Init containers count only if they are sidecars.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, partial

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Detail, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.plugins.feasibility.placed import Placements, Weights, classes_in_use, present_rows

TAKEN = "node(s) didn't have free ports for the requested pod ports"
_EVERY_ADDRESS = "0.0.0.0"

Port = tuple[str, int]  # protocol and number
HostPort = tuple[str, Port]  # and an address before them


class Ports:
    """The filter, for one session."""

    def __init__(self, session: Session, placements: Placements) -> None:
        self._session = session
        self._placements = placements
        self._taken = session.reasons.number(TAKEN)
        # By length of the change log and class: on each node a pod with one of its ports, for `explain`
        self._holders: dict[tuple[int, int], dict[int, int]] = {}

    def filter(self) -> Filter:
        return Filter("NodePorts", Dependence.NODE, self._check, _uses_ports, detail=self._detail)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        column = self._placements.column(("ports", class_.number), partial(self._users, class_))
        # A pod conflicts with a copy of itself.
        clash = (np.asarray(cells.extra) > 0) | (column.amounts[cells.rows] > 0)
        return np.where(clash, self._taken, FITS).astype(np.int16)

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """Which ports, and a pod on the node that has one of them."""
        ports = ", ".join(f"{number}/{protocol}" for _, (protocol, number) in host_ports(class_.spec.pod))
        session, key = self._session, (len(self._session.changes), class_.number)
        if key not in self._holders:
            rows = present_rows(session)
            rows = rows[np.isin(session.tasks.class_of[rows], list(self._users(class_)))][::-1]
            self._holders[key] = dict(zip(session.tasks.node[rows].tolist(), rows.tolist(), strict=True))
        holder = self._holders[key].get(node)
        by = session.task_key(holder) if holder is not None else ""
        return Detail("HostPort", f"host port {ports} is taken", ports, by)

    def _users(self, class_: TaskClass) -> Weights:
        """Classes that use a port which conflicts with one that this class wants."""
        found: set[int] = set()
        for address, port in host_ports(class_.spec.pod):
            users = self._users_by_port.get(port, {})
            if address == _EVERY_ADDRESS:
                found.update(*users.values())
            else:
                found.update(users.get(address, ()), users.get(_EVERY_ADDRESS, ()))
        return dict.fromkeys(sorted(found), 1)

    @cached_property
    def _users_by_port(self) -> Mapping[Port, Mapping[str, set[int]]]:
        """By protocol and number, then by address: the classes that use it."""
        users: dict[Port, dict[str, set[int]]] = {}
        for class_ in classes_in_use(self._session):
            for address, port in host_ports(class_.spec.pod):
                users.setdefault(port, {}).setdefault(address, set()).add(class_.number)
        return users


def host_ports(pod: Pod) -> Iterator[HostPort]:
    containers = (
        *(c for c in pod.spec.init_containers if c.restart_policy == "Always"),
        *pod.spec.containers,
    )
    return (
        (port.host_ip or _EVERY_ADDRESS, (port.protocol or "TCP", port.host_port))
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def _uses_ports(class_: TaskClass) -> bool:
    return any(host_ports(class_.spec.pod))
