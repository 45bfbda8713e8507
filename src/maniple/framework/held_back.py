"""Jobs that are not served at all: their pod group is too large (`objects/limits.py`) or suspended, their owner cannot
be read or wants others to run first (`profiles/grouping.py`), their queue was closed by its annotation before they
began (`objects/switches.py`), or they have no right to the queue or the priority class that they name (`rights.py`).

While a session decides, their pending tasks are in the state of gated ones: they are not placed, nothing is evicted
for them, they are not admitted, and they raise no queue's share. Their other tasks are what they were: pods that run
count for the queue that they name. Before the session closes, the tasks are pending again.
"""

from collections.abc import Iterator

import numpy as np

from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.rights import Rights
from maniple.framework.sentences import CLOSED as CLOSED_SENTENCE
from maniple.framework.session import Session
from maniple.objects.printable import printable
from maniple.objects.switches import CLOSED, SUSPEND, state_problem, wanted_state

SUSPENDED = f"suspended by annotation {SUSPEND} of its pod group; resume it with `maniple job resume {{job}}`"
_PENDING, _GATED = int(Status.PENDING), int(Status.GATED)


class HeldBack:
    """Made before plugins are; `give_back` is called when the last action has run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        jobs = session.cluster.jobs
        why = {job: f"{self._group(job)}{text}" for job, text in jobs.refusals.items()}
        for found in (self._suspended(), self._in_closed_queues(), self._without_right()):
            why.update((job, text) for job, text in found if job not in why)
        session.held_back = why
        self._jobs = np.array(sorted(why), dtype=np.int64)
        tasks = session.tasks
        self._rows = np.zeros(0, dtype=np.int64)
        if why:
            held = (tasks.status == _PENDING) & np.isin(tasks.job, self._jobs)
            self._rows = np.flatnonzero(held)
        self._pending = session.jobs.pending[:, self._jobs]
        self._best_effort = session.jobs.pending_best_effort[self._jobs]
        self._move(_PENDING, _GATED, -1)
        for job, text in why.items():
            session.refusals.of_job(job, text)

    def give_back(self) -> None:
        """Let the tasks be pending again, for whatever tells of the end of the session."""
        self._move(_GATED, _PENDING, +1)

    def _move(self, before: int, after: int, sign: int) -> None:
        if not len(self._jobs):
            return
        session, jobs = self._session, self._session.jobs
        session.tasks.status[self._rows] = after
        moved = np.bincount(session.tasks.job[self._rows], minlength=jobs.counts.shape[1])
        jobs.counts[before] -= moved
        jobs.counts[after] += moved
        jobs.pending[:, self._jobs] += sign * self._pending
        jobs.pending_best_effort[self._jobs] += sign * self._best_effort
        jobs.version[self._jobs] += 1

    def _suspended(self) -> Iterator[tuple[int, str]]:
        """Jobs that people put aside for a while; what runs of them goes on."""
        for job in sorted(self._session.cluster.jobs.suspended):
            yield job, SUSPENDED.format(job=printable(self._session.job_key(job)))

    def _in_closed_queues(self) -> Iterator[tuple[int, str]]:
        """Jobs that have not begun in queues whose annotation, or that of a queue above, says that they are closed."""
        session, table = self._session, self._session.cluster.queues
        closed = set[int]()
        for row in table.objects:
            for item in table.all_of(row):
                if wanted_state(item) == CLOSED:
                    closed.add(row)
                if problem := state_problem(item):
                    session.report(f"Queue {printable(item.metadata.name)}: {problem}")
        if not closed:
            return
        begun = (ACTIVE_ALLOCATED @ session.jobs.counts) > 0
        for job, _, queue in self._served():
            shut = next((one for one in table.way_up(queue) if one in closed), None)
            if shut is not None and not begun[job]:
                yield job, CLOSED_SENTENCE.format(queue=printable(table.keys[shut]))

    def _without_right(self) -> Iterator[tuple[int, str]]:
        session = self._session
        rights = Rights(session.cluster, session.options)
        for problem in rights.unreadable():
            session.report(problem)
        if rights.limit_queues:
            for job, namespace, queue in self._served():
                if problem := rights.queue_problem(namespace, queue):
                    yield job, f"{self._field(job, 'spec.queue')}{problem}"
        if rights.limit_priorities:
            yield from self._without_priority(rights)

    def _without_priority(self, rights: Rights) -> Iterator[tuple[int, str]]:
        session, refused = self._session, list[int]()
        for job, namespace, queue in self._served():
            if problem := rights.class_problem(namespace, queue, session.job_facts(job).priority_class):
                refused.append(job)
                yield job, f"{self._field(job, 'spec.priorityClassName')}{problem}"
        self._lower(refused)
        tasks, pods = session.tasks, session.cluster.tasks.pods
        rows = np.flatnonzero((tasks.status == _PENDING) & np.isin(tasks.job, session.jobs.rows))
        for row in rows[np.argsort(tasks.rank[rows])].tolist():  # the pod that is named is always the same
            name, job = pods[row].spec.priority_class_name, int(tasks.job[row])
            namespace = pods[row].metadata.namespace or "default"
            if problem := rights.class_problem(namespace, int(session.jobs.queue[job]), name):
                yield job, f"pod {session.task_key(row)}: spec.priorityClassName: {problem}"

    def _lower(self, jobs: list[int]) -> None:
        """A priority that does not count does not protect pods that run, either."""
        state = self._session.jobs
        if jobs:
            state.priority = state.priority.copy()
            usual = self._session.cluster.priorities.value("")
            state.priority[jobs] = np.minimum(state.priority[jobs], usual)

    def _served(self) -> Iterator[tuple[int, str, int]]:
        """The jobs of the session, each with its namespace and its queue."""
        session = self._session
        objects, queues = session.cluster.jobs.objects, session.jobs.queue
        for job in session.jobs.rows.tolist():
            yield job, objects[job].metadata.namespace or "default", int(queues[job])

    def _group(self, job: int) -> str:
        """The pod group that a refusal is about; one that was made in memory is not one that people can look at."""
        made = ":" in self._session.cluster.jobs.objects[job].metadata.name
        return "" if made else f"pod group {self._session.job_key(job)}: "

    def _field(self, job: int, field: str) -> str:
        """Where the pod group says it."""
        item = self._session.cluster.jobs.objects[job]
        return "" if ":" in item.metadata.name else f"PodGroup {item.key}: {field}: "
