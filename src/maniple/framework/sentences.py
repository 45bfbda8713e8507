"""Why jobs wait, in plain sentences: what a gang lacks, what its pods request, what nodes and queues have.

The default profile says nothing else (`actions/placing/plain_causes.py`, `plugins/maniple/queue_account.py`). Plans of
the other profiles add the same sentences to the originals' words (`plans/plain.py`).
"""

from collections.abc import Sequence

import numpy as np

from maniple.cluster.facts import GpuAsk
from maniple.cluster.resources import PODS, Amounts, ResourceSpace
from maniple.objects.printable import printable

NO_NODE = "no node fits a pod requesting {asked}"
SINGLE = "{pod} cannot be placed: {cause}"
GANG = "gang needs {minimum} pods{where} placed together; {found} can be placed now: {cause}"

LIMIT = "queue {queue} has a limit of {limit} of {resource}: {has} is allocated and {asked} more is requested"
# The most that a queue can have may be its limit, or what the cluster has and others are not guaranteed.
CEILING = (
    "queue {queue} can have {limit} of {resource} at most: {has} is allocated and {asked} more is requested"
)
DESERVED = "queue {queue} deserves {limit} of {resource}: {has} is allocated and {asked} more is requested"
QUOTA = (
    "non-preemptible jobs may not exceed the quota of their queue: queue {queue} has a quota of {limit} of "
    "{resource}, such jobs have {has} of it, and this one requests {asked}"
)
CLOSED = "queue {queue} is closed and accepts no new jobs"
_NOTHING = "nothing"
_LISTED = 5  # queues to name at most


def not_a_leaf(queue: str, below: Sequence[str]) -> str:
    """That a queue takes no jobs, and which do instead, if they are given."""
    listed = ", ".join(below[:_LISTED]) + (" ..." if len(below) > _LISTED else "")
    text = f"queue {queue} has queues below it, and only those take jobs"
    return printable(f"{text}: {listed}" if listed else text)


def asked(resources: ResourceSpace, request: Amounts, share: GpuAsk | None) -> str:
    """What a pod requests, in the words of its manifest."""
    amounts = [
        f"{resources.names[dimension]} {resources.written(dimension, int(request[dimension]))}"
        for dimension in np.flatnonzero(request).tolist()
        if dimension != PODS
    ]
    if share is not None:
        part = f"{share.portion / 100:g}" if share.portion else f"{share.memory} MiB"
        amounts.append(f"{part} of {'a GPU' if share.devices == 1 else f'each of {share.devices} GPUs'}")
    return ", ".join(amounts) or _NOTHING


def left(resources: ResourceSpace, dimension: int, idle: Amounts, offered: bool) -> str:
    """How much of a resource nodes have left. `offered`: some node has the resource at all."""
    if not offered:
        return "no node has any"
    free = np.maximum(idle, 0)
    if not free.any():
        return "none is left"
    together = resources.written(dimension, int(free.sum()))
    on_one = resources.written(dimension, int(free.max()))
    return f"{together} left together, at most {on_one} on one"
