"""Where a job that needs room could be placed, and whether there is enough: cheap checks before a search.

Called by the solvers and by consolidation. The checks look at GPUs only, as KAI does: a node without any idle
or leaving part of a GPU cannot take a task that requests one, whatever is evicted elsewhere.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.groups.tree import NO_TASKS
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

Mask = NDArray[np.bool_]


def asks_for_gpus(session: Session, row: int) -> bool:
    """Whole devices, slices, or a part of one."""
    class_ = session.classes[session.tasks.class_of[row]]
    return class_.share is not None or session.gpus.asked(class_)[2] > 0


def feasible_nodes(session: Session, job: int) -> Mask:
    """Nodes with a GPU, or part of one, idle or leaving; all nodes for a job with a task that requests none."""
    rows = np.concatenate([one.rows for one in session.groups.of(job)])
    classes = np.unique(session.tasks.class_of[rows])
    firsts = [int(rows[session.tasks.class_of[rows] == number][0]) for number in classes.tolist()]
    if not all(asks_for_gpus(session, row) for row in firsts):
        return np.ones(len(session.nodes), dtype=np.bool_)
    books = session.gpus
    free: Mask = (books.idle_sum() > 0) | (books.releasing_sum() > 0)
    return free


def enough_gpus(session: Session, rows: TaskRows) -> bool:
    """Whether ready nodes have as many GPUs idle or leaving as the tasks request, wherever they are."""
    books, ready = session.gpus, session.nodes.facts.ready
    devices, memory = 0.0, 0
    for number, count in sorted(Counter(session.tasks.class_of[rows].tolist()).items()):
        class_ = session.classes[number]
        share = class_.share
        if share is not None and share.memory:
            memory += share.memory * count
        else:
            devices += float(books.asked(class_)[2]) * count
    if memory:
        exactly = books.idle_sum(exact=True) + books.releasing_sum(exact=True)
        if round(float((exactly * books.memory)[ready].sum())) < memory:
            return False
    free = (books.idle_sum() + books.releasing_sum())[ready]
    return float(free.sum()) >= devices


def enough_in_total(session: Session, rows: TaskRows, evicted: TaskRows = NO_TASKS) -> bool:
    """Whether all nodes together will have as much free as the tasks request, if no pod leaves the cluster.

    Moving a pod never adds to what is free on all nodes: it takes elsewhere at least what it gives back. Only pods
    that request next to nothing may be placed where less is left, so what these have counts as free. GPUs do not
    count where devices are shared: a pod that moves from one to another may free a whole one. Tasks that are
    `evicted` on trial count as if they were not.
    """
    tasks, small = session.tasks, np.flatnonzero(session.tasks.best_effort)
    asked = session.requests(rows[~tasks.best_effort[rows]] if len(small) else rows).sum(axis=1)
    idle = session.nodes.future_idle()
    np.subtract.at(idle.T, tasks.node[evicted], session.requests(evicted).T)
    free = np.maximum(idle, 0).sum(axis=1)
    if len(small):
        there = (tasks.status >= 0) & ACTIVE_ALLOCATED[tasks.status]
        there[evicted] = True
        free += session.requests(small[there[small]]).sum(axis=1)
    enough: NDArray[np.bool_] = asked <= free
    if session.gpus.dimension is not None and _shares_devices(session, rows):
        enough[session.gpus.dimension] = True
    return bool(enough.all())


def _shares_devices(session: Session, rows: TaskRows) -> bool:
    """Whether some pod has part of a device, or one of the tasks requests it."""
    numbers = set(session.tasks.class_of[rows].tolist())
    return bool(session.gpus.groups_of) or any(session.classes[one].share is not None for one in numbers)


__all__ = ["enough_gpus", "enough_in_total", "feasible_nodes"]
