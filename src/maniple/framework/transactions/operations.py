"""One operation of a transaction: how it changes the session, and how it is undone.

Called by `transaction`, which keeps the list. An operation holds many tasks of one class and one job. `apply`
and `undo` are exact opposites: all sums are integers, and what cannot be worked out backwards (the accounting
of shared devices) is saved in the operation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ALLOCATED_LIKE, READY, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.devices.gpus import Groups, Saved
from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.booking import book

_READY = [int(member) for member in READY]
_ALLOCATED = [int(member) for member in ALLOCATED_LIKE]
_SEVERAL = 4  # from here on counting jobs together beats one by one


class Kind(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    RESTORE = "restore"  # an eviction that need not be after all
    MOVE = "move"  # an evicted task claims another place
    WITHDRAW = "withdraw"  # an allocation is taken back; identified by its event


# By a name of their own: to look a member up on its enum takes longer than what is done with it.
_EVICT, _RESTORE, _MOVE, _WITHDRAW = Kind.EVICT, Kind.RESTORE, Kind.MOVE, Kind.WITHDRAW
_PENDING, _PIPELINED, _RELEASING = Status.PENDING, Status.PIPELINED, Status.RELEASING
_ALLOCATED_NOW = Status.ALLOCATED


@dataclass(slots=True, eq=False)
class Operation:
    kind: Kind
    event: Event
    before: Status  # what an undo restores
    after: Status
    reason: str = ""
    origins: NodeRows | None = None  # of a move: where the tasks were
    groups: Sequence[Groups] | None = None  # of tasks that share devices: which
    saved: Sequence[Saved] = ()  # the books of these devices as they were
    former: Sequence[Groups | None] = ()  # which devices the tasks shared before
    virtual: NDArray[np.bool_] | None = (
        None  # of claims that are evicted: whether they had been evicted to move
    )


def event_of(session: Session, rows: TaskRows, nodes: NodeRows | None = None) -> Event:
    """Tasks of the first one's class and job, on the given nodes or on those they are on."""
    tasks, first = session.tasks, rows[0]
    where = tasks.node[rows].astype(np.intp) if nodes is None else nodes
    return Event(session.classes[tasks.class_of[first]], int(tasks.job[first]), rows, where)


def apply(session: Session, operation: Operation) -> None:
    if operation.kind is _EVICT:
        evict_together(session, [operation])
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
        share(session, operation)
    _tell(
        session,
        session.hooks.on_deallocate if operation.kind is _WITHDRAW else session.hooks.on_allocate,
        event,
    )


def allocate_each(session: Session, operations: list[Operation]) -> None:
    """Allocations of tasks of one job that share no devices: what the job has is added up once for all of them."""
    jobs, events = session.jobs, [operation.event for operation in operations]
    job, count = events[0].job, sum(len(event.rows) for event in events)
    asked = sum(event.class_.request * len(event.rows) for event in events)
    jobs.version[job] += 1
    jobs.counts[_PENDING, job] -= count
    jobs.counts[_ALLOCATED_NOW, job] += count
    jobs.ready[job] += count * _READY[_ALLOCATED_NOW]
    jobs.allocated[:, job] += asked
    jobs.pending[:, job] -= asked
    jobs.pending_best_effort[job] -= sum(len(event.rows) for event in events if event.class_.best_effort)
    for event in events:
        session.tasks.status[event.rows] = _ALLOCATED_NOW
        session.tasks.node[event.rows] = event.nodes
        _book(session, event.nodes, event.class_.entries.allocated, +1)
        session.hooks.on_allocate(event)


def evict_together(session: Session, operations: list[Operation]) -> None:
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
        _release(session, session.classes[number], nodes, +1)
    for operation in operations:
        # In turn, since the books of shared devices depend on what is held: the same as one after the other.
        _hold(session, operation, +1)
        if operation.event.class_.share is not None:
            share(session, operation)
        _tell(session, session.hooks.on_deallocate, operation.event)


def _count_evicted(session: Session, class_: TaskClass, events: list[Event], before: Status) -> None:
    """`_count` for tasks alike of several jobs at once."""
    jobs, owned = session.jobs, [event for event in events if event.job >= 0]
    if len(owned) < _SEVERAL or before is _PENDING or jobs.elsewhere is not None:
        for event in owned:
            _count(session, event, before, _RELEASING)
        return
    owners = np.array([event.job for event in owned])
    counts = np.array([len(event.rows) for event in owned])
    jobs.version[owners] += 1
    jobs.counts[before, owners] -= counts
    jobs.counts[_RELEASING, owners] += counts
    jobs.ready[owners] -= counts * _READY[before]
    if _ALLOCATED[before]:
        jobs.allocated[:, owners] -= np.multiply.outer(class_.request, counts)


def undo(session: Session, operation: Operation) -> None:
    event, kind = operation.event, operation.kind
    session.tasks.status[event.rows] = operation.before
    _count(session, event, operation.after, operation.before)
    if event.class_.share is not None:
        unshare(session, operation)
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
    _tell(session, session.hooks.on_allocate if back else session.hooks.on_deallocate, event)


def _tell(session: Session, plugins: Callable[[Event], None], event: Event) -> None:
    """Plugins hear of the tasks that count."""
    if session.jobs.elsewhere is not None:
        here = event.nodes >= 0
        event = replace(event, rows=event.rows[here], nodes=event.nodes[here])
    plugins(event)


def _leave_behind(session: Session, operation: Operation) -> None:
    """Note what tasks that move are still releasing."""
    assert operation.origins is not None  # that is what makes it a move
    for row, node in zip(operation.event.rows.tolist(), operation.origins.tolist(), strict=True):
        session.moved.setdefault(row, []).append((node, session.gpus.groups_of.get(row, ())))


def _hold(session: Session, operation: Operation, sign: int) -> None:
    """A claim that is evicted counts as held until it is released.

    That is how the original does it, and it leaves the room to others.
    """
    claim = operation.before if operation.kind is _EVICT else operation.after
    if claim is _PIPELINED:
        # `_release` has noted the change.
        book(session.nodes.books, operation.event.nodes, operation.event.class_.entries.held, sign)


def share(session: Session, operation: Operation) -> None:
    """Book the parts of devices that tasks take, claim, begin to release or give back."""
    books, event = session.gpus, operation.event
    stays = operation.kind is _EVICT or operation.kind is _RESTORE
    leaves = stays or operation.kind is _WITHDRAW
    operation.saved = [books.save(node) for node in dict.fromkeys(event.nodes.tolist()) if node >= 0]
    operation.former = [books.groups_of.get(row) for row in event.rows.tolist()]
    for place, (row, node) in enumerate(zip(event.rows.tolist(), event.nodes.tolist(), strict=True)):
        held = operation.former[place]
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


def unshare(session: Session, operation: Operation) -> None:
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
    ready = _READY[after] - _READY[before]
    if ready:
        jobs.ready[job] += count * ready
    request = event.class_.request
    if _ALLOCATED[after] != _ALLOCATED[before]:
        held = int((event.nodes >= 0).sum()) if jobs.elsewhere is not None else count
        allocated = jobs.allocated[:, job]
        allocated += request * (held if _ALLOCATED[after] else -held)
    if after is _PENDING or before is _PENDING:
        more = count if after is _PENDING else -count
        pending = jobs.pending[:, job]
        pending += request * more
        if event.class_.best_effort:
            jobs.pending_best_effort[job] += more


def expect(session: Session, row: int, node: int) -> None:
    """Keep room on a node, for the rest of the session, for the successor of a task that is leaving another node."""
    session.flowing = True
    session.expected[row] = node
    entry = session.classes[session.tasks.class_of[row]].entries.pipelined
    _book(session, np.array([node], dtype=np.intp), entry, +1)


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
    """Book one task on a node for each time the node is listed; -1 stands for no node."""
    session.changes.append(book(session.nodes.books, nodes, entry, sign))
