# cython: cdivision=True
from cython cimport final

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# The order of the books, as in `cluster/snapshot.py`.
cdef enum Book:
    RELEASING
    PIPELINED
    USED
    REQUESTED


cdef inline Py_ssize_t book_row(Book book, Py_ssize_t height, Py_ssize_t dimension) noexcept:
    """The row that a part of the books has for a dimension."""
    return book * height + dimension


cdef struct Cell:
    Py_ssize_t node
    int64_t extra  # tasks of the class that are imagined there already
    const char* books  # the node's column of the books
    Py_ssize_t next_book  # from one row of the books to the next, in bytes
    const char* entry  # what one task adds to the books
    Py_ssize_t next_entry


cdef inline int64_t added(const Cell* cell, Py_ssize_t row) noexcept:
    """What the task that is looked at adds to a row of the node's books."""
    return (<const int64_t*> (cell.entry + row * cell.next_entry))[0]


cdef inline int64_t booked(const Cell* cell, Py_ssize_t row) noexcept:
    """A row of the node's books, with the tasks that are imagined there."""
    return (<const int64_t*> (cell.books + row * cell.next_book))[0] + cell.extra * added(cell, row)


cdef inline int64_t quotient(int64_t amount, int64_t by) noexcept:
    """Rounded down; neither may be negative.

    Below 2^53 the division of floats, which takes a fraction of the time, is never rounded up to the next whole number.
    """
    if amount < <int64_t> 1 << 53:
        return <int64_t> (<double> amount / <double> by)
    return amount // by


cdef class NodeScore:
    cdef double of(self, const Cell* cell) noexcept


@final
cdef class Room:
    cdef const int64_t[:, ::1] _allocatable
    cdef const Py_ssize_t[::1] _owed
    cdef const int64_t[:, ::1] _capacities
    cdef const Py_ssize_t[::1] _limited
    cdef int64_t _idle(self, const Cell* cell, Py_ssize_t dimension) noexcept
    cdef bint fits(self, const Cell* cell) noexcept


@final
cdef class NodeWorth:
    cdef const double[:] _fixed
    cdef tuple _scores
    cdef Py_ssize_t _count
    cdef const double[:] _weights
    cdef PyObject** _each  # the scores again, to be reached without counting references
    cdef double of(self, const Cell* cell) noexcept
    cdef _of_nodes(self, const Py_ssize_t[:] rows, const int64_t[:, :] books, const int64_t[:] entry, extra)
    cdef _of_column(
        self, const Py_ssize_t[:] rows, const int64_t[:, :] books, const int64_t[:] entry, const int64_t[:] extra
    )
