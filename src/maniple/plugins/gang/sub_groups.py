"""Minimums of sub-groups: how many sub-jobs of each policy a gang needs, and how many it has.

Called by gang only. A sub-job is ready with its policy's size; best-effort tasks count while pending. Jobs
without policies cost nothing.
"""

from collections.abc import Callable

import numpy as np

from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session


class SubGroupMinimums:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups = session.groups

    def matter_to(self, job: int) -> bool:
        return job in self._groups.split

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

    def is_ready(self, one: PodSet) -> bool:
        return self._groups.lacking(one) <= 0

    def is_pipelined(self, one: PodSet) -> bool:
        return self._groups.lacking(one) <= self._groups.counts(one).pipelined

    def losable(self, job: int, rows: TaskRows) -> TaskRows:
        """Of tasks in order, those that their policies can spare; a sub-job is only given up whole."""
        shape = self._shape(job)
        if shape is None or not any(shape.least.values()):
            return rows
        spare = {policy: have - least for policy, least, have in self._counts(shape, self.is_ready)}
        extra = {one: -self._groups.lacking(one) for one in shape.members}
        owner = {row: one for one in shape.members for row in one.rows.tolist()}
        kept = []
        for row in reversed(rows.tolist()):
            one = owner[row]
            if extra[one] == 0 and spare.get(one.policy, 1) <= 0:
                continue
            if extra[one] == 0 and one.policy in spare:
                spare[one.policy] -= 1
            extra[one] -= 1
            kept.append(row)
        return np.array(kept[::-1], dtype=np.int64)

    def _shape(self, job: int) -> Group | None:
        return self._groups.root(job) if self.matter_to(job) else None

    def _counts(self, shape: Group, test: Callable[[PodSet], bool]) -> list[tuple[str, int, int]]:
        """Policies with a minimum: the minimum, and how many of their sub-jobs pass the test."""
        have = dict.fromkeys(shape.least, 0)
        for one in shape.members:
            if one.policy in have and test(one):
                have[one.policy] += 1
        return [(policy, least, have[policy]) for policy, least in shape.least.items() if least > 0]
