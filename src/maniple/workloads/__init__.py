"""Workloads of every kind as group trees, and as the pods that their controllers would create.

A pod without a group belongs to the group that its top owner asks for. `kinds.py` has the table of kinds; a kind is
one module with pure functions: which group and which of its sets a pod of this owner is in, and which objects its
controller creates. `grouping.py` follows a pod's owners and asks the kind of the highest one; `expanding.py` has
the pods of a manifest before there is a cluster to create them.

Nothing here knows a scheduler's own objects: `profiles/` writes a group as the PodGroup that a profile reads.
"""
