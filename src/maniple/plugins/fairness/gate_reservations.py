"""Reservations of queues for tasks that were admitted by removing a scheduling gate.

Called by capacity. A pod opts in by an annotation and starts behind the gate of the same name. When its queue
has room, the gate may be removed, and from then on its amount is reserved in the queue, and in those above
it, until it is allocated: also in later sessions, where such a pod has the annotation, no gate, and is
pending. It needs no second reservation.
"""

from collections.abc import Callable

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.points import Event
from maniple.framework.session import Session
from maniple.plugins.fairness.capacity_account import CapacityAccount, Request

OPTED_IN = "scheduling.volcano.sh/queue-allocation-gate"
_GATED = "capacity: gated"  # the mark of classes whose tasks are behind the gate


def opted_in(class_: TaskClass) -> bool:
    return class_.spec.pod.metadata.annotations.get(OPTED_IN) == "true"


class _Known:
    """Which of the cluster's classes opted in; outlives sessions, since classes are only added."""

    def __init__(self) -> None:
        self.looked_at = 0
        self.numbers: list[int] = []


class GateReservations:
    """`account_of` returns the account of a job's queue, `request_of` the request of a class."""

    def __init__(
        self,
        session: Session,
        account_of: Callable[[int], CapacityAccount],
        request_of: Callable[[TaskClass], Request],
    ) -> None:
        self._session = session
        self._rules = session.rules.queues
        self._account_of = account_of
        self._request_of = request_of
        self._holders: set[int] = set()
        numbers = _opted_in_classes(session)
        self.is_needed = bool(numbers)
        if numbers:
            self._open(numbers)

    def _open(self, numbers: list[int]) -> None:
        session, tasks = self._session, self._session.tasks
        ours = (tasks.status == Status.PENDING) & np.isin(tasks.class_of, numbers)
        ours &= np.isin(tasks.job, session.jobs.rows)
        waiting = np.flatnonzero(ours & ~tasks.gated)
        for row in waiting.tolist():
            self._holders.add(row)
            self._reserve(int(tasks.job[row]), session.classes[tasks.class_of[row]], 1)
        behind_gates = np.flatnonzero(ours & tasks.gated)
        session.refine(_GATED, behind_gates, np.zeros(len(behind_gates), dtype=np.int64))

    def covers(self, class_: TaskClass) -> bool:
        """Whether pending tasks of this class have a reservation already."""
        return opted_in(class_) and _GATED not in class_.marks

    def admitted(self, event: Event) -> None:
        """The gates of these tasks may be removed."""
        if opted_in(event.class_):
            self._reserve(event.job, event.class_, len(event.rows))

    def allocated(self, event: Event) -> None:
        if opted_in(event.class_):
            self._reserve(event.job, event.class_, -self._holding(event))

    def deallocated(self, event: Event) -> None:
        if opted_in(event.class_):
            self._reserve(event.job, event.class_, self._holding(event))

    def _holding(self, event: Event) -> int:
        """How many of them have a reservation by their gate, or get one now that they are evicted."""
        if self._rules.evicted_pods_keep_gate_places:
            return len(event.rows)
        return len(self._holders.intersection(event.rows.tolist()))

    def _reserve(self, job: int, class_: TaskClass, count: int) -> None:
        account = self._account_of(job)
        for queue in account.path[: None if self._rules.gate_places_reach_ancestors else 1]:
            for dimension, amount in enumerate(self._request_of(class_)):
                queue.reserved[dimension] += amount * count


def _opted_in_classes(session: Session) -> list[int]:
    memory, classes = session.nodes.facts.memory, session.cluster.classes.classes
    known = memory.get(_Known)
    if not isinstance(known, _Known):
        known = memory[_Known] = _Known()
    known.numbers += [one.number for one in classes[known.looked_at :] if opted_in(one)]
    known.looked_at = len(classes)
    # Other plugins may have split classes for this session.
    return known.numbers + [one.number for one in session.classes[len(classes) :] if opted_in(one)]
