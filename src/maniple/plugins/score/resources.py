"""LeastAllocated, MostAllocated, BalancedAllocation: how full a node would be with the task on it.

- least: per resource 100 x (allocatable - requested) / allocatable, 0 if it is exceeded; the mean over CPU
  and memory
- most: per resource 100 x requested / allocatable, at most 100; the mean over CPU and memory
- balanced: 50 + (50 + b(with the task) - b(without)) / 2, where b = 100 x (1 - standard deviation of
  requested / allocatable) over CPU, memory and, for tasks that request them, nvidia.com/gpu; tasks that
  request none of these get no score

With strict rules, a node's capacity is its status: kube-scheduler does not know about oversubscription.

Whole numbers, rounded down at every step as in kube-scheduler; a resource that a node does not have is left
out. Least and most count 100m and 200Mi for containers without requests, balanced counts the real requests.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.cluster.snapshot import Book
from maniple.framework.criteria import Scorer
from maniple.framework.session import Session
from maniple.plugins.score.fullness import Allocated, Balanced

_GPU = "nvidia.com/gpu"


class ResourceScores:
    """The three scores, for one session; `fullness.pyx` has the formulas."""

    def __init__(self, session: Session) -> None:
        nodes = session.nodes
        gpu, height = session.resources.known(_GPU), len(nodes.allocatable)
        self._gpu = gpu if gpu is not None and gpu < height else None
        self._dimensions = [CPU, MEMORY] if self._gpu is None else [CPU, MEMORY, self._gpu]
        lent = session.rules.placing.lent_resources_score
        capacity: Amounts = np.array(
            [nodes.allocatable[d] if lent else _stated(session, d) for d in self._dimensions]
        )
        with_defaults = len(nodes.books) - 2
        self._least = Allocated(capacity, with_defaults, most=False)
        self._most = Allocated(capacity, with_defaults, most=True)
        self._balanced = Balanced(capacity, [nodes.row(Book.REQUESTED, d) for d in self._dimensions])

    def least(self, weight: int) -> Scorer:
        return Scorer.compiled("LeastAllocated", weight, lambda _: self._least)

    def most(self, weight: int) -> Scorer:
        return Scorer.compiled("MostAllocated", weight, lambda _: self._most)

    def balanced(self, weight: int) -> Scorer:
        return Scorer.compiled("BalancedAllocation", weight, lambda _: self._balanced, applies=self._asks)

    def _asks(self, class_: TaskClass) -> bool:
        return any(class_.request.item(d) > 0 for d in self._dimensions)


def _stated(session: Session, dimension: int) -> Amounts:
    """The capacity of a resource in the nodes' status."""
    name, facts = session.resources.names[dimension], session.nodes.facts
    units = [
        session.resources.base_units(dimension, one.status.allocatable.get(name, 0)) for one in facts.objects
    ]
    return np.array(units, dtype=np.int64)
