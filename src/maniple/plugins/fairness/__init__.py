"""Plugins that share the cluster out: between jobs, between queues, and at the door.

`amounts.py` and `claims.py` hold what they have in common: rules for resource vectors, and what jobs say they
need.
"""
