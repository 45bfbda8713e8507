"""Annotations by which people close a queue or suspend a job, whichever system the object belongs to; and the label by
which a group that exists in memory only says that its pods are evicted all together or not at all.

A queue also counts as closed while `status.state` says so, as Volcano's controller writes it. The annotation counts
before the state, so that a queue is opened and closed in one way on every cluster.
"""

from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoQueue

STATE = "maniple.dev/state"  # of a queue
OPEN, CLOSING, CLOSED, UNKNOWN = "Open", "Closing", "Closed", "Unknown"
SUSPEND = "maniple.dev/suspend"  # of a pod group
EVICTED_WHOLE = "maniple.dev/evicted-whole"  # of a group that was made in memory


def wanted_state(queue: Object) -> str:
    """Open or Closed, as the annotation says; empty if it does not say, or says something else."""
    said = queue.metadata.annotations.get(STATE, "")
    return said if said in (OPEN, CLOSED) else ""


def state_problem(queue: Object) -> str:
    """What is wrong with the annotation; empty if nothing is."""
    said = queue.metadata.annotations.get(STATE)
    if said in (None, OPEN, CLOSED):
        return ""
    return f"annotation {STATE} must be {OPEN} or {CLOSED}, got {said!r}; it is ignored"


def is_closed(queue: Object) -> bool:
    """Whether a queue takes no new jobs, by its annotation or else by its state."""
    wanted = wanted_state(queue)
    if wanted or not isinstance(queue, VolcanoQueue):
        return wanted == CLOSED
    return queue.status.state in (CLOSING, CLOSED)


def is_suspended(group: Object) -> bool:
    return group.metadata.annotations.get(SUSPEND) == "true"


def is_evicted_whole(group: Object) -> bool:
    """Whether the pods of a group that was made in memory are evicted all together or not at all."""
    return EVICTED_WHOLE in group.metadata.labels and ":" in group.metadata.name
