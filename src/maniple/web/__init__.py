"""HTTP of a running scheduler: health, metrics and, on request, what it is doing. Nothing here writes to a cluster.

`server.py` serves, `settings.py` says where and to which clients, `guard.py` decides who may read. Metrics are made
when they are asked for (`metrics.py`), from the plain numbers that `live` keeps.
"""
