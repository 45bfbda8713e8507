"""An embedded cluster: an API store in memory, nodes, a fake kubelet, and virtual time.

It implements the port of `live/` (as `kube/` does); commands and tests start it. It knows Kubernetes' rules
for objects and nothing of scheduling.
"""
