"""Whether a queue has room for a part of a GPU that depends on the node, for KAI's `predicates`.

A job's whole devices and portions are checked before it is placed. What part of a device an amount of GPU
memory is depends on the node, and so does whether the queue is within its limits; nodes whose devices have
the same memory are checked together.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session

OVER = "node does not have enough capacity. Reason: {reason}"


class NodeQuota:
    """The filter, for one session.

    It depends on the queue and on whether a job is preemptible, so classes are split by these.
    """

    _owner = "predicates: queue"

    def __init__(self, session: Session) -> None:
        self._session = session
        sharing = [one.number for one in session.classes if _asks_memory(one)]
        if sharing:
            self._mark(sharing)

    def _mark(self, classes: list[int]) -> None:
        session, tasks = self._session, self._session.tasks
        own = (tasks.status != Status.SUCCEEDED) & (tasks.status != Status.FAILED) & (tasks.job >= 0)
        served = np.isin(tasks.job, session.jobs.rows)
        rows = np.flatnonzero(np.isin(tasks.class_of, classes) & own & served)
        jobs = {job: session.preemptible(job) for job in np.unique(tasks.job[rows]).tolist()}
        marks = [2 * int(session.jobs.queue[job]) + jobs[job] for job in tasks.job[rows].tolist()]
        session.refine(self._owner, rows, np.array(marks, dtype=np.int64))

    def filter(self) -> Filter:
        return Filter("QueueCapacity", Dependence.CLUSTER, self._check, self._applies)

    def _applies(self, class_: TaskClass) -> bool:
        return _asks_memory(class_) and self._owner in class_.marks

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        session, rows = self._session, cells.node_rows()
        # Any task of the class represents all of them.
        task = int(np.flatnonzero(session.tasks.class_of == class_.number)[0])
        memory = session.gpus.memory[rows]
        verdict = np.zeros(rows.shape, dtype=np.int16)
        for size in np.unique(memory).tolist():
            alike = memory == size
            node = int(rows[alike][0])
            answer = session.hooks.is_task_allocation_on_node_over_capacity(task, node)
            number = FITS if answer.schedulable else session.reasons.number(OVER.format(reason=answer.reason))
            verdict[alike] = number
        return verdict


def _asks_memory(class_: TaskClass) -> bool:
    return class_.share is not None and class_.share.memory > 0
