"""The order of turns: jobs in the order of the queue tree.

A tree of heaps mirrors the queues. A leaf holds jobs in job order; every queue above holds its child queues in
the order of `queue_turn`, which compares a queue together with the job that it would send. Anything that a job
gets changes the position of its queues, but only a queue that has reached the top is moved to its right
position; the others keep the position that they had. So the sifting algorithm affects the order too, and it is
that of Go's heap.

Called by every action of the profile. Victims come in the opposite order; `queue_turn` then also gets the jobs
that a queue has given up so far. Its result for a queue is remembered until a node changes, or, where only jobs
that have been handed out change (`steady`), until the queue has had its turn.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.points import JobRows, Key
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder

Item = TypeVar("Item")
JobPlace = Callable[[int], Key]  # a job's place in the order of jobs


class Heap(Generic[Item]):
    """A heap that sifts as Go's does: with an order that changes meanwhile, or is none, the same things come out."""

    def __init__(self, before: Callable[[Item, Item], bool], ordered: Iterable[Item] = ()) -> None:
        self._before = before
        self._items = list(ordered)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def top(self) -> Item:
        return self._items[0]

    def push(self, item: Item) -> None:
        self._items.append(item)
        self._up(len(self._items) - 1)

    def pop(self) -> Item:
        items, last = self._items, len(self._items) - 1
        items[0], items[last] = items[last], items[0]
        self._down(0, last)
        return items.pop()

    def remove(self, place: int) -> Item:
        items, last = self._items, len(self._items) - 1
        if place != last:
            items[place], items[last] = items[last], items[place]
            if not self._down(place, last):
                self._up(place)
        return items.pop()

    def fix_top(self) -> None:
        """The top's place in the order may have changed."""
        self._down(0, len(self._items))

    def _up(self, place: int) -> None:
        items, before = self._items, self._before
        while place > 0:
            above = (place - 1) // 2
            if not before(items[place], items[above]):
                break
            items[place], items[above] = items[above], items[place]
            place = above

    def _down(self, place: int, size: int) -> bool:
        """Whether the item had to go down."""
        items, before, start = self._items, self._before, place
        while (below := 2 * place + 1) < size:
            if below + 1 < size and before(items[below + 1], items[below]):
                below += 1
            if not before(items[below], items[place]):
                break
            items[place], items[below] = items[below], items[place]
            place = below
        return place > start


class _Jobs:
    """A leaf's jobs in job order.

    The position of a job does not change while it is in line. Jobs of the lowest rank, beyond the depth, are
    left out.
    """

    def __init__(self, ordered: list[int], place: JobPlace, depth: int | None, *, victims: bool) -> None:
        self._jobs = ordered
        self._place = place
        self._places: dict[int, Key] = {}  # of jobs in line, as far as pushed jobs were compared with them
        self._depth = depth
        self._victims = victims
        self._first = 0
        self._trim()

    def __len__(self) -> int:
        return len(self._jobs) - self._first

    def push(self, job: int) -> None:
        self._places.pop(job, None)
        insort(self._jobs, job, lo=self._first, key=self._known_place)
        self._trim()

    def _known_place(self, job: int) -> Key:
        place = self._places.get(job)
        if place is None:
            place = self._places[job] = self._place(job)
        return place

    def waiting(self) -> list[int]:
        """The jobs in line, in their order."""
        return self._jobs[self._first :]

    def top(self) -> int:
        return self._jobs[-1 if self._victims else self._first]

    def pop(self) -> int:
        if self._victims:
            return self._jobs.pop()
        self._first += 1
        return self._jobs[self._first - 1]

    def _trim(self) -> None:
        if self._depth is not None and len(self) > self._depth:
            if self._victims:
                del self._jobs[: len(self) - self._depth]
            else:
                del self._jobs[self._first + self._depth :]


class _JobsAsInKai:
    """The same as a heap, as in KAI.

    A job that has lost tasks meanwhile is compared as it is now, and only when it is sifted. With a depth, the
    last entry of a heap that is too long is dropped, whatever its rank.
    """

    def __init__(self, jobs: list[int], place: JobPlace, depth: int | None, *, victims: bool) -> None:
        self._depth = depth

        def before(one: int, other: int) -> bool:
            return (place(one) < place(other)) is not victims

        ordered = jobs if depth is None else []
        self._heap = Heap[int](before, reversed(ordered) if victims else ordered)
        if depth is not None:
            for job in sorted(jobs, key=lambda job: place(job)[-2:]):
                self.push(job)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, job: int) -> None:
        self._heap.push(job)
        if self._depth is not None and len(self._heap) > self._depth:
            self._heap.remove(self._depth)

    def waiting(self) -> list[int]:
        """The jobs in line, as the heap has them."""
        return list(self._heap)

    def top(self) -> int:
        return self._heap.top()

    def pop(self) -> int:
        return self._heap.pop()


class _Turn:
    """A queue in the tree: a leaf has jobs, any other has queues."""

    __slots__ = ("below", "jobs", "key", "moved", "parent", "queue", "stamp", "taken")

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.parent: _Turn | None = None
        self.below: Heap[_Turn] | None = None
        self.jobs: _Jobs | _JobsAsInKai | None = None
        self.taken: list[int] = []  # jobs handed out, where these are victims
        self.moved = False  # its place among its siblings may not be right any more
        self.key: Key | None = None  # what `queue_turn` said last, if it may still hold
        self.stamp = -1  # length of the change log when it said so

    def __len__(self) -> int:
        return len(self.below if self.jobs is None else self.jobs)  # type: ignore[arg-type]  # one of the two is there


class JobsByQueue:
    """Jobs, handed out one by one. Jobs of queues that are not served are left out."""

    def __init__(
        self,
        session: Session,
        jobs: Iterable[int],
        *,
        victims: bool = False,
        depth: int | None = None,
        steady: bool = False,
        traced: bool = False,
    ) -> None:
        """`traced`: these are the turns of an action, not those of a simulation."""
        self._session = session
        self._trace = session.trace if traced else None
        self._steady = steady
        self._victims = victims
        self._depth = None if depth is None or depth < 0 else depth
        self._roots = self._heap()
        self._turns: dict[int, _Turn] = {}
        self._taken: dict[int, list[int]] = {}
        # Of queues that nothing else tells apart, not even their age, the one on top stays there.
        self._ties = not (session.rules.queues.older_first and "queue_turn" in session.hooks.answered)
        self._start(jobs)

    def __len__(self) -> int:
        return sum(len(turn) for turn in self._turns.values() if turn.jobs is not None)

    def push(self, job: int) -> None:
        """Put a job in line, or back in line."""
        queue = int(self._session.jobs.queue[job])
        if not self._session.queue_tree.serves(queue):
            return
        turn = self._turns.get(queue)
        if turn is None:
            self._grow(queue, [job])
            return
        assert turn.jobs is not None  # the tree serves leaves only
        turn.jobs.push(job)
        _mark(turn)

    def pop(self) -> int | None:
        """The next job; None when there is none left."""
        if not len(self._roots):
            return None
        turn = _first(self._roots)
        while turn.below is not None:
            turn = _first(turn.below)
        assert turn.jobs is not None  # what has no queues below it has jobs
        job = turn.jobs.pop() if self._trace is None else self._told(self._trace, turn)
        if self._victims:
            turn.taken.append(job)
        self._shrink(turn)
        return job

    # -- the tree -------------------------------------------------------------------------------------------------

    def _start(self, jobs: Iterable[int]) -> None:
        tree = self._session.queue_tree
        leaves = self._by_queue(np.fromiter(jobs, dtype=np.int64))
        for queue in sorted(filter(tree.serves, leaves), key=self._session.queue_tie):
            self._grow(queue, leaves[queue])

    def _by_queue(self, jobs: JobRows) -> dict[int, list[int]]:
        """Jobs by leaf, in job order; a job that is alone in its leaf is not compared with any other."""
        queues = self._session.jobs.queue[jobs]
        if len(jobs) > 1 and len(set(queues.tolist())) < len(jobs):
            jobs = self._session.in_job_order(jobs)
            queues = self._session.jobs.queue[jobs]
        leaves: dict[int, list[int]] = {}
        for job, queue in zip(jobs.tolist(), queues.tolist(), strict=True):
            leaves.setdefault(queue, []).append(job)
        return leaves

    def _grow(self, queue: int, ordered: list[int]) -> None:
        """A leaf joins the tree, and the queues above it where they are missing."""
        place = self._session.job_key_order
        heaped = self._session.rules.queues.jobs_are_heaped
        live = heaped and (self._depth is not None or self._can_lose(ordered))
        kind = _JobsAsInKai if live else _Jobs
        jobs = kind(ordered, place, self._depth, victims=self._victims)
        if not len(jobs):
            return
        turn = self._turns[queue] = _Turn(queue)
        turn.jobs, turn.taken = jobs, self._taken.setdefault(queue, [])
        while (above := self._session.queue_tree.parent(turn.queue)) >= 0:
            parent = self._turns.get(above)
            known = parent is not None
            if parent is None:
                parent = self._turns[above] = _Turn(above)
                parent.below = self._heap()
            turn.parent = parent
            assert parent.below is not None  # a queue with queues below it is no leaf
            parent.below.push(turn)
            if known:
                break
            turn = parent
        else:
            self._roots.push(turn)
        _mark(self._turns[queue])

    def _can_lose(self, jobs: list[int]) -> bool:
        """Whether one of these jobs has tasks that others may take away while it waits for its turn."""
        return not self._victims and bool((ACTIVE_ALLOCATED @ self._session.jobs.counts[:, jobs]).any())

    def _shrink(self, turn: _Turn) -> None:
        """A job has left. Queues that are empty now leave too; they are at the top of their heaps."""
        while not len(turn):
            del self._turns[turn.queue]
            if turn.parent is None:
                self._roots.pop()
                return
            assert turn.parent.below is not None
            turn.parent.below.pop()
            turn = turn.parent
        _mark(turn)

    # -- the order of queues --------------------------------------------------------------------------------------

    def _told(self, trace: Recorder, leaf: _Turn) -> int:
        """Take the next job of a leaf, and record the turns of the queues down to it and that of the job."""
        path = [leaf]
        while path[0].parent is not None:
            path.insert(0, path[0].parent)
        for turn in path:
            self._tell(trace, turn)
        assert leaf.jobs is not None
        job = leaf.jobs.pop()
        trace.job_turn(job, leaf.jobs.waiting())
        return job

    def _tell(self, trace: Recorder, turn: _Turn) -> None:
        """A queue is chosen; the keys of all are what they would be compared by now."""
        heap = self._roots if turn.parent is None else turn.parent.below
        if heap is not None and len(heap) > 1:
            others = [(self._peek(one), one.queue) for one in heap if one is not turn]
            below = turn.parent is not None
            trace.queue_turn(turn.queue, "queue_turn", self._peek(turn), others, below=below)

    def _peek(self, turn: _Turn) -> Key:
        """Its key, without remembering it: when a key is worked out affects the order."""
        before = turn.key, turn.stamp
        key = self._key(turn)
        turn.key, turn.stamp = before
        return key

    def _heap(self) -> Heap[_Turn]:
        if self._victims:
            return Heap(lambda a, b: not self._key(a) < self._key(b))
        return Heap(lambda a, b: self._key(a) < self._key(b))

    def _key(self, turn: _Turn) -> Key:
        now = 0 if self._steady else len(self._session.changes)
        if turn.key is None or turn.stamp != now:
            turn.stamp, leaf = now, turn
            while leaf.below is not None:
                leaf = leaf.below.top()
            assert leaf.jobs is not None
            job = leaf.jobs.top()
            hooks, queue = self._session.hooks, turn.queue
            asked = (
                hooks.queue_turn(queue, -1, [*leaf.taken, job])
                if self._victims
                else hooks.queue_turn(queue, job, ())
            )
            turn.key = (*asked, *self._session.queue_tie(queue)) if self._ties else asked
        return turn.key


def _first(heap: Heap[_Turn]) -> _Turn:
    """The queue at the top, once the queue there is in its right position."""
    while (turn := heap.top()).moved:
        heap.fix_top()
        turn.moved = False
    return turn


def _mark(turn: _Turn | None) -> None:
    """Something changed in a queue, and so for all those above it."""
    while turn is not None:
        turn.moved, turn.key = True, None
        turn = turn.parent


__all__ = ["Heap", "JobsByQueue"]
