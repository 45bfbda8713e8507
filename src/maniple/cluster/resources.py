"""Resource names as numbered dimensions, and resource lists as exact integer vectors.

Every amount in the core is an int64 in the base unit of its dimension: milli-cpu, bytes of memory, storage
and huge pages, whole pods, thousandths of everything else. A space only grows; vectors made earlier are
padded with zeros when they are used again. Names are numbered as they are met. Before a session opens, the
cluster moves on to a space with its names in order, so that neither messages nor sums depend on which object
was read first.

A dimension costs a row of every matrix, and anyone can write a pod that names thousands of resources. Beyond some
hundred that no node offers, further ones share a dimension, of which no node has anything: such a pod waits as it
would anyway. When a node offers one of them, the cluster reads its pods again.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from maniple.objects import quantity

Amounts = NDArray[np.int64]
Amount = str | int | float | Fraction

CPU, MEMORY, PODS = 0, 1, 2
LARGEST = int(np.iinfo(np.int64).max)
# Of one pod: never on any node, and over a hundred thousand such pods still add up in 64 bits.
LARGEST_REQUEST = 2**46
LARGEST_OFFER = LARGEST_REQUEST - 1  # of one node: 70 TB of memory, 70,000 million CPUs
# Of resources that no node offers: node pools that are scaled down to nothing offer far fewer.
MOST_UNOFFERED = 200
OTHERS = "other resources that no node offers"

# Thousandths of a byte would be too fine: the disks of a few thousand nodes would not add up in 64 bits.
_WHOLE = frozenset({"memory", "pods", "ephemeral-storage"})
_WHOLE_PREFIX = "hugepages-"


class ResourceSpace:
    """The dimensions known so far. `counts(name)` says whether a dialect accounts for that resource at all."""

    def __init__(self, counts: Callable[[str], bool]) -> None:
        self._counts = counts
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._dimensions: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self._offered = set(self.names)
        self.merged = False  # some names share a dimension
        self.stale = False  # and one of them may have to have its own

    def __len__(self) -> int:
        return len(self.names)

    def dimension(self, name: str, *, offered: bool = False) -> int | None:
        """The number of a resource; None when it is not accounted for. New names get a new number.

        `offered`: by a node.
        """
        known = self._dimensions.get(name)
        if known is None:
            if not self._counts(name):
                return None
            if not offered and len(self.names) - len(self._offered) >= MOST_UNOFFERED:
                self.merged = True
                name = OTHERS
            self.stale |= offered and self.merged
            known = self._dimensions.get(name)
        if offered:
            self._offered.add(name)
        return self._append(name) if known is None else known

    def _append(self, name: str) -> int:
        number = self._dimensions[name] = len(self.names)
        self.names.append(name)
        return number

    def order(self) -> list[int]:
        """The dimensions in the order of their names, behind the three that every space has."""
        return [CPU, MEMORY, PODS, *sorted(range(PODS + 1, len(self)), key=self.names.__getitem__)]

    def in_order(self, order: list[int]) -> "ResourceSpace":
        """A space with these names, numbered in another order."""
        space = ResourceSpace(self._counts)
        space.names = [self.names[dimension] for dimension in order]
        space._dimensions = {name: number for number, name in enumerate(space.names)}
        space._offered = self._offered.intersection(space.names)
        space.merged, space.stale = self.merged, self.stale
        return space

    def only_offered(self, names: Iterable[str]) -> "ResourceSpace":
        """A space with the resources that nodes offer."""
        space = ResourceSpace(self._counts)
        for name in names:
            space.dimension(name, offered=True)
        return space

    def known(self, name: str) -> int | None:
        """The number of a resource that some object has already named."""
        return self._dimensions.get(name)

    def scale(self, dimension: int) -> int:
        """Base units in one whole unit."""
        return scale(self.names[dimension])

    def written(self, dimension: int, amount: int) -> str:
        """An amount as Kubernetes writes it."""
        return written(self.names[dimension], amount)

    def vector(self, amounts: Mapping[str, Amount] | None, *, offered: bool = False) -> Amounts:
        """A resource list as base units; the vector is as long as the space is now."""
        entries = [
            (self.dimension(name, offered=offered), amount) for name, amount in (amounts or {}).items()
        ]
        result = np.zeros(len(self), dtype=np.int64)
        most = LARGEST_OFFER if offered else LARGEST_REQUEST
        for dimension, amount in entries:
            if dimension is not None:
                units = min(max(self.base_units(dimension, amount), -most), most)
                # Of those that share a dimension, the largest amount will do: no node has any.
                result[dimension] = max(result[dimension], units) if result[dimension] else units
        return result

    def base_units(self, dimension: int, amount: Amount) -> int:
        exact = amount if isinstance(amount, Fraction) else quantity.parse(amount)
        units = quantity.milli(exact) if self.scale(dimension) == 1000 else quantity.units(exact)
        return min(max(units, -LARGEST), LARGEST)

    def padded(self, vector: Amounts) -> Amounts:
        """The vector in today's dimensions."""
        missing = len(self) - len(vector)
        return np.concatenate([vector, np.zeros(missing, dtype=np.int64)]) if missing else vector

    def describe(self, vector: NDArray[np.int64] | NDArray[np.float64]) -> dict[str, int | float]:
        """Nonzero entries by name: cpu in milli, memory in bytes, the rest in whole units.

        Infinite amounts are left out.
        """
        described: dict[str, int | float] = {}
        for dimension, amount in enumerate(vector.tolist()):
            if amount and isfinite(amount):
                whole = amount if dimension == CPU else amount / self.scale(dimension)
                described[self.names[dimension]] = int(whole) if whole == int(whole) else whole
        return described


def scale(name: str) -> int:
    """Base units in one whole unit of a resource."""
    return 1 if name in _WHOLE or name.startswith(_WHOLE_PREFIX) else 1000


def written(name: str, amount: int) -> str:
    """An amount in base units as Kubernetes writes it."""
    binary = name in ("memory", "ephemeral-storage") or name.startswith(_WHOLE_PREFIX)
    return quantity.format_quantity(Fraction(amount, scale(name)), binary=binary)
