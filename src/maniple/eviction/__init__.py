"""Victims: who may be one, in what order, and how few will do.

Four searches. `per_node` is Volcano's own: for one task, on one node after the other, the first victims in victim order that make room.
`scenario` is for a whole job: surplus tasks and whole gangs are added in victim order until all of the job fits, and what turns out not to
be needed is given back. `bundles` is that of gang-aware eviction inside a network domain. KAI's profile has its own order of victims, and
shares that have the last word: `kai_victims` and `room_sums`, with the search itself in `actions/kai/solver.py`. None evicts for a job that then does not fit.
"""
