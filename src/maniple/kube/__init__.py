"""The Kubernetes API over HTTP: credentials, requests, lists, watches, and the bundled CRDs.

`live/` reads and writes a cluster through `KubeCluster`; the commands use `Client` directly. This package
knows HTTP and JSON but nothing of scheduling. Objects that it passes on have been validated by
`maniple.objects`.
"""
