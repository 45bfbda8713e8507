"""The running scheduler: watch changes, keep columns current, run cycles, write the decisions.

It accesses a cluster through one port (`port.py`), which `kube/` implements on a real API server and `sim/`
in memory. The planner decides; this package knows the current state and carries the decisions out.
"""
