"""Hold the room made for a job while the pods evicted for it still block its tasks.

Called by allocate for a job with nominated tasks that found no place. Until it is gone, a terminating pod may
keep a task away from a node by its ports or by (anti-)affinity, on the node itself or in the same domain.
Nothing can be placed yet; the tasks then claim the nodes that they are nominated to, so that no other job takes
the room or evicts pods for it.
"""

import numpy as np

from maniple.cluster.statuses import Status
from maniple.eviction.leaving import kept_away
from maniple.eviction.volcano.per_node import roomy
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement


class Holding:
    """The nominations of one session."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement

    def hold(self, job: int) -> bool:
        """Claim the nominated nodes of a job.

        False, with nothing changed, if no terminating pod blocks the job or its gang would stay below its
        minimum.
        """
        session, transaction = self._session, Transaction(self._session)
        nominated = session.cluster.tasks.nominated
        rows = [row for row in session.tasks_of(job).tolist() if row in nominated]
        rows = [row for row in rows if session.tasks.status[row] == Status.PENDING]
        nodes = [session.nodes.facts.index.get(nominated[row], -1) for row in rows]
        if not any(
            node >= 0 and kept_away(session, self._placement, row, node)
            for row, node in zip(rows, nodes, strict=True)
        ):
            return False
        for row, node in zip(rows, nodes, strict=True):
            if node >= 0 and self._has_room(row, node):
                transaction.pipeline(np.array([row]), np.array([node], dtype=np.intp))
        if not session.hooks.job_pipelined(job):
            transaction.discard()
            return False
        return True

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
