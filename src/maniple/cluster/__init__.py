"""The columnar model of a cluster.

Objects come in one by one (`Cluster.apply`, `Cluster.delete`) and become rows in columns: nodes, tasks, jobs, queues,
domains. A `Snapshot` is what a session opens on: the columns that actions change as copies, the rest shared. The same
objects give the same columns, whether they came at once or as a stream of edits.
"""
