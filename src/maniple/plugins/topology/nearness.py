"""How close nodes are to what a sub-job already has.

Called by network-topology-aware, for tasks with a topology. 1 in the node's own domain, else (highest tier -
tier of the domain around both) / (highest tier - lowest tier); equals at the top get + (tasks of the sub-job
in the node's own domain) / (its tasks). Before anything is placed all nodes are equal.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.framework.session import Session
from maniple.framework.sub_jobs import SubJob


class Nearness:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._near: dict[int, Scores] = {}

    def silent(self, _: TaskClass) -> bool:
        """Whether no constrained task is being placed, or only where all nodes are equally close."""
        progress = self._session.sub_jobs.progress
        return progress is None or bool(self._session.sub_jobs.places.uniform[progress.ground])

    def score(self, class_: TaskClass, cells: Cells) -> Scores:
        rows = cells.node_rows()
        return self.steps(class_, rows).shift(np.ones(len(rows), dtype=np.bool_))

    def steps(self, _: TaskClass, rows: NodeRows) -> "NearnessSteps":
        progress, home = self._session.sub_jobs.progress, self._session.sub_jobs.places.home[rows]
        if progress is None:
            return NearnessSteps(self, home, NONE, np.zeros(0), 1)
        counts = self._counts(progress.sub_job)
        return NearnessSteps(self, home, progress.domain, counts, len(progress.sub_job.tasks))

    def _counts(self, one: SubJob) -> Scores:
        """By a node's own domain, how many of a sub-job's tasks are there; the last entry is for nodes
        without one."""
        on = self._session.tasks.node[one.tasks]
        home = self._session.sub_jobs.places.home[on[on >= 0]]
        return np.bincount(home[home >= 0], minlength=len(self._session.domains) + 1).astype(np.float64)

    def to(self, domain: int) -> Scores:
        """By a node's own domain, how close it is to a domain; the last entry is for nodes without one."""
        known = self._near.get(domain)
        if known is None:
            places, tree = self._session.sub_jobs.places, self._session.domains
            lowest, highest = places.tiers[0], places.tiers[-1]
            known = self._near[domain] = np.zeros(len(tree) + 1)
            for around in reversed(tree.ancestors(domain)):
                far = (highest - int(tree.tier[around])) / (highest - lowest) if highest > lowest else 1.0
                known[places.below(around)] = far
            known[domain] = 1.0
        return known

    def joined(self, a: int, b: int) -> int:
        return self._session.sub_jobs.places.joined(a, b)


class NearnessSteps:
    """The same, while tasks of the sub-job are placed one by one."""

    def __init__(self, nearness: Nearness, home: Domains, domain: int, counts: Scores, tasks: int) -> None:
        self._nearness = nearness
        self._home = home
        self._domain = domain
        self._counts = counts
        self._tasks = tasks

    def shift(self, candidates: NDArray[np.bool_]) -> Scores:
        if self._domain == NONE:
            return np.zeros(len(self._home))
        scores = self._nearness.to(self._domain)[self._home]
        top = candidates & (scores == scores.max(where=candidates, initial=-1.0))
        if np.count_nonzero(top) > 1:
            scores[top] += (self._counts / self._tasks)[self._home[top]]
        return scores

    def take(self, place: int) -> None:
        home = int(self._home[place])
        if home != NONE:
            self._domain = self._nearness.joined(self._domain, home)
            self._counts[home] += 1
