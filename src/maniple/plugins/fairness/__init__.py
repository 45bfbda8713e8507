"""Plugins that divide the cluster: between jobs, between queues, and on admission.

`amounts.py` and `min_resources.py` are shared: rules for resource vectors, and the minimums of jobs;
`queue_terms.py`, `queue_amounts.py` and `ceilings.py` are shared by the plugins about queues.
"""
