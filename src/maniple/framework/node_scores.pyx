# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What is asked of single nodes, compiled: scores are plain functions of one node, and are added up in one pass.

A plugin derives from `NodeScore`: `of` says what one node is worth for one task, from the node's books as they are with
the tasks that are imagined there. `NodeWorth` is the weighted sum of several scores, for all of some cells
(`criteria.Cells`). Most cycles ask for something else gang by gang: one call for a sum over all nodes then costs a
tenth of the array operations that it replaces.
"""

from cython cimport final

from cpython.mem cimport PyMem_Free, PyMem_Malloc

from array import array

import numpy as np


cdef class NodeScore:
    """What one node is worth for one more task."""

    cdef double of(self, const Cell* cell) noexcept:
        return 0.0

    def over(self, cells):
        """Of each of some cells, in their shape."""
        return NodeWorth(None, (self,), (1.0,)).over(cells)


@final
cdef class NodeWorth:
    """A sum of scores, each times its weight, on top of what is fixed for each node (nothing, if None)."""

    def __init__(self, const double[:] fixed, tuple scores, tuple weights):
        cdef Py_ssize_t place
        self._fixed = fixed
        self._scores = scores
        self._count = len(scores)
        self._weights = array("d", weights)
        if len(weights) != self._count:
            raise ValueError(f"{self._count} scores have {len(weights)} weights")
        PyMem_Free(self._each)
        self._each = <PyObject**> PyMem_Malloc(max(self._count, 1) * sizeof(PyObject*))
        if self._each is NULL:
            raise MemoryError
        for place in range(self._count):
            self._each[place] = <PyObject*> <NodeScore?> scores[place]

    def __dealloc__(self):
        PyMem_Free(self._each)

    cdef double of(self, const Cell* cell) noexcept:
        cdef double worth = 0.0 if self._fixed is None else self._fixed[cell.node]
        cdef Py_ssize_t place
        for place in range(self._count):
            worth = worth + self._weights[place] * (<NodeScore> self._each[place]).of(cell)
        return worth

    def over(self, cells):
        """Of each of some cells, in their shape."""
        rows = cells.rows
        books, entry, extra = cells.nodes.books, cells.class_.entries.allocated, cells.extra
        if isinstance(rows, slice):
            return self._of_nodes(None, books, entry, extra)
        if rows.ndim == 1:
            return self._of_nodes(rows, books, entry, extra)
        if rows.shape[1] != 1:
            raise ValueError(f"cells of {rows.shape[1]} columns of nodes cannot be scored; one column was expected")
        return self._of_column(rows[:, 0], books, entry, extra)

    cdef _of_nodes(self, const Py_ssize_t[:] rows, const int64_t[:, :] books, const int64_t[:] entry, extra):
        """Of some nodes, or of all (None), with as many tasks on all of them or with a number for each."""
        cdef const int64_t[:] extras = None
        cdef Py_ssize_t place
        cdef Cell cell
        found = np.empty(books.shape[1] if rows is None else rows.shape[0])
        cdef double[:] worth = found
        cell.extra = 0
        if isinstance(extra, int):
            cell.extra = extra
        else:
            extras = extra
        cell.next_book, cell.next_entry = books.strides[0], entry.strides[0]
        cell.entry = <const char*> &entry[0]
        for place in range(worth.shape[0]):
            cell.node = place if rows is None else rows[place]
            cell.books = <const char*> &books[0, cell.node]
            if extras is not None:
                cell.extra = extras[place]
            worth[place] = self.of(&cell)
        return found

    cdef _of_column(
        self, const Py_ssize_t[:] rows, const int64_t[:, :] books, const int64_t[:] entry, const int64_t[:] extra
    ):
        """Of each node with each number of tasks."""
        cdef Py_ssize_t place, height
        cdef Cell cell
        found = np.empty((rows.shape[0], extra.shape[0]))
        cdef double[:, :] worth = found
        cell.next_book, cell.next_entry = books.strides[0], entry.strides[0]
        cell.entry = <const char*> &entry[0]
        for place in range(rows.shape[0]):
            cell.node = rows[place]
            cell.books = <const char*> &books[0, cell.node]
            for height in range(extra.shape[0]):
                cell.extra = extra[height]
                worth[place, height] = self.of(&cell)
        return found


@final
cdef class Room:
    """Whether a node has room for one more task on what is idle.

    A node that has given away more than it has of a dimension in `owed` fits no task, whatever it requests. `limits`
    are those of filters (`criteria.Limit`).
    """

    def __init__(self, const int64_t[:, ::1] allocatable, const Py_ssize_t[::1] owed, tuple limits):
        capacities = np.array([limit.capacity for limit in limits], dtype=np.int64)
        self._allocatable = allocatable
        self._owed = owed
        self._capacities = capacities.reshape(len(limits), allocatable.shape[1])
        self._limited = np.array([limit.row for limit in limits], dtype=np.intp)

    cdef inline int64_t _idle(self, const Cell* cell, Py_ssize_t dimension) noexcept:
        cdef Py_ssize_t used = book_row(USED, self._allocatable.shape[0], dimension)
        return self._allocatable[dimension, cell.node] - booked(cell, used)

    cdef bint fits(self, const Cell* cell) noexcept:
        cdef Py_ssize_t dimension, place
        cdef int64_t asked
        for dimension in range(self._allocatable.shape[0]):
            asked = added(cell, book_row(USED, self._allocatable.shape[0], dimension))
            if asked > 0 and self._idle(cell, dimension) < asked:
                return False
        for place in range(self._owed.shape[0]):
            if self._idle(cell, self._owed[place]) < 0:
                return False
        for place in range(self._limited.shape[0]):
            if self._capacities[place, cell.node] <= booked(cell, self._limited[place]):
                return False
        return True
