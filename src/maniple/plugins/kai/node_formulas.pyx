# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The formulas of nodeplacement and nodeavailability, node by node (their own files have the scorers)."""

from libc.stdint cimport int64_t

from maniple.framework.node_scores cimport PIPELINED, RELEASING, USED, Cell, NodeScore, Room, book_row, booked


cdef class _Left(NodeScore):
    """What is idle or being released, and not claimed, of one dimension."""

    cdef const int64_t[:] _allocatable
    cdef Py_ssize_t _released
    cdef Py_ssize_t _pipelined
    cdef Py_ssize_t _used

    def __init__(self, const int64_t[:, :] allocatable, Py_ssize_t dimension):
        self._allocatable = allocatable[dimension]
        self._released = book_row(RELEASING, allocatable.shape[0], dimension)
        self._pipelined = book_row(PIPELINED, allocatable.shape[0], dimension)
        self._used = book_row(USED, allocatable.shape[0], dimension)

    cdef inline int64_t _left(self, const Cell* cell) noexcept:
        cdef int64_t coming = booked(cell, self._released) - booked(cell, self._pipelined)
        return self._allocatable[cell.node] - booked(cell, self._used) + coming


cdef class Density(_Left):
    """`highest` points at most, the more the less is left of what the largest node has; none without any of it."""

    cdef double _highest
    cdef int64_t _largest

    def __init__(self, const int64_t[:, :] allocatable, Py_ssize_t dimension, double highest, int64_t largest):
        super().__init__(allocatable, dimension)
        self._highest = highest
        self._largest = largest

    cdef double of(self, const Cell* cell) noexcept:
        if self._allocatable[cell.node] <= 0:
            return 0.0
        return self._highest * (1 - <double> self._left(cell) / <double> self._largest)


cdef class PartLeft(_Left):
    """The part of the whole that is left; 0 without any of it."""

    cdef const int64_t[:] _whole

    def __init__(self, const int64_t[:, :] allocatable, Py_ssize_t dimension, const int64_t[:] whole):
        super().__init__(allocatable, dimension)
        self._whole = whole

    cdef double of(self, const Cell* cell) noexcept:
        if self._whole[cell.node] <= 0:
            return 0.0
        return <double> self._left(cell) / <double> self._whole[cell.node]


cdef class Constant(NodeScore):
    """The same for every node."""

    cdef double _value

    def __init__(self, double value):
        self._value = value

    cdef double of(self, const Cell* cell) noexcept:
        return self._value


cdef class FitsNow(NodeScore):
    """1 where the task fits on what is idle, 0 elsewhere."""

    cdef Room _room

    def __init__(self, Room room not None):
        self._room = room

    cdef double of(self, const Cell* cell) noexcept:
        return 1.0 if self._room.fits(cell) else 0.0
