"""Filters over a growing scenario: what can be decided without trying it.

Used by the stepwise solver. Each filter gets every victim once and keeps sums. As in KAI, the GPUs of the
pending tasks are matched with nodes, and those of groups with domains, the largest first and each to the
largest that has room: this can reject a scenario that would have worked.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.actions.searching.feasible import Mask
from maniple.framework.devices.gpu_facts import UNIT
from maniple.framework.groups.tree import Group
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.placement.engine import Placement

Devices = NDArray[np.float64]


class ScenarioFilters:
    """All filters for one part of a job."""

    def __init__(
        self, session: Session, placement: Placement, job: int, rows: TaskRows, feasible: Mask
    ) -> None:
        self._session = session
        self._reachable = feasible.copy()
        self._open = [
            placement.column(session.classes[number]).open
            for number in np.unique(session.tasks.class_of[rows]).tolist()
        ]
        self._wanted = sorted(_devices_of(session, rows).tolist(), reverse=True)
        books = session.gpus
        self._free: Devices = books.idle_sum() + books.releasing_sum()
        self._domains = _domains(session, session.groups.root(job))

    def add(self, rows: TaskRows) -> None:
        """These tasks may go as well."""
        where = self._session.tasks.node[rows]
        self._reachable[where] = True
        np.add.at(self._free, where, _devices_of(self._session, rows))

    def passes(self) -> bool:
        if not all((self._reachable & open_).any() for open_ in self._open):
            return False
        for values, wanted in self._domains:
            known = values >= 0
            sums: Devices = np.bincount(values[known], weights=self._free[known]).astype(np.float64)
            if not _match(wanted, sums):
                return False
        return _match(self._wanted, self._free, most=len(self._wanted))


def _devices_of(session: Session, rows: TaskRows) -> Devices:
    """GPUs of tasks, whole and parts, without slices; of memory only once it is on a node."""
    books, tasks = session.gpus, session.tasks
    devices: Devices = session.requests(rows)[books.devices].sum(axis=0) / UNIT
    for place, (row, number) in enumerate(zip(rows.tolist(), tasks.class_of[rows].tolist(), strict=True)):
        class_ = session.classes[number]
        if class_.share is not None:
            node = int(tasks.node[row])
            part = books.portion_on(class_, node) if node >= 0 else class_.share.portion / 100
            devices[place] += part * class_.share.devices
    return devices


def _match(wanted: list[float], free: Devices, most: int | None = None) -> bool:
    """Each to the first that has room, the largest first."""
    sizes = sorted(free.tolist(), reverse=True)[:most]
    left = list(sizes)
    for amount in wanted:
        if amount == 0:
            return True
        for place, size in enumerate(sizes):
            if size < amount:
                return False
            if left[place] >= amount:
                left[place] -= amount
                break
        else:
            return False
    return True


def _domains(session: Session, root: Group) -> list[tuple[NDArray[np.int64], list[float]]]:
    """For each level that groups must stay inside a domain of: the nodes' domains as numbers, and the groups' GPUs."""
    wanted: dict[str, list[float]] = {}
    for group in _constrained(root):
        assert group.wish is not None
        rows = [one.rows for one in group.all_pod_sets()]
        total = float(sum(_devices_of(session, some).sum() for some in rows))
        wanted.setdefault(group.wish.required, []).append(total)
    found = []
    for level, amounts in wanted.items():
        labels = [node.metadata.labels.get(level, "") for node in session.nodes.facts.objects]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(filter(None, labels)))}
        values = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)
        found.append((values, sorted(amounts, reverse=True)))
    return found


def _constrained(group: Group) -> list[Group]:
    own = [group] if group.wish is not None and group.wish.required else []
    return own + [one for inner in group.groups for one in _constrained(inner)]


__all__ = ["ScenarioFilters"]
