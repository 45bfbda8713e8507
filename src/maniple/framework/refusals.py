"""Refusals: why tasks and jobs were not served, as recorded while deciding.

A session has one record. A trial has a record of its own, which is taken over only if the trial counts.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.framework.groups.tree import TaskRows
from maniple.framework.reasons import Histogram, NotWhole

if TYPE_CHECKING:
    from maniple.framework.points import Capacity


class Refusals:
    """Why tasks and jobs were not served, as recorded while deciding. The first cause of a task stays."""

    def __init__(self) -> None:
        self._tasks: list[tuple[TaskRows, Histogram | str]] = []
        self.jobs: dict[int, list[str]] = {}
        # job -> how many of its pods, of those that a gang needs together, have or could have a place
        self.found: dict[int, int] = {}
        self.over: dict[int, Capacity] = {}  # job -> the queue that is in its way, and how much it has
        # job -> how many causes of tasks had been noted when its own first came
        self._before: dict[int, int] = {}
        self.roles: dict[int, set[int]] = {}  # job -> roles of which a task found no node
        self.ruled_out: dict[int, NDArray[np.bool_]] = {}  # task -> nodes that were shut to it for good

    def of_tasks(
        self, job: int, role: int, rows: TaskRows, cause: Histogram | str, *, failed: bool = True
    ) -> None:
        """`failed`: no node was found, so that the job's other tasks of the role need not be tried."""
        self._tasks.append((rows, cause))
        if failed:
            self.roles.setdefault(job, set()).add(role)

    def of_job(self, job: int, cause: str) -> None:
        self._before.setdefault(job, len(self._tasks))
        causes = self.jobs.setdefault(job, [])
        if cause not in causes:
            causes.append(cause)

    def of_capacity(self, job: int, answer: "Capacity") -> None:
        """A queue has no room for the job."""
        self.of_job(job, answer.message)
        self.over[job] = answer

    def take_over(self, other: "Refusals") -> None:
        """Causes that were noted apart, in a trial, now count. What they say of roles held for the trial only."""
        self._tasks += other._tasks
        self.found.update(other.found)

    def origins(self, job_of: NDArray[Any]) -> dict[int, tuple[int, Histogram | str]]:
        """By job: the first of its tasks that was refused and why, if no cause of the job itself had come before."""
        found: dict[int, tuple[int, Histogram | str]] = {}
        for place, (rows, cause) in enumerate(self._tasks):
            if len(rows):
                job = int(job_of[rows[0]])
                if job not in found and place < self._before.get(job, len(self._tasks)):
                    found[job] = (int(rows[0]), cause)
        return found

    def not_whole(self) -> list[TaskRows]:
        """Tasks that would have had a place, had their gang been whole."""
        return [rows for rows, cause in self._tasks if isinstance(cause, NotWhole)]

    @property
    def count(self) -> int:
        """How many causes of tasks are recorded so far."""
        return len(self._tasks)

    def since(self, count: int) -> list[tuple[TaskRows, Histogram | str]]:
        """The causes of tasks recorded after the first so many."""
        return self._tasks[count:]

    def of_each_task(self) -> tuple[tuple[TaskRows, Histogram | str], ...]:
        """The causes of tasks, as they were noted."""
        return tuple(self._tasks)
