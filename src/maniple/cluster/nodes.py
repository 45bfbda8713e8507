"""Nodes as a session sees them: in the order of their names, with their labels and taints as columns.

Row i is the i-th node by name, so "the first of the best" is the tie-break everywhere. What hardly changes
(labels, taints, images) is worked out once and shared between sessions until a node object changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.objects.core import Node, Taint

Codes = NDArray[np.int32]
MISSING = -1
PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """The values of one label key over all nodes, as codes into `values`; MISSING where a node does not have it."""

    values: list[str]
    codes: Codes

    def code(self, value: str) -> int:
        """The code of a value; one that no node has gets a number that no node has."""
        try:
            return self.values.index(value)
        except ValueError:
            return len(self.values)


class NodeFacts:
    """What is fixed about the nodes while no node object changes."""

    def __init__(self, rows: Codes, names: Sequence[str], objects: Sequence[Node]) -> None:
        self.rows = rows  # rows of the node table, by name
        self.names = list(names)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.objects = list(objects)
        self.unschedulable = np.array([bool(n.spec.unschedulable) for n in objects], dtype=np.bool_)
        self._labels: dict[str, LabelColumn] = {}
        self.taint_sets: list[tuple[Taint, ...]] = []
        self.taint_codes = self._taint_codes()
        self.memory: dict[object, object] = {}  # results that stay true as long as these facts do

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ready(self) -> NDArray[np.bool_]:
        """By node: open for pods, and in no bad condition."""
        return np.array([_is_ready(node) for node in self.objects], dtype=np.bool_)

    @cached_property
    def by_condition(self) -> dict[tuple[str, str], NDArray[np.intp]]:
        """The nodes with a condition, by its type and status."""
        found: dict[tuple[str, str], list[int]] = {}
        for row, node in enumerate(self.objects):
            for condition in node.status.conditions:
                found.setdefault((condition.type, condition.status), []).append(row)
        return {state: np.array(rows, dtype=np.intp) for state, rows in found.items()}

    def label(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = self._label_column(key)
        return column

    def label_keys(self) -> list[str]:
        """Every label that some node has."""
        return sorted({key for node in self.objects for key in node.metadata.labels})

    def _label_column(self, key: str) -> LabelColumn:
        found: dict[str, int] = {}
        codes = np.full(len(self), MISSING, dtype=np.int32)
        for i, node in enumerate(self.objects):
            value = node.metadata.labels.get(key)
            if value is not None:
                codes[i] = found.setdefault(value, len(found))
        return LabelColumn(list(found), codes)

    def _taint_codes(self) -> Codes:
        found: dict[tuple[Taint, ...], int] = {}
        codes = np.zeros(len(self), dtype=np.int32)
        for i, node in enumerate(self.objects):
            codes[i] = found.setdefault(tuple(node.spec.taints), len(found))
        self.taint_sets = list(found)
        return codes


def _is_ready(node: Node) -> bool:
    if node.spec.unschedulable:
        return False
    return not any(
        (one.type == "Ready" and one.status != "True") or (one.type in PRESSURES and one.status != "False")
        for one in node.status.conditions
    )
