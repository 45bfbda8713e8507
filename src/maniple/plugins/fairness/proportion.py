"""proportion: queues share the cluster by weight, each up to what it requests.

deserved comes from water filling (`water_filling.py`) under each queue's ceiling (`ceilings.py`). share = max
over resources of allocated / deserved. Queues are ordered by priority, then by share. A queue that has all it
deserves is overused; a task is not allocated if its queue would exceed what it deserves of a resource that
the task requests. A job is admitted while minimum + allocated + kept for admitted jobs - elastic <= ceiling
in every resource of its minimum, where elastic = what jobs have beyond their minimums. Only queues with a job
in the session take part. Reclaim leaves a queue what it is guaranteed. With `preempt` among the actions, what
lower-priority jobs of the queue hold does not keep a job out.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS
from maniple.framework.combine import Vote
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import QueueRefusal
from maniple.framework.session import Session
from maniple.plugins.candidates import served_jobs, sums_before
from maniple.plugins.fairness.amounts import TOLERANCE, at_most, named, sums_by_group
from maniple.plugins.fairness.ceilings import ceilings
from maniple.plugins.fairness.min_resources import MinResources
from maniple.plugins.fairness.queue_amounts import REFUSED, QueueAmounts, sums_by_queue
from maniple.plugins.fairness.water_filling import Vectors, water_fill
from maniple.plugins.settings import takes_none


@dataclass(slots=True, eq=False, kw_only=True)
class Account(QueueAmounts):
    """One queue."""

    most: list[int]  # deserved in whole base units: the most that may be allocated
    floors: list[tuple[int, int]]  # dimensions and amounts that reclaim leaves the queue

    def room(self, request: Sequence[int], count: int) -> int:
        """How many of `count` equal requests fit below what the queue deserves; `pods` does not count."""
        for dimension, amount in enumerate(request):
            if amount > 0 and dimension != PODS:
                count = min(count, (self.most[dimension] - self.allocated[dimension]) // amount)
        return max(count, 0)

    def left(self) -> list[float]:
        """What the queue may still be allocated."""
        if not self.open:
            return [0] * len(self.most)
        left: list[float] = [most - had for most, had in zip(self.most, self.allocated, strict=True)]
        left[PODS] = math.inf
        return left

    def leaves_floors(self, request: Sequence[int], taken: Sequence[int]) -> bool:
        """Whether the queue keeps its floors if it loses this request after what was taken."""
        return all(
            not request[dimension]
            or self.allocated[dimension] - taken[dimension] - request[dimension] >= floor
            for dimension, floor in self.floors
        )


class Proportion:
    """No arguments."""

    name = "proportion"
    key_parts: ClassVar[Mapping[str, tuple[str, ...]]] = {"queue_order": ("priority, negated", "share")}

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._claims = MinResources.of(session)
        self._served = served_jobs(session)
        self._queue_of: list[int] = session.jobs.queue.tolist()
        self._requests: dict[int, list[int]] = {}
        self._accounts = _accounts(session, self._claims)
        self._any_floors = any(account.floors for account in self._accounts.values())

    # -- order and limits -----------------------------------------------------------------------------------------

    def queue_order(self, queue: int) -> tuple[int, float]:
        account = self._accounts[queue]
        account.measure()
        return (-account.priority, account.share)

    def overused(self, queue: int) -> bool:
        """Whether every resource that the queue deserves is used up."""
        account = self._accounts[queue]
        pairs = zip(account.deserved, account.allocated, strict=True)
        return all(deserved - allocated < TOLERANCE for deserved, allocated in pairs)

    def allocatable(self, queue: int, class_: TaskClass, count: int) -> int:
        return self.simulated_allocatable(queue, class_, count) if self._accounts[queue].open else 0

    def simulated_allocatable(self, queue: int, class_: TaskClass, count: int) -> int:
        return self._accounts[queue].room(self._request(class_), count)

    def queue_room(self, queue: int) -> list[list[float]]:
        return [self._accounts[queue].left()]

    def preemptive(self, queue: int, rows: TaskRows) -> bool:
        account = self._accounts[queue]
        together: list[int] = self._session.requests(rows).sum(axis=1).tolist()
        return account.open and account.room(together, 1) > 0

    def reclaimable(self, _task: int, candidates: TaskRows) -> TaskRows:
        """Tasks of a queue in order, as long as it exceeds what it deserves of any resource.

        Tasks that a queue needs for its guarantee are passed over.
        """
        job_of = self._session.tasks.job
        candidates = self._above_floors(candidates[self._served[job_of[candidates]]])
        if not len(candidates):
            return candidates
        queues = self._session.jobs.queue[job_of[candidates]]
        accounts = [self._accounts[queue] for queue in queues.tolist()]
        requests = self._session.requests(candidates)
        if accounts.count(accounts[0]) == len(accounts):
            accounts, taken = accounts[:1], requests.cumsum(axis=1) - requests
        else:
            taken = sums_before(requests, queues)
        allocated = np.array([account.allocated for account in accounts], dtype=np.int64).T
        deserved = np.array([account.deserved for account in accounts], dtype=np.float64).T
        return candidates[~at_most(allocated - taken, deserved)]

    def _above_floors(self, candidates: TaskRows) -> TaskRows:
        """Without those that would bring their queue below a floor, once those before them are gone."""
        if not self._any_floors:
            return candidates
        tasks = self._session.tasks
        queues = self._session.jobs.queue[tasks.job[candidates]].tolist()
        keep, taken = [], {queue: [0] * len(self._session.total) for queue in queues}
        for place, (queue, row) in enumerate(zip(queues, candidates.tolist(), strict=True)):
            request = self._request(self._session.classes[tasks.class_of[row]])
            if self._accounts[queue].leaves_floors(request, taken[queue]):
                taken[queue] = [had + amount for had, amount in zip(taken[queue], request, strict=True)]
                keep.append(place)
        return candidates[keep]

    # -- admission ------------------------------------------------------------------------------------------------

    def job_enqueueable(self, job: int) -> Vote:
        queue = self._queue_of[job]
        account, claims = self._accounts[queue], self._claims
        if not account.open:
            self._session.refusals.of_job(job, f"queue {self._session.queue_name(queue)} is not open")
            return Vote.REJECT
        if not claims.states(job):
            return Vote.PERMIT
        short = account.short_of(claims.wanted(job), self._yielding(job, queue))
        unoffered = claims.unoffered(job)
        if not short and not unoffered:
            return Vote.PERMIT
        names = [*(self._session.resources.names[dimension] for dimension in short), *unoffered]
        self._session.refusals.of_job(job, QueueRefusal(named(REFUSED, "insufficient", names)))
        return Vote.REJECT

    def _yielding(self, job: int, queue: int) -> Sequence[int] | None:
        """What lower-priority jobs of the queue would have to release for this one; None if nothing preempts
        them.

        Without `queues.preemptors_enter` a full queue also refuses a job that could preempt.
        """
        if not self._session.rules.queues.preemptors_enter or "preempt" not in self._session.actions:
            return None
        priorities, sums = self._lower_priority.get(queue, ([], []))
        place = bisect_left(priorities, int(self._session.jobs.priority[job]))
        return sums[place - 1] if place else None

    @cached_property
    def _lower_priority(self) -> dict[int, tuple[list[int], list[list[int]]]]:
        """By queue: priorities in ascending order, and what jobs up to each of them have allocated."""
        jobs, found = self._session.jobs, {}
        for queue in self._accounts:
            rows = jobs.rows[jobs.queue[jobs.rows] == queue]
            priorities, position = np.unique(jobs.priority[rows], return_inverse=True)
            sums = sums_by_group(jobs.allocated[:, rows], position, len(priorities)).cumsum(axis=1)
            found[queue] = (priorities.tolist(), sums.T.tolist())
        return found

    def job_enqueued(self, job: int) -> None:
        if self._claims.states(job):
            self._accounts[self._queue_of[job]].keep(self._claims.on_entry(job))

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        if self._served[event.job]:
            account = self._accounts[self._queue_of[event.job]]
            account.add(self._request(event.class_), len(event.rows))

    def on_deallocate(self, event: Event) -> None:
        if self._served[event.job]:
            account = self._accounts[self._queue_of[event.job]]
            account.add(self._request(event.class_), -len(event.rows))

    def _request(self, class_: TaskClass) -> list[int]:
        known = self._requests.get(class_.number)
        if known is None:
            known = self._requests[class_.number] = class_.request.tolist()
        return known

    # -- reports --------------------------------------------------------------------------------------------------

    def deserved(self, queue: int) -> Vectors:
        """What a queue deserves; nothing for one without jobs."""
        account = self._accounts.get(queue)
        if account is None:
            return np.zeros(len(self._session.total), dtype=np.float64)
        return np.array(account.deserved, dtype=np.float64)

    def queue_report(self, queue: int) -> Mapping[str, NDArray[Any] | float]:
        """Amounts of a queue as of now; empty for one without jobs.

        `capability` is the effective ceiling.
        """
        account = self._accounts.get(queue)
        if account is None:
            return {}
        account.measure()
        return {
            "deserved": self.deserved(queue),
            "allocated": np.array(account.allocated, dtype=np.int64),
            "capability": np.array(account.ceiling, dtype=np.float64),
            "share": account.share,
        }


# -- opening ------------------------------------------------------------------------------------------------------


def _accounts(session: Session, claims: MinResources) -> dict[int, Account]:
    sums = sums_by_queue(session, claims)
    facts = [session.queues.facts[queue] for queue in sums.queues.tolist()]
    limits = ceilings(session, sums.queues)
    weights = np.array([fact.weight for fact in facts], dtype=np.int64)
    request = sums.allocated + sums.pending
    # Sums of fractions depend on the order of the terms, which must not be the input order of queues.
    by_name = np.array(
        sorted(range(len(facts)), key=lambda place: session.queue_name(int(sums.queues[place]))),
        dtype=np.intp,
    )
    deserved = np.zeros(request.shape, dtype=np.float64)
    deserved[:, by_name] = water_fill(
        session.total,
        weights[by_name],
        request[:, by_name],
        limits.limit[:, by_name],
        limits.guarantee[:, by_name],
    )
    # A part may come out slightly too small.
    most = np.floor(deserved if session.rules.queues.rounding_errors_count else deserved + TOLERANCE).astype(
        np.int64
    )
    keeps = session.rules.queues.reclaim_keeps_guarantees
    accounts = {}
    for place, (queue, fact) in enumerate(zip(sums.queues.tolist(), facts, strict=True)):
        accounts[queue] = Account(
            open=fact.open,
            priority=fact.priority,
            allocated=sums.allocated[:, place].tolist(),
            deserved=deserved[:, place].tolist(),
            most=most[:, place].tolist(),
            floors=[
                (dimension, floor)
                for dimension, floor in enumerate(limits.guarantee[:, place].tolist())
                if keeps and floor > 0
            ],
            ceiling=limits.ceiling[:, place].tolist(),
            kept=sums.kept[:, place].tolist(),
            elastic=sums.elastic[:, place].tolist(),
        )
    return accounts
