"""What queues have and are going to get: summed over jobs when a session opens, then updated.

Shared by the plugins that give queues a ceiling. promised = allocated + kept for admitted jobs - elastic,
where elastic = what jobs have beyond their stated minimums. A job may be admitted while its minimum +
promised <= ceiling in every resource of its minimum.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.session import Session
from maniple.plugins.fairness.amounts import TOLERANCE, sums_by_group
from maniple.plugins.fairness.min_resources import MinResources, Wanted

REFUSED = "queue resource quota insufficient"


@dataclass(frozen=True, slots=True, eq=False)
class QueueSums:
    """Resources x queues, for the queues that have a job in the session, by row."""

    queues: NDArray[np.int32]
    allocated: Amounts
    pending: Amounts
    elastic: Amounts
    kept: Amounts


@dataclass(slots=True, eq=False, kw_only=True)
class QueueAmounts:
    """One queue's amounts by dimension: they are read and changed one at a time."""

    open: bool
    priority: int
    allocated: list[int]
    deserved: list[float]
    ceiling: list[float]
    kept: list[int]
    elastic: list[int]
    share: float = 0.0
    measures: list[tuple[int, float]] = field(init=False)  # resources of which anything is deserved

    def __post_init__(self) -> None:
        self.measures = [(d, deserved) for d, deserved in enumerate(self.deserved) if deserved >= TOLERANCE]

    def add(self, request: Sequence[int], count: int) -> None:
        """Tasks with this request were added, or removed if `count` is negative; `measure` to update the
        share."""
        self.allocated = [had + amount * count for had, amount in zip(self.allocated, request, strict=True)]

    def measure(self) -> None:
        """share = the largest used fraction of a deserved amount."""
        share, allocated = 0.0, self.allocated
        for dimension, deserved in self.measures:
            share = max(share, allocated[dimension] / deserved)
        self.share = share

    def promised(self, dimension: int) -> int:
        """What the queue has or is going to get, without what it could return."""
        return self.allocated[dimension] + self.kept[dimension] - self.elastic[dimension]

    def short_of(self, wanted: Wanted, yielding: Sequence[int] | None = None) -> list[int]:
        """The dimensions in which a job's minimum would exceed the ceiling; `yielding` would be released for
        it."""
        given = yielding or [0] * len(self.allocated)
        return [d for d, amount in wanted if amount + self.promised(d) - given[d] > self.ceiling[d]]

    def keep(self, amounts: Iterable[int]) -> None:
        """A job was admitted: keep this much for it."""
        self.kept = [kept + more for kept, more in zip(self.kept, amounts, strict=True)]


def sums_by_queue(session: Session, claims: MinResources) -> QueueSums:
    jobs, rows = session.jobs, session.jobs.rows
    queues, position = np.unique(jobs.queue[rows], return_inverse=True)
    beyond = np.maximum(jobs.allocated[:, rows] - claims.minimums(rows), 0)
    kept = np.zeros((len(session.total), len(queues)), dtype=np.int64)
    for admitted, amounts in (claims.of_admitted(less_allocated=True), claims.of_running()):
        kept += sums_by_group(amounts, np.searchsorted(queues, jobs.queue[admitted]), len(queues))
    return QueueSums(
        queues=queues,
        allocated=sums_by_group(jobs.allocated[:, rows], position, len(queues)),
        pending=sums_by_group(jobs.pending[:, rows], position, len(queues)),
        elastic=sums_by_group(beyond, position, len(queues)),
        kept=kept,
    )
