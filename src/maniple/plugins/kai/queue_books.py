"""The books of queues: what every queue on a job's way up the tree has, and what tasks count with there.

Kept by `proportion` and by Maniple's `fairness`, which differ in the accounts that they open and in the rules
that they hold jobs to. What queues have follows every placement and eviction, on the whole way up the tree.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.points import Event, Key, TaskRows
from maniple.framework.session import Session
from maniple.plugins.kai.counting import GPU, Amount, Counting
from maniple.plugins.kai.gpu_requests import whole_gpu
from maniple.plugins.kai.proportion_order import turn
from maniple.plugins.kai.proportion_reclaim import Loss, Path, QueueLosses, Reclaimer, can_reclaim
from maniple.plugins.kai.queue_accounts import AnyAccount


class QueueBooks(Generic[AnyAccount]):
    """The accounts of one session, and the way up from each queue."""

    def __init__(
        self,
        session: Session,
        counting: Counting,
        accounts: Mapping[int, AnyAccount],
        paths: Mapping[int, Sequence[AnyAccount]],
    ) -> None:
        self.counting = counting
        self.accounts = accounts
        self.before: dict[int, tuple[Amount, Amount]] | None = None  # since a trial began
        self._session = session
        self._paths = paths
        self._memory_counts = session.rules.queues.gpu_memory_counts
        self._older_first = session.rules.queues.older_first
        self._victims = QueueLosses(session, counting)
        self._units: dict[int, Amount] = {}  # class -> the request of a task
        self._by_memory: set[int] = set()  # classes that request an amount of GPU memory
        self._requests: dict[int, tuple[TaskRows, Amount]] = {}  # job -> its next tasks, and their request
        self._jobs: dict[int, tuple[int, Amount]] = {}  # job -> its version, and what it has
        self._given_up: dict[int, tuple[int, list[int], Amount]] = {}  # queue -> victims, and what they have
        self._firm: dict[int, bool] = {}
        self._moves = 0  # placements and evictions so far

    # -- amounts --------------------------------------------------------------------------------------------------

    def asked(self, number: int) -> Amount:
        """What a task of a class counts with before its node is known."""
        known = self._units.get(number)
        if known is None:
            class_ = self._session.classes[number]
            known = self._units[number] = self.counting.asked(class_)
            if class_.share is not None and class_.share.memory:
                self._by_memory.add(number)
        return known

    def _sum(self, rows: TaskRows) -> Amount:
        """What tasks request, wherever they are."""
        numbers: list[int] = self._session.tasks.class_of[rows].tolist()
        if not numbers:
            return self.counting.nothing
        first, count = numbers[0], len(numbers)
        if numbers.count(first) == count:
            return [one * count for one in self.asked(first)]
        return _added([self.asked(number) for number in numbers])

    def next_request(self, job: int) -> Amount:
        """What a job's next tasks request."""
        rows = self._session.groups.to_allocate(job, simulated=True)
        known = self._requests.get(job)
        if known is None or known[0] is not rows:
            known = self._requests[job] = (rows, self._sum(rows))
        return known[1]

    def is_firm(self, job: int) -> bool:
        known = self._firm.get(job)
        if known is None:
            known = self._firm[job] = not self._session.preemptible(job)
        return known

    def path(self, job: int) -> Sequence[AnyAccount]:
        return self._paths.get(int(self._session.jobs.queue[job]), ())

    def _has(self, job: int) -> Amount:
        """What a job has, without what it is waiting for."""
        session, version = self._session, int(self._session.jobs.version[job])
        known = self._jobs.get(job)
        if known is None or known[0] != version:
            rows = session.tasks_of(job)
            rows = rows[ALLOCATED_LIKE[session.tasks.status[rows]]]
            if self._memory_counts:
                amount = self.counting.of_tasks(rows).sum(axis=1).tolist()
            else:
                amount = self._without_memory(rows)
            known = self._jobs[job] = (version, amount)
        return known[1]

    def _without_memory(self, rows: TaskRows) -> Amount:
        """What tasks request, with amounts of GPU memory as zero."""
        total = list(self.counting.nothing)
        for number in self._session.tasks.class_of[rows].tolist():
            for resource, amount in enumerate(self.asked(number)):
                if resource != GPU or number not in self._by_memory:
                    total[resource] += amount
        return total

    def accepted(self, task: int, node: int) -> Amount:
        """What a task counts with on a node when it is held to limits there."""
        class_ = self._session.classes[self._session.tasks.class_of[task]]
        return self._accepted(class_, node) if self._memory_counts else self._on_one_device(class_, node)

    def counted(self, rows: TaskRows) -> Amount:
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
        asked = self.asked(class_.number)
        return self.counting.accepted(class_, node) if class_.number in self._by_memory else asked

    def _on_one_device(self, class_: TaskClass, node: int) -> Amount:
        """The same, but a task with several devices, whole or in part, counts with one of them."""
        cpu, memory, gpu = self.asked(class_.number)
        share = class_.share
        if share is not None:
            gpu = round(100 * self._session.gpus.portion_on(class_, node), 6)
        elif whole_gpu(self._session, class_) is not None:
            gpu = 100.0
        return [cpu, memory, gpu]

    # -- order ----------------------------------------------------------------------------------------------------

    def turn(self, queue: int, job: int, victims: Sequence[int]) -> Key:
        request = None if job < 0 else self.next_request(job)
        given_up = self._sum_of_victims(queue, victims) if victims else None
        return turn(self.accounts[queue], request, given_up, older_first=self._older_first)

    def _sum_of_victims(self, queue: int, victims: Sequence[int]) -> Amount:
        """Victims grow one at a time: only those after the last result are added, if nothing has moved since."""
        nothing = self.counting.nothing
        moves, known, total = self._given_up.get(queue, (-1, [], nothing))
        if moves != self._moves or victims[: len(known)] != known:
            known, total = [], nothing
        total = list(total)
        for job in victims[len(known) :]:
            for resource, amount in enumerate(self._has(job)):
                total[resource] += amount
        self._given_up[queue] = (self._moves, list(victims), total)
        return total

    # -- trials ---------------------------------------------------------------------------------------------------

    def can_reclaim(self, job: int) -> bool:
        """Whether a job's queue stays within its share with the job's next tasks."""
        path = self.path(job)
        return bool(path) and can_reclaim(path, self.next_request(job), firm=self.is_firm(job))

    def begin_trial(self) -> None:
        """From here on amounts are remembered as they are now: what a trial evicts must not speak for it."""
        self.before = {}

    def reclaimer(self, path: Path, outcome: Any) -> Reclaimer:
        asked = [self.asked(number) for number in self._session.tasks.class_of[outcome.tasks].tolist()]
        amounts = np.array(asked, dtype=np.float64).reshape(-1, len(self.counting.names)).T
        involved = self._victims.involved(outcome.tasks, amounts)
        request: Amount = amounts.sum(axis=1).tolist()
        requested = [one for one, amount in enumerate(request) if amount > 0]
        of = requested if self._session.rules.queues.requested_resources_decide else None
        return Reclaimer(path, request, involved, self.is_firm(outcome.actor), of)

    def losses(self, outcome: Any) -> list[tuple[Path, Loss]]:
        losses = self._victims.losses(outcome.victims)
        return [(self._paths[queue], loss) for queue, loss in losses.items() if queue in self._paths]

    # -- following ------------------------------------------------------------------------------------------------

    def add(self, event: Event) -> None:
        self._change(event, +1)

    def remove(self, event: Event) -> None:
        self._change(event, -1)

    def _change(self, event: Event, sign: int) -> None:
        path = self.path(event.job) if event.job >= 0 else ()
        if not path:
            return
        self._moves += 1
        taken = [(resource, more) for resource, more in enumerate(self._taken(event, sign)) if more]
        firm = self.is_firm(event.job)
        for account in path:
            if self.before is not None and account.queue not in self.before:
                self.before[account.queue] = (list(account.allocated), list(account.firm))
            for amount in (account.allocated, account.firm) if firm else (account.allocated,):
                for resource, more in taken:
                    amount[resource] += more

    def _taken(self, event: Event, sign: int) -> Amount:
        class_, count = event.class_, sign * len(event.rows)
        asked = self.asked(class_.number)
        if class_.number not in self._by_memory:
            return asked if count == 1 else [one * count for one in asked]
        return [sign * one for one in _added([self._accepted(class_, node) for node in event.nodes.tolist()])]

    # -- telling --------------------------------------------------------------------------------------------------

    def report(self, queue: int) -> Mapping[str, NDArray[Any] | float]:
        """Amounts of a queue and those below it as of now; empty for one outside the tree.

        `deserved` is its fair share. `counted` are the dimensions that limit queues; other dimensions do not
        count.
        """
        account = self.accounts.get(queue)
        if account is None:
            return {}
        return {
            "deserved": self.vector(account.fair),
            "allocated": self.vector(account.allocated),
            "capability": self.vector(account.limit),
            "quota": self.vector(account.quota),
            "counted": self._counted_dimensions(),
            "share": account.share(account.allocated),
        }

    def _counted_dimensions(self) -> NDArray[np.intp]:
        gpu = self._session.gpus.reported_as
        named = [CPU, MEMORY, *([gpu] if gpu is not None else []), *self.counting.others]
        return np.array(named, dtype=np.intp)

    def vector(self, amount: Sequence[float]) -> NDArray[np.float64]:
        """An amount in the session's dimensions."""
        vector = np.zeros(len(self._session.total), dtype=np.float64)
        vector[CPU], vector[MEMORY] = amount[CPU], amount[MEMORY]
        dimension = self._session.gpus.reported_as
        if dimension is not None:
            vector[dimension] = amount[GPU] * 10
        vector[self.counting.others] = amount[GPU + 1 :]
        return vector


def _added(amounts: Sequence[Amount]) -> Amount:
    return [sum(column) for column in zip(*amounts, strict=True)]


__all__ = ["QueueBooks"]
