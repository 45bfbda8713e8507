"""What waits after a cycle, since when and for what kind of cause; and how much queues request: for metrics.

Made from a closed session when a plan is asked for it. A cause is one word of `CAUSES`, so that it can be counted;
the sentences are in `causes.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU
from maniple.cluster.statuses import ALIVE, Status
from maniple.framework.plans.freezing import Closed
from maniple.framework.reasons import QueueRefusal

CAUSES = {
    "refused": "its group is too large, or it may not use its queue or its priority class",
    "queue": "its queue does not exist, or takes no jobs",
    "gate": "its pods are behind scheduling gates, or backed off after a failed bind",
    "pods": "fewer pods exist than the gang needs",
    "quota": "its queue has no room for it",
    "starting": "it starts when others have left their nodes",
    "nodes": "no nodes fit enough of its pods",
    "turn": "it was not tried in the last cycle",
}


_ON_NODES = [Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING, Status.RELEASING]


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job with pods that have no node; `pods` counts these."""

    job: str
    queue: str
    cause: str
    pods: int
    created: datetime | None


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that got its first nodes in a cycle."""

    job: str
    queue: str
    created: datetime | None
    row: int


class Backlog:
    def __init__(self, closed: Closed) -> None:
        self._closed = closed

    def pending(self) -> list[PendingJob]:
        counts = self._closed.jobs.counts
        waiting = counts[Status.PENDING] + counts[Status.GATED] + counts[Status.PIPELINED]
        return [
            PendingJob(name, queue, self._cause(row), int(waiting[row]), created)
            for row in np.flatnonzero(waiting).tolist()
            for name, queue, created in self._named(row)
        ]

    def cause(self, started: StartedJob) -> str:
        """Why a job was pending after this cycle that started in a later one; empty if it was not."""
        row, counts, names = started.row, self._closed.jobs.counts, self._closed.names
        if row not in self._closed.jobs.groups or names.job(row) != started.job:
            return ""  # it was created later
        if not counts[[Status.PENDING, Status.GATED, Status.PIPELINED], row].any():
            return ""
        return self._cause(row)

    def started(self) -> list[StartedJob]:
        """Jobs all of whose pods on nodes were placed by this cycle."""
        closed = self._closed
        placed = [rows for rows, _ in (*closed.decided.bound, *closed.decided.held)]
        if not placed:
            return []
        jobs, numbers = np.unique(closed.tasks.job[np.concatenate(placed)], return_counts=True)
        there = closed.jobs.counts[_ON_NODES][:, jobs].sum(axis=0)
        return [StartedJob(*one, row) for row in jobs[there == numbers].tolist() for one in self._named(row)]

    def _named(self, row: int) -> Iterator[tuple[str, str, datetime | None]]:
        closed = self._closed
        group = closed.jobs.groups.get(row)
        if group is not None:
            facts = closed.jobs.facts[row]
            yield closed.names.job(row), facts.queue, group.metadata.creation_timestamp

    def _cause(self, row: int) -> str:
        closed = self._closed
        counts = closed.jobs.counts[:, row]
        if row in closed.jobs.held_back:
            return "refused"
        if int(closed.jobs.queue[row]) in closed.queues.problems:
            return "queue"
        if not counts[Status.PENDING]:
            return "starting" if counts[Status.PIPELINED] else "gate"
        if counts[ALIVE].sum() < closed.jobs.minimum[row]:
            return "pods"
        own = closed.refused.jobs.get(row, ())
        first = self._first_refusals.get(row)
        if row in closed.refused.over or any(isinstance(one, QueueRefusal) for one in (*own, first)):
            return "quota"
        if counts[Status.PIPELINED]:
            return "starting"
        return "nodes" if own or first is not None else "turn"

    @cached_property
    def rows(self) -> dict[str, int]:
        """Of jobs, by name."""
        names = self._closed.names
        return {names.job(row): row for row in self._closed.jobs.groups}

    @cached_property
    def _first_refusals(self) -> dict[int, object]:
        """By job: the first cause of one of its tasks."""
        found: dict[int, object] = {}
        job_of = self._closed.tasks.job
        for rows, cause in self._closed.refused.tasks:
            if len(rows):
                found.setdefault(int(job_of[rows[0]]), cause)
        return found

    # -- amounts ------------------------------------------------------------------------------------------------------

    def requested(self) -> dict[str, dict[str, float]]:
        """By queue, with those below it: what its jobs have and what their pending pods request."""
        closed, columns = self._closed, self._closed.jobs
        sums: dict[int, NDArray[np.int64]] = {}
        amounts = columns.allocated + columns.pending
        for row, queue in zip(columns.rows.tolist(), columns.queue[columns.rows].tolist(), strict=True):
            for one in closed.queues.paths.get(queue, (queue,)):
                sums[one] = sums[one] + amounts[:, row] if one in sums else amounts[:, row]
        empty = np.zeros(len(amounts), dtype=np.int64)
        return {
            closed.names.queues[queue]: self._whole_units(sums.get(queue, empty))
            for queue in closed.queues.facts
        }

    def totals(self) -> tuple[dict[str, float], dict[str, float]]:
        """What all nodes have, and what of it is used."""
        nodes = self._closed.nodes
        return self._whole_units(nodes.allocatable.sum(axis=1)), self._whole_units(nodes.used.sum(axis=1))

    @property
    def nodes(self) -> int:
        return len(self._closed.names.nodes)

    def statuses(self) -> dict[str, int]:
        """How many pods there are of each status."""
        status = self._closed.tasks.status
        numbers = np.bincount(status[status >= 0], minlength=len(Status)).tolist()
        return {one.word: numbers[one] for one in Status}

    def _whole_units(self, vector: NDArray[np.int64]) -> dict[str, float]:
        """Cores, bytes, and whole units of the rest."""
        space = self._closed.resources
        return {
            name: amount / (1000 if dimension == CPU else space.scale(dimension))
            for dimension, (name, amount) in enumerate(zip(space.names, vector.tolist(), strict=False))
        }
