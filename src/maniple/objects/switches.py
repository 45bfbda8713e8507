"""Annotations by which people close a queue or suspend a job, whichever system the object belongs to.

A queue also counts as closed while `status.state` says so, as Volcano's controller writes it. The annotation counts
before the state, so that a queue is opened and closed in one way on every cluster.
"""

from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoQueue

STATE = "maniple.dev/state"  # of a queue
OPEN, CLOSING, CLOSED, UNKNOWN = "Open", "Closing", "Closed", "Unknown"
SUSPEND = "maniple.dev/suspend"  # of a pod group


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
