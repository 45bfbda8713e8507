"""Victims: which tasks may be victims, in what order, and how few are enough.

There is one search for a whole job (`actions/searching/search.py`, with sums over nodes in `room_sums`); what
differs is which tasks are evicted in what order. `surplus_first` has the order of profile `volcano`: what jobs
can spare before whole jobs, as the plugins allow. `victims` has that of the others: the order of queues, given
what each has lost so far. Separate searches are `per_node` and `least_cost`, Volcano's for one pod on one node,
and `bundles`, for gang-aware eviction inside a network domain. None evicts for a job that then does not fit.
"""
