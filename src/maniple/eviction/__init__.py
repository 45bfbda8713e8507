"""Victims: who may be one, in what order, and how few will do.

The search for a whole job is one (`actions/searching/solver.py`, with sums over nodes in `room_sums`); what differs is who
goes in what order. `surplus_first` has the order of profile `volcano`: what jobs can spare before whole jobs, as the
plugins give them up. `kai_victims` has that of the others: as the order of queues has it with what each has given up.
Searches of their own are `per_node` and `least_cost`, Volcano's for one pod on one node, and `bundles`, that of
gang-aware eviction inside a network domain. None evicts for a job that then does not fit.
"""
