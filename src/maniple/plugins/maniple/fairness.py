"""fairness: what queues may have of every resource, whichever system's queues they are.

Fair shares are divided as in KAI, over every resource that nodes offer (`queue_terms.py`). Ceilings and
guarantees are Volcano's (`queue_account.py`). Beyond KAI's proportion, whose accounts and rules are used
otherwise:
- a queue loses tasks only if it has too much of a resource that the reclaiming job requests: a surplus of
  another resource makes no victim;
- nothing is reclaimed from a queue with `reclaimable: false`, nor below a queue's guarantee;
- a closed queue takes no new jobs;
- a quota limits non-preemptible jobs in the resources for which their queue states one.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np

from maniple.cluster.statuses import ACTIVE_USED
from maniple.framework.points import Capacity, TaskRows
from maniple.framework.queue_tree import ROOT
from maniple.framework.session import Session
from maniple.objects.volcano import VolcanoQueue
from maniple.plugins.kai.cluster_total import cluster_total
from maniple.plugins.kai.counting import Amount, Counting, Floats
from maniple.plugins.kai.proportion import read_arguments
from maniple.plugins.kai.proportion_capacity import SCHEDULABLE
from maniple.plugins.kai.proportion_order import PARTS
from maniple.plugins.kai.proportion_reclaim import Loss, Path, Reclaimer, may_take
from maniple.plugins.kai.queue_accounts import Stated, open_accounts
from maniple.plugins.kai.queue_books import QueueBooks
from maniple.plugins.maniple.queue_account import (
    QueueAccount,
    closed,
    over_capacity,
    over_quota,
    whole_cluster,
)
from maniple.plugins.maniple.queue_terms import QueueTerms, divided, read_terms


class Fairness:
    """Arguments: `kValue`, how much past usage counts; `reclaimerSaturationMultiplier`, at least 1."""

    name = "fairness"
    key_parts: ClassVar[Mapping[str, tuple[str, ...]]] = {"queue_turn": PARTS}

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        k, self._multiplier = read_arguments(session, arguments, self.name)
        counting, tree = divided(session), session.queue_tree
        total = cluster_total(session, counting)
        accounts = _opened(session, counting, total, k)
        _report_two_parents(session)
        tops = [accounts[queue] for queue in tree.roots]
        cluster = whole_cluster((total * counting.units[:, 0]).tolist(), tops)
        for one in tops:
            one.beside = cluster.allocated
        paths = {queue: [*(accounts[one] for one in tree.path(queue)), cluster] for queue in accounts}
        books = self._books = QueueBooks(session, counting, accounts, paths)
        # What the books answer as they are
        self.queue_turn, self.queue_report = books.turn, books.report
        self.on_allocate, self.on_deallocate = books.add, books.remove
        self.on_job_solution_start = books.begin_trial
        self.can_reclaim_resources = books.can_reclaim

    # -- capacity -------------------------------------------------------------------------------------------------

    def is_job_over_capacity(self, job: int, rows: TaskRows) -> Capacity:
        shut = closed(self._books.path(job))
        if not shut.schedulable and not self._has_begun(job):
            return shut
        return self._over_capacity(job, self._books.counted(rows))

    def _has_begun(self, job: int) -> bool:
        """Something of it was there when the session opened."""
        before = self._session.cluster.tasks.status[self._session.tasks_of(job)]
        return bool(ACTIVE_USED[before].any())

    def is_non_preemptible_job_over_queue_quota(self, job: int, rows: TaskRows) -> Capacity:
        books = self._books
        if not books.is_firm(job):
            return SCHEDULABLE
        return over_quota(books.counting, books.path(job), books.counted(rows))

    def is_task_allocation_on_node_over_capacity(self, task: int, node: int) -> Capacity:
        job = int(self._session.tasks.job[task])
        if job < 0 or not self._books.path(job):
            return SCHEDULABLE
        return self._over_capacity(job, self._books.accepted(task, node))

    def _over_capacity(self, job: int, amount: Amount) -> Capacity:
        books = self._books
        return over_capacity(books.counting, books.path(job), amount, firm=books.is_firm(job))

    # -- reclaiming -----------------------------------------------------------------------------------------------

    def reclaim_victim_filter(self, actor: int, victim: int) -> bool:
        """Not from a queue that is not reclaimable, unless the reclaimer is inside it too."""
        ours = self._books.path(actor)
        return all(account.reclaimable or account in ours for account in self._books.path(victim))

    def reclaim_scenario_validator(self, outcome: Any) -> bool:
        books = self._books
        path = books.path(outcome.actor)
        if not path:
            return False
        reclaimer, losses = books.reclaimer(path, outcome), books.losses(outcome)
        return self._keeps_guarantees(reclaimer, losses) and may_take(
            reclaimer, losses, books.before or {}, self._multiplier
        )

    def _keeps_guarantees(self, reclaimer: Reclaimer, losses: Sequence[tuple[Path, Loss]]) -> bool:
        """No queue loses what is guaranteed to it; queues above both do not lose at all."""
        lost: dict[int, Floats] = {}
        for path, loss in losses:
            for account in path:
                if account not in reclaimer.path:
                    lost[account.queue] = lost.get(account.queue, 0.0) + np.array(loss.total)
        before = self._books.before or {}
        for queue, amount in lost.items():
            account = self._books.accounts[queue]
            has = np.array(before.get(queue, (account.allocated,))[0])
            if ((amount > 0) & (has - amount < account.guarantee)).any():
                return False
        return True


def _opened(session: Session, counting: Counting, total: Floats, k: float) -> Mapping[int, QueueAccount]:
    found = list[tuple[list[int], QueueTerms]]()

    def read(session: Session, queues: list[int]) -> Stated:
        terms = read_terms(session, counting, queues, total)
        found.append((queues, terms))
        return Stated(terms.quota, terms.limit, terms.weight, terms.guarantee)

    accounts = open_accounts(session, counting, total, k, read, QueueAccount)
    for queues, terms in found:
        _complete(session, accounts, queues, terms, counting.units)
    return accounts


def _report_two_parents(session: Session) -> None:
    """Queues of one name are one queue, which has one parent."""
    for queue, said in session.queues.said.items():
        parents = [facts.parent for _, facts in said.values() if facts.parent]
        if len(set(parents)) > 1:
            session.report(
                f"Queue {session.queue_name(queue)}: KAI's says that its parent is {parents[0]!r}, "
                f"Volcano's {parents[1]!r}; {parents[0]!r} counts"
            )


def _complete(
    session: Session,
    accounts: Mapping[int, QueueAccount],
    queues: list[int],
    terms: QueueTerms,
    units: Floats,
) -> None:
    """What an account has beyond KAI's."""
    quotas, guarantees, bounds, ceilings = (
        (amounts * units).T.tolist() for amounts in (terms.quota, terms.guarantee, terms.bound, terms.ceiling)
    )
    known = [bool(one) for one in np.any(terms.states, axis=1)]
    for place, queue in enumerate(queues):
        account, item = accounts[queue], session.queues.stated(queue, VolcanoQueue)
        account.guarantee, account.bound = guarantees[place], bounds[place]
        account.ceiling = ceilings[place]
        # Without a quota for a resource, no queue is above it.
        account.quota = _where(known, quotas[place])
        account.firm_quota = _where(list(terms.states[:, place]), quotas[place])
        account.open = session.queues.facts[queue].open
        account.reclaimable = item is None or item.spec.reclaimable is not False
    for parent in (ROOT, *queues):
        children = [accounts[one] for one in session.queue_tree.children(parent)]
        guaranteed = [one for one in children if any(one.guarantee)]
        for one in children:
            one.beside = accounts[parent].allocated if parent != ROOT else []
            one.guaranteed = [other for other in guaranteed if other is not one]


def _where(stated: Sequence[bool], quota: Amount) -> Amount:
    """Unlimited if unset."""
    return [amount if here else inf for amount, here in zip(quota, stated, strict=True)]


__all__ = ["Fairness"]
