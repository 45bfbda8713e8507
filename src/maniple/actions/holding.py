"""Room that was made for a job is held while the pods that were evicted for it still stand in its way.

Called by allocate for a job with nominated tasks that found no place. A pod that is leaving may keep a task away from a
node by its ports or by (anti-)affinity until it is gone, on the node itself or in the same domain. Nothing can be placed
yet; the tasks then claim the nodes that they are nominated to, so that no other job takes the room or evicts pods for it.
"""

import numpy as np

from maniple.cluster.statuses import Status
from maniple.eviction.per_node import roomy
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.placement.engine import Placement


class Holding:
    """The nominations of one session."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement

    def hold(self, job: int) -> bool:
        """Claim the nominated nodes of a job, all or none. False, and nothing is done, if no leaving pod is in the way."""
        session, transaction = self._session, Transaction(self._session)
        nominated = session.cluster.tasks.nominated
        rows = [row for row in session.tasks_of(job).tolist() if row in nominated]
        rows = [row for row in rows if session.tasks.status[row] == Status.PENDING]
        nodes = [session.nodes.facts.index.get(nominated[row], -1) for row in rows]
        if not any(node >= 0 and self._waits(row, node) for row, node in zip(rows, nodes, strict=True)):
            return False
        for row, node in zip(rows, nodes, strict=True):
            if node >= 0 and self._has_room(row, node):
                transaction.pipeline(np.array([row]), np.array([node], dtype=np.intp))
        if not session.hooks.job_pipelined(job):
            transaction.discard()
            return False
        return True

    def _waits(self, row: int, node: int) -> bool:
        """A filter rejects the node, and may no longer do so once the leaving pods are gone."""
        session, placement = self._session, self._placement
        class_ = session.classes[session.tasks.class_of[row]]
        verdict = int(placement.verdicts(class_, resources=False)[node])
        if verdict == FITS or session.reasons.lasting()[verdict]:
            return False
        releasing = session.nodes.releasing
        if releasing[:, node].any():
            return True
        counts_pods = placement.judged(class_, lambda one: one.prepared)
        return bool(counts_pods[node] != FITS and releasing.any())

    def _has_room(self, row: int, node: int) -> bool:
        """The queue and the node have what the task requests, once everything that is leaving is gone."""
        session = self._session
        class_ = session.classes[session.tasks.class_of[row]]
        queue = int(session.jobs.queue[session.tasks.job[row]])
        hooks = session.hooks
        if hooks.pre_predicate(class_) is not None or hooks.allocatable(queue, class_, 1) < 1:
            return False
        return roomy(session, class_, node)


__all__ = ["Holding"]
