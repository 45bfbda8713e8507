"""The states of a task, and the sets of states that rules speak of.

A set is a boolean array indexed by status, so that `READY[status]` works for one task and for a whole column.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    PENDING = 0
    GATED = 1
    ALLOCATED = 2
    PIPELINED = 3
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    SUCCEEDED = 8
    FAILED = 9
    UNKNOWN = 10

    @property
    def word(self) -> str:
        return self.name.capitalize()


STATUSES = len(Status)
NO_TASK = -1  # the status column of a row that holds no task


def status_set(*members: Status) -> NDArray[np.bool_]:
    table = np.zeros(STATUSES, dtype=np.bool_)
    table[list(members)] = True
    table.setflags(write=False)
    return table


# Holding resources for good: what counts as allocated in shares and in queue sums.
ALLOCATED_LIKE = status_set(Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING)
# Counts towards a gang's minimum.
READY = status_set(Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.SUCCEEDED)
# Counts towards the number of tasks that a gang could still have.
VALID = status_set(
    Status.PENDING,
    Status.GATED,
    Status.ALLOCATED,
    Status.PIPELINED,
    Status.BINDING,
    Status.BOUND,
    Status.RUNNING,
    Status.SUCCEEDED,
)
# KAI's sets: on a node or claiming one; the same and meant to stay; there or still to come.
ACTIVE_USED = status_set(
    Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.RELEASING
)
ACTIVE_ALLOCATED = status_set(
    Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING
)
ALIVE = status_set(
    Status.ALLOCATED,
    Status.PIPELINED,
    Status.BINDING,
    Status.BOUND,
    Status.RUNNING,
    Status.PENDING,
    Status.GATED,
)
PREEMPTABLE = status_set(Status.BOUND, Status.RUNNING)
SCHEDULED = status_set(Status.RUNNING, Status.BOUND, Status.FAILED, Status.SUCCEEDED)
COMPLETED = status_set(Status.FAILED, Status.SUCCEEDED)
WAITING = status_set(Status.PENDING, Status.GATED)
# Occupies its node: takes from idle. Pipelined tasks only claim what is being released.
ON_NODE = status_set(
    Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.RELEASING, Status.UNKNOWN
)
