"""Pods that are not placed because they, or their pod groups, are too large to be scheduled (`objects/limits.py`).

Part of every session, like a plugin that is always configured and asked first.
"""

from collections.abc import Mapping

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.reasons import Code, Reason
from maniple.framework.session import Session


class TooLarge:
    name = "limits"

    def __init__(self, session: Session) -> None:
        refusals: Mapping[int, str] = session.cluster.jobs.refusals
        self._refused = [f"pod group {session.job_key(job)}: {why}" for job, why in refusals.items()]
        if refusals:
            jobs = np.array([*refusals], dtype=np.int64)
            waiting = (session.tasks.status == Status.PENDING) & np.isin(session.tasks.job, jobs)
            rows = np.flatnonzero(waiting)
            places = np.argsort(jobs)
            marks = places[np.searchsorted(jobs, session.tasks.job[rows], sorter=places)]
            session.refine(self.name, rows, marks.astype(np.int64))

    def pre_predicate(self, class_: TaskClass) -> Reason | None:
        mark = class_.marks.get(self.name)
        why = self._refused[mark] if mark is not None else class_.spec.refusal
        return Reason(why, Code.UNRESOLVABLE) if why else None
