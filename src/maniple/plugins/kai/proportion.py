"""proportion: KAI's queues and what they may have.

Fair shares of the total (`cluster_total`, `fair_share`) are computed when the session opens; allocated
amounts follow every placement and eviction, all the way up the tree. Everything else is a rule in a file of
its own: the order of queues (`proportion_order`), whether a job is within limits and quota
(`proportion_capacity`), whether a queue may reclaim (`proportion_reclaim`).

Without strict rules: an amount of GPU memory counts as the smallest part of a device that it can be when a
job is compared with limits (KAI counts nothing), the parts that tasks really hold count when victims are
measured, and no fair share exceeds the queue's request.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from maniple.framework.configuration.arguments import TextArguments
from maniple.framework.points import Capacity, TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.cluster_total import cluster_total
from maniple.plugins.kai.counting import Amount, Counting
from maniple.plugins.kai.proportion_capacity import SCHEDULABLE, over_capacity, over_quota
from maniple.plugins.kai.proportion_order import PARTS
from maniple.plugins.kai.proportion_reclaim import may_take
from maniple.plugins.kai.queue_accounts import Account, open_accounts, stated_by_kai
from maniple.plugins.kai.queue_books import QueueBooks
from maniple.plugins.settings import report

# KAI's own spelling, the intended one, and that of its documentation.
_MULTIPLIERS = (
    "relcaimerSaturationMultiplier",
    "reclaimerSaturationMultiplier",
    "reclaimerUtilizationMultiplier",
)


class Proportion:
    """Arguments: `kValue`, how much past usage counts; `reclaimerSaturationMultiplier`, at least 1."""

    name = "proportion"
    key_parts: ClassVar[Mapping[str, tuple[str, ...]]] = {"queue_turn": PARTS}

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        k, self._multiplier = read_arguments(session, arguments, self.name)
        counting, tree = Counting(session), session.queue_tree
        total = cluster_total(session, counting)
        accounts = open_accounts(session, counting, total, k, stated_by_kai, Account)
        paths = {queue: [accounts[one] for one in tree.path(queue)] for queue in accounts}
        books = self._books = QueueBooks(session, counting, accounts, paths)
        # What the books answer as they are
        self.queue_turn, self.queue_report = books.turn, books.report
        self.on_allocate, self.on_deallocate = books.add, books.remove
        self.on_job_solution_start = books.begin_trial
        self.can_reclaim_resources = books.can_reclaim

    # -- capacity -------------------------------------------------------------------------------------------------

    def is_job_over_capacity(self, job: int, rows: TaskRows) -> Capacity:
        return self._over_capacity(job, self._books.counted(rows))

    def is_non_preemptible_job_over_queue_quota(self, job: int, rows: TaskRows) -> Capacity:
        books = self._books
        return over_quota(books.path(job), books.counted(rows)) if books.is_firm(job) else SCHEDULABLE

    def is_task_allocation_on_node_over_capacity(self, task: int, node: int) -> Capacity:
        job = int(self._session.tasks.job[task])
        if job < 0 or not self._books.path(job):
            return SCHEDULABLE
        return self._over_capacity(job, self._books.accepted(task, node))

    def _over_capacity(self, job: int, amount: Amount) -> Capacity:
        return over_capacity(self._books.path(job), amount, firm=self._books.is_firm(job))

    # -- reclaiming -----------------------------------------------------------------------------------------------

    def reclaim_scenario_validator(self, outcome: Any) -> bool:
        books = self._books
        path = books.path(outcome.actor)
        if not path:
            return False
        reclaimer, losses = books.reclaimer(path, outcome), books.losses(outcome)
        return may_take(reclaimer, losses, books.before or {}, self._multiplier)


def read_arguments(session: Session, arguments: Mapping[str, Any], name: str) -> tuple[float, float]:
    """kValue and the saturation multiplier."""
    given = TextArguments(arguments, name)
    k = given.float("kValue", 1.0)
    stated = [given.float(name, None) for name in _MULTIPLIERS]
    multiplier = next((one for one in stated if one is not None), 1.0)
    report(session, given)
    if multiplier < 1.0:
        session.report(
            f"{name}: the saturation multiplier must be at least 1, found {multiplier:g}; 1 is used"
        )
    return max(k, 0.0), max(multiplier, 1.0)


__all__ = ["Proportion", "read_arguments"]
