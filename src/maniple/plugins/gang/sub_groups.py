"""Minimums of sub-groups: how many sub-jobs of each policy a gang needs, and how many it has.

Called by gang only. A sub-job is ready with its policy's size; best-effort tasks count while pending. Jobs
without policies cost nothing.
"""

from collections.abc import Callable

import numpy as np

from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.sub_jobs import JobShape, SubJob


class SubGroupMinimums:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._sub_jobs = session.sub_jobs

    def matter_to(self, job: int) -> bool:
        return job in self._sub_jobs.split

    def lacking_for_good(self, job: int) -> str | None:
        """A policy that has too few sub-jobs wherever they are placed, as text."""
        shape = self._shape(job)
        if shape is None:
            return None
        for policy, least, have in self._counts(shape, lambda _: True):
            if have < least:
                return f"policy {policy!r} has {have} sub-groups and needs {least}"
        return None

    def enough(self, job: int, *, pipelined: bool = False) -> bool:
        """Whether every policy has as many sub-jobs ready as it needs."""
        shape = self._shape(job)
        if shape is None:
            return True
        test = self.is_pipelined if pipelined else self.is_ready
        return all(have >= least for _, least, have in self._counts(shape, test))

    def is_ready(self, one: SubJob) -> bool:
        return self._sub_jobs.lacking(one) <= 0

    def is_pipelined(self, one: SubJob) -> bool:
        return self._sub_jobs.lacking(one) <= self._sub_jobs.counts(one).pipelined

    def losable(self, job: int, rows: TaskRows) -> TaskRows:
        """Of tasks in order, those that their policies can spare; a sub-job is only given up whole."""
        shape = self._shape(job)
        if shape is None or not any(shape.least.values()):
            return rows
        spare = {policy: have - least for policy, least, have in self._counts(shape, self.is_ready)}
        extra = {one.row: -self._sub_jobs.lacking(one) for one in shape.sub_jobs}
        owner = {row: one for one in shape.sub_jobs for row in one.tasks.tolist()}
        kept = []
        for row in reversed(rows.tolist()):
            one = owner[row]
            if extra[one.row] == 0 and spare.get(one.group, 1) <= 0:
                continue
            if extra[one.row] == 0 and one.group in spare:
                spare[one.group] -= 1
            extra[one.row] -= 1
            kept.append(row)
        return np.array(kept[::-1], dtype=np.int64)

    def _shape(self, job: int) -> JobShape | None:
        return self._sub_jobs.of(job) if self.matter_to(job) else None

    def _counts(self, shape: JobShape, test: Callable[[SubJob], bool]) -> list[tuple[str, int, int]]:
        """Policies with a minimum: the minimum, and how many of their sub-jobs pass the test."""
        have = dict.fromkeys(shape.least, 0)
        for one in shape.sub_jobs:
            if one.group in have and test(one):
                have[one.group] += 1
        return [(policy, least, have[policy]) for policy, least in shape.least.items() if least > 0]
