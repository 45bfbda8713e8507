"""Rules for amounts that the fairness plugins share: comparing, summing by group, naming shortages.

Amounts are columns of a matrix (resources x things) in exact base units. Two amounts that differ by less than
TOLERANCE count as equal where a rule says "at most"; rules about requested resources compare strictly and
leave "pods" out.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.session import Session
from maniple.objects.meta import Quantity

Numbers = NDArray[np.int64] | NDArray[np.float64]
# Less than the smallest base unit: covers rounding, never a real amount.
TOLERANCE = 0.1
# More than any cluster has; sums of many such amounts still fit 64 bits.
_LARGEST_STATED = 2**56


def at_most(left: Numbers, right: Numbers) -> NDArray[np.bool_]:
    """Column by column: no resource of `left` is above that of `right`."""
    return np.asarray((left - right < TOLERANCE).all(axis=0))


def sums_by_group(amounts: Amounts, group: NDArray[np.integer], groups: int) -> Amounts:
    """Columns added up by the group of each."""
    sums = np.zeros((len(amounts), groups), dtype=np.int64)
    for row, values in zip(sums, amounts, strict=True):
        np.add.at(row, group, values)
    return sums


def stated(session: Session, amounts: Mapping[str, Quantity]) -> tuple[Amounts, NDArray[np.bool_], list[str]]:
    """A resource list in the session's dimensions: amounts, which of them it names, and unknown names.

    A resource that no node offers and no pod requests gets no dimension, so that reading a list never changes
    the model.
    """
    height = len(session.total)
    vector, given = np.zeros(height, dtype=np.int64), np.zeros(height, dtype=np.bool_)
    unknown = []
    for name, amount in amounts.items():
        dimension = session.resources.known(name)
        if dimension is not None and dimension < height:
            vector[dimension] = min(session.resources.base_units(dimension, amount), _LARGEST_STATED)
            given[dimension] = True
        elif session.cluster.dialect.counts(name):
            unknown.append(name)
    return vector, given, unknown


def named(what: str, verb: str, resources: Sequence[str]) -> str:
    """A refusal with the resources that caused it."""
    return f"{what}: {', '.join(f'{verb} {name}' for name in resources)}" if resources else what
