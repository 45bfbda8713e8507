"""Gangs that could not be placed: one just like it in the same queue cannot either, until something changes.

The reasons recorded for the first of them are recorded for the others, pod by pod, without placing and undoing
anything. So a backlog of gangs that are alike costs one attempt.
"""

from dataclasses import dataclass

import numpy as np

from maniple.actions.volcano.worksheet import Worksheet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import Histogram
from maniple.framework.session import Session

_Key = tuple[int, int, tuple[tuple[str, int], ...], bytes, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class _Failure:
    causes: tuple[tuple[TaskRows, Histogram | str], ...]  # with positions in the sheet in place of tasks
    roles: frozenset[int]  # of which a task found no node


class FailedGangs:
    """Those of one run of allocate, since something was placed last."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[_Key, _Failure] = {}
        self._stamp = -1  # length of the change log when what is known was last right
        # The job that is tried, its tasks, how many causes there were before, and whether none was of the job
        self._attempt = 0, np.zeros(0, dtype=np.int64), 0, False
        self._possible = counts_decide(session)

    def repeats(self, sheet: Worksheet) -> bool:
        """Record the reasons of a gang like this one that failed, if there was one. Otherwise an attempt begins."""
        session, job, rows = self._session, sheet.job, sheet.left()
        refusals = session.refusals
        fresh = job not in refusals.jobs and job not in refusals.roles
        self._attempt = job, rows, refusals.count, fresh
        if len(session.changes) != self._stamp:
            self._known.clear()
        key = self._key(job, rows) if self._known and fresh else None
        failure = None if key is None else self._known.get(key)
        if failure is None or session.hooks.job_pipelined(job):
            return False
        for places, cause in failure.causes:
            refusals.of_tasks(job, -1, rows[places], cause, failed=False)
        if failure.roles:
            refusals.roles[job] = set(failure.roles)
        return True

    def undone(self) -> None:
        """The attempt has failed, and everything is as it was before."""
        session, (job, rows, before, fresh) = self._session, self._attempt
        self._stamp = len(session.changes)
        key = self._key(job, rows) if fresh else None
        if key is None or not session.refusals.ruled_out.keys().isdisjoint(rows.tolist()):
            return  # nodes were ruled out for these very tasks
        place = {row: place for place, row in enumerate(rows.tolist())}
        causes = tuple(
            (np.array([place[row] for row in some.tolist()], dtype=np.intp), cause)
            for some, cause in session.refusals.since(before)
        )
        roles = session.refusals.roles.get(job, ())
        self._known[key] = _Failure(causes, frozenset(roles))

    def _key(self, job: int, rows: TaskRows) -> _Key | None:
        """What the outcome depends on as long as nothing changes; None where there may be more to it."""
        session, tasks = self._session, self._session.tasks
        if not self._possible or session.task_count(job) != len(rows):
            return None
        if not is_plain(session, job, rows):
            return None
        minimums = tuple(session.job_facts(job).role_minimums.items())
        queue, minimum = session.jobs.queue.item(job), session.jobs.minimum.item(job)
        return queue, minimum, minimums, tasks.class_of[rows].tobytes(), tasks.role[rows].tobytes()


def counts_decide(session: Session) -> bool:
    """Whether no plugin has a say about each task, nor about readiness by more than counts."""
    return session.counts_shortfall and not {"best_node", "reserve"} & session.hooks.answered


def is_plain(session: Session, job: int, rows: TaskRows) -> bool:
    """Whether nothing but classes, roles and counts decides on the tasks of a job."""
    facts, nominated = session.job_facts(job), session.cluster.tasks.nominated
    if job in session.groups.shaped or facts.groups or facts.sub_groups:
        return False
    if session.traced(job) is not None or session.tasks.gated[rows].any():
        return False
    return not nominated or nominated.keys().isdisjoint(rows.tolist())
