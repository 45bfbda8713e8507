"""Shadow load: what pods will use that the monitoring system does not report yet, and a node's load with it.

Used by usage. A pod is a shadow from the moment it gets a node until it has run for one interval of the
monitoring; its usage is estimated when it becomes one, and exactly that is subtracted again when the
placement is undone.
- estimate: (request * request ratio + (limit - request) * burst ratio) * risk, at most the limit (the
  request, if there is no higher limit), for CPU and memory each; fixed amounts * risk for a pod without
  requests
- load: min(1, measured / 100 + estimates of the shadows / capacity); risk is the risk factor on a node whose
  weighted load has reached the risk threshold, else 1

Estimates are integers (millionths of a CPU, bytes), so that subtracting what was added leaves nothing behind.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.criteria import NodeRows, Scores
from maniple.framework.points import TaskRows
from maniple.objects.quantity import milli, units
from maniple.objects.requests import pod_limits
from maniple.plugins.candidates import place_in_group

_MILLIONTHS = 1000  # in a thousandth of a cpu


@dataclass(frozen=True, slots=True)
class Estimator:
    """`idle_cpu` (milli) and `idle_memory` (bytes) are for pods without requests."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    idle_cpu: int = 250
    idle_memory: int = 200 * 1024 * 1024

    def amounts(self, class_: TaskClass) -> Amounts:
        """What one task will use: a row without risk and one with it, of cpu and memory."""
        return np.array([self._amounts(class_, 1.0), self._amounts(class_, self.risk_factor)], dtype=np.int64)

    def _amounts(self, class_: TaskClass, risk: float) -> tuple[int, int]:
        if class_.best_effort:
            return round(self.idle_cpu * risk * _MILLIONTHS), round(self.idle_memory * risk)
        limits = pod_limits(class_.spec.pod)
        cpu = self._amount(int(class_.request[CPU]), milli(limits.get("cpu", 0)), risk)
        memory = self._amount(int(class_.request[MEMORY]), units(limits.get("memory", 0)), risk)
        return round(cpu * _MILLIONTHS), round(memory)

    def _amount(self, request: int, limit: int, risk: float) -> float:
        most = max(limit, request)
        return min((request * self.request_ratio + (most - request) * self.burst_ratio) * risk, most)


class ShadowLoad:
    """The shadows of one session.

    `measured` in percent and `capacity` (millicores, bytes) have a row each for CPU and memory.
    """

    def __init__(
        self,
        estimator: Estimator,
        measured: Scores,
        capacity: Amounts,
        weights: tuple[int, int],
    ) -> None:
        self._estimator = estimator
        self._capacity = capacity * np.array([[_MILLIONTHS], [1]], dtype=np.float64)
        self._measured = measured / 100 * self._capacity
        self._weights = weights
        self._estimated: Amounts = np.zeros(capacity.shape, dtype=np.int64)
        self._shadows: dict[int, tuple[int, int, int]] = {}  # task -> node, cpu, memory
        self._amounts_of: dict[int, Amounts] = {}

    def add(self, rows: TaskRows, nodes: NodeRows, classes: list[TaskClass]) -> None:
        """Tasks became shadows, one after the other: each counts for the risk of the next one on its node."""
        amounts = np.array([self._amounts(class_) for class_ in classes]).reshape(-1, 2, 2)
        places = place_in_group(nodes)
        for place in range(int(places.max(initial=-1)) + 1):
            turn = places == place
            where = nodes[turn]
            added = self._next(where, self._estimated[:, where], amounts[turn])
            self._estimated[:, where] += added
            spots = zip(rows[turn].tolist(), where.tolist(), *added.tolist(), strict=True)
            self._shadows.update((row, (node, cpu, memory)) for row, node, cpu, memory in spots)

    def remove(self, rows: TaskRows) -> None:
        """Tasks are no longer shadows; others are skipped."""
        for row in rows.tolist():
            node, cpu, memory = self._shadows.pop(row, (-1, 0, 0))
            if node >= 0:
                self._estimated[:, node] -= (cpu, memory)

    def restore(self, row: int, shadow: tuple[int, int, int]) -> None:
        """A task is a shadow again as it was."""
        node, cpu, memory = self._shadows[row] = shadow
        self._estimated[:, node] += (cpu, memory)

    def shadow(self, row: int) -> tuple[int, int, int] | None:
        return self._shadows.get(row)

    def freedom(self, class_: TaskClass, nodes: NodeRows, extra: Amounts | int) -> Scores:
        """1 for an idle node, 0 for one under full load, with `extra` hypothetical tasks of the class added
        first."""
        flat = nodes.reshape(-1)
        estimated = self._estimated[:, flat]
        amounts = self._amounts(class_)[None]
        steps = [1 - self._load(flat, estimated)]
        for _ in range(int(np.max(extra, initial=0))):
            estimated = estimated + self._next(flat, estimated, amounts)
            steps.append(1 - self._load(flat, estimated))
        columns = np.arange(len(flat)).reshape(nodes.shape)
        freedom: Scores = np.array(steps)[extra, columns]
        return freedom

    def _amounts(self, class_: TaskClass) -> Amounts:
        known = self._amounts_of.get(class_.number)
        if known is None:
            known = self._amounts_of[class_.number] = self._estimator.amounts(class_)
        return known

    def _next(self, nodes: NodeRows, estimated: Amounts, amounts: Amounts) -> Amounts:
        """What one more task adds on each node; `amounts` is per node, or one for all."""
        risk: NDArray[np.bool_] = self._load(nodes, estimated) >= self._estimator.risk_threshold
        added: Amounts = np.where(risk, amounts[:, 1].T, amounts[:, 0].T)
        return added

    def _load(self, nodes: NodeRows, estimated: Amounts) -> Scores:
        """The weighted load of nodes, from 0 to 1."""
        capacity, (cpu, memory) = self._capacity[:, nodes], self._weights
        used = self._measured[:, nodes] + estimated
        parts = np.divide(used, capacity, out=np.zeros_like(capacity), where=capacity > 0).clip(0, 1)
        load: Scores = (parts[0] * cpu + parts[1] * memory) / (cpu + memory) if cpu + memory else parts[0] * 0
        return load
