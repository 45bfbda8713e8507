"""The transaction: placements and evictions that happen together or not at all.

Every operation changes the session at once, so that the next question sees it; `rollback` and `discard` undo in reverse
order and restore every array bit for bit (all sums are integers); `commit` turns what is left into effects. An operation holds
many tasks of one class and one job, because that is how gangs are placed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ALLOCATED_LIKE, READY, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.gpus import Groups, Saved
from maniple.framework.points import CLAIMS_FIRST, Event, TaskRows
from maniple.framework.session import Session

_READY = [int(member) for member in READY]
_ALLOCATED = [int(member) for member in ALLOCATED_LIKE]
_SEVERAL = 4  # from here on counting jobs together beats one by one
_FEW = 64  # up to here counting in a dictionary beats sorting an array


class Kind(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    RESTORE = "restore"  # an eviction that need not be after all
    MOVE = "move"  # an evicted task claims another place
    WITHDRAW = "withdraw"  # an allocation is taken back; it is told by its event


# By a name of their own: to look a member up on its enum takes longer than what is done with it.
_ALLOCATE, _PIPELINE, _EVICT, _RESTORE, _MOVE, _WITHDRAW = Kind
_PENDING, _ALLOCATED_NOW, _PIPELINED = Status.PENDING, Status.ALLOCATED, Status.PIPELINED
_BINDING, _RELEASING = Status.BINDING, Status.RELEASING
_STATUSES = tuple(Status)
_ON_NODES = [int(Status.ALLOCATED), int(_BINDING), int(Status.BOUND), int(Status.RUNNING)]


@dataclass(slots=True, eq=False)
class Operation:
    kind: Kind
    event: Event
    before: Status  # what an undo restores
    after: Status
    reason: str = ""
    origins: NodeRows | None = None  # of a move: where the tasks were
    groups: Sequence[Groups] | None = None  # of tasks that share devices: which
    saved: list[Saved] = field(default_factory=list)  # the books of these devices as they were
    former: list[Groups | None] = field(default_factory=list)  # which devices the tasks shared before
    virtual: NDArray[np.bool_] | None = (
        None  # of claims that are evicted: whether they had been evicted to move
    )


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

    def allocate(self, rows: TaskRows, nodes: NodeRows, groups: Sequence[Groups] | None = None) -> None:
        """Waiting tasks of one class and job take idle resources on the nodes beside them."""
        event = _event(self._session, rows, nodes)
        self._do(Operation(_ALLOCATE, event, _PENDING, _ALLOCATED_NOW, groups=groups))

    def pipeline(self, rows: TaskRows, nodes: NodeRows, groups: Sequence[Groups] | None = None) -> None:
        """Waiting tasks of one class and job claim resources that are being released."""
        event = _event(self._session, rows, nodes)
        self._do(Operation(_PIPELINE, event, _PENDING, _PIPELINED, groups=groups))

    def move(self, rows: TaskRows, nodes: NodeRows, groups: Sequence[Groups] | None = None) -> None:
        """Tasks of one class and job that this transaction evicted claim other nodes; what they had is still being released."""
        event, origins = _event(self._session, rows, nodes), self._session.tasks.node[rows].astype(np.intp)
        self._do(Operation(_MOVE, event, _RELEASING, _PIPELINED, origins=origins, groups=groups))

    def restore(self, rows: TaskRows) -> None:
        """Tasks that this transaction evicted stay where they are."""
        session = self._session
        before = {
            row: operation.before
            for operation in self.operations
            if operation.kind is _EVICT
            for row in operation.event.rows.tolist()
        }
        alike: dict[tuple[int, int, Status], list[int]] = {}
        for row in rows.tolist():
            key = (int(session.tasks.job[row]), int(session.tasks.class_of[row]), before[row])
            alike.setdefault(key, []).append(row)
        for (_, _, status), together in alike.items():
            event = _event(session, np.array(together))
            self._do(Operation(_RESTORE, event, _RELEASING, status))

    def to_pipelined(self, job: int) -> None:
        """What this transaction allocated to a job becomes claims on the same nodes."""
        for operation in self._allocations():
            if operation.event.job == job:
                event, groups = operation.event, operation.groups
                self._do(Operation(_WITHDRAW, event, _ALLOCATED_NOW, _PENDING, groups=groups))
                self._do(Operation(_PIPELINE, event, _PENDING, _PIPELINED, groups=groups))

    def _allocations(self) -> list[Operation]:
        """Those that were not taken back."""
        standing: dict[int, Operation] = {}
        for operation in self.operations:
            if operation.kind is _ALLOCATE:
                standing[id(operation.event)] = operation
            elif operation.kind is _WITHDRAW:
                standing.pop(id(operation.event), None)  # or it was made in another transaction
        return list(standing.values())

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
            Operation(
                _EVICT,
                _event(session, np.array(together)),
                _STATUSES[status],
                _RELEASING,
                reason,
                virtual=tasks.virtual[together] if status == _PIPELINED else None,
            )
            for (_, _, status), together in alike.items()
        ]
        _evict_together(session, made)
        self.operations += made
        return made

    def retract(self, operation: Operation) -> None:
        """Undo one operation that no later one builds on. Sums commute, so the order does not matter."""
        session, later = self._session, []
        if operation.event.class_.share is not None:
            # Books of shared devices do not commute: those of later operations are closed, and opened again.
            place = self.operations.index(operation)
            later = [one for one in self.operations[place + 1 :] if one.event.class_.share is not None]
        for one in reversed(later):
            _unshare(session, one)
        self.operations.remove(operation)
        _undo(session, operation)
        for one in later:
            one.saved.clear()
            one.former.clear()
            _share(session, one)

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
            self._do(replace(operation, saved=[], former=[]))

    def _take_back(self) -> None:
        """Tasks that got their place in this very cycle and lose it again wait, as if nothing had been: nobody has bound them yet."""
        session, tasks = self._session, self._session.tasks
        gone = [one.event.rows for one in self.operations if one.kind is _EVICT]
        if not gone:
            return
        rows = np.concatenate(gone)
        fresh = (tasks.status[rows] == _RELEASING) & (session.cluster.tasks.status[rows] == _PENDING)
        rows = np.unique(rows[fresh])
        if not len(rows):
            return
        start = len(self.operations)
        self.restore(rows)
        for operation in self.operations[start:]:
            self._do(Operation(_WITHDRAW, operation.event, operation.after, _PENDING))
        _forget_bindings(session, rows.tolist())

    def commit(self) -> None:
        """Hand the operations over as effects, in order."""
        session = self._session
        if session.cluster.dialect.takes_back:
            self._take_back()
        evicted: dict[int, str] = {}
        for operation in self.operations:
            if operation.kind is _EVICT:
                evicted.update(dict.fromkeys(operation.event.rows.tolist(), operation.reason))
            elif operation.kind is _RESTORE:
                for row in operation.event.rows.tolist():
                    del evicted[row]
        if session.cluster.dialect.takes_back:
            evicted = _that_were_there(session, evicted)
        if evicted:
            session.evicted += evicted.items()
            gone = np.array(list(evicted))
            session.tasks.virtual[gone] = False
            # They cannot come back any more: what a job asks for next is worked out anew.
            for owner in {*session.tasks.job[gone].tolist()} - {-1}:
                session.jobs.version[owner] += 1
        for operation in self._allocations():
            bind(session, operation.event)
        for operation in self.operations if evicted else ():
            if operation.kind in (_PIPELINE, _MOVE):
                # Somebody made room for these tasks: the nodes are theirs to come back to.
                rows, nodes = operation.event.rows.tolist(), operation.event.nodes.tolist()
                session.nominated.update(zip(rows, nodes, strict=True))
        self.operations = []


def _that_were_there(session: Session, evicted: dict[int, str]) -> dict[int, str]:
    """Without tasks that got their place in this very cycle: they move before they were ever bound."""
    rows = np.array(list(evicted), dtype=np.int64)
    fresh = rows[session.cluster.tasks.status[rows] == _PENDING]
    if not len(fresh):
        return evicted
    session.tasks.virtual[fresh] = False
    _forget_bindings(session, fresh.tolist())
    gone = set(fresh.tolist())
    return {row: reason for row, reason in evicted.items() if row not in gone}


def _forget_bindings(session: Session, rows: list[int]) -> None:
    """Tasks that were to be bound are not, and their jobs have not started if nothing else of them has."""
    for decided in (session.bound, session.held):
        for place, (placed, nodes) in enumerate(decided):
            stays = ~np.isin(placed, rows)
            if not stays.all():
                decided[place] = (placed[stays], nodes[stays])
    for job in np.unique(session.tasks.job[rows]).tolist():
        if not session.jobs.counts[_ON_NODES, job].any():
            session.started.pop(job, None)


def bind(session: Session, event: Event) -> None:
    """Allocated tasks become effects: from here on they count as being bound."""
    session.tasks.status[event.rows] = _BINDING
    session.jobs.counts[_ALLOCATED_NOW, event.job] -= len(event.rows)
    session.jobs.counts[_BINDING, event.job] += len(event.rows)
    first = session.hooks.pre_bind(event.class_)
    # What the plan itself says how to write keeps nobody waiting.
    ready = first is None or first == CLAIMS_FIRST
    (session.bound if ready else session.held).append((event.rows, event.nodes))


def bind_allocated(session: Session, job: int) -> None:
    """Everything of a job that has been allocated so far becomes effects."""
    rows = session.tasks_of(job)
    rows = rows[session.tasks.status[rows] == _ALLOCATED_NOW]
    if len(rows):
        bind(session, _event(session, rows))


def withdraw(session: Session, rows: TaskRows) -> None:
    """Pipelined tasks wait again."""
    for row in rows.tolist():
        event = _event(session, np.array([row]))
        _apply(session, Operation(_WITHDRAW, event, _PIPELINED, _PENDING))


def _event(session: Session, rows: TaskRows, nodes: NodeRows | None = None) -> Event:
    """Tasks of the first one's class and job, on the given nodes or on those they are on."""
    tasks, first = session.tasks, rows[0]
    where = tasks.node[rows].astype(np.intp) if nodes is None else nodes
    return Event(session.classes[tasks.class_of[first]], int(tasks.job[first]), rows, where)


def _apply(session: Session, operation: Operation) -> None:
    if operation.kind is _EVICT:
        _evict_together(session, [operation])
        return
    event, status = operation.event, operation.after
    session.tasks.status[event.rows] = status
    _count(session, event, operation.before, status)
    if operation.kind is _RESTORE:
        session.tasks.virtual[event.rows] = False
        _release(session, event.class_, event.nodes, -1)
        _hold(session, operation, -1)
    elif operation.kind is _WITHDRAW:
        session.tasks.node[event.rows] = -1
        _occupy(session, event, operation.before, -1)
    else:
        if operation.kind is _MOVE:
            _leave_behind(session, operation)
        session.tasks.node[event.rows] = event.nodes
        _occupy(session, event, status, +1)
    if event.class_.share is not None:
        _share(session, operation)
    (session.hooks.on_deallocate if operation.kind is _WITHDRAW else session.hooks.on_allocate)(event)


def _evict_together(session: Session, operations: list[Operation]) -> None:
    """Evictions. Books are opened once for all tasks that are alike."""
    alike: dict[tuple[int, Status], list[Operation]] = {}
    for operation in operations:
        alike.setdefault((operation.event.class_.number, operation.before), []).append(operation)
    for (number, before), some in alike.items():
        events = [operation.event for operation in some]
        rows, nodes = events[0].rows, events[0].nodes
        if len(events) > 1:
            rows = np.concatenate([event.rows for event in events])
            nodes = np.concatenate([event.nodes for event in events])
        session.tasks.status[rows] = _RELEASING
        session.tasks.virtual[rows] = True
        _count_evicted(session, session.classes[number], events, before)
        if before is _PIPELINED:
            for operation in some:
                _hold(session, operation, +1)
        _release(session, session.classes[number], nodes, +1)
    for operation in operations:
        if operation.event.class_.share is not None:
            _share(session, operation)
        session.hooks.on_deallocate(operation.event)


def _count_evicted(session: Session, class_: TaskClass, events: list[Event], before: Status) -> None:
    """`_count` for tasks alike of several jobs at once."""
    split = session.sub_jobs.split
    plain = [event for event in events if event.job >= 0 and event.job not in split]
    if len(plain) < _SEVERAL or before is _PENDING:
        plain = []
    else:
        jobs, owners = session.jobs, np.array([event.job for event in plain])
        counts = np.array([len(event.rows) for event in plain])
        jobs.version[owners] += 1
        jobs.counts[before, owners] -= counts
        jobs.counts[_RELEASING, owners] += counts
        jobs.ready[owners] -= counts * _READY[before]
        if _ALLOCATED[before]:
            jobs.allocated[:, owners] -= np.multiply.outer(class_.request, counts)
    for event in events if not plain else [one for one in events if one.job in split]:
        _count(session, event, before, _RELEASING)


def _undo(session: Session, operation: Operation) -> None:
    event, kind = operation.event, operation.kind
    session.tasks.status[event.rows] = operation.before
    _count(session, event, operation.after, operation.before)
    if event.class_.share is not None:
        _unshare(session, operation)
    if kind is _EVICT or kind is _RESTORE:
        leaving = kind is _EVICT
        session.tasks.virtual[event.rows] = not leaving if operation.virtual is None else operation.virtual
        _release(session, event.class_, event.nodes, -1 if leaving else +1)
        _hold(session, operation, -1 if leaving else +1)
    elif kind is _WITHDRAW:
        session.tasks.node[event.rows] = event.nodes
        _occupy(session, event, operation.before, +1)
    else:
        session.tasks.node[event.rows] = -1 if operation.origins is None else operation.origins
        _occupy(session, event, operation.after, -1)
        if kind is _MOVE:
            for row in event.rows.tolist():
                session.moved[row].pop()
    back = kind is _EVICT or kind is _WITHDRAW
    (session.hooks.on_allocate if back else session.hooks.on_deallocate)(event)


def _leave_behind(session: Session, operation: Operation) -> None:
    """Note what tasks that move are still releasing."""
    assert operation.origins is not None  # that is what makes it a move
    for row, node in zip(operation.event.rows.tolist(), operation.origins.tolist(), strict=True):
        session.moved.setdefault(row, []).append((node, session.gpus.groups_of.get(row, ())))


def _hold(session: Session, operation: Operation, sign: int) -> None:
    """A claim that is evicted counts as held until it is released. That is the original's way, and leaves the room to others."""
    claim = operation.before if operation.kind is _EVICT else operation.after
    if claim is _PIPELINED:
        nodes, class_ = session.nodes, operation.event.class_
        where, counts = _spots(operation.event.nodes)
        amounts = np.multiply.outer(class_.request, counts * sign)
        nodes.pipelined[:, where] -= amounts
        nodes.used[:, where] += amounts


def _share(session: Session, operation: Operation) -> None:
    """Book the parts of devices that tasks take, claim, begin to release or give back."""
    books, event = session.gpus, operation.event
    stays = operation.kind is _EVICT or operation.kind is _RESTORE
    leaves = stays or operation.kind is _WITHDRAW
    operation.saved.extend(books.save(node) for node in dict.fromkeys(event.nodes.tolist()) if node >= 0)
    for place, (row, node) in enumerate(zip(event.rows.tolist(), event.nodes.tolist(), strict=True)):
        held = books.groups_of.get(row)
        operation.former.append(held)
        if leaves and node >= 0:
            books.remove(node, event.class_, held or (), operation.before)
        if operation.kind is _WITHDRAW:
            del books.groups_of[row]
            continue
        groups = (held or ()) if stays else (operation.groups or ())[place]
        if not stays:
            books.groups_of[row] = groups
        if node >= 0:
            books.add(node, event.class_, groups, operation.after)


def _unshare(session: Session, operation: Operation) -> None:
    books, event = session.gpus, operation.event
    for row, former in zip(event.rows.tolist(), operation.former, strict=False):
        if former is None:
            books.groups_of.pop(row, None)
        else:
            books.groups_of[row] = former
    for saved in reversed(operation.saved):
        books.restore(saved)


def _count(session: Session, event: Event, before: Status, after: Status) -> None:
    """Move tasks from one status to another in their job's counts and sums."""
    jobs, job, count = session.jobs, event.job, len(event.rows)
    if job < 0:
        return
    jobs.version[job] += 1
    jobs.counts[before, job] -= count
    jobs.counts[after, job] += count
    jobs.ready[job] += count * (_READY[after] - _READY[before])
    if _ALLOCATED[after] != _ALLOCATED[before]:
        jobs.allocated[:, job] += event.class_.request * (count * (_ALLOCATED[after] - _ALLOCATED[before]))
    if job in session.sub_jobs.split:
        session.sub_jobs.count(event.rows, before, after, best_effort=event.class_.best_effort)
    waiting = (after is _PENDING) - (before is _PENDING)
    if waiting:
        jobs.pending[:, job] += event.class_.request * (count * waiting)
        if event.class_.best_effort:
            jobs.pending_best_effort[job] += count * waiting


def _occupy(session: Session, event: Event, status: Status, sign: int) -> None:
    """Put tasks onto their nodes' books, or take them off."""
    entries = event.class_.entries
    if status is _PIPELINED:
        session.flowing = True
        _book(session, event.nodes, entries.pipelined, sign)
    else:
        _book(session, event.nodes, entries.allocated, sign)


def _release(session: Session, class_: TaskClass, nodes: NodeRows, sign: int) -> None:
    """Evicted tasks stay on their nodes' books as being released."""
    session.flowing = True
    _book(session, nodes, class_.entries.released, sign)


def _book(session: Session, nodes: NodeRows, entry: Amounts, sign: int) -> None:
    """Enter as many tasks on each node as it is named; tasks may be on none. `take` reads a few columns in half the time of an indexed sum."""
    books = session.nodes.books
    where, counts = _spots(nodes)
    books[:, where] = books.take(where, axis=1) + np.multiply.outer(entry, counts * sign)
    session.changes.append(where)


def _spots(nodes: NodeRows) -> tuple[NodeRows, NDArray[np.intp]]:
    """Each node once, and how often it was named."""
    if len(nodes) > _FEW:
        return np.unique(nodes[nodes >= 0], return_counts=True)
    named: dict[int, int] = {}
    for node in nodes.tolist():
        named[node] = named.get(node, 0) + 1
    named.pop(-1, None)
    return np.array(list(named), dtype=np.intp), np.array(list(named.values()), dtype=np.intp)


__all__ = ["Kind", "Operation", "SavedPlan", "Transaction", "bind", "bind_allocated", "withdraw"]
