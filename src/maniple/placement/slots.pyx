# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""How many more tasks of a class fit on nodes, as far as resources go: compiled, for `column.py`."""

from libc.stdint cimport INT64_MAX, int64_t

import numpy as np

from maniple.framework.node_scores cimport PIPELINED, RELEASING, USED, book_row, quotient


cdef class Slots:
    """For one class.

    `asked` are the dimensions that it requests, at least one, `amounts` how much of each; a node that has given away
    more than it has of one in `owed` fits no task at all. `limits`: of filters (`criteria.Limit`). `open_` are the
    nodes that nothing lasting speaks against, as bytes.
    """

    cdef const int64_t[:, ::1] _allocatable
    cdef const int64_t[:, ::1] _books
    cdef const Py_ssize_t[::1] _asked
    cdef const int64_t[::1] _amounts
    cdef const Py_ssize_t[::1] _owed
    cdef tuple _limits
    cdef const unsigned char[::1] _open

    def __init__(
        self,
        const int64_t[:, ::1] allocatable,
        const int64_t[:, ::1] books,
        const Py_ssize_t[::1] asked,
        const int64_t[::1] amounts,
        const Py_ssize_t[::1] owed,
        tuple limits,
        const unsigned char[::1] open_,
    ):
        self._allocatable = allocatable
        self._books = books
        self._asked = asked
        self._amounts = amounts
        self._owed = owed
        self._limits = limits
        self._open = open_

    def count(self, const Py_ssize_t[::1] rows, bint flowing):
        """On what is idle now, and once everything under way is released: the same array while nothing is.

        Of some nodes, or of all (None). What fits now fits later, too: something may wait for what is idle.
        """
        later = self._count(rows, flowing)
        return np.minimum(self._count(rows, False), later) if flowing else later, later

    cdef _count(self, const Py_ssize_t[::1] rows, bint later):
        cdef Py_ssize_t size = self._allocatable.shape[1] if rows is None else rows.shape[0], place
        cdef const Py_ssize_t* some = NULL if rows is None or not size else &rows[0]
        cdef const int64_t[::1] capacity
        found = np.empty(size, dtype=np.int64)
        cdef int64_t[::1] slots = found
        if not size:
            return found
        for place in range(size):
            slots[place] = INT64_MAX if self._open[some[place] if some else place] else 0
        for place in range(self._asked.shape[0]):
            self._divide(&slots[0], size, some, self._asked[place], self._amounts[place], later)
        for place in range(self._owed.shape[0]):
            self._divide(&slots[0], size, some, self._owed[place], 0, later)
        for capacity, row in self._limits:
            limit(&slots[0], size, some, &capacity[0], &self._books[<Py_ssize_t> row, 0])
        return found

    cdef void _divide(
        self, int64_t* slots, Py_ssize_t size, const Py_ssize_t* some, Py_ssize_t dimension, int64_t amount, bint later
    ) noexcept:
        """No more slots on a node than what is free of a dimension can be divided into; none where it is negative."""
        cdef Py_ssize_t height = self._allocatable.shape[0], place, node
        cdef const int64_t* whole = &self._allocatable[dimension, 0]
        cdef const int64_t* used = &self._books[book_row(USED, height, dimension), 0]
        cdef const int64_t* released = &self._books[book_row(RELEASING, height, dimension), 0]
        cdef const int64_t* claimed = &self._books[book_row(PIPELINED, height, dimension), 0]
        cdef int64_t free
        for place in range(size):
            node = some[place] if some else place
            free = whole[node] - used[node]
            if later:
                free += released[node] - claimed[node]
            if free < amount:
                slots[place] = 0
            elif amount:
                slots[place] = min(slots[place], quotient(free, amount))


cdef void limit(
    int64_t* slots, Py_ssize_t size, const Py_ssize_t* some, const int64_t* capacity, const int64_t* taken
) noexcept:
    """No more slots on a node than what is left of a capacity."""
    cdef Py_ssize_t place, node
    for place in range(size):
        node = some[place] if some else place
        slots[place] = min(slots[place], max(capacity[node] - taken[node], 0))
