"""The running scheduler: changes come in, the cache keeps columns true, cycles decide, effects carry the decisions out.

It speaks to a cluster through one port (`port.py`), which `kube/` implements on a real API server and `sim/` in memory. Deciding is
the planner's; everything here is about knowing what is true now and making true what was decided.
"""
