# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The formulas of LeastAllocated, MostAllocated and BalancedAllocation, node by node (`resources.py` has the scorers).

Whole numbers, rounded down at every step as in kube-scheduler. A resource that a node does not have is left out.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t

from maniple.framework.node_scores cimport Cell, NodeScore, added, booked, quotient

cdef enum:
    HIGHEST = 100


cdef class Allocated(NodeScore):
    """The mean over CPU and memory of 100 x what is left (least) or requested (most) / what the node has.

    `capacity` has a row for each of the two, `first` is the row of the books with CPU as requested, memory is the next.
    """

    cdef const int64_t[:, ::1] _capacity
    cdef Py_ssize_t _first
    cdef bint _most

    def __init__(self, const int64_t[:, ::1] capacity, Py_ssize_t first, *, bint most):
        self._capacity = capacity
        self._first = first
        self._most = most

    cdef double of(self, const Cell* cell) noexcept:
        cdef int64_t capacity, requested, counted, sum = 0, there = 0
        cdef Py_ssize_t resource
        for resource in range(2):
            capacity = self._capacity[resource, cell.node]
            if capacity > 0:
                there += 1
                requested = booked(cell, self._first + resource) + added(cell, self._first + resource)
                counted = min(requested, capacity) if self._most else max(capacity - requested, 0)
                sum += quotient(HIGHEST * counted, capacity)
        return sum // there if there else 0


cdef class Balanced(NodeScore):
    """50 + (50 + b(with the task) - b(without)) / 2, where b = 100 x (1 - standard deviation of requested / capacity).

    Over CPU, memory and, for tasks that request them, GPUs: `capacity` has a row for each of these, `rows` are those
    of the books with what is requested.
    """

    cdef const int64_t[:, ::1] _capacity
    cdef Py_ssize_t[3] _rows
    cdef Py_ssize_t _count

    def __init__(self, const int64_t[:, ::1] capacity, list rows):
        cdef Py_ssize_t place
        self._capacity = capacity
        self._count = len(rows)
        for place in range(self._count):
            self._rows[place] = rows[place]

    cdef double of(self, const Cell* cell) noexcept:
        cdef double[3] without
        cdef double[3] with_it
        cdef Py_ssize_t resource, row, there = 0
        cdef int64_t requested, capacity
        for resource in range(self._count):
            row, capacity = self._rows[resource], self._capacity[resource, cell.node]
            if capacity > 0 and (resource < 2 or added(cell, row) > 0):
                requested = booked(cell, row)
                without[there] = min(<double> requested / <double> capacity, 1.0)
                with_it[there] = min(<double> (requested + added(cell, row)) / <double> capacity, 1.0)
                there += 1
        return down((HIGHEST // 2 + HIGHEST + balance(with_it, there) - balance(without, there)) / 2)


cdef inline double down(double number) noexcept:
    """Rounded down. It is not negative: `floor` would take a call."""
    return <double> <int64_t> number


cdef double balance(const double* fractions, Py_ssize_t count) noexcept:
    return down((1.0 - deviation(fractions, count)) * HIGHEST)


cdef double deviation(const double* fractions, Py_ssize_t count) noexcept:
    """The standard deviation; that of two fractions is computed differently, and rounded differently."""
    cdef double mean, one, two, three
    if count == 2:
        return fabs((fractions[0] - fractions[1]) / 2)
    if count < 2:
        return 0.0
    mean = (fractions[0] + fractions[1] + fractions[2]) / 3
    one, two, three = fractions[0] - mean, fractions[1] - mean, fractions[2] - mean
    return sqrt((one * one + two * two + three * three) / 3)
