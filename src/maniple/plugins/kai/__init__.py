"""The plugins of the `kai` profile, named as in KAI's configuration; large plugins have their rules in files
beside.

`proportion` with its rules (`proportion_*`), `fair_share`, `queue_accounts` and `cluster_total` divide the
cluster among queues.
"""
