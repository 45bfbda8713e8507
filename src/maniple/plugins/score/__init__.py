"""Where a task should rather run: scores over nodes, higher is better.

`nodeorder.py` brings kube-scheduler's scores together; those that have a filter of the same name live beside it in
`feasibility/`.
"""
