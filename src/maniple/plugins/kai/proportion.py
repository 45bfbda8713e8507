"""proportion: KAI's queues and what they may have.

Fair shares of the total (`cluster_total`, `fair_share`) are computed when the session opens; allocated
amounts follow every placement and eviction, all the way up the tree. Everything else is a rule in a file of
its own: the order of queues (`proportion_order`), whether a job is within limits and quota
(`proportion_capacity`), whether a queue may reclaim (`proportion_reclaim`).

Without strict rules: an amount of GPU memory counts as the smallest part of a device that it can be when a
job is compared with limits (KAI counts nothing), the parts that tasks really hold count when victims are
measured, and no fair share exceeds the queue's request.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.arguments import TextArguments
from maniple.framework.points import Capacity, Event, Key, TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.cluster_total import cluster_total
from maniple.plugins.kai.counting import GPU, Amount, Counting
from maniple.plugins.kai.gpu_requests import whole_gpu
from maniple.plugins.kai.proportion_capacity import SCHEDULABLE, over_capacity, over_quota
from maniple.plugins.kai.proportion_order import turn
from maniple.plugins.kai.proportion_reclaim import Loss, Path, Reclaimer, Victims, can_reclaim, may_take
from maniple.plugins.kai.queue_accounts import Account, open_accounts, quantities, stated_by_kai
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

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._memory_counts = session.rules.queues.gpu_memory_counts
        self._older_first = session.rules.queues.older_first
        k, self._multiplier = _arguments(session, arguments, self.name)
        self._counting = self._resources()
        self._accounts: Mapping[int, Account] = self._open(k)
        paths = session.queue_tree.path
        self._paths = {queue: [self._accounts[one] for one in paths(queue)] for queue in self._accounts}
        self._victims = Victims(session, self._counting)
        self._units: dict[int, Amount] = {}  # class -> the request of a task
        self._by_memory: set[int] = set()  # classes that request an amount of GPU memory
        self._requests: dict[int, tuple[TaskRows, Amount]] = {}  # job -> its next tasks, and their request
        self._jobs: dict[int, tuple[int, Amount]] = {}  # job -> its version, and what it has
        self._given_up: dict[int, tuple[int, list[int], Amount]] = {}  # queue -> victims, and what they have
        self._firm: dict[int, bool] = {}
        self._moves = 0  # placements and evictions so far
        self._before: dict[int, tuple[Amount, Amount]] | None = None  # since a trial began

    def _resources(self) -> Counting:
        """What is divided."""
        return Counting(self._session)

    def _open(self, k: float) -> Mapping[int, Account]:
        session, counting = self._session, self._counting
        return open_accounts(session, counting, cluster_total(session, counting), k, stated_by_kai, Account)

    # -- amounts --------------------------------------------------------------------------------------------------

    def _asked(self, number: int) -> Amount:
        """What a task of a class counts with before its node is known."""
        known = self._units.get(number)
        if known is None:
            class_ = self._session.classes[number]
            known = self._units[number] = self._counting.asked(class_)
            if class_.share is not None and class_.share.memory:
                self._by_memory.add(number)
        return known

    def _sum(self, rows: TaskRows) -> Amount:
        """What tasks request, wherever they are."""
        numbers: list[int] = self._session.tasks.class_of[rows].tolist()
        if not numbers:
            return self._counting.nothing
        first, count = numbers[0], len(numbers)
        if numbers.count(first) == count:
            return [one * count for one in self._asked(first)]
        return _added([self._asked(number) for number in numbers])

    def _next(self, job: int) -> Amount:
        """What a job's next tasks request."""
        rows = self._session.pod_sets.to_allocate(job, simulated=True)
        known = self._requests.get(job)
        if known is None or known[0] is not rows:
            known = self._requests[job] = (rows, self._sum(rows))
        return known[1]

    def _is_firm(self, job: int) -> bool:
        known = self._firm.get(job)
        if known is None:
            known = self._firm[job] = not self._session.preemptible(job)
        return known

    def _path(self, job: int) -> Sequence[Account]:
        return self._paths.get(int(self._session.jobs.queue[job]), ())

    def _has(self, job: int) -> Amount:
        """What a job has, without what it is waiting for."""
        session, version = self._session, int(self._session.jobs.version[job])
        known = self._jobs.get(job)
        if known is None or known[0] != version:
            rows = session.tasks_of(job)
            rows = rows[ALLOCATED_LIKE[session.tasks.status[rows]]]
            if self._memory_counts:
                amount = self._counting.of_tasks(rows).sum(axis=1).tolist()
            else:
                amount = self._without_memory(rows)
            known = self._jobs[job] = (version, amount)
        return known[1]

    def _without_memory(self, rows: TaskRows) -> Amount:
        """What tasks request, with amounts of GPU memory as zero."""
        total = list(self._counting.nothing)
        for number in self._session.tasks.class_of[rows].tolist():
            for resource, amount in enumerate(self._asked(number)):
                if resource != GPU or number not in self._by_memory:
                    total[resource] += amount
        return total

    # -- order ----------------------------------------------------------------------------------------------------

    def queue_turn(self, queue: int, job: int, victims: Sequence[int]) -> Key:
        request = None if job < 0 else self._next(job)
        given_up = self._sum_of_victims(queue, victims) if victims else None
        return turn(self._accounts[queue], request, given_up, older_first=self._older_first)

    def _sum_of_victims(self, queue: int, victims: Sequence[int]) -> Amount:
        """Victims grow one at a time: only those after the last result are added, if nothing has moved since."""
        nothing = self._counting.nothing
        moves, known, total = self._given_up.get(queue, (-1, [], nothing))
        if moves != self._moves or victims[: len(known)] != known:
            known, total = [], nothing
        total = list(total)
        for job in victims[len(known) :]:
            for resource, amount in enumerate(self._has(job)):
                total[resource] += amount
        self._given_up[queue] = (self._moves, list(victims), total)
        return total

    # -- capacity -------------------------------------------------------------------------------------------------

    def is_job_over_capacity(self, job: int, rows: TaskRows) -> Capacity:
        return self._over_capacity(job, self._counted(rows))

    def is_non_preemptible_job_over_queue_quota(self, job: int, rows: TaskRows) -> Capacity:
        return self._over_quota(job, self._counted(rows)) if self._is_firm(job) else SCHEDULABLE

    def is_task_allocation_on_node_over_capacity(self, task: int, node: int) -> Capacity:
        session = self._session
        job = int(session.tasks.job[task])
        if job < 0 or not self._path(job):
            return SCHEDULABLE
        class_ = session.classes[session.tasks.class_of[task]]
        amount = self._accepted(class_, node) if self._memory_counts else self._on_one_device(class_, node)
        return self._over_capacity(job, amount)

    def _over_capacity(self, job: int, amount: Amount) -> Capacity:
        return over_capacity(self._path(job), amount, firm=self._is_firm(job))

    def _over_quota(self, job: int, amount: Amount) -> Capacity:
        return over_quota(self._path(job), amount)

    def _counted(self, rows: TaskRows) -> Amount:
        """What tasks count with when their job is compared with limits."""
        session, total = self._session, self._sum(rows)
        if not self._by_memory:
            return total
        numbers: list[int] = session.tasks.class_of[rows].tolist()
        if self._by_memory.isdisjoint(numbers):
            return total
        if not self._memory_counts or not len(session.nodes):
            return self._without_memory(rows)
        roomiest = int(np.argmax(session.gpus.memory))
        return _added([self._accepted(session.classes[number], roomiest) for number in numbers])

    def _accepted(self, class_: TaskClass, node: int) -> Amount:
        """What a task counts with on a node."""
        asked = self._asked(class_.number)
        return self._counting.accepted(class_, node) if class_.number in self._by_memory else asked

    def _on_one_device(self, class_: TaskClass, node: int) -> Amount:
        """The same, but a task with several devices, whole or in part, counts with one of them."""
        cpu, memory, gpu = self._asked(class_.number)
        share = class_.share
        if share is not None:
            gpu = round(100 * self._session.gpus.portion_on(class_, node), 6)
        elif whole_gpu(self._session, class_) is not None:
            gpu = 100.0
        return [cpu, memory, gpu]

    # -- reclaim --------------------------------------------------------------------------------------------------

    def can_reclaim_resources(self, job: int) -> bool:
        path = self._path(job)
        return bool(path) and can_reclaim(path, self._next(job), firm=self._is_firm(job))

    def on_job_solution_start(self) -> None:
        """From now on amounts are remembered: the evictions of a trial must not count in its favour."""
        self._before = {}

    def reclaim_scenario_validator(self, outcome: Any) -> bool:
        path = self._path(outcome.actor)
        if not path:
            return False
        return may_take(
            self._reclaimer(path, outcome), self._losses(outcome), self._before or {}, self._multiplier
        )

    def _reclaimer(self, path: Path, outcome: Any) -> Reclaimer:
        asked = [self._asked(number) for number in self._session.tasks.class_of[outcome.tasks].tolist()]
        amounts = np.array(asked, dtype=np.float64).reshape(-1, len(self._counting.names)).T
        involved = self._victims.involved(outcome.tasks, amounts)
        request: Amount = amounts.sum(axis=1).tolist()
        requested = [one for one, amount in enumerate(request) if amount > 0]
        of = requested if self._session.rules.queues.requested_resources_decide else None
        return Reclaimer(path, request, involved, self._is_firm(outcome.actor), of)

    def _losses(self, outcome: Any) -> list[tuple[Path, Loss]]:
        losses = self._victims.losses(outcome.victims)
        return [(self._paths[queue], loss) for queue, loss in losses.items() if queue in self._paths]

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        self._change(event, +1)

    def on_deallocate(self, event: Event) -> None:
        self._change(event, -1)

    def _change(self, event: Event, sign: int) -> None:
        path = self._path(event.job) if event.job >= 0 else ()
        if not path:
            return
        self._moves += 1
        taken = [(resource, more) for resource, more in enumerate(self._taken(event, sign)) if more]
        firm = self._is_firm(event.job)
        for account in path:
            if self._before is not None and account.queue not in self._before:
                self._before[account.queue] = (list(account.allocated), list(account.firm))
            for amount in (account.allocated, account.firm) if firm else (account.allocated,):
                for resource, more in taken:
                    amount[resource] += more

    def _taken(self, event: Event, sign: int) -> Amount:
        class_, count = event.class_, sign * len(event.rows)
        asked = self._asked(class_.number)
        if class_.number not in self._by_memory:
            return [one * count for one in asked]
        return [sign * one for one in _added([self._accepted(class_, node) for node in event.nodes.tolist()])]

    # -- reports --------------------------------------------------------------------------------------------------

    def queue_allocated(self, queue: int) -> Any:
        return quantities(self._accounts[queue].allocated)

    def queue_deserved(self, queue: int) -> Any:
        """The quota."""
        return quantities(self._accounts[queue].quota)

    def queue_fair_share(self, queue: int) -> Any:
        return quantities(self._accounts[queue].fair)

    def queue_report(self, queue: int) -> Mapping[str, NDArray[Any] | float]:
        """Amounts of a queue and those below it as of now; empty for one outside the tree.

        `deserved` is its fair share. `counted` are the dimensions that limit queues; other dimensions do not
        count.
        """
        account = self._accounts.get(queue)
        if account is None:
            return {}
        return {
            "deserved": self._vector(account.fair),
            "allocated": self._vector(account.allocated),
            "capability": self._vector(account.limit),
            "quota": self._vector(account.quota),
            "counted": self._counted_dimensions(),
            "share": account.share(account.allocated),
        }

    def _counted_dimensions(self) -> NDArray[np.intp]:
        gpu = self._session.gpus.reported_as
        named = [CPU, MEMORY, *([gpu] if gpu is not None else []), *self._counting.others]
        return np.array(named, dtype=np.intp)

    def _vector(self, amount: Sequence[float]) -> NDArray[np.float64]:
        """An amount in the session's dimensions."""
        vector = np.zeros(len(self._session.total), dtype=np.float64)
        vector[CPU], vector[MEMORY] = amount[CPU], amount[MEMORY]
        dimension = self._session.gpus.reported_as
        if dimension is not None:
            vector[dimension] = amount[GPU] * 10
        vector[self._counting.others] = amount[GPU + 1 :]
        return vector


def _added(amounts: Sequence[Amount]) -> Amount:
    return [sum(column) for column in zip(*amounts, strict=True)]


def _arguments(session: Session, arguments: Mapping[str, Any], name: str) -> tuple[float, float]:
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


__all__ = ["Proportion"]
