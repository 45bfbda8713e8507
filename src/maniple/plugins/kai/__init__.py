"""The plugins of the `kai` profile, each named as in KAI's configuration; a plugin with many rules has these in files beside it.

`proportion` with its rules (`proportion_*`), `fair_share`, `queue_accounts` and `cluster_total` share the cluster out between queues.
"""
