"""An embedded cluster: an API store in memory, nodes, a stand-in for kubelets, and time that can be made to jump.

It is one of the two sides of the port that `live/` speaks to (`kube/` is the other); commands and tests start it. It knows
Kubernetes' rules for objects and nothing of scheduling.
"""
