"""The device quotas of all queues in one session: the claims of each, and what is kept for jobs.

Called by capacity, and only made if some queue has a device quota. A job's minimum of devices is what the
first tasks of each role claim, as many as the role's minimum says; without minimums of roles, what its first
tasks with claims do, up to the job's own minimum. A claim that several of them use, or that the queue holds
already, counts once.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.plugins.fairness.capacity_account import CapacityAccount
from maniple.plugins.fairness.device_quota import (
    Amount,
    Claims,
    Demand,
    DeviceClaims,
    DeviceQuota,
    Measure,
    claims_anything,
    limits_of,
    total,
)
from maniple.plugins.fairness.queue_terms import queue_spec


class DeviceBook:
    """`accounts` are by queue row; those of queues with a device quota get it here."""

    def __init__(
        self, session: Session, accounts: Mapping[int, CapacityAccount], *, consumable: bool
    ) -> None:
        self._session = session
        self._rules = session.rules.devices
        self._accounts = accounts
        self._claims = DeviceClaims(session, consumable=consumable)
        for queue, account in accounts.items():
            limits = limits_of(queue_spec(session, queue).capability) if queue >= 0 else {}
            if limits:
                account.devices = DeviceQuota(limits, zero_counts_limit=self._rules.zero_counts_limit)
        self.is_needed = any(account.devices is not None for account in accounts.values())
        if self.is_needed:
            self._open()

    def _open(self) -> None:
        """Count the claims of tasks, and what is kept for jobs admitted before this session."""
        tasks = self._session.tasks
        rows = self._claims.rows()
        rows = rows[np.isin(tasks.job[rows], self._session.jobs.rows)]
        for row in rows[ALLOCATED_LIKE[tasks.status[rows]]].tolist():
            claims = self._claims.of_task(row)
            for quota in self._quotas(int(tasks.job[row])):
                quota.take(claims)
        if self._rules.admitted_jobs_keep_devices:
            for job in np.unique(tasks.job[rows]).tolist():
                admitted = self._session.job_facts(job).phase == "Inqueue"
                if admitted and job not in self._session.held_back:
                    self.entered(job)

    # -- tasks ----------------------------------------------------------------------------------------------------

    def room(self, account: CapacityAccount, class_: TaskClass, count: int) -> int:
        """How many of `count` tasks of the class fit below the quotas of a queue and its ancestors."""
        if claims_anything(class_):
            shared, own = self._claims.of_class(class_)
            for queue in account.path:
                if queue.devices is not None:
                    count = queue.devices.room(shared, own, count)
        return count

    def allocated(self, event: Event) -> None:
        for quota, claims in self._charges(event):
            quota.take(claims)

    def deallocated(self, event: Event) -> None:
        for quota, claims in self._charges(event):
            quota.give_back(claims)

    def _charges(self, event: Event) -> Iterator[tuple[DeviceQuota, Claims]]:
        if claims_anything(event.class_):
            quotas = list(self._quotas(event.job))
            for row in event.rows.tolist():
                claims = self._claims.of_task(row)
                yield from ((quota, claims) for quota in quotas)

    def _quotas(self, job: int) -> Iterator[DeviceQuota]:
        for queue in self._accounts[int(self._session.jobs.queue[job])].path:
            if queue.devices is not None:
                yield queue.devices

    # -- admission ------------------------------------------------------------------------------------------------

    def needs_devices(self, job: int) -> bool:
        """Whether the job's minimum includes devices that some quota could limit."""
        return any(self._quotas(job)) and any(claims for claims, _ in self._minimum(job))

    def short_of(self, queue: CapacityAccount, job: int) -> list[str]:
        """The quotas of this one queue that the job's minimum would exceed."""
        if queue.devices is None:
            return []
        _, demand = self._demand(queue.devices, job)
        return queue.devices.short_of(demand)

    def entered(self, job: int) -> None:
        """The job was admitted."""
        for quota in self._quotas(job):
            claims, demand = self._demand(quota, job)
            quota.keep(claims, demand)

    def _demand(self, quota: DeviceQuota, job: int) -> tuple[Claims, Demand]:
        """What the job's minimum adds to a queue: the claims that are new there, and their total."""
        if self._rules.claims_count_per_pod:
            sums: dict[Measure, Amount] = {}
            for claims, times in self._minimum(job):
                for measure, amount in total(claims, times).items():
                    sums[measure] = sums.get(measure, 0) + amount
            return {}, sums
        wanted: dict[str, Demand] = {}
        for claims, _ in self._minimum(job):
            wanted.update(claims)
        new = quota.unclaimed(wanted)
        return new, total(new)

    def _minimum(self, job: int) -> list[tuple[Claims, int]]:
        """Claims of the tasks that make up the minimum, each with a count of equal ones."""
        session, facts = self._session, self._session.job_facts(job)
        rows = sorted(session.tasks_of(job).tolist(), key=session.task_key)
        found = [(row, claims) for row in rows if (claims := self._claims.of_task(row))]
        if not facts.role_minimums:
            return [(claims, 1) for _, claims in found[: facts.minimum]]
        names = session.cluster.tasks.roles
        chosen: list[tuple[Claims, int]] = []
        for role, minimum in sorted(facts.role_minimums.items()):
            own = [
                c for row, c in found if (number := session.tasks.role[row]) >= 0 and names[number] == role
            ]
            if self._rules.first_pod_stands_for_role:
                chosen += [(claims, minimum) for claims in own[:1]]
            else:
                chosen += [(claims, 1) for claims in own[:minimum]]
        return chosen
