"""What nodes have too little of for a task: as verdicts, and in words for one node.

Used by `engine.py` when somebody wants to know why. What a node will have counts, that is what is idle and what is being released, less what is promised to
others. KAI's users know the words of `GROUPED` and `DETAILED`, everybody else those of `PLAIN`.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.gpus import MIG_PREFIX
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session

Mask = NDArray[np.bool_]

PLAIN = "Insufficient {resource}"
GROUPED = "node(s) didn't have enough resources: {resources}"
GROUPED_MIG = "node(s) didn't have enough of mig profile: {profiles}"
DETAILED = (
    "Node didn't have enough resources: {resource}, requested: {asked}, used: {used}, capacity: {capacity}"
)
SMALL_DEVICES = (
    "Node didn't have enough resources: GPU memory, requested: {asked} MiB of one device, "
    "while each device of the node has {capacity} MiB"
)

_DEVICE_MEMORY = -1  # stands for the memory of one device among the dimensions
_GIGABYTE = 10**9


class Lacking:
    """Of one class, now."""

    def __init__(self, session: Session, class_: TaskClass) -> None:
        self._session = session
        self._class = class_
        self._free = session.nodes.future_idle()
        self._short = self._masks()

    def _masks(self) -> dict[int, Mask]:
        """By dimension, the nodes that lack it: GPUs first, then in the order of the dimensions."""
        session, class_, gpu = self._session, self._class, self._session.gpus.dimension
        found: dict[int, Mask] = {}
        if class_.share is not None:
            found |= self._shared()
        elif gpu is not None and (class_.request[gpu] > 0 or not session.idle_first):
            found[gpu] = self._free[gpu] < class_.request[gpu]
        for dimension in range(len(session.resources)):
            asked = int(class_.request[dimension])
            if dimension != gpu and (asked > 0 or dimension in (CPU, MEMORY)):
                found[dimension] = self._free[dimension] < asked
        return {dimension: mask for dimension, mask in found.items() if mask.any()}

    def _shared(self) -> dict[int, Mask]:
        """For a task that asks for parts of devices: nodes whose devices are too small, or have too little left."""
        books, class_ = self._session.gpus, self._class
        assert class_.share is not None
        size = self._free.shape[1]
        if books.dimension is None:
            return {_DEVICE_MEMORY: np.ones(size, dtype=np.bool_)} if class_.share.memory else {}
        small: Mask = (class_.share.memory > books.memory) & (books.count > 0)
        fits = books.fits(class_, np.arange(size), self._free[books.dimension])
        return {books.dimension: ~fits & ~small, _DEVICE_MEMORY: small}

    @property
    def anywhere(self) -> bool:
        return bool(self._short)

    def verdicts(self) -> Verdicts:
        """The number of a reason for every node that lacks something."""
        verdict = np.zeros(self._free.shape[1], dtype=np.int16)
        if self._session.idle_first:
            for dimension, mask in self._short.items():
                number = self._session.reasons.number(PLAIN.format(resource=self._name(dimension)))
                verdict[mask & (verdict == FITS)] = number
            return verdict
        if not self._short:
            return verdict
        kinds = np.array(list(self._short.values()), dtype=np.bool_)
        combinations, of_node = np.unique(kinds, axis=1, return_inverse=True)
        numbers = [self._number(combinations[:, place]) for place in range(combinations.shape[1])]
        verdict[:] = np.array(numbers, dtype=np.int16)[of_node.ravel()]
        return verdict

    def _number(self, lacks: Mask) -> int:
        """Of the reason that names all these dimensions."""
        names = [self._name(dimension) for dimension, one in zip(self._short, lacks, strict=True) if one]
        slices = [name for name in names if name.startswith(MIG_PREFIX)]
        others = [_SPOKEN.get(name, name) for name in names if name not in slices]
        told = []
        if slices:
            told.append(GROUPED_MIG.format(profiles=", ".join(slices)))
        if others:
            told.append(GROUPED.format(resources=", ".join(others)))
        return self._session.reasons.number("; ".join(told)) if told else FITS

    def _name(self, dimension: int) -> str:
        if dimension == _DEVICE_MEMORY:
            return "GPU memory"
        return (
            "GPUs"
            if dimension == self._session.gpus.dimension and not self._session.idle_first
            else (self._session.resources.names[dimension])
        )

    def details(self, node: int, *, mates: bool = False) -> list[str]:
        """What a node lacks, with amounts. `mates`: others of the task's own gang count as used."""
        return [self._detail(dimension, node, mates) for dimension, mask in self._short.items() if mask[node]]

    def _detail(self, dimension: int, node: int, mates: bool) -> str:
        session, class_ = self._session, self._class
        if dimension == _DEVICE_MEMORY:
            assert class_.share is not None
            return SMALL_DEVICES.format(asked=class_.share.memory, capacity=int(session.gpus.memory[node]))
        name = self._name(dimension)
        scale = {CPU: 1000, MEMORY: _GIGABYTE}.get(dimension, session.resources.scale(dimension))
        unit = " GB" if dimension == MEMORY else ""
        capacity, free = int(session.nodes.allocatable[dimension, node]), int(self._free[dimension, node])
        asked = class_.request[dimension] / scale
        if dimension == session.gpus.dimension and class_.share is not None:
            asked = session.gpus.portion_on(class_, node) * class_.share.devices
        used = _number_of((capacity - free) / scale) + unit
        return DETAILED.format(
            resource=_SPOKEN.get(name, name),
            asked=_number_of(asked) + unit,
            used=f"{used} (its own gang included)" if mates else used,
            capacity=_number_of(capacity / scale) + unit,
        )


_SPOKEN = {"cpu": "CPU cores"}


def _number_of(value: float) -> str:
    """At most three decimals."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


__all__ = ["DETAILED", "GROUPED", "GROUPED_MIG", "PLAIN", "SMALL_DEVICES", "Lacking"]
