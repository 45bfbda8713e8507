"""For how many tasks there would be room if some left: sums over nodes, before anything is tried.

Used by the default solver of the `kai` profile. Chunks are added one after the other, in victim order, until there could be room for all. The sums never say too little: whoever is turned down
by them has no chance. Where tasks of one class ask for nothing but amounts, and no device is shared, they are exact, and say whom it takes.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.kai_scenario import Chunk
from maniple.eviction.kai_victims import VictimSequence
from maniple.eviction.scenario import Demand
from maniple.framework.gpu_facts import UNIT
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.placement.engine import Placement

_MANY = 64  # chunks up to which they are added one by one
_Left = dict[int, list[int]]  # node -> amounts


class _ClassRoom:
    """Room for one class on what will be free."""

    def __init__(self, placement: Placement, demand: Demand, dimensions: list[int]) -> None:
        self.column = placement.column(demand.class_)
        self.count = len(demand.rows)
        asked: list[int] = demand.class_.request[dimensions].tolist()
        self._asked = [(place, amount) for place, amount in enumerate(asked) if amount > 0]
        self.total = self.column.room

    def slots(self, free: list[int]) -> int:
        return max(min([free[place] // amount for place, amount in self._asked]), 0)


class RoomSums:
    """What chunks leave room for, for the tasks of one job. Made before anything is evicted; good for one search."""

    def __init__(self, session: Session, placement: Placement, demands: list[Demand]) -> None:
        self._session = session
        # A task that shares a device may find room in many ways: of those sums say nothing.
        telling = [one for one in demands if one.class_.share is None and not one.class_.best_effort]
        self._dimensions = sorted({d for one in telling for d in one.class_.request.nonzero()[0].tolist()})
        self._classes = [_ClassRoom(placement, demand, self._dimensions) for demand in telling]
        self.exact = (
            len(demands) == len(self._classes) == 1
            and not self._classes[0].column.criteria.cluster_filters
            and not session.gpus.groups_of
        )
        self._free: _Left = {}  # with what the chunks so far leave
        self._slots: dict[int, list[int]] = {}  # node -> by class
        self._given: list[_Left] = []  # by chunk

    def least(self, sequence: VictimSequence, guess: int = 1) -> int | None:
        """How many of the first chunks it takes at least; None when all are not enough. `guess`: so many may do."""
        self._forget()
        done, size = 0, min(max(guess, 1), _MANY)
        while not self._enough():
            if size > _MANY:
                return self._least_of_many(sequence)
            chunks = sequence.first(size)
            self._look_at(chunks[done:])
            while done < len(chunks) and not self._enough():
                self._add(self._given[done])
                done += 1
            if done < size and not self._enough():
                return None
            size *= 4
        return done

    def _least_of_many(self, sequence: VictimSequence) -> int | None:
        """The same where a few are not enough: by halving, with all nodes looked at at once."""
        tasks = self._session.tasks
        there = (tasks.status >= 0) & (tasks.job >= 0) & ACTIVE_ALLOCATED[tasks.status]
        if not self._covered(np.flatnonzero(there & sequence.allowed[tasks.job])):
            return None
        size = 2 * _MANY
        rows, ends = _laid_out(sequence.first(size))
        while not self._covered(rows):
            if len(ends) < size:
                return None
            size *= 2
            rows, ends = _laid_out(sequence.first(size))
        return smallest(lambda count: self._covered(rows[: ends[count - 1]]), size // 2, len(ends))

    def _covered(self, rows: TaskRows) -> bool:
        free = self._free_without(rows)
        return all(
            int(np.maximum(self._room(one, free), one.column.later).sum()) >= one.count
            for one in self._classes
        )

    def _free_without(self, rows: TaskRows) -> Amounts:
        """What all nodes have once tasks have left."""
        session = self._session
        free = session.nodes.future_idle().take(self._dimensions, axis=0)
        where = session.tasks.node[rows]
        for own, amounts in zip(free, self._amounts(rows), strict=True):
            np.add.at(own, where, amounts)
        return free

    def _room(self, one: _ClassRoom, free: Amounts) -> Amounts:
        amounts = one.column.class_.request[self._dimensions]
        asked = amounts > 0
        slots: Amounts = np.maximum((free[asked] // amounts[asked][:, None]).min(axis=0), 0)
        slots *= one.column.open
        return slots

    def _enough(self) -> bool:
        return all(one.total >= one.count for one in self._classes)

    def _forget(self) -> None:
        self._free, self._slots, self._given = {}, {}, []
        for one in self._classes:
            one.total = one.column.room

    def _look_at(self, chunks: list[Chunk]) -> None:
        """Note what chunks would leave where, and what is free there."""
        if not chunks:
            return
        session = self._session
        rows = np.concatenate([chunk.rows for chunk in chunks])
        where: list[int] = session.tasks.node[rows].tolist()
        given: list[list[int]] = self._amounts(rows).T.tolist()
        fresh = [node for node in dict.fromkeys(where) if node not in self._free]
        free = session.nodes.future_idle(np.array(fresh, dtype=np.intp)).take(self._dimensions, axis=0)
        later = [one.column.later[fresh].tolist() for one in self._classes]
        self._free.update(zip(fresh, free.T.tolist(), strict=True))
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
        """What tasks leave; of devices that are shared, all of each."""
        session, books = self._session, self._session.gpus
        given = session.requests(rows)
        if books.groups_of and books.dimension is not None:
            given = given.copy()
            for place, row in enumerate(rows.tolist()):
                given[books.dimension, place] += UNIT * len(books.groups_of.get(row, ()))
        return given.take(self._dimensions, axis=0)

    def _add(self, left: _Left) -> None:
        for node, amounts in left.items():
            free = self._free[node] = list(map(int.__add__, self._free[node], amounts))
            slots = self._slots[node]
            for place, one in enumerate(self._classes):
                if one.column.open[node]:
                    now = one.slots(free)
                    one.total += now - slots[place]
                    slots[place] = now

    # -- whom it takes --------------------------------------------------------------------------------------------

    def needed(self, chunks: list[Chunk]) -> list[Chunk]:
        """Of the chunks that `least` arrived at: without those that can stay, the most important ones first. Only if sums are exact."""
        (room,) = self._classes
        if len(chunks) > _MANY:
            chunks = self._useful(chunks, room)
            self._forget()
            self._look_at(chunks)
            for left in self._given:
                self._add(left)
        kept: list[Chunk] = []
        lost: set[int] = set()  # whoever loses its core loses everything
        for chunk, left in zip(reversed(chunks), reversed(self._given[: len(chunks)]), strict=True):
            if chunk.job not in lost:
                loss, after = self._without(room, left)
                if room.total - loss >= room.count:
                    room.total -= loss
                    self._free.update(after)
                    continue
            kept.append(chunk)
            if chunk.core:
                lost.add(chunk.job)
        return kept[::-1]

    def _useful(self, chunks: list[Chunk], room: _ClassRoom) -> list[Chunk]:
        """Those with a task on a node where there would be room at all, and all of whoever loses its core."""
        rows, ends = _laid_out(chunks)
        promising = self._room(room, self._free_without(rows)) > 0
        there = promising[self._session.tasks.node[rows]]
        useful = np.logical_or.reduceat(there, np.concatenate([[0], ends[:-1]])).tolist()
        lost = {chunk.job for chunk, taken in zip(chunks, useful, strict=True) if taken and chunk.core}
        return [chunk for chunk, taken in zip(chunks, useful, strict=True) if taken or chunk.job in lost]

    def _without(self, room: _ClassRoom, left: _Left) -> tuple[int, _Left]:
        """The room that is lost if somebody stays, and what is free then."""
        loss, after = 0, {}
        for node, amounts in left.items():
            free = self._free[node]
            after[node] = rest = list(map(int.__sub__, free, amounts))
            if room.column.open[node]:
                loss += room.slots(free) - room.slots(rest)
        return loss, after


def _laid_out(chunks: list[Chunk]) -> tuple[TaskRows, NDArray[np.int64]]:
    """The tasks of chunks one after the other, and where those of each end."""
    rows = [chunk.rows for chunk in chunks]
    return np.concatenate(rows), np.cumsum([len(some) for some in rows])


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
