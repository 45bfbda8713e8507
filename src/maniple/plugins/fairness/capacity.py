"""capacity: each queue states what it deserves; it may lend and borrow, and only its ceiling limits it.

share = max over the resources that a queue deserves of allocated / deserved; a queue that deserves nothing
has share 1. Queues are ordered by priority, then by share, then those that deserve something first; in a tree
two queues are compared by their branches just below their common ancestor. A task is allocated while
allocated + reserved + its request <= ceiling, in its queue and in all queues above it. A queue may reclaim
while, with the tasks added, it stays below its ceiling and within what it deserves in one of the resources
they request. A job is admitted while minimum + allocated + kept for admitted jobs - elastic <= ceiling, in
its queue and in all above it.

Deserved amounts and ceilings are computed in `capacity_tree.py`, victims in `capacity_reclaim.py`, device
quotas in `device_book.py`, reservations for tasks behind scheduling gates in `gate_reservations.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.eviction.asking import next_tasks
from maniple.framework.combine import Vote
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import QueueRefusal
from maniple.framework.session import Session
from maniple.framework.victim_order import in_victim_order
from maniple.plugins.candidates import served_jobs
from maniple.plugins.fairness.amounts import named
from maniple.plugins.fairness.capacity_account import CapacityAccount
from maniple.plugins.fairness.capacity_order import standing, standing_in_tree, victim_standing
from maniple.plugins.fairness.capacity_reclaim import Candidate, Reclaim
from maniple.plugins.fairness.capacity_tree import Accounts, in_a_tree, side_by_side
from maniple.plugins.fairness.device_book import DeviceBook
from maniple.plugins.fairness.gate_reservations import GateReservations
from maniple.plugins.fairness.min_resources import MinResources
from maniple.plugins.fairness.queue_amounts import REFUSED, sums_by_queue
from maniple.plugins.fairness.queue_lineage import ASSUMED_ROOT, lineage
from maniple.plugins.settings import is_hierarchical, report

NO_ROOT = "capacity: there is no queue 'root'; one without limits is assumed"


@dataclass(frozen=True, slots=True)
class CapacityArguments:
    """The two switches are Kubernetes feature gates that are on unless turned off."""

    ancestor_levels: int = 0
    devices: bool = True
    device_capacities: bool = True

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "CapacityArguments":
        given = Arguments(values, Capacity.name)
        levels = given.int("ancestorReclaimLevel", 0)
        devices = given.bool("capacity.DynamicResourceAllocationEnable", True)
        capacities = given.bool("capacity.DRAConsumableCapacityEnable", True)
        report(session, given)
        if levels < 0:
            session.report(
                f"capacity: argument ancestorReclaimLevel must be at least 0, found {levels}, keeping 0"
            )
        return cls(max(levels, 0), devices, capacities)


class Capacity:
    name = "capacity"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        given = CapacityArguments.read(session, arguments)
        self._session = session
        self._claims = MinResources.of(session)
        self._served = served_jobs(session)
        self._queue_of: list[int] = session.jobs.queue.tolist()
        self._requests: dict[int, list[int]] = {}
        self._stopped = ""  # why no job is scheduled; strict rules only
        self._tree = is_hierarchical(session, self.name)
        self._levels = given.ancestor_levels  # queues that form no tree have no ancestors
        if self._tree:
            self._accounts = self._open_tree()
            # Only this mode implements one more extension point.
            self.victim_queue_order = self._victim_queue_order
        else:
            self._accounts = side_by_side(session, sums_by_queue(session, self._claims))
        book = (
            DeviceBook(session, self._accounts, consumable=given.device_capacities) if given.devices else None
        )
        self._devices = book if book is not None and book.is_needed else None
        self._gates = GateReservations(session, self._account_of, self._request)
        if self._devices is None and not self._gates.is_needed:
            # Nothing but amounts decides then.
            self.queue_room = self._queue_room
        self._explain()

    def _open_tree(self) -> Accounts:
        session = self._session
        tree = lineage(session)
        accounts = in_a_tree(session, sums_by_queue(session, self._claims), tree)
        if session.rules.queues.bad_queue_stops_all:
            self._stopped = tree.stops_everything(session)
            if self._stopped:
                session.report(f"capacity: {self._stopped}")
        elif tree.root == ASSUMED_ROOT:
            session.report(NO_ROOT)
        for queue, refusal in tree.refusals(session).items():
            accounts[queue].refusal = refusal
            if queue in tree.problems:
                session.report(f"capacity: {refusal}")
        for queue, account in accounts.items():
            account.inner = queue in tree.inner
            account.refusal = self._stopped or account.refusal
        return accounts

    def _explain(self) -> None:
        """Report to pending jobs that their queue accepts none."""
        jobs, closed_reason = (
            self._session.jobs,
            [queue for queue, account in self._accounts.items() if account.closed_reason],
        )
        waiting = np.isin(jobs.queue[jobs.rows], closed_reason) & (jobs.counts[Status.PENDING, jobs.rows] > 0)
        for job in jobs.rows[waiting].tolist():
            self._session.refusals.of_job(job, self._account_of(job).closed_reason)

    # -- order ----------------------------------------------------------------------------------------------------

    def queue_order(self, queue: int) -> tuple[Any, ...]:
        account = self._accounts[queue]
        if self._stopped:
            return ()
        if not self._tree:
            return standing(account)
        return standing_in_tree(account, deep_ties=not self._session.rules.queues.deep_ties_are_equal)

    def _victim_queue_order(self, queue: int, asking: int) -> int:
        if self._stopped:
            return 0
        return victim_standing(self._accounts[queue], self._accounts[asking])

    # -- limits ---------------------------------------------------------------------------------------------------

    def allocatable(self, queue: int, class_: TaskClass, count: int) -> int:
        return self.simulated_allocatable(queue, class_, count) if self._accounts[queue].open else 0

    def simulated_allocatable(self, queue: int, class_: TaskClass, count: int) -> int:
        account = self._accounts[queue]
        if account.refusal:
            return 0
        request, covered = self._request(class_), self._gates.covers(class_)
        final = self._session.rules.queues.gate_places_are_final
        room = count
        for held in account.path:
            room = held.spare(request, room, beside=not covered or final)
            if room < 0:
                return 0
        if covered and final:
            room = count
        return self._devices.room(account, class_, room) if self._devices is not None and room else room

    def _queue_room(self, queue: int) -> list[list[float]]:
        account = self._accounts[queue]
        if account.closed_reason:
            return [[0] * len(account.allocated)]
        return [held.left() for held in account.path]

    def preemptive(self, queue: int, rows: TaskRows) -> bool:
        account = self._accounts[queue]
        together: list[int] = self._session.requests(rows).sum(axis=1).tolist()
        if account.closed_reason or account.spare(together, 1, beside=False) < 1:
            return False
        return any(held.lacks(together) for held in self._entitling(account))

    def _entitling(self, account: CapacityAccount) -> list[CapacityAccount]:
        """The queue, and those of its ancestors whose share it may claim."""
        return [account, *(ancestor for ancestor in account.above[: self._levels] if ancestor.above)]

    # -- victims --------------------------------------------------------------------------------------------------

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        tasks = self._session.tasks
        job = int(tasks.job[task])
        if not self._served[job] or self._account_of(job).refusal:
            return candidates[:0]
        asking = self._request(self._session.classes[tasks.class_of[task]])
        rows = self._in_session(in_victim_order(self._session, task, candidates))
        reclaim = Reclaim(self._account_of(job), asking, self._levels, self._barred(job))
        return rows[_mask(reclaim.victims(self._candidates(rows)))]

    def _barred(self, job: int) -> set[int]:
        """Resources that a job may not reclaim: its queue would then exceed what it deserves of them."""
        session = self._session
        if not session.rules.queues.reclaim_within_deserved:
            return set()
        own = session.tasks_of(job)
        waiting = own[(session.tasks.status[own] == Status.PENDING) & ~session.tasks.gated[own]]
        asked = next_tasks(session, job, session.in_task_order(waiting))
        together: list[int] = session.requests(asked).sum(axis=1).tolist()
        entitling = [one for one in self._entitling(self._account_of(job)) if one.lacks(together)]
        return set.intersection(*(one.exceeded(together) for one in entitling)) if entitling else set()

    def unified_evictable(self, task: int, candidates: TaskRows) -> TaskRows:
        """Across queues this is reclaim; within a queue it is preemption, which capacity leaves to others."""
        job = int(self._session.tasks.job[task])
        if not self._served[job]:
            return candidates[:0]
        rows = self._in_session(candidates)
        queues = self._session.jobs.queue[self._session.tasks.job[rows]]
        across: NDArray[np.bool_] = queues != self._queue_of[job]
        allowed = ~across
        asker = self._account_of(job)
        if not asker.refusal:
            allowed[across] = Reclaim(asker).victims(self._candidates(rows[across]))
        return rows[allowed]

    def _in_session(self, rows: TaskRows) -> TaskRows:
        return rows[self._served[self._session.tasks.job[rows]]]

    def _candidates(self, rows: TaskRows) -> list[Candidate]:
        tasks, classes = self._session.tasks, self._session.classes
        return [
            (self._account_of(job), self._request(classes[number]))
            for job, number in zip(tasks.job[rows].tolist(), tasks.class_of[rows].tolist(), strict=True)
        ]

    # -- admission ------------------------------------------------------------------------------------------------

    def job_enqueueable(self, job: int) -> Vote:
        account = self._account_of(job)
        refusal = account.closed_reason
        if not refusal and (self._claims.states(job) or self._wants_devices(job)):
            refusal = self._too_much(account, job)
        if refusal:
            self._session.refusals.of_job(job, refusal)
        return Vote.REJECT if refusal else Vote.PERMIT

    def job_enqueued(self, job: int) -> None:
        if self._claims.states(job):
            kept = self._claims.on_entry(job)
            for account in self._account_of(job).path:
                account.keep(kept)
        if self._devices is not None and self._wants_devices(job):
            self._devices.entered(job)

    def _too_much(self, account: CapacityAccount, job: int) -> str:
        """What the first queue from here up has too little of; empty if all have enough."""
        wanted, unoffered = self._claims.wanted(job), self._claims.unoffered(job)
        for queue in account.path:
            short = [self._session.resources.names[dimension] for dimension in queue.short_of(wanted)]
            devices = self._devices.short_of(queue, job) if self._devices is not None else []
            if short or unoffered or devices:
                what = REFUSED if queue is account else f"{REFUSED} in queue {queue.name} above"
                return QueueRefusal(named(what, "insufficient", [*short, *unoffered, *devices]))
        return ""

    def _wants_devices(self, job: int) -> bool:
        return self._devices is not None and self._devices.needs_devices(job)

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        if self._served[event.job]:
            self._change(event, len(event.rows))
            self._gates.allocated(event)
            if self._devices is not None:
                self._devices.allocated(event)

    def on_deallocate(self, event: Event) -> None:
        if self._served[event.job]:
            self._change(event, -len(event.rows))
            self._gates.deallocated(event)
            if self._devices is not None:
                self._devices.deallocated(event)

    def on_admit(self, event: Event) -> None:
        if self._served[event.job]:
            self._gates.admitted(event)

    def _change(self, event: Event, count: int) -> None:
        request, account = self._request(event.class_), self._account_of(event.job)
        account.add(request, count)
        account.measure()
        for ancestor in account.above:
            ancestor.add(request, count)
            if self._session.rules.queues.ancestors_follow:
                ancestor.measure()

    def _account_of(self, job: int) -> CapacityAccount:
        return self._accounts[self._queue_of[job]]

    def _request(self, class_: TaskClass) -> list[int]:
        known = self._requests.get(class_.number)
        if known is None:
            known = self._requests[class_.number] = class_.request.tolist()
        return known

    # -- reports --------------------------------------------------------------------------------------------------

    def queue_report(self, queue: int) -> Mapping[str, NDArray[Any] | float]:
        """Amounts of a queue as of now, with those of queues below it; empty for one that takes no part."""
        account = self._accounts.get(queue)
        if account is None:
            return {}
        return {
            "deserved": np.array(account.deserved, dtype=np.float64),
            "allocated": np.array(account.allocated, dtype=np.int64),
            "capability": np.array(account.ceiling, dtype=np.float64),
            "share": account.share,
        }


def _mask(flags: Sequence[bool]) -> NDArray[np.bool_]:
    return np.array(flags, dtype=np.bool_)
