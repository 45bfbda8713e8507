"""A plugin that asks somebody else: the extender protocol of Volcano, as a client.

`extender.py` answers the extension points, `channel.py` sends and reads, `shapes.py` writes tasks, nodes, jobs and queues as Volcano's Go
program writes them.
"""
