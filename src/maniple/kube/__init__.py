"""The Kubernetes API over HTTP: credentials, requests, lists, watches, and the CRDs that we bring along.

`live/` reads a cluster through `KubeCluster` and writes through it; the commands use `Client` directly. This room knows HTTP
and JSON and nothing of scheduling. Whatever arrives as an object has been validated by `maniple.objects`.
"""
