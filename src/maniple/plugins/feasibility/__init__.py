"""Where a task may run: kube-scheduler's filters, as functions over all nodes at once.

`predicates.py` is the plugin; every other file is one rule, with the score that goes with it if it has one.
The rules are those of Kubernetes 1.36, which the matched Volcano release is built with.
"""
