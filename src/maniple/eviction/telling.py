"""What a trace says of pods that may not be evicted: which plugin protects them, asked one by one.

Used by everything that searches for victims, for a job that is traced.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from maniple.eviction.protection import protectors
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.traces.events import Candidate, Search, Spared
from maniple.framework.traces.recorder import Recorder

RULE = "rule"  # that protects where no plugin does
SPARED = 64  # entries of a search
Blame = dict[int, tuple[str, str]]  # task -> the plugin, or RULE, and why


def protected(
    trace: Recorder, asker: int, rows: TaskRows, approve: Callable[[int, TaskRows], TaskRows], reason: str
) -> Blame:
    """The tasks that plugins do not give up for a task, each with the first plugin that protects it."""
    if not len(rows):
        return {}
    points = reason.asked if isinstance(reason, EvictionCause) else ()
    with trace.session.aside():
        allowed = set(np.asarray(approve(asker, rows)).tolist())
    by = protectors(trace.session, points, asker, rows)
    return {
        row: (by[row], f"protected by plugin {by[row]}") if row in by else (RULE, "no plugin allows it")
        for row in rows.tolist()
        if row not in allowed
    }


def spared(session: Session, blame: Mapping[int, tuple[str, str]]) -> list[Spared]:
    """The same by job."""
    counts = Counter((int(session.tasks.job[row]), *why) for row, why in blame.items())
    return [
        Spared(session.job_key(job), session.queue_name(int(session.jobs.queue[job])), by, why, count)
        for (job, by, why), count in counts.items()
    ]


class PodSearch:
    """Room is sought for one pod, node by node: what is recorded of that if its job is traced."""

    def __init__(self, session: Session, task: int) -> None:
        self._session = session
        self._task = task
        self._job = int(session.tasks.job[task])
        trace = session.trace
        self._trace = trace if trace is not None and trace.looks_at_tasks(self._job) else None

    def __bool__(self) -> bool:
        """Whether anything is recorded."""
        return self._trace is not None

    def begin(self, candidates: TaskRows, approve: Callable[[int, TaskRows], TaskRows], reason: str) -> None:
        session, trace = self._session, self._trace
        if trace is None or not trace.looks_at_victims(self._job):
            return
        blame = protected(trace, self._task, candidates, approve, reason)
        told = spared(session, blame)
        free = candidates[~np.isin(candidates, list(blame))]
        shown = free if trace.everything else free[:SPARED]
        trace.add(
            Search(
                session.job_key(self._job),
                (session.task_key(self._task),),
                tuple(_single(session, int(row)) for row in shown),
                len(free),
                tuple(told if trace.everything else told[:SPARED]),
                len(told),
            )
        )

    def tried(self, node: int, victims: "TaskRows | list[int]", *, fits: bool, why: str = "") -> None:
        """Evicting these pods from a node was considered."""
        if self._trace is not None:
            self._trace.trial(self._job, victims, fits, task=self._task, node=node, why=why)


def _single(session: Session, row: int) -> Candidate:
    job = int(session.tasks.job[row])
    queue = session.queue_name(int(session.jobs.queue[job]))
    return Candidate(session.job_key(job), queue, (session.task_key(row),))


__all__ = ["RULE", "SPARED", "Blame", "PodSearch", "protected", "spared"]
