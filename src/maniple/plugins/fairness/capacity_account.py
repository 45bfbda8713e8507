"""One queue as capacity keeps it: its amounts, its ancestors, and the comparisons that rules are made of.

Rules about limits look at what a task asks for, strictly and without places for pods. Rules about what
is deserved look at the resources that the queue deserves any of.
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
    tie: tuple[Any, ...]  # age and name: what decides between queues that stand equal
    guarantee: list[int]
    counts: list[bool]  # where having more than is deserved makes a victim
    above: "tuple[CapacityAccount, ...]" = ()  # the parent first, the root last
    path: "tuple[CapacityAccount, ...]" = ()  # itself, then `above`
    inner: bool = False  # has queues below it
    refusal: str = ""  # what is wrong with its place in the tree
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
    def shut(self) -> str:
        """Why the queue takes no jobs and no tasks; empty for one that does."""
        return self.refusal or ("" if self.open else f"queue {self.name} is not open")

    def measure(self) -> None:
        """A queue that deserves nothing stands behind all that have not got what they deserve."""
        if self.best_effort:
            self.share = 1.0
        else:
            QueueAmounts.measure(self)

    # -- limits ---------------------------------------------------------------------------------------------------

    def spare(self, request: Request, count: int, *, beside: bool = True) -> int:
        """How many of `count` equal requests fit below the ceiling; negative when it is passed already.

        `beside`: what is reserved for others counts as taken.
        """
        for dimension, amount in enumerate(request):
            limit = self.ceiling[dimension]
            if amount > 0 and dimension != PODS and limit != math.inf:
                used = self.allocated[dimension] + (self.reserved[dimension] if beside else 0)
                count = min(count, (int(limit) - used) // amount)
        return count

    def lacks(self, request: Request) -> bool:
        """With the request added, at least one of its resources would still be within what the queue deserves."""
        return any(
            self.allocated[dimension] + amount - self.deserved[dimension] < TOLERANCE
            for dimension, amount in enumerate(request)
            if amount > 0 and dimension != PODS
        )

    def exceeded(self, request: Request) -> set[int]:
        """Resources in which having more makes victims, and of which the queue would have more with the request added."""
        return {
            dimension
            for dimension, deserved in self.measures_excess(request)
            if self.allocated[dimension] + request[dimension] - deserved >= TOLERANCE
        }

    # -- victims --------------------------------------------------------------------------------------------------

    def deserves_of(self, request: Request) -> bool:
        """Whether the queue deserves anything of what is asked for; places for pods count here."""
        pairs = zip(request, self.deserved, strict=True)
        return any(amount > 0 and deserved >= TOLERANCE for amount, deserved in pairs)

    def measures_excess(self, request: Request) -> list[tuple[int, float]]:
        """What is deserved of the resources in which having more makes a victim of a task with this request."""
        return [
            (dimension, self.deserved[dimension])
            for dimension, amount in enumerate(request)
            if amount > 0 and dimension != PODS and self.counts[dimension]
        ]

    def is_shared_with(self, other: "CapacityAccount", levels: int) -> bool:
        """Whether both have the same ancestor, other than the root, within so many levels."""
        ours = {id(queue) for queue in self.above[:levels] if queue.above}
        return any(id(queue) in ours for queue in other.above[:levels])
