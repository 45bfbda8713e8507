"""Which parts of a node a task gets: cards, pieces of cards, CPUs of NUMA nodes.

`numa_aware.py` chooses CPUs, `deviceshare.py` cards and pieces of cards. `deviceshare` knows four kinds of
devices, each in a file: whole cards or their memory (`gpu_share.py`), virtual GPUs and MIG instances
(`virtual_gpu.py`, `mig.py`), Ascend cards shared by HAMi (`ascend_hami.py`) and those shared by MindCluster
(`ascend_310p.py`). A kind reads a node's devices and its pods' allocations from annotations, chooses, and
writes its choice; `books.py` is what they share. The choice is part of the binding of the pod. Everything is
computed afresh from the objects in every session, so nothing can drift.
"""
