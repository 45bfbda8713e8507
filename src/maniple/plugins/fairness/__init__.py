"""Plugins that share the cluster out: between jobs, between queues, and at the door.

`amounts.py` and `min_resources.py` hold what they have in common: rules for resource vectors, and what jobs say they
need; `queue_terms.py`, `queue_amounts.py` and `ceilings.py` what those have in common that deal with queues.
"""
