# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The plain loops of placing tasks one after the other, compiled: equal ones for `fill.py`, others for `mixed.py`."""

from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int64_t

import numpy as np

from maniple.framework.node_scores cimport Cell, NodeWorth, Room


cdef class Heap:
    """Rows with a score each: on top is the best of them, or the worst. Of equal scores the lower row is the better."""

    cdef double[:] scores
    cdef Py_ssize_t[:] rows
    cdef Py_ssize_t size
    cdef bint _best_first

    def __init__(self, double[:] scores, Py_ssize_t most, *, bint best_first):
        self.scores = scores
        self.rows = np.empty(most, dtype=np.intp)
        self.size = 0
        self._best_first = best_first

    cdef inline bint _above(self, Py_ssize_t one, Py_ssize_t other) noexcept:
        cdef double score = self.scores[one], others = self.scores[other]
        return (score > others or (score == others and one < other)) == self._best_first

    cdef void push(self, Py_ssize_t row) noexcept:
        cdef Py_ssize_t place = self.size, over
        self.size += 1
        while place:
            over = (place - 1) // 2
            if not self._above(row, self.rows[over]):
                break
            self.rows[place] = self.rows[over]
            place = over
        self.rows[place] = row

    cdef void replace(self, Py_ssize_t row) noexcept:
        """Put a row where the one on top was; it may be the same one with another score."""
        cdef Py_ssize_t place = 0, below = 1
        while below < self.size:
            if below + 1 < self.size and self._above(self.rows[below + 1], self.rows[below]):
                below += 1
            if not self._above(self.rows[below], row):
                break
            self.rows[place] = self.rows[below]
            place = below
            below = 2 * place + 1
        self.rows[place] = row

    cdef void pop(self) noexcept:
        self.size -= 1
        if self.size:
            self.replace(self.rows[self.size])


def best(double[:] scores, Py_ssize_t count):
    """Rows of the `count` highest scores, fewer if not as many are above minus infinity, in order."""
    cdef Heap kept = Heap(scores, min(count, scores.shape[0]), best_first=False)
    cdef Py_ssize_t row
    for row in range(scores.shape[0]):
        if scores[row] == -INFINITY:
            continue
        if kept.size < count:
            kept.push(row)
        elif scores[row] > scores[kept.rows[0]]:
            kept.replace(row)
    found = np.asarray(kept.rows[: kept.size])
    found.sort()
    return found


cdef class Ladder:
    """What one more task is worth on each of some rows, after so many have been placed there."""

    cdef int64_t most  # tasks on a row, up to which that is known

    cdef double after(self, Py_ssize_t row, Py_ssize_t placed) noexcept:
        return 0.0


cdef class Steps(Ladder):
    """As a matrix says: a row of it for each row, a column for each number of tasks."""

    cdef const double[:, :] _worth

    def __init__(self, const double[:, :] worth):
        self._worth = worth
        self.most = worth.shape[1] - 1

    cdef double after(self, Py_ssize_t row, Py_ssize_t placed) noexcept:
        return self._worth[row, placed]


cdef class NodeSteps(Ladder):
    """As the nodes themselves are worth it, on top of a fixed amount for each row (nothing, if None)."""

    cdef NodeWorth _worth
    cdef const Py_ssize_t[:] _nodes
    cdef const int64_t[:, ::1] _books
    cdef const int64_t[::1] _entry
    cdef const double[:] _shift

    def __init__(
        self,
        NodeWorth worth not None,
        const Py_ssize_t[:] nodes,
        const int64_t[:, ::1] books,
        const int64_t[::1] entry,
        const double[:] shift,
    ):
        self._worth = worth
        self._nodes = nodes
        self._books = books
        self._entry = entry
        self._shift = shift
        self.most = INT64_MAX

    cdef double after(self, Py_ssize_t row, Py_ssize_t placed) noexcept:
        cdef Cell cell
        cell.node, cell.extra = self._nodes[row], placed
        cell.books, cell.next_book = <const char*> &self._books[0, cell.node], self._books.strides[0]
        cell.entry, cell.next_entry = <const char*> &self._entry[0], self._entry.strides[0]
        return self._worth.of(&cell) + (0.0 if self._shift is None else self._shift[row])


def in_turn(const double[:] scores, Ladder ladder not None, const Py_ssize_t[:] room, Py_ssize_t count):
    """Rows for up to `count` tasks, by what the first is worth on each row, and the others by the ladder.

    The best row is next, and then only that row's worth changes. Given are, by task: the row; the lowest worth on the
    way to it, which is by what its turn came; and whether it was the last that the row could take. A task for which
    there is no place on a row is worth minus infinity.
    """
    cdef Py_ssize_t size = scores.shape[0], row, taken = 0
    if room.shape[0] != size:
        raise ValueError(f"{size} rows have a worth, {room.shape[0]} have room")
    heights_of, reach_of = np.zeros(size, dtype=np.intp), np.array(scores)
    rows_of, turns_of, last_of = np.empty(count, dtype=np.intp), np.empty(count), np.empty(count, dtype=np.uint8)
    cdef Py_ssize_t[:] heights = heights_of, rows = rows_of
    cdef double[:] reach = reach_of, turns = turns_of
    cdef unsigned char[:] last = last_of
    cdef Heap heap = Heap(reach, size, best_first=True)
    cdef double worth
    for row in range(size):
        if min(room[row], count) > ladder.most:
            raise ValueError(f"row {row} could take more than the {ladder.most} tasks after which its worth is known")
        if room[row] > 0 and reach[row] > -INFINITY:
            heap.push(row)
    while taken < count and heap.size:
        row = heap.rows[0]
        heights[row] += 1
        worth = -INFINITY if heights[row] >= room[row] else ladder.after(row, heights[row])
        rows[taken], turns[taken], last[taken] = row, reach[row], worth == -INFINITY
        taken += 1
        if worth == -INFINITY:
            heap.pop()
        else:
            reach[row] = min(reach[row], worth)
            heap.replace(row)
    return rows_of[:taken], turns_of[:taken], last_of[:taken].view(np.bool_)


def one_by_one(
    Room room,
    int64_t[:, ::1] books,
    const int64_t[:, ::1] entries,
    list worths,
    const unsigned char[::1] open_,
    *,
    bint refusals_last,
):
    """Rows for tasks in their order, each the best one that fits it: up to the first task that fits nowhere.

    A task adds its entry to the books of its row, and is worth there what its own sum of scores says. Where refusals
    last, a row that does not fit a task is not tried for those after it. Given are also, by task, the rows that were
    tried and fit.
    """
    cdef Py_ssize_t size = books.shape[1], most = entries.shape[0], done = 0, row, best, book
    cdef double highest, score
    cdef NodeWorth worth
    cdef Cell cell
    rows_of, fitting_of = np.empty(most, dtype=np.intp), np.zeros((most, size), dtype=np.uint8)
    cdef Py_ssize_t[::1] rows = rows_of
    cdef unsigned char[:, ::1] fitting = fitting_of
    cell.extra = 0
    cell.next_book, cell.next_entry = books.strides[0], entries.strides[1]
    while done < most:
        worth = worths[done]
        cell.entry = <const char*> &entries[done, 0]
        best, highest = -1, 0.0
        for row in range(size):
            if not (fitting[done - 1, row] if refusals_last and done else open_[row]):
                continue
            cell.node, cell.books = row, <const char*> &books[0, row]
            if not room.fits(&cell):
                continue
            fitting[done, row] = True
            score = worth.of(&cell)
            if best < 0 or score > highest:
                best, highest = row, score
        if best < 0:
            break
        for book in range(books.shape[0]):
            books[book, best] += entries[done, book]
        rows[done] = best
        done += 1
    return rows_of[:done], fitting_of[:done].view(np.bool_)
