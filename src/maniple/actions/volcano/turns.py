"""The order of turns: queues by queue order, and inside a queue jobs by job order.

Keys are taken when a row is pushed. A queue is pushed back after each of its turns, a job if it has tasks left,
so an order that follows shares is always current.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from maniple.framework.session import Session


class JobTurns:
    """Queues with jobs waiting for a turn."""

    def __init__(self, session: Session, jobs: Iterable[int], *, once: bool = False) -> None:
        """`once`: no job comes back for another turn, so that one sort orders them all."""
        self._session = session
        self._jobs: dict[int, list[tuple[tuple[Any, ...], int]]] = {}
        queue_of = session.jobs.queue
        for key, job in self._in_order(jobs) if once else ((session.job_key_order(job), job) for job in jobs):
            self._jobs.setdefault(int(queue_of[job]), []).append((key, job))
        for heap in self._jobs.values():
            heapify(heap)
        self._queues = [(session.queue_key_order(queue), queue) for queue in self._jobs]
        heapify(self._queues)

    def _in_order(self, jobs: Iterable[int]) -> Iterable[tuple[tuple[Any, ...], int]]:
        ordered = self._session.in_job_order(np.fromiter(jobs, dtype=np.int64))
        return (((place,), job) for place, job in enumerate(ordered.tolist()))

    def next_queue(self) -> int | None:
        """The best queue, taken out; `return_queue` gives it another turn."""
        if not self._queues:
            return None
        key, queue = heappop(self._queues)
        if self._session.trace is not None:
            self._session.trace.queue_turn(queue, "queue_order", key, self._queues)
        return queue

    def return_queue(self, queue: int) -> None:
        heappush(self._queues, (self._session.queue_key_order(queue), queue))

    def next_job(self, queue: int) -> int | None:
        """The queue's best job, taken out; `return_job` gives it another turn."""
        heap = self._jobs[queue]
        if not heap:
            return None
        job = heappop(heap)[1]
        if self._session.trace is not None:
            self._session.trace.job_turn(job, (one for _, one in sorted(heap)))
        return job

    def return_job(self, job: int) -> None:
        heappush(self._jobs[int(self._session.jobs.queue[job])], (self._session.job_key_order(job), job))

    def left(self, queue: int) -> list[int]:
        """Jobs of a queue that have not had their turn."""
        return [job for _, job in self._jobs[queue]]
