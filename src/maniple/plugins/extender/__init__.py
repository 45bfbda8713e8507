"""Decisions delegated to a webhook: the extender protocol of Volcano, as a client.

`extender.py` implements the extension points, `channel.py` sends and reads, `shapes.py` writes tasks, nodes,
jobs and queues as Volcano's Go program writes them.
"""
