"""How close nodes are to what a sub-job already has.

Called by network-topology-aware, for tasks with a topology. 1 in the node's own domain, else (highest tier -
tier of the domain around both) / (highest tier - lowest tier); equals at the top get + (tasks of the sub-job
in the node's own domain) / (its tasks). Before anything is placed all nodes are equal.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE
from maniple.framework.criteria import Cells, NodeRows, Scores
from maniple.framework.groups.tree import PodSet, Progress
from maniple.framework.session import Session


class Nearness:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._near: dict[int, Scores] = {}

    def silent(self, progress: Progress) -> bool:
        """It is placed where all nodes are equally near."""
        return bool(self._session.groups.places.uniform[progress.ground])

    def score(self, progress: Progress, cells: Cells) -> Scores:
        rows = cells.node_rows()
        return self.steps(progress, rows).shift(np.ones(len(rows), dtype=np.bool_))

    def steps(self, progress: Progress, rows: NodeRows) -> "NearnessSteps":
        home, counts = self._session.groups.places.home[rows], self._counts(progress.pod_set)
        return NearnessSteps(self, home, progress.domain, counts, len(progress.pod_set.rows))

    def _counts(self, one: PodSet) -> Scores:
        """By a node's own domain, how many of a pod set's tasks are there; the last entry is for nodes without one."""
        on = self._session.tasks.node[one.rows]
        home = self._session.groups.places.home[on[on >= 0]]
        return np.bincount(home[home >= 0], minlength=len(self._session.domains) + 1).astype(np.float64)

    def to(self, domain: int) -> Scores:
        """By a node's own domain, how close it is to a domain; the last entry is for nodes without one."""
        known = self._near.get(domain)
        if known is None:
            places, tree = self._session.groups.places, self._session.domains
            lowest, highest = places.tiers[0], places.tiers[-1]
            known = self._near[domain] = np.zeros(len(tree) + 1)
            for around in reversed(tree.ancestors(domain)):
                far = (highest - int(tree.tier[around])) / (highest - lowest) if highest > lowest else 1.0
                known[places.below(around)] = far
            known[domain] = 1.0
        return known

    def joined(self, a: int, b: int) -> int:
        return self._session.groups.places.joined(a, b)


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
