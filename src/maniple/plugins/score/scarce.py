"""The two policies of resource-strategy-fit that keep scarce resources free for tasks that need them.

sra: nodes that have scarce resources score lower: 100 x weight x (1 - weights of the scarce resources it has
/ all weights), and 0 for a node that lacks something the task requests.

proportional: a task that requests none of the scarce resources must leave, for every idle unit of them on the
node, the stated CPU (cores) and memory (GB, 10^9 bytes) free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.reasons import Code, ReasonTable, Verdicts
from maniple.framework.session import Session

_BEST = 100
# An idle amount is in thousandths of a unit: this many millicores and bytes per thousandth at ratio 1.
_MILLI_CPU, _BYTES = 1, 1_000_000


def _nested(given: Arguments, key: str) -> Arguments:
    return Arguments(given.mapping(key), f"{given.owner}: {key}")


def _finish(given: Arguments, nested: Arguments) -> None:
    nested.unknown(())
    given.warnings += nested.warnings


def _names(nested: Arguments) -> list[str]:
    names = (name.strip() for name in nested.string("resources", "").split(","))
    return list(dict.fromkeys(name for name in names if name))


def _numbers(nested: Arguments, key: str, names: list[str], *, whole: bool) -> dict[str, Any]:
    """Numbers by name from a nested mapping; 1 for one that is missing, negative or invalid."""
    values = Arguments(nested.mapping(key), f"{nested.owner}.{key}")
    numbers: dict[str, Any] = {
        name: values.int(name, 1) if whole else values.float(name, 1.0) for name in names
    }
    _finish(nested, values)
    return {name: 1 if number < 0 else number for name, number in numbers.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ScarceResourceAvoidance:
    weight: int
    resources: Mapping[int, int]  # weight by dimension
    weight_sum: int  # including resources that no node has

    @classmethod
    def read(cls, session: Session, given: Arguments) -> "ScarceResourceAvoidance | None":
        nested = _nested(given, "sra")
        enabled, weight, names = nested.bool("enable", False), nested.int("weight", 0), _names(nested)
        weights = _numbers(nested, "resourceWeight", names, whole=True)
        _finish(given, nested)
        if not enabled or weight <= 0:
            return None
        known = {d: w for name, w in weights.items() if (d := session.resources.known(name)) is not None}
        return cls(weight, known, sum(weights.values()))

    def scorer(self) -> Scorer:
        return Scorer("resource-strategy-fit: sra", 1.0, Dependence.STATIC, self._score)

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        shape = np.shape(cells.pods())
        held: Scores = np.zeros(shape, dtype=np.float64)
        for dimension, weight in self.resources.items():
            held += np.where(cells.allocatable(dimension) > 0, float(weight), 0.0)
        score = 1.0 - held / self.weight_sum if self.weight_sum > 0 else held
        lacks = np.zeros(shape, dtype=np.bool_)
        for dimension in np.flatnonzero(class_.request).tolist():
            lacks |= cells.allocatable(dimension) == 0
        return np.where(lacks, 0.0, score * float(_BEST * self.weight))


@dataclass(frozen=True, slots=True)
class _Ratio:
    dimension: int
    cpu: float
    memory: float
    reason: int


@dataclass(frozen=True, slots=True, eq=False)
class Proportional:
    ratios: tuple[_Ratio, ...]

    @classmethod
    def read(cls, session: Session, given: Arguments) -> "Proportional | None":
        nested = _nested(given, "proportional")
        enabled, names = nested.bool("enable", False), _names(nested)
        keys = [f"{name}.{part}" for name in names for part in ("cpu", "memory")]
        numbers = _numbers(nested, "resourceProportion", keys, whole=False)
        _finish(given, nested)
        if not enabled:
            return None
        known = [(name, session.resources.known(name)) for name in names]
        return cls(
            tuple(
                _Ratio(d, numbers[f"{name}.cpu"], numbers[f"{name}.memory"], _reason(session.reasons, name))
                for name, d in known
                if d is not None and d not in (CPU, MEMORY)
            )
        )

    def filter(self) -> Filter:
        return Filter("resource-strategy-fit: proportional", Dependence.NODE, self._check, self._applies)

    def _applies(self, class_: TaskClass) -> bool:
        return bool(self.ratios) and not any(class_.request[ratio.dimension] > 0 for ratio in self.ratios)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        cpu = _idle(cells, CPU) - int(class_.request[CPU])
        memory = _idle(cells, MEMORY) - int(class_.request[MEMORY])
        verdicts: Verdicts = np.zeros(np.shape(cells.pods()), dtype=np.int16)
        for ratio in reversed(self.ratios):
            idle = _idle(cells, ratio.dimension)
            short = (cpu < idle * ratio.cpu * _MILLI_CPU) | (memory < idle * ratio.memory * _BYTES)
            verdicts[short & _has(cells, ratio.dimension)] = ratio.reason
        return verdicts


def _idle(cells: Cells, dimension: int) -> Amounts:
    return cells.allocatable(dimension) - cells.used(dimension)


def _has(cells: Cells, dimension: int) -> NDArray[np.bool_]:
    return np.asarray((cells.allocatable(dimension) > 0) | (cells.used(dimension) > 0))


def _reason(reasons: ReasonTable, name: str) -> int:
    return reasons.number(f"proportional of resource {name} check failed", Code.UNRESOLVABLE)
