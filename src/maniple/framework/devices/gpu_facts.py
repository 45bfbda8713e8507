"""The GPUs of nodes, from their labels, allocatable amounts and drivers' slices.

The accounting of devices (`gpus`) is based on it. Nothing here changes during a session; each column is
worked out on first use.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.nodes import NodeFacts
from maniple.cluster.resources import Amounts
from maniple.objects.core import Node

if TYPE_CHECKING:
    from maniple.framework.session import Session

Quota = NDArray[np.float64]  # cpu in milli, memory in bytes, GPUs
GPU = "nvidia.com/gpu"
OTHER_MAKERS = ("amd.com/gpu",)  # whole devices that count as GPUs in quotas as well
DEVICE_PLUGINS = (GPU, *OTHER_MAKERS)
MIG_PREFIX = "nvidia.com/mig-"
_SLICE = re.compile(re.escape(MIG_PREFIX) + r"([0-9]{1,9})g\.[0-9]+gb")
UNIT = 1000  # base units in a device
NONE, SINGLE, MIXED = 0, 1, 2
_STRATEGIES = {"single": SINGLE, "mixed": MIXED}
_UNKNOWN_MEMORY = 100  # MiB that a device counts with if its memory is not stated
_LARGEST_MIB = 2**20  # a larger label is taken to be in bytes
_DIGITS = 18  # of the largest number that a label may say
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def mig_units(resource: str) -> int:
    """The g of a slice `nvidia.com/mig-<g>g.<memory>gb`; 0 for any other resource."""
    found = _SLICE.fullmatch(resource)
    return int(found[1]) if found else 0


class Labelled:
    """What labels and names of resources say about the GPUs of nodes, kept as long as no node object changes."""

    def __init__(self, nodes: Sequence[Node], mig_key: str) -> None:
        self._nodes = nodes
        self._mig_key = mig_key

    @classmethod
    def of(cls, facts: NodeFacts, mig_key: str) -> "Labelled":
        """`mig_key`: the label of nodes whose devices are sliced."""
        place = cls, mig_key
        if place not in facts.memory:
            facts.memory[place] = cls(facts.objects, mig_key)
        return facts.memory[place]  # type: ignore[return-value]  # what this function put there

    def _each(self, read: Callable[[Node], int]) -> Amounts:
        return np.fromiter(map(read, self._nodes), dtype=np.int64, count=len(self._nodes))

    @cached_property
    def count(self) -> Amounts:
        """Devices; -1 where there is no number."""
        return self._each(lambda node: _number(node.metadata.labels.get("nvidia.com/gpu.count", ""), -1))

    @cached_property
    def memory(self) -> Amounts:
        """MiB of each device, 0 where it is not stated."""
        return self._each(_label_of_memory)

    @cached_property
    def mig_enabled(self) -> NDArray[np.bool_]:
        return self._each(lambda node: _mig_enabled(node, self._mig_key)).astype(np.bool_)

    @cached_property
    def mig(self) -> Amounts:
        """How slices of devices are offered: NONE, SINGLE (as devices) or MIXED (by their own names)."""
        strategies = self._each(
            lambda node: _STRATEGIES.get(node.metadata.labels.get("nvidia.com/mig.strategy", ""), NONE)
        )
        return strategies * self.mig_enabled


class GpuFacts:
    """The GPUs of a session's nodes, nodes by name."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._state = session.nodes
        self.dimension = session.resources.known(GPU)
        others = map(session.resources.known, OTHER_MAKERS)
        # Other makers' devices are resources of their own, unless the dialect counts all devices under one name.
        self.other_makers = [dimension for dimension in others if dimension is not None]
        # Of whole GPUs, of any maker
        self.devices = [one for one in (self.dimension, *self.other_makers) if one is not None]

    @cached_property
    def _labelled(self) -> Labelled:
        key = self._session.options.get("migWorkerNodeLabelKey", "node-role.kubernetes.io/mig-enabled")
        return Labelled.of(self._state.facts, key)

    @cached_property
    def whole(self) -> Amounts:
        """Devices that a node offers as a whole, drivers' slices included."""
        if self.dimension is None:
            return np.zeros(len(self._state), dtype=np.int64)
        whole: Amounts = self._state.allocatable[self.dimension] // UNIT
        return whole

    @property
    def reported_as(self) -> int | None:
        """The dimension under which the sum of all GPUs is reported."""
        return self.dimension if self.dimension is not None else next(iter(self.other_makers), None)

    @cached_property
    def dra(self) -> Amounts:
        """Devices that drivers publish in slices."""
        published, names = self._session.cluster.published, self._state.facts.names
        return np.fromiter(map(published, names), dtype=np.int64, count=len(names))

    @cached_property
    def count(self) -> Amounts:
        """Devices in a node, as its label says, otherwise those that it offers."""
        labelled = self._labelled.count
        count: Amounts = np.where(labelled >= 0, labelled, self.whole)
        return count

    @cached_property
    def memory(self) -> Amounts:
        """MiB of each device of a node."""
        memory: Amounts = np.where(self.synced, self._labelled.memory, _UNKNOWN_MEMORY)
        return memory

    @cached_property
    def synced(self) -> NDArray[np.bool_]:
        """The memory of a node's devices is known."""
        known: NDArray[np.bool_] = self._labelled.memory > 0
        return known

    @cached_property
    def least_memory(self) -> int:
        """MiB that a device has at least, or is taken to have."""
        known = self.memory[self.synced & (self.whole > 0)]
        measured = self._session.rules.devices.least_memory_is_measured and len(known)
        return int(known.min()) if measured else _UNKNOWN_MEMORY

    @property
    def mig_enabled(self) -> NDArray[np.bool_]:
        return self._labelled.mig_enabled

    @property
    def mig(self) -> Amounts:
        """How a node offers slices of devices: NONE, SINGLE (as devices) or MIXED (by their own names)."""
        return self._labelled.mig

    @cached_property
    def cpu_only(self) -> NDArray[np.bool_]:
        others = self._state.allocatable[self.other_makers].sum(axis=0)
        only: NDArray[np.bool_] = ~self.mig_enabled & (self.whole <= 0) & (self.dra <= 0) & (others <= 0)
        return only

    @cached_property
    def units(self) -> Quota:
        """By resource: how many GPUs a base unit of it counts as in quotas."""
        names = self._session.resources.names
        units = np.array([mig_units(name) for name in names], dtype=np.float64)
        if self.dimension is not None:
            units[self.dimension] = 1.0
        units[self.other_makers] = 1.0
        return units / UNIT


def _number(label: str, otherwise: int) -> int:
    return int(label) if label.isascii() and label.isdigit() and len(label) <= _DIGITS else otherwise


def _label_of_memory(node: Node) -> int:
    """MiB of a device by the node's label, in whole hundreds; 0 when it does not say."""
    memory = _number(node.metadata.labels.get("nvidia.com/gpu.memory", ""), 0)
    if memory >= _LARGEST_MIB:
        memory //= 2**20
    return memory - memory % 100


def _mig_enabled(node: Node, key: str) -> bool:
    label = node.metadata.labels.get(key)
    if label is not None:
        return label in _TRUE
    return any(name.startswith(MIG_PREFIX) for name in node.status.allocatable)
