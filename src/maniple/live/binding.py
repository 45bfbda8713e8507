"""Pods whose bind was decided and that the cluster has not confirmed.

A decision counts at once, so that the next one builds on it. What people and controllers read must not: until the
bind is confirmed, a status, an event or the screen that called the pod bound would be wrong. `decisions.py` keeps
this record; `status.py`, `queues.py` and `overview.py` read it.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from maniple.cluster.cluster import Cluster
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.session import NON_PREEMPTIBLE
from maniple.live.refs import Ref, ref_of

Requested = Mapping[str, Counter[str]]  # by queue, then by resource


class Binding:
    """`pods`: by key, the group of each; None for a pod without one. `groups`: how many pods of each group."""

    def __init__(self) -> None:
        self.pods: dict[str, Ref | None] = {}
        self.groups: Counter[Ref] = Counter()
        self.ended = 0  # how many were confirmed or given up so far

    def begin(self, pod: str, cluster: Cluster) -> None:
        if pod in self.pods:
            return
        group = self.pods[pod] = _group_of(pod, cluster)
        if group is not None:
            self.groups[group] += 1

    def end(self, pod: str) -> None:
        """It is bound, will not be, or is gone."""
        if pod not in self.pods:
            return
        group = self.pods.pop(pod)
        self.ended += 1
        if group is not None:
            self.groups[group] -= 1
            if not self.groups[group]:
                del self.groups[group]

    def amounts(self, cluster: Cluster) -> tuple[Requested, Requested]:
        """By queue: what these pods request, in base units; all of them, and those of non-preemptible jobs."""
        tasks, facts = cluster.tasks, cluster.jobs.facts
        rows = np.array([row for row in map(tasks.index_of, self.pods) if row is not None], dtype=np.int64)
        rows = rows[ALLOCATED_LIKE[tasks.status[rows]]]
        together, fixed = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
        # Gangs are of one spec or a few: their pods are counted at once.
        alike = Counter(zip(tasks.job[rows].tolist(), tasks.spec[rows].tolist(), strict=True))
        for (job, spec), number in alike.items():
            if job in facts:
                together[facts[job].queue, spec] += number
                if not _preemptible(cluster, job):
                    fixed[facts[job].queue, spec] += number
        return _sums(cluster, together), _sums(cluster, fixed)


def _sums(cluster: Cluster, together: Mapping[tuple[str, int], int]) -> Requested:
    """The amounts of so many pods of each queue and spec."""
    found, names = dict[str, Counter[str]](), cluster.resources.names
    for (queue, spec), number in together.items():
        sums = found.setdefault(queue, Counter())
        for name, amount in zip(names, cluster.specs.specs[spec].request.tolist(), strict=False):
            sums[name] += amount * number
    return found


def _preemptible(cluster: Cluster, job: int) -> bool:
    said = cluster.jobs.facts[job].preemptible
    return said if said is not None else int(cluster.jobs.priority[job]) < NON_PREEMPTIBLE


def _group_of(pod: str, cluster: Cluster) -> Ref | None:
    row = cluster.tasks.index_of(pod)
    group = cluster.jobs.objects.get(int(cluster.tasks.job[row])) if row is not None else None
    return ref_of(group) if group is not None else None
