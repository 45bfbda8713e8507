"""Where a task should run: scores of nodes, higher is better.

`nodeorder.py` combines kube-scheduler's scores; those that have a filter of the same name are beside it in
`feasibility/`.
"""
