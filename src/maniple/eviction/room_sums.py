"""For how many tasks there would be room if some left: sums over nodes, before anything is tried.

Used by the default solver of the `kai` profile. Chunks are added one after the other, in victim order, until
there could be room for all. The sums never underestimate the room: a job that they reject cannot be placed.
Where tasks of one class are limited by amounts only, and no device is shared, they are exact; otherwise they
are a bound, which avoids most trials that cannot succeed.
"""

from collections.abc import Callable
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.asking import Demand
from maniple.eviction.chunks import Chunk, LaidOut, Victims, laid_out
from maniple.framework.criteria import EVERY_NODE, NodeRows
from maniple.framework.devices.gpu_facts import UNIT
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.placement.column import ClassColumn
from maniple.placement.engine import Placement

_STEP = 4  # each look at chunks one by one is at so many times as many, up to so many times what was expected
_MANY = 64  # chunks that are looked at one by one at most; further ones are looked at all at once
_PART = 1000  # parts of a device in which what is left of shared ones is added up
_Left = dict[int, list[int]]  # node -> amounts


class _ClassRoom:
    """Room for one class on what will be free."""

    def __init__(self, column: ClassColumn, count: int, asked: list[int], part: int) -> None:
        self.column = column
        self.count = count
        self.asked = np.array(asked, dtype=np.int64)
        self._part = part  # of one device; what nodes have of one is the last row
        self._amounts = [(place, amount) for place, amount in enumerate(asked) if amount > 0]
        self.now: Amounts = column.later  # by node, as long as no task leaves it
        self.total = self.total_at_first = column.room

    def slots(self, free: list[int]) -> int:
        if self._part and free[-1] < self._part:
            return 0
        return max(min([free[place] // amount for place, amount in self._amounts]), 0)

    def room(self, free: Amounts, nodes: NodeRows | slice = EVERY_NODE) -> Amounts:
        """The same on some nodes or all, with what is free on each."""
        asked = self.asked > 0
        slots: Amounts = np.maximum((free[asked] // self.asked[asked][:, None]).min(axis=0), 0)
        slots *= self.column.open[nodes]
        if self._part:
            slots[free[-1] < self._part] = 0
        return slots

    def share_nodes(self, free: Amounts) -> None:
        """A column holds at most one task a node that shares devices: count by amounts where there is room for one."""
        self.now = np.where(self.now > 0, np.maximum(self.room(free), 1), 0)
        self.total = self.total_at_first = int(self.now.sum())


class _Total:
    """What several classes request together: all nodes have to have as much. Of one class, `_ClassRoom` says more."""

    def __init__(self, lacking: Amounts) -> None:
        self._lacking = lacking
        self._short: list[int] = lacking.tolist()  # with what the chunks so far leave

    def forget(self) -> None:
        self._short = self._lacking.tolist()

    def add(self, amounts: list[int]) -> None:
        self._short = list(map(int.__sub__, self._short, amounts))

    def enough(self) -> bool:
        return max(self._short, default=0) <= 0

    def can_spare(self, left: _Left) -> bool:
        """Whether there is still enough if so much stays; if so, it does."""
        short = [lacks + sum(amounts) for lacks, *amounts in zip(self._short, *left.values(), strict=True)]
        if max(short, default=0) > 0:
            return False
        self._short = short
        return True

    def covers(self, given: Amounts) -> bool:
        """Whether there is enough with what tasks leave, a column each."""
        return bool((given.sum(axis=1) >= self._lacking).all())

    def last_needed(self, given: Amounts) -> int | None:
        """The first of these tasks with which there is enough; None: all of them are not enough."""
        enough = np.logical_and.reduce(given.cumsum(axis=1) >= self._lacking[:, None])
        return int(enough.argmax()) if enough[-1] else None


class HeldParts:
    """What tasks have of shared devices, worked out once for as long as their nodes do not change."""

    def __init__(self, session: Session) -> None:
        self._session = session
        size = len(session.tasks.status)
        self._amounts: NDArray[np.int64] = np.zeros(
            (2, size), dtype=np.int64
        )  # parts of devices; of whole ones
        self._stamps = np.full(size, -1, dtype=np.int64)  # length of the change log when it was worked out

    def of(self, rows: TaskRows) -> NDArray[np.int64]:
        session = self._session
        known = session.changes.spared(session.tasks.node[rows].astype(np.intp), self._stamps[rows])
        for row in rows[~known].tolist():
            class_ = session.classes[session.tasks.class_of[row]]
            part, devices = session.gpus.held_parts(row, class_)
            self._amounts[:, row] = ceil(_PART * part), ceil(UNIT * devices)
            self._stamps[row] = len(session.changes)
        return self._amounts[:, rows]


class RoomSums:
    """What chunks leave room for, for the tasks of one job. Made before anything is evicted; good for one search."""

    def __init__(
        self, session: Session, placement: Placement, demands: list[Demand], held: HeldParts | None = None
    ) -> None:
        self._session = session
        self._held = HeldParts(session) if held is None else held
        self._enough_at_all: bool | None = None
        self._everywhere: Amounts | None = None  # what will be free on all nodes, once computed
        self.many = 0  # chunks that it took the last time that a few were not enough
        self.looked_at = 0  # chunks, one by one
        self._placement = placement
        self._telling = telling = [one for one in demands if not one.class_.best_effort]
        self._dimensions = sorted({d for one in telling for d in one.class_.request.nonzero()[0].tolist()})
        # By node, in parts of a device: all that is free of devices, and the most that is free of one.
        self._parts: Amounts | None = None
        if any(one.class_.share is not None for one in telling):
            parts = np.vstack([session.gpus.free_parts(), session.gpus.largest_part()])
            self._parts = np.ceil(parts * _PART).astype(np.int64)
        self._free: _Left = {}  # with what the chunks so far leave
        self._at_first: _Left = {}
        self._slots: dict[int, list[int]] = {}  # node -> by class
        self._given: list[_Left] = []  # by chunk
        self._laid_out: LaidOut | None = None  # chunks that were not looked at one by one

    @cached_property
    def _classes(self) -> list[_ClassRoom]:
        """First asked for by `least`, while nothing is evicted."""
        classes = []
        for one in self._telling:
            column, asked = self._placement.column(one.class_), self._asked(one.class_)
            room = _ClassRoom(column, len(one.rows), asked, _part(one.class_))
            if one.class_.share is not None:
                room.share_nodes(self._free_on(slice(None)))
            classes.append(room)
        return classes

    @cached_property
    def _total(self) -> _Total:
        """As `_classes`. What is free of shared devices says too little of what may become free."""
        lacking = np.zeros(len(self._dimensions) + (0 if self._parts is None else 2), dtype=np.int64)
        books, size = self._session.gpus, len(self._dimensions)
        if len(self._telling) > 1:
            for one in self._telling:
                lacking[:size] += one.class_.request[self._dimensions] * len(one.rows)
            lacking[:size] -= np.maximum(self._everywhere_free()[:size], 0).sum(axis=1)
            shared = bool(books.groups_of) or self._parts is not None
            if shared and books.dimension in self._dimensions:
                lacking[self._dimensions.index(books.dimension)] = 0
        return _Total(lacking)

    def _asked(self, class_: TaskClass) -> list[int]:
        asked: list[int] = class_.request[self._dimensions].tolist()
        if self._parts is not None:
            asked += [_part(class_) * _devices(class_), 0]
        return asked

    def _free_on(self, nodes: NodeRows | slice) -> Amounts:
        """What will be free on nodes, a row a dimension."""
        free = self._session.nodes.future_idle(nodes).take(self._dimensions, axis=0)
        return free if self._parts is None else np.vstack([free, self._parts[:, nodes]])

    def least(self, sequence: Victims, guess: int = 1) -> int | None:
        """How many of the first chunks it takes at least; None when all are not enough. `guess`: so many may do."""
        if not sequence.allowed.any() and self._lacks_room():
            return None
        self._forget()
        done, size = 0, min(max(guess, 1), _MANY)
        few = min(_STEP * size, _MANY)
        while not self._enough():
            if size > few:
                return self._least_of_many(sequence, size)
            chunks = sequence.first(size)
            self._look_at(chunks[done:])
            while done < len(chunks) and not self._enough():
                self._add(self._given[done])
                done += 1
            if done < size and not self._enough():
                return None
            size *= _STEP
        return done

    def _lacks_room(self) -> bool:
        """Whether there is too little room for a class as it is. The first such class ends the look at columns."""
        if not self._total.enough():
            return True
        whole = (one for one in self._telling if one.class_.share is None)
        return any(self._placement.column(one.class_).room < len(one.rows) for one in whole)

    def _least_of_many(self, sequence: Victims, size: int) -> int | None:
        """The same where a few are not enough: of so many or more chunks at once, with all nodes looked at at once."""
        size = max(size, self.many)
        while True:
            if size > _MANY and not self._all_are_enough(sequence):
                return None
            rows, ends = self._laid_out = sequence.laid_out(size)
            last = self._last_needed(rows)
            if last is not None:
                self.many = int(np.searchsorted(ends, last, side="right")) + 1
                return self.many
            if len(ends) < size:
                return None
            size *= 2

    def _all_are_enough(self, sequence: Victims) -> bool:
        if self._enough_at_all is None:
            tasks = self._session.tasks
            there = (tasks.status >= 0) & (tasks.job >= 0) & ACTIVE_ALLOCATED[tasks.status]
            self._enough_at_all = self._covered(np.flatnonzero(there & sequence.allowed[tasks.job]))
        return self._enough_at_all

    def _last_needed(self, rows: TaskRows) -> int | None:
        """The position of the first task with which there could be room, if tasks leave one after the other.

        None: all of them are not enough. Node by node, the tasks that leave it are added up in this order; what
        each adds to the room counts at its own position.
        """
        if not len(rows):
            return None
        where = self._session.tasks.node[rows].astype(np.intp)
        order = where.argsort(kind="stable")
        nodes = where[order]
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        sizes = np.diff(starts, append=len(nodes))
        given = self._amounts(rows)
        left = given[:, order].cumsum(axis=1)
        before = np.pad(left, ((0, 0), (1, 0)))[:, starts]
        free = self._everywhere_free()[:, nodes] + left - before.repeat(sizes, axis=1)
        last = 0
        for one in self._classes:
            slots = np.maximum(one.room(free, nodes), one.now[nodes])
            more = np.diff(slots, prepend=0)
            more[starts] = slots[starts] - one.now[nodes[starts]]
            added = np.zeros(len(rows), dtype=np.int64)
            added[order] = more
            enough = one.total_at_first + added.cumsum() >= one.count
            if not enough[-1]:
                return None
            last = max(last, int(enough.argmax()))
        together = self._total.last_needed(given)
        return None if together is None else max(last, together)

    def could(self, chunks: list[Chunk]) -> bool:
        """Whether there could be room for all if just these left. False is certain."""
        rows = [chunk.rows for chunk in chunks]
        return self._covered(np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64))

    def _covered(self, rows: TaskRows) -> bool:
        given = self._amounts(rows)
        if not self._total.covers(given):
            return False
        touched, free = self._free_without(rows, given)
        return all(
            int(np.where(touched, np.maximum(one.room(free), one.now), one.now).sum()) >= one.count
            for one in self._classes
        )

    def _free_without(self, rows: TaskRows, given: Amounts) -> tuple[NDArray[np.bool_], Amounts]:
        """The nodes that tasks are on, and what all nodes have once the tasks have left."""
        free, where = self._everywhere_free().copy(), self._session.tasks.node[rows]
        for own, amounts in zip(free, given, strict=True):
            np.add.at(own, where, amounts)
        touched = np.zeros(free.shape[1], dtype=np.bool_)
        touched[where] = True
        return touched, free

    def _everywhere_free(self) -> Amounts:
        if self._everywhere is None:
            self._everywhere = self._free_on(slice(None))
        return self._everywhere

    def _enough(self) -> bool:
        return all(one.total >= one.count for one in self._classes) and self._total.enough()

    def _forget(self) -> None:
        self._free, self._at_first, self._slots, self._given, self._laid_out = {}, {}, {}, [], None
        self._total.forget()
        for one in self._classes:
            one.total = one.total_at_first

    def _look_at(self, chunks: list[Chunk]) -> None:
        """Note what chunks would leave where, and what is free there."""
        if not chunks:
            return
        self.looked_at += len(chunks)
        session = self._session
        rows = np.concatenate([chunk.rows for chunk in chunks])
        where: list[int] = session.tasks.node[rows].tolist()
        given: list[list[int]] = self._amounts(rows).T.tolist()
        fresh = [node for node in dict.fromkeys(where) if node not in self._free]
        free = self._free_on(np.array(fresh, dtype=np.intp))
        later = [one.now[fresh].tolist() for one in self._classes]
        self._at_first.update(zip(fresh, free.T.tolist(), strict=True))
        self._free.update({node: self._at_first[node] for node in fresh})
        for place, node in enumerate(fresh):
            self._slots[node] = [slots[place] for slots in later]
        start = 0
        for chunk in chunks:
            stop = start + len(chunk.rows)
            left: _Left = {}
            for node, amounts in zip(where[start:stop], given[start:stop], strict=True):
                known = left.get(node)
                left[node] = amounts if known is None else list(map(int.__add__, known, amounts))
            self._given.append(left)
            start = stop

    def _amounts(self, rows: TaskRows) -> Amounts:
        """What tasks free. All users of a shared device together free the device, each in proportion to its part."""
        session, books = self._session, self._session.gpus
        given = session.requests(rows)
        sharing = []
        if books.groups_of and books.dimension is not None:
            sharing = books.sharing(session.tasks.class_of[rows])
        if sharing:
            held = self._held.of(rows[sharing])
            given = given.copy()
            given[books.dimension, sharing] += held[1]
        left = given.take(self._dimensions, axis=0)
        if self._parts is None:
            return left
        parts = np.ceil(_PART * (books.units @ session.requests(rows)[: len(books.units)])).astype(np.int64)
        if sharing:
            parts[sharing] += held[0]
        return np.vstack([left, parts, parts])

    def _add(self, left: _Left) -> None:
        for node, amounts in left.items():
            self._total.add(amounts)
            free = self._free[node] = list(map(int.__add__, self._free[node], amounts))
            slots = self._slots[node]
            for place, one in enumerate(self._classes):
                if one.column.open[node]:
                    now = one.slots(free)
                    one.total += now - slots[place]
                    slots[place] = now

    # -- which victims it takes -----------------------------------------------------------------------------------

    def needed(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks that `least` arrived at, without those that can stay, the most important ones first.

        If there is room without the latter, every remaining chunk is needed.
        """
        if len(chunks) > len(self._given):  # they were not added one by one
            chunks = self._useful(chunks)
            self._forget()
            self._look_at(chunks)
            for left in self._given:
                self._add(left)
        kept: list[Chunk] = []
        lost: set[int] = set()  # a job that loses its core loses everything
        for chunk, left in zip(reversed(chunks), reversed(self._given[: len(chunks)]), strict=True):
            if chunk.job not in lost and self._can_stay(left):
                continue
            kept.append(chunk)
            if chunk.core:
                lost.add(chunk.job)
        return kept[::-1]

    def _useful(self, chunks: list[Chunk]) -> list[Chunk]:
        """Chunks with a task on a node where there would be room, and all chunks of a job that loses its core.

        All chunks, if these leave too little for several classes together.
        """
        if self._laid_out is None:
            self._laid_out = laid_out(chunks)
        ends = self._laid_out[1][: len(chunks)]
        rows = self._laid_out[0][: ends[-1]]
        _, free = self._free_without(rows, self._amounts(rows))
        promising = np.zeros(len(self._session.nodes), dtype=np.bool_)
        for one in self._classes:
            promising |= one.room(free) > 0
        there = promising[self._session.tasks.node[rows]]
        useful = np.logical_or.reduceat(there, np.concatenate([[0], ends[:-1]])).tolist()
        lost = {chunk.job for chunk, taken in zip(chunks, useful, strict=True) if taken and chunk.core}
        found = [chunk for chunk, taken in zip(chunks, useful, strict=True) if taken or chunk.job in lost]
        return found if self._total.covers(self._amounts(laid_out(found)[0])) else chunks

    def _can_stay(self, left: _Left) -> bool:
        """Whether there is still room for all if a chunk stays; if so, it does."""
        after, slots = {}, {}
        totals = [one.total for one in self._classes]
        for node, amounts in left.items():
            after[node] = free = list(map(int.__sub__, self._free[node], amounts))
            slots[node] = own = self._slots_with(node, free)
            before = self._slots[node]
            for place, one in enumerate(self._classes):
                totals[place] += own[place] - before[place]
                if totals[place] < one.count:
                    return False
        if not self._total.can_spare(left):
            return False
        for place, one in enumerate(self._classes):
            one.total = totals[place]
        self._free.update(after)
        self._slots.update(slots)
        return True

    def _slots_with(self, node: int, free: list[int]) -> list[int]:
        """Room by class on a node that has so much free. What it has with all its tasks is known better."""
        if free == self._at_first[node]:
            return [int(one.now[node]) for one in self._classes]
        return [one.slots(free) if one.column.open[node] else 0 for one in self._classes]


def _devices(class_: TaskClass) -> int:
    """Shared devices that a task of this class has a part of."""
    return class_.share.devices if class_.share is not None else 0


def _part(class_: TaskClass) -> int:
    """The part that it has of each. What an amount of memory is differs between nodes: 0."""
    share = class_.share
    return int((share.exact or share.portion / 100) * _PART) if share is not None else 0


def smallest(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest count that is enough, where `low` is not and `high` is."""
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


__all__ = ["RoomSums", "smallest"]
