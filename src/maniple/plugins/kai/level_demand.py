"""The request of tasks that are to be placed together, and how much of it fits into domains.

Used by the topology plugin. Tasks that request the same resources are counted: how many of the largest of
them fit into each node, and so into each domain. Otherwise their total request is compared with the total
free amount.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, PODS, Amounts
from maniple.framework.devices.gpu_facts import MIG_PREFIX, UNIT
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.level_tree import Chosen, Domains, LevelTree, Ratios

_ABSENT = 1000.0  # the fill of a domain that has none of what is requested


class LevelDemand:
    """The tasks that are placed next."""

    def __init__(self, session: Session, numbers: Mapping[int, int]) -> None:
        """`numbers`: how many of each class."""
        self._session = session
        self._gpu = session.gpus.dimension
        self._classes: list[TaskClass] = [session.classes[number] for number in numbers]
        requests, counts = np.array([one.request for one in self._classes]), np.array(list(numbers.values()))
        self.count = sum(numbers.values())
        self.total: Amounts = (requests * counts[:, None]).sum(axis=0)
        self._largest: Amounts = requests.max(axis=0)
        self._used = requests > 0  # by class and resource
        portions = [_portion(one) for one in self._classes]
        self.gpus = float(self._devices_in(self.total)) / UNIT + float(np.dot(portions, counts)) / 100

    def _devices_in(self, amounts: Amounts) -> Amounts:
        """The GPUs of some amounts (resources first); none if the resource has no dimension."""
        return np.zeros_like(amounts[CPU]) if self._gpu is None else amounts[self._gpu]

    @cached_property
    def countable(self) -> bool:
        """Whether all tasks request the same resources, and equal parts of devices, if any."""
        return self.alike and len(self._parts) <= 1

    @cached_property
    def alike(self) -> bool:
        names = self._session.resources.names
        gpus = [bool(parts) for parts in map(self._part, self._classes)]
        if any(gpus) and not all(gpus):
            return False
        return all(
            self._used[:, dimension].all() or not self._used[:, dimension].any()
            for dimension, name in enumerate(names)
            if dimension not in (CPU, MEMORY, self._gpu) and not name.startswith(MIG_PREFIX)
        )

    @cached_property
    def _parts(self) -> set[int]:
        return {part for part in map(self._part, self._classes) if part}

    def _part(self, class_: TaskClass) -> int:
        """The part of each device that it requests, in hundredths; 0 for none, or if that depends on the
        node."""
        if class_.share is not None:
            return class_.share.portion
        return 100 if self._devices_in(class_.request) > 0 else 0

    def places(self, free: Amounts) -> Amounts:
        """By node, how many of the largest of the tasks fit into what is free."""
        asked = np.flatnonzero(self._largest > 0)
        shares = [one for one in self._classes if _portion(one)]
        if not shares and (asked == PODS).all():
            return np.full(free.shape[1], self.count)
        places: Amounts = (free[asked] // self._largest[asked][:, None]).min(axis=0)
        if shares:
            np.minimum(places, self._devices(shares, free), out=places)
        places[(free[CPU] < 0) | (free[MEMORY] < 0)] = 0
        return np.maximum(places, 0)

    def _devices(self, shares: list[TaskClass], free: Amounts) -> Amounts:
        """By node, how many tasks with parts of devices find enough different ones, free or shared."""
        gpus = self._session.gpus
        widest = max(shares, key=lambda one: one.share.devices if one.share is not None else 0)
        assert widest.share is not None  # that is how they were chosen
        fitting = np.array(
            [len(gpus.fitting_groups(widest, node)) for node in range(free.shape[1])], dtype=np.int64
        )
        return (self._devices_in(free) // UNIT + fitting) // widest.share.devices

    def ratios(self, free: Amounts) -> Ratios:
        """By domain (from what is free there), its fill in its scarcest resource."""
        ratios = np.zeros(free.shape[1])
        with np.errstate(divide="ignore"):
            if self.gpus > 0:
                np.maximum(ratios, self.gpus / (self._devices_in(free) / UNIT), out=ratios)
            for dimension in np.flatnonzero(self.total > 0).tolist():
                if dimension not in (PODS, self._gpu):
                    asked, left = (
                        self._whole(self.total[dimension], dimension),
                        self._whole(free[dimension], dimension),
                    )
                    np.maximum(ratios, np.where(left == 0, _ABSENT, asked / left), out=ratios)
        return ratios

    def _whole(self, amount: Amounts, dimension: int) -> Amounts:
        """In whole units, rounded up: the original compares whole cores."""
        return -(-amount // self._session.resources.scale(dimension))

    def lacking(self, free: Amounts) -> list[str]:
        """What a domain has too little of, in KAI's message."""
        names = {CPU: "CPU cores", MEMORY: "memory"}
        short = ["GPUs"] if self.gpus > self._devices_in(free) / UNIT else []
        short += [
            names.get(dimension, self._session.resources.names[dimension])
            for dimension in np.flatnonzero(self.total > free).tolist()
            if dimension not in (PODS, self._gpu)
        ]
        return [f"node-group(s) didn't have enough resources: {name}" for name in short]


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A demand against the domains of a tree as they are now."""

    demand: LevelDemand
    free: Amounts  # resources x domains
    places: Amounts  # by domain: tasks that fit
    fits: Chosen  # by domain: whether all of them fit
    order: Domains  # by domain: its index among those of its level


class Measures:
    """Measures of a session, cached until a node changes: a backlog of equal jobs costs one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[str, tuple[tuple[int, int], ...]], Measure] = {}
        self._stamp = -1

    def of(self, tree: LevelTree, rows: TaskRows) -> Measure:
        session = self._session
        if self._stamp != len(session.changes):
            self._known, self._stamp = {}, len(session.changes)
        numbers = Counter(session.tasks.class_of[rows].tolist())
        key = tree.name, tuple(numbers.items())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._measure(tree, LevelDemand(session, numbers))
        return found

    def _measure(self, tree: LevelTree, demand: LevelDemand) -> Measure:
        free = self._session.nodes.future_idle()
        summed = tree.sums(np.vstack([free, demand.places(free)]))
        free, places = summed[:-1], summed[-1]
        ratios = demand.ratios(free)
        fits = places >= demand.count if demand.countable else ratios <= 1.0
        return Measure(demand, free, places, fits, tree.order(ratios))


def _portion(class_: TaskClass) -> int:
    """Hundredths of a device, all its devices together."""
    return class_.share.portion * class_.share.devices if class_.share is not None else 0
