"""Which parts of a node a task gets: cards and pieces of cards (`deviceshare.py`), cpus of which NUMA node (`numa_aware.py`).

`deviceshare` knows four kinds of devices, each in a file: whole cards or their memory (`gpu_share.py`), virtual GPUs and MIG
instances (`virtual_gpu.py`, `mig.py`), Ascend cards that HAMi shares (`ascend_hami.py`) and those that MindCluster does
(`ascend_310p.py`). A kind reads what a node has and what its pods hold from annotations, chooses, and says how its choice is
written; `books.py` is what they have in common. What was chosen travels with the binding of the pod. Everything is worked out
anew from the objects in every session, so nothing can drift.
"""
