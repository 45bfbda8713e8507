# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Entries in the books of nodes, compiled: every task that is placed, evicted or taken back makes some."""

from libc.stdint cimport int64_t

import numpy as np


def book(int64_t[:, ::1] books, const Py_ssize_t[:] nodes, const int64_t[::1] entry, int sign):
    """Book one task on a node (+1), or take it off (-1), for each time the node is listed; -1 stands for no node.

    Given are the nodes, each of them once.
    """
    cdef Py_ssize_t place, node, row, count = 0
    found_of, seen_of = np.empty(nodes.shape[0], dtype=np.intp), np.zeros(books.shape[1], dtype=np.uint8)
    cdef Py_ssize_t[::1] found = found_of
    cdef unsigned char[::1] seen = seen_of
    if entry.shape[0] != books.shape[0]:
        raise ValueError(f"an entry of {entry.shape[0]} rows does not fit into books of {books.shape[0]}")
    for place in range(nodes.shape[0]):
        node = nodes[place]
        if node < 0:
            continue
        if node >= books.shape[1]:
            raise IndexError(f"node {node} has no books; there are {books.shape[1]} nodes")
        for row in range(books.shape[0]):
            books[row, node] += sign * entry[row]
        if not seen[node]:
            seen[node] = True
            found[count] = node
            count += 1
    return found_of[:count]
