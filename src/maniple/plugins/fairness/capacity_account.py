"""The account of one queue in capacity: its amounts, its ancestors, and the comparisons that rules use.

Rules about limits compare what a task requests, strictly and without the resource `pods`. Rules about
deserved amounts compare the resources that the queue deserves any of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.cluster.resources import PODS
from maniple.plugins.fairness.amounts import TOLERANCE
from maniple.plugins.fairness.device_quota import DeviceQuota
from maniple.plugins.fairness.queue_amounts import QueueAmounts

Request = Sequence[int]


@dataclass(slots=True, eq=False, kw_only=True)
class CapacityAccount(QueueAmounts):
    """`allocated`, `kept` and `elastic` of a queue with queues below it include theirs."""

    name: str
    tie: tuple[Any, ...]  # age and name: the tie-break between equal queues
    guarantee: list[int]
    counts: list[bool]  # where exceeding the deserved amount makes a victim
    above: "tuple[CapacityAccount, ...]" = ()  # the parent first, the root last
    path: "tuple[CapacityAccount, ...]" = ()  # itself, then `above`
    inner: bool = False  # has queues below it
    refusal: str = ""  # what is wrong with its position in the tree
    reserved: list[int] = field(default_factory=list)  # for tasks whose gate was or may be removed
    devices: DeviceQuota | None = None
    best_effort: bool = False  # deserves nothing

    def __post_init__(self) -> None:
        QueueAmounts.__post_init__(self)
        self.reserved = [0] * len(self.allocated)
        amounts = enumerate(self.deserved)
        self.best_effort = all(deserved < TOLERANCE for d, deserved in amounts if d != PODS)
        self.path = (self, *self.above)

    @property
    def closed_reason(self) -> str:
        """Why the queue accepts no jobs and no tasks; empty for one that does."""
        return self.refusal or ("" if self.open else f"queue {self.name} is not open")

    def measure(self) -> None:
        """A queue that deserves nothing comes after all that have not got what they deserve."""
        if self.best_effort:
            self.share = 1.0
        else:
            QueueAmounts.measure(self)

    # -- limits ---------------------------------------------------------------------------------------------------

    def spare(self, request: Request, count: int, *, beside: bool = True) -> int:
        """How many of `count` equal requests fit below the ceiling; negative if it is exceeded already.

        `beside`: reservations count as taken.
        """
        for dimension, amount in enumerate(request):
            limit = self.ceiling[dimension]
            if amount > 0 and dimension != PODS and limit != math.inf:
                used = self.allocated[dimension] + (self.reserved[dimension] if beside else 0)
                count = min(count, (int(limit) - used) // amount)
        return count

    def left(self) -> list[float]:
        """What may still be allocated below the ceiling."""
        used = zip(self.ceiling, self.allocated, self.reserved, strict=True)
        left = [limit if limit == math.inf else int(limit) - had - reserved for limit, had, reserved in used]
        left[PODS] = math.inf
        return left

    def lacks(self, request: Request) -> bool:
        """Whether, with the request added, at least one of its resources stays within what the queue
        deserves."""
        return any(
            self.allocated[dimension] + amount - self.deserved[dimension] < TOLERANCE
            for dimension, amount in enumerate(request)
            if amount > 0 and dimension != PODS
        )

    def exceeded(self, request: Request) -> set[int]:
        """Resources of which the queue would exceed its deserved amount with the request added, where that
        counts."""
        return {
            dimension
            for dimension, deserved in self.measures_excess(request)
            if self.allocated[dimension] + request[dimension] - deserved >= TOLERANCE
        }

    # -- victims --------------------------------------------------------------------------------------------------

    def deserves_of(self, request: Request) -> bool:
        """Whether the queue deserves any of the requested resources; `pods` counts here."""
        pairs = zip(request, self.deserved, strict=True)
        return any(amount > 0 and deserved >= TOLERANCE for amount, deserved in pairs)

    def measures_excess(self, request: Request) -> list[tuple[int, float]]:
        """The deserved amounts whose excess makes a victim of a task with this request."""
        return [
            (dimension, self.deserved[dimension])
            for dimension, amount in enumerate(request)
            if amount > 0 and dimension != PODS and self.counts[dimension]
        ]

    def is_shared_with(self, other: "CapacityAccount", levels: int) -> bool:
        """Whether both have the same ancestor, other than the root, within that many levels."""
        ours = {id(queue) for queue in self.above[:levels] if queue.above}
        return any(id(queue) in ours for queue in other.above[:levels])
