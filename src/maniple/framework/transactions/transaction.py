"""The transaction: placements and evictions that happen together or not at all.

Every operation changes the session at once, so that the next question sees it; `rollback` and `discard` undo
in reverse order and restore every array bit for bit (all sums are integers); `commit` turns what is left into
effects. An operation holds many tasks of one class and one job, because that is how gangs are placed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maniple.cluster.statuses import Status
from maniple.framework.criteria import NodeRows
from maniple.framework.devices.gpus import Groups
from maniple.framework.points import CLAIMS_FIRST, Event, TaskRows
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder
from maniple.framework.transactions.operations import (
    Kind,
    Operation,
    allocate_each,
    apply,
    event_of,
    evict_together,
    share,
    undo,
    unshare,
)

# By a name of their own: to look a member up on its enum takes longer than what is done with it.
_ALLOCATE, _PIPELINE, _EVICT, _RESTORE, _MOVE, _WITHDRAW = Kind
_PENDING, _ALLOCATED_NOW, _PIPELINED = Status.PENDING, Status.ALLOCATED, Status.PIPELINED
_BINDING, _RELEASING = Status.BINDING, Status.RELEASING
_STATUSES = tuple(Status)
_ON_NODES = [int(Status.ALLOCATED), int(_BINDING), int(Status.BOUND), int(Status.RUNNING)]


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
        event = event_of(self._session, rows, nodes)
        self._do(Operation(_ALLOCATE, event, _PENDING, _ALLOCATED_NOW, groups=groups))

    def allocate_each(self, rows: TaskRows, nodes: NodeRows) -> None:
        """The same for tasks of one job that are of several classes, none of which shares devices."""
        places = [slice(place, place + 1) for place in range(len(rows))]
        events = [event_of(self._session, rows[place], nodes[place]) for place in places]
        made = [Operation(_ALLOCATE, event, _PENDING, _ALLOCATED_NOW) for event in events]
        allocate_each(self._session, made)
        self.operations += made

    def pipeline(self, rows: TaskRows, nodes: NodeRows, groups: Sequence[Groups] | None = None) -> None:
        """Waiting tasks of one class and job claim resources that are being released."""
        event = event_of(self._session, rows, nodes)
        self._do(Operation(_PIPELINE, event, _PENDING, _PIPELINED, groups=groups))

    def move(self, rows: TaskRows, nodes: NodeRows, groups: Sequence[Groups] | None = None) -> None:
        """Tasks of one class and job that this transaction evicted claim other nodes.

        What they had is still being released.
        """
        event, origins = event_of(self._session, rows, nodes), self._session.tasks.node[rows].astype(np.intp)
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
            event = event_of(session, np.array(together))
            self._do(Operation(_RESTORE, event, _RELEASING, status))

    def to_pipelined(self, job: int) -> None:
        """What this transaction allocated to a job becomes claims on the same nodes."""
        allocations = [one for one in self._allocations() if one.event.job == job]
        # All have to go before any comes back as a claim: a shared device is claimed by the first of its claims,
        # while no task has a part of it. One after the other loses count of a device that two of them share.
        one_by_one = self._session.rules.devices.claims_made_one_by_one
        steps = [[one] for one in allocations] if one_by_one else [allocations]
        for together in steps:
            for one in together:
                self._do(Operation(_WITHDRAW, one.event, _ALLOCATED_NOW, _PENDING, groups=one.groups))
            for one in together:
                self._do(Operation(_PIPELINE, one.event, _PENDING, _PIPELINED, groups=one.groups))

    def withdraw(self, rows: TaskRows) -> None:
        """Tasks that were placed in this session, and are not bound yet, become pending again."""
        session = self._session
        kinds = zip(
            session.tasks.job[rows].tolist(),
            session.tasks.class_of[rows].tolist(),
            session.tasks.status[rows].tolist(),
            strict=True,
        )
        for (_, _, status), together in _alike(kinds, rows).items():
            event = event_of(session, np.array(together))
            self._do(Operation(_WITHDRAW, event, _STATUSES[status], _PENDING))

    def _forget_withdrawn(self) -> bool:
        """Drop decisions of earlier transactions of the session that this one withdrew; True if there are any."""
        taken = [
            one.event.rows
            for one in self.operations
            if one.kind is _WITHDRAW and one.before is not _ALLOCATED_NOW
        ]
        if taken:
            _forget_bindings(self._session, np.concatenate(taken).tolist())
        return bool(taken)

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
        made = [
            Operation(
                _EVICT,
                event_of(session, np.array(together)),
                _STATUSES[status],
                _RELEASING,
                reason,
                virtual=tasks.virtual[together] if status == _PIPELINED else None,
            )
            for (_, _, status), together in _alike(kinds, rows).items()
        ]
        evict_together(session, made)
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
            unshare(session, one)
        self.operations.remove(operation)
        undo(session, operation)
        for one in later:
            share(session, one)

    def _do(self, operation: Operation) -> None:
        apply(self._session, operation)
        self.operations.append(operation)

    # -- undoing --------------------------------------------------------------------------------------------------

    def checkpoint(self) -> int:
        return len(self.operations)

    def rollback(self, checkpoint: int) -> None:
        """Undo everything since the checkpoint, last first."""
        while len(self.operations) > checkpoint:
            undo(self._session, self.operations.pop())

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

    def evictions(self) -> dict[int, str]:
        """The tasks that lose their places, and why: those that were evicted and not restored."""
        evicted: dict[int, str] = {}
        for operation in self.operations:
            if operation.kind is _EVICT:
                evicted.update(dict.fromkeys(operation.event.rows.tolist(), operation.reason))
            elif operation.kind is _RESTORE:
                for row in operation.event.rows.tolist():
                    del evicted[row]
        return evicted

    def keep(self) -> None:
        """Leave the operations as they are, for the rest of the session, without effects."""
        if self._session.trace is not None:
            self._tell(self._session.trace, {})

    def _tell(self, trace: Recorder, evicted: Mapping[int, str]) -> None:
        trace.kept(
            _places(self._allocations()),
            _places(one for one in self.operations if one.kind is _PIPELINE),
            _places(one for one in self.operations if one.kind is _MOVE),
            evicted,
        )

    def commit(self) -> None:
        """Hand the operations over as effects, in order."""
        session, evicted = self._session, self.evictions()
        made_room = self._forget_withdrawn() or bool(evicted)
        if evicted:
            session.decisions.evicted += evicted.items()
            gone = np.array(list(evicted))
            session.tasks.virtual[gone] = False
            # They cannot come back any more: what a job asks for next is worked out anew.
            anew = not session.rules.gangs.trials_are_remembered
            for owner in {*session.tasks.job[gone].tolist()} - {-1} if anew else ():
                session.jobs.version[owner] += 1
        if session.trace is not None:
            self._tell(session.trace, evicted)
        for operation in self._allocations():
            bind(session, operation.event)
        for operation in self.operations if made_room else ():
            if operation.kind in (_PIPELINE, _MOVE):
                # Victims made room for these tasks: the nodes are nominated for them.
                rows, nodes = operation.event.rows.tolist(), operation.event.nodes.tolist()
                session.decisions.nominated.update(zip(rows, nodes, strict=True))
        self.operations = []


def _places(operations: Iterable[Operation]) -> dict[int, int]:
    """The node of each task."""
    return {
        row: node
        for one in operations
        for row, node in zip(one.event.rows.tolist(), one.event.nodes.tolist(), strict=True)
    }


def _alike(kinds: Iterable[tuple[int, int, int]], rows: TaskRows) -> dict[tuple[int, int, int], list[int]]:
    """Tasks by what tells them apart."""
    alike: dict[tuple[int, int, int], list[int]] = {}
    for kind, row in zip(kinds, rows.tolist(), strict=True):
        alike.setdefault(kind, []).append(row)
    return alike


def _forget_bindings(session: Session, rows: list[int]) -> None:
    """Tasks that were to be bound are not, and their jobs have not started if nothing else of them has."""
    for row in rows:
        session.decisions.nominated.pop(row, None)
    jobs = np.unique(session.tasks.job[rows])
    for decided in (session.decisions.bound, session.decisions.held):
        # Each of these is about one job.
        firsts = [placed.item(0) if placed.size else rows[0] for placed, _ in decided]
        for place in np.flatnonzero(np.isin(session.tasks.job[firsts], jobs)).tolist():
            placed, nodes = decided[place]
            stays = ~np.isin(placed, rows)
            decided[place] = (placed[stays], nodes[stays])
    for job in jobs.tolist():
        if not session.jobs.counts[_ON_NODES, job].any():
            session.decisions.started.pop(job, None)


def bind(session: Session, event: Event) -> None:
    """Allocated tasks become effects: from here on they count as being bound."""
    session.tasks.status[event.rows] = _BINDING
    session.jobs.counts[_ALLOCATED_NOW, event.job] -= len(event.rows)
    session.jobs.counts[_BINDING, event.job] += len(event.rows)
    first = session.hooks.pre_bind(event.class_)
    # What the plan itself says how to write delays no binding.
    ready = first is None or first == CLAIMS_FIRST
    (session.decisions.bound if ready else session.decisions.held).append((event.rows, event.nodes))


def bind_allocated(session: Session, job: int) -> None:
    """Everything of a job that has been allocated so far becomes effects."""
    rows = session.tasks_of(job)
    rows = rows[session.tasks.status[rows] == _ALLOCATED_NOW]
    if len(rows):
        if session.trace is not None:
            nodes = session.tasks.node[rows].tolist()
            session.trace.kept(dict(zip(rows.tolist(), nodes, strict=True)), {}, {}, ())
        bind(session, event_of(session, rows))


def withdraw(session: Session, rows: TaskRows) -> None:
    """Pipelined tasks wait again."""
    for row in rows.tolist():
        event = event_of(session, np.array([row]))
        apply(session, Operation(_WITHDRAW, event, _PIPELINED, _PENDING))
