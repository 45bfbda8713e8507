"""What metrics read of a scheduler at one moment: the last plan's queues and pending jobs, worked out once a plan."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.framework.plans.backlog import PendingJob
from maniple.framework.plans.outcome import QueueOutcome

if TYPE_CHECKING:
    from maniple.framework.plans.plan import Plan
    from maniple.kube.client import Client
    from maniple.live.scheduler import Scheduler

Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Standing:
    """Of the last plan; empty before the first cycle. Amounts are in cores, bytes and whole units."""

    queues: dict[str, QueueOutcome]
    requested: dict[str, Amounts]
    pending: list[PendingJob]
    statuses: dict[str, int]
    allocatable: Amounts
    used: Amounts
    nodes: int


NOTHING = Standing({}, {}, [], {}, {}, {}, 0)


class View:
    """Reads a scheduler; between two cycles the answer is the same object.

    `client`: its connection to an API server, if it has one.
    """

    def __init__(self, scheduler: "Scheduler", client: "Client | None" = None) -> None:
        self.scheduler = scheduler
        self.client = client
        self._plan: Plan | None = None
        self._standing = NOTHING

    def standing(self) -> Standing:
        plan = self.scheduler.plan
        if plan is not None and plan is not self._plan:
            backlog = plan.backlog
            allocatable, used = backlog.totals()
            self._standing = Standing(
                queues=plan.queues,
                requested=backlog.requested(),
                pending=backlog.pending(),
                statuses=backlog.statuses(),
                allocatable=allocatable,
                used=used,
                nodes=backlog.nodes,
            )
            self._plan = plan
        return self._standing


def in_cores(amounts: dict[str, int | float]) -> Amounts:
    """Amounts of a queue with cpu in cores instead of thousandths."""
    return {name: amount / 1000 if name == "cpu" else amount for name, amount in amounts.items()}
