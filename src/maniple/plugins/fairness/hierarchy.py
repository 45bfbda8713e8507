"""drf's hierarchical mode: queues in a tree, compared branch by branch from the root down.

Called by drf. A queue's annotations give its path and a weight for each step of it; the tree itself is in
`share_tree.py`. A queue without a path is below the root under its own name, with weight 1; in the original
its jobs are children of the root itself, so that it equals every other queue and no queue reclaims from it.
Of two queues that are equal as far as the shorter path goes, the one with the shorter path goes first; in the
original neither does.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.fairness.share_tree import Branch, ShareTree, Standing

PATH = "volcano.sh/hierarchy"
PATH_WEIGHTS = "volcano.sh/hierarchy-weights"


class QueueHierarchy:
    """`allocated` (resources x jobs) is drf's own; it is changed here only for a what-if, and then restored."""

    def __init__(self, session: Session, allocated: Amounts, served: NDArray[np.bool_]) -> None:
        self._session = session
        self._allocated = allocated
        self._served = served
        self._tree = ShareTree(session.total, allocated, session.jobs.total)
        self._paths: dict[int, list[Branch]] = {}
        # By name, not by input order: the first queue on a path gives it its weight, and sums of fractions
        # depend on the order.
        rows = np.array(sorted(session.jobs.rows.tolist(), key=session.job_key), dtype=np.int64)
        for queue in sorted(session.queues.facts, key=session.queue_name):
            steps, weights = _path(session, queue)
            self._paths[queue] = self._tree.place(steps, weights, rows[session.jobs.queue[rows] == queue])
        self._tree.refresh()

    def queue_order(self, queue: int) -> "Way":
        return Way(self._paths[queue], level=self._session.rules.queues.deep_ties_are_equal)

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        """Each candidate by itself: exchange, compare, restore."""
        tasks, classes = self._session.tasks, self._session.classes
        job = int(tasks.job[task])
        if not self._served[job]:
            return candidates[:0]
        candidates = candidates[self._served[tasks.job[candidates]]]
        asked = classes[tasks.class_of[task]].request
        self._shift(job, asked)
        allowed = np.zeros(len(candidates), dtype=np.bool_)
        for place, row in enumerate(candidates.tolist()):
            victim, request = int(tasks.job[row]), classes[tasks.class_of[row]].request
            self._shift(victim, -request)
            allowed[place] = self._stands_before(job, victim)
            self._shift(victim, request)
        self._shift(job, -asked)
        return candidates[allowed]

    def changed(self, job: int, amounts: Amounts) -> None:
        """The allocated amount of a job changed; its column is updated already."""
        path = self._paths[int(self._session.jobs.queue[job])]
        self._tree.changed(path[-1] if path else self._tree.root, amounts)

    def _shift(self, job: int, amounts: Amounts) -> None:
        self._allocated[:, job] += amounts
        self.changed(job, amounts)

    def _stands_before(self, job: int, other: int) -> bool:
        queue_of = self._session.jobs.queue
        ours, theirs = self._paths[int(queue_of[job])], self._paths[int(queue_of[other])]
        return Way(ours, level=True) < Way(theirs, level=True)


class Way:
    """A queue's branches from below the root down, as they are when queues are compared.

    Not when the key is made: an allocation of one queue changes all queues below the same branch, also queued
    ones. With `level` queues are compared as far as the shorter path goes, and are equal beyond that; among
    three that may be cyclic.
    """

    __slots__ = ("_branches", "_level")
    __hash__ = None  # type: ignore[assignment]  # what is equal now need not stay so

    def __init__(self, branches: list[Branch], *, level: bool) -> None:
        self._branches = branches
        self._level = level

    @property
    def standings(self) -> tuple[Standing, ...]:
        return tuple([branch.standing for branch in self._branches])

    def __repr__(self) -> str:
        return str(self.standings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Way) and not (self < other or other < self)

    def __lt__(self, other: "Way") -> bool:
        ours, theirs = self.standings, other.standings
        depth = min(len(ours), len(theirs))
        if ours[:depth] != theirs[:depth] or self._level:
            return ours[:depth] < theirs[:depth]
        return len(ours) < len(theirs)


def _path(session: Session, queue: int) -> tuple[Sequence[str], Sequence[float]]:
    """The steps below the root and their weights; a missing or invalid weight, or one below 1, counts as 1."""
    annotations = session.queues.objects[queue].metadata.annotations
    steps = annotations.get(PATH, "").split("/")[1:]
    if not steps and session.rules.queues.pathless_stand_apart:
        return [f"/{session.queue_name(queue)}"], [1.0]  # no step of a path contains a slash
    weights = [_weight(text) for text in annotations.get(PATH_WEIGHTS, "").split("/")[1 : len(steps) + 1]]
    return steps, weights + [1.0] * (len(steps) - len(weights))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < float("inf") else 1.0
