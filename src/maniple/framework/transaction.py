"""The transaction: placements and evictions that happen together or not at all.

Every operation changes the session at once, so that the next question sees it; `rollback` and `discard` undo in reverse
order and restore every array bit for bit (all sums are integers); `commit` turns what is left into effects. An operation holds
many tasks of one class and one job, because that is how gangs are placed.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import ALLOCATED_LIKE, READY, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.points import CLAIMS_FIRST, Event, TaskRows
from maniple.framework.session import Session

_READY = [int(member) for member in READY]
_ALLOCATED = [int(member) for member in ALLOCATED_LIKE]
_FEW = 64  # up to here counting in a dictionary beats sorting an array


class Kind(Enum):
    ALLOCATE = Status.ALLOCATED
    PIPELINE = Status.PIPELINED
    EVICT = Status.RELEASING


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    kind: Kind
    event: Event
    before: Status  # what an undo restores
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """Operations of a dry run that can be carried out again."""

    operations: tuple[Operation, ...]


class Transaction:
    """A list of operations on one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.operations: list[Operation] = []

    def __len__(self) -> int:
        return len(self.operations)

    # -- operations -----------------------------------------------------------------------------------------------

    def allocate(self, rows: TaskRows, nodes: NodeRows) -> None:
        """Waiting tasks of one class and job take idle resources on the nodes beside them."""
        self._do(Operation(Kind.ALLOCATE, _event(self._session, rows, nodes), Status.PENDING))

    def pipeline(self, rows: TaskRows, nodes: NodeRows) -> None:
        """Waiting tasks of one class and job claim resources that are being released."""
        self._do(Operation(Kind.PIPELINE, _event(self._session, rows, nodes), Status.PENDING))

    def evict(self, rows: TaskRows, reason: str) -> list[Operation]:
        """Tasks on nodes begin to release what they have: an operation for those alike in job, class and status."""
        session, tasks = self._session, self._session.tasks
        kinds = zip(
            tasks.job[rows].tolist(), tasks.class_of[rows].tolist(), tasks.status[rows].tolist(), strict=True
        )
        alike: dict[tuple[int, int, int], list[int]] = {}
        for kind, row in zip(kinds, rows.tolist(), strict=True):
            alike.setdefault(kind, []).append(row)
        made = [
            Operation(Kind.EVICT, _event(session, np.array(together)), Status(status), reason)
            for (_, _, status), together in alike.items()
        ]
        _evict_together(session, made)
        self.operations += made
        return made

    def retract(self, operation: Operation) -> None:
        """Undo one operation that no later one builds on. Sums commute, so the order does not matter."""
        self.operations.remove(operation)
        _undo(self._session, operation)

    def _do(self, operation: Operation) -> None:
        _apply(self._session, operation)
        self.operations.append(operation)

    # -- undoing --------------------------------------------------------------------------------------------------

    def checkpoint(self) -> int:
        return len(self.operations)

    def rollback(self, checkpoint: int) -> None:
        """Undo everything since the checkpoint, last first."""
        while len(self.operations) > checkpoint:
            _undo(self._session, self.operations.pop())

    def discard(self) -> None:
        self.rollback(0)

    # -- keeping --------------------------------------------------------------------------------------------------

    def merge(self, other: "Transaction") -> None:
        """Take over the other transaction's operations; it is empty afterwards."""
        self.operations += other.operations
        other.operations = []

    def save(self) -> SavedPlan:
        return SavedPlan(tuple(self.operations))

    def replay(self, plan: SavedPlan) -> None:
        """Carry out a saved plan again, on a session in the state in which the plan was made."""
        for operation in plan.operations:
            self._do(operation)

    def commit(self) -> None:
        """Hand the operations over as effects, in order."""
        session = self._session
        evicts = any(operation.kind is Kind.EVICT for operation in self.operations)
        for operation in self.operations:
            event = operation.event
            if operation.kind is Kind.EVICT:
                session.evicted += [(row, operation.reason) for row in event.rows.tolist()]
            elif operation.kind is Kind.ALLOCATE:
                bind(session, event)
            elif evicts:
                # Somebody made room for these tasks: the nodes are theirs to come back to.
                session.nominated.update(zip(event.rows.tolist(), event.nodes.tolist(), strict=True))
        self.operations = []


def bind(session: Session, event: Event) -> None:
    """Allocated tasks become effects: from here on they count as being bound."""
    session.tasks.status[event.rows] = Status.BINDING
    session.jobs.counts[Status.ALLOCATED, event.job] -= len(event.rows)
    session.jobs.counts[Status.BINDING, event.job] += len(event.rows)
    first = session.hooks.pre_bind(event.class_)
    # What the plan itself says how to write keeps nobody waiting.
    ready = first is None or first == CLAIMS_FIRST
    (session.bound if ready else session.held).append((event.rows, event.nodes))


def bind_allocated(session: Session, job: int) -> None:
    """Everything of a job that has been allocated so far becomes effects."""
    rows = session.tasks_of(job)
    rows = rows[session.tasks.status[rows] == Status.ALLOCATED]
    if len(rows):
        bind(session, _event(session, rows))


def withdraw(session: Session, rows: TaskRows) -> None:
    """Pipelined tasks wait again."""
    for row in rows.tolist():
        _undo(session, Operation(Kind.PIPELINE, _event(session, np.array([row])), Status.PENDING))


def _event(session: Session, rows: TaskRows, nodes: NodeRows | None = None) -> Event:
    """Tasks of the first one's class and job, on the given nodes or on those they are on."""
    tasks, first = session.tasks, rows[0]
    where = tasks.node[rows].astype(np.intp) if nodes is None else nodes
    return Event(session.classes[tasks.class_of[first]], int(tasks.job[first]), rows, where)


def _apply(session: Session, operation: Operation) -> None:
    event, status = operation.event, operation.kind.value
    session.tasks.status[event.rows] = status
    _count(session, event, operation.before, status)
    if operation.kind is Kind.EVICT:
        _release(session, event.class_, event.nodes, +1)
        session.hooks.on_deallocate(event)
    else:
        session.tasks.node[event.rows] = event.nodes
        _occupy(session, event, status, +1)
        session.hooks.on_allocate(event)


def _evict_together(session: Session, operations: list[Operation]) -> None:
    """The same as one by one, but a node's books are opened once for all tasks of a class."""
    nodes: dict[int, list[NodeRows]] = {}
    for operation in operations:
        event = operation.event
        session.tasks.status[event.rows] = Status.RELEASING
        _count(session, event, operation.before, Status.RELEASING)
        nodes.setdefault(event.class_.number, []).append(event.nodes)
    for number, where in nodes.items():
        _release(session, session.classes[number], np.concatenate(where), +1)
    for operation in operations:
        session.hooks.on_deallocate(operation.event)


def _undo(session: Session, operation: Operation) -> None:
    event, status = operation.event, operation.kind.value
    session.tasks.status[event.rows] = operation.before
    _count(session, event, status, operation.before)
    if operation.kind is Kind.EVICT:
        _release(session, event.class_, event.nodes, -1)
        session.hooks.on_allocate(event)
    else:
        session.tasks.node[event.rows] = -1
        _occupy(session, event, status, -1)
        session.hooks.on_deallocate(event)


def _count(session: Session, event: Event, before: Status, after: Status) -> None:
    """Move tasks from one status to another in their job's counts and sums."""
    jobs, job, count = session.jobs, event.job, len(event.rows)
    if job < 0:
        return
    jobs.counts[before, job] -= count
    jobs.counts[after, job] += count
    jobs.ready[job] += count * (_READY[after] - _READY[before])
    amount = event.class_.request * count
    if _ALLOCATED[after] != _ALLOCATED[before]:
        jobs.allocated[:, job] += amount * (_ALLOCATED[after] - _ALLOCATED[before])
    if job in session.sub_jobs.split:
        session.sub_jobs.count(event.rows, before, after, best_effort=event.class_.best_effort)
    waiting = (after is Status.PENDING) - (before is Status.PENDING)
    if waiting:
        jobs.pending[:, job] += amount * waiting
        if event.class_.best_effort:
            jobs.pending_best_effort[job] += count * waiting


def _spots(nodes: NodeRows) -> tuple[NodeRows, NDArray[np.intp]]:
    """Each node once, and how often it was named."""
    if len(nodes) > _FEW:
        return np.unique(nodes, return_counts=True)
    named: dict[int, int] = {}
    for node in nodes.tolist():
        named[node] = named.get(node, 0) + 1
    return np.array(list(named), dtype=np.intp), np.array(list(named.values()), dtype=np.intp)


def _occupy(session: Session, event: Event, status: Status, sign: int) -> None:
    """Put tasks onto their nodes' books, or take them off."""
    nodes, class_ = session.nodes, event.class_
    where, counts = _spots(event.nodes)
    amounts = np.multiply.outer(class_.booking, counts * sign)
    if status is Status.PIPELINED:
        height = len(class_.request)
        nodes.pipelined[:, where] += amounts[:height]
        nodes.books[height:, where] += amounts[height:]
        session.flowing = True
    else:
        nodes.books[:, where] += amounts
    session.changes.append(where)


def _release(session: Session, class_: TaskClass, named: NodeRows, sign: int) -> None:
    """Evicted tasks stay on their nodes' books as being released, but leave kube-scheduler's."""
    nodes = session.nodes
    where, counts = _spots(named[named >= 0])
    amounts, height = np.multiply.outer(class_.booking, counts * sign), len(class_.request)
    nodes.releasing[:, where] += amounts[:height]
    nodes.books[height:, where] -= amounts[height:]
    session.flowing = True
    session.changes.append(where)


__all__ = ["Kind", "Operation", "SavedPlan", "Transaction", "bind", "bind_allocated", "withdraw"]
