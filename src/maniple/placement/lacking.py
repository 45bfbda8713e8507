"""What nodes have too little of for a task: as verdicts, and in words for one node.

Used by `engine.py` to explain rejections. What a node will have counts: what is idle and what is being
released, less what is pipelined for other tasks. KAI's users know the words of `GROUPED` and `DETAILED`, all
others those of `PLAIN`.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, PODS, Amounts
from maniple.framework.devices.gpu_facts import MIG_PREFIX
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
NO_DEVICES = "Node didn't have enough resources: GPUs, it has none"

# They stand among the dimensions for the memory of one device, and for devices where no node has any.
_DEVICE_MEMORY, _NO_DEVICES = -1, -2
_SPOKEN = {"cpu": "CPU cores"}
_GIGABYTE = 10**9
_BITS = 62  # of a number; resources beyond them share the last
_FEW = 10  # resources of which all combinations are kept in a table


class Lacking:
    """Of one class, given what nodes will have."""

    def __init__(self, session: Session, class_: TaskClass, free: Amounts) -> None:
        self._session = session
        self._class = class_
        self._free = free
        self._short = self._masks()

    def _masks(self) -> dict[int, Mask]:
        """By dimension, the nodes that lack it: GPUs first, then in the order of the dimensions."""
        session, class_, gpu = self._session, self._class, self._session.gpus.dimension
        found: dict[int, Mask] = {}
        if class_.share is not None:
            found |= self._shared()
        elif gpu is not None and (class_.request[gpu] > 0 or session.rules.placing.owed_gpus_count):
            found[gpu] = self._free[gpu] < class_.request[gpu]
        for dimension in range(len(session.resources)):
            asked = int(class_.request[dimension])
            if dimension != gpu and (asked > 0 or dimension in (CPU, MEMORY)):
                found[dimension] = self._free[dimension] < asked
        return {dimension: mask for dimension, mask in found.items() if mask.any()}

    def _shared(self) -> dict[int, Mask]:
        """For a task that requests parts of devices: nodes with devices too small, or with too little left."""
        books, class_ = self._session.gpus, self._class
        assert class_.share is not None
        size = self._free.shape[1]
        if books.dimension is None:
            return {_NO_DEVICES: np.ones(size, dtype=np.bool_)}
        small: Mask = (class_.share.memory > books.memory) & (books.count > 0)
        fits = books.fits(class_, np.arange(size), self._free[books.dimension])
        return {books.dimension: ~fits & ~small, _DEVICE_MEMORY: small}

    def nothing(self) -> Mask:
        """Nodes that lack nothing."""
        nothing = np.ones(self._free.shape[1], dtype=np.bool_)
        for mask in self._short.values():
            nothing &= ~mask
        return nothing

    def verdicts(self) -> Verdicts:
        """The number of a reason for every node that lacks something."""
        verdict = np.zeros(self._free.shape[1], dtype=np.int16)
        if not self._session.rules.words.lacking_is_grouped:
            for dimension in sorted(self._short, key=self._turn, reverse=True):  # the first has the last word
                number = self._session.reasons.number(PLAIN.format(resource=self._name(dimension)))
                np.copyto(verdict, number, where=self._short[dimension])
            return verdict
        # What a node lacks, a bit for each; most nodes lack the same.
        lacks = np.zeros(len(verdict), dtype=np.int64)
        for place, mask in enumerate(self._short.values()):
            lacks |= mask.astype(np.int64) << min(place, _BITS)
        if len(self._short) > _FEW:
            found, lacks = np.unique(lacks, return_inverse=True)
            return np.array([self._number(bits) for bits in found.tolist()], dtype=np.int16)[lacks]
        numbers = np.zeros(1 << len(self._short), dtype=np.int16)
        for bits in np.bincount(lacks).nonzero()[0].tolist():
            numbers[bits] = self._number(bits)
        return numbers[lacks]

    def _turn(self, dimension: int) -> tuple[int, str]:
        """Sort key: cpu, memory and pods first, then by name.

        Other dimensions are numbered as objects name them, in any order.
        """
        return min(dimension, PODS + 1), self._name(dimension)

    def _number(self, bits: int) -> int:
        """Of the reason that names all these dimensions."""
        if not bits:
            return FITS
        numbers: dict[tuple[int, ...], int] = self._session.shared.setdefault(Lacking, {})
        key = (bits, *self._short)
        known = numbers.get(key)
        if known is None:
            known = numbers[key] = self._session.reasons.number(self._text(bits))
        return known

    def _text(self, bits: int) -> str:
        lacked = [dimension for place, dimension in enumerate(self._short) if bits >> min(place, _BITS) & 1]
        names = [self._name(dimension) for dimension in lacked]
        slices = [name for name in names if name.startswith(MIG_PREFIX)]
        others = [_SPOKEN.get(name, name) for name in names if name not in slices]
        told = []
        if slices:
            told.append(GROUPED_MIG.format(profiles=", ".join(slices)))
        if others:
            told.append(GROUPED.format(resources=", ".join(others)))
        return "; ".join(told)

    def _name(self, dimension: int) -> str:
        session = self._session
        if dimension == _DEVICE_MEMORY:
            return "GPU memory"
        if dimension == _NO_DEVICES:
            return "GPUs"
        if dimension == session.gpus.dimension and session.rules.words.lacking_is_grouped:
            return "GPUs"
        return session.resources.names[dimension]

    def details(self, node: int, *, mates: bool = False) -> list[str]:
        """What a node lacks, with amounts. `mates`: others of the task's own gang count as used."""
        return [self._detail(dimension, node, mates) for dimension, mask in self._short.items() if mask[node]]

    def by_resource(self) -> dict[str, Mask]:
        """The nodes that lack each resource."""
        return {self._name(dimension): mask for dimension, mask in self._short.items()}

    def amounts(self, resource: str, node: int) -> str:
        """What is requested of a resource and what a node will have; empty for parts of devices."""
        session, gpu = self._session, self._session.gpus.dimension
        dimension = next(one for one in self._short if self._name(one) == resource)
        if dimension < 0 or (dimension == gpu and self._class.share is not None):
            return ""
        asked, free = int(self._class.request[dimension]), int(self._free[dimension, node])
        most = int(session.nodes.allocatable[dimension, node])
        told = [session.resources.written(dimension, amount) for amount in (asked, free, most)]
        return "requests {}, free {} of {}".format(*told)

    def _detail(self, dimension: int, node: int, mates: bool) -> str:
        session, class_ = self._session, self._class
        if dimension == _DEVICE_MEMORY:
            assert class_.share is not None
            return SMALL_DEVICES.format(asked=class_.share.memory, capacity=int(session.gpus.memory[node]))
        if dimension == _NO_DEVICES:
            return NO_DEVICES
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


def _number_of(value: float) -> str:
    """At most three decimals."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


__all__ = ["DETAILED", "GROUPED", "GROUPED_MIG", "PLAIN", "SMALL_DEVICES", "Lacking"]
