"""gangreclaim: a queue below its deserved share reclaims from other queues, gang by gang, in one network domain.

Victims are running, preemptable tasks of jobs in other, reclaimable queues, where the pod group does not forbid
it, queue by queue in the plugins' victim order. Queues that have used up what they deserve request no room, nor
do jobs that need more than their queue may take. `gang_eviction.py` has the algorithm.
"""

from collections.abc import Iterable

import numpy as np

from maniple.actions import words
from maniple.actions.volcano.gang_eviction import GangAction
from maniple.cluster.statuses import Status, status_set
from maniple.eviction.volcano.bundles import Jobs, Mask, by_queue_order
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.volcano import VolcanoQueue


class GangReclaim(GangAction):
    name = "gangreclaim"
    statuses = status_set(Status.RUNNING)
    rule = words.TAKES_BACK
    guard = "reclaimable"

    def skips(self, session: Session, queue: int) -> bool:
        return session.hooks.overused(queue)

    def is_entitled(self, session: Session, queue: int, rows: TaskRows) -> bool:
        return session.hooks.preemptive(queue, rows)

    def may_take(self, session: Session, job: int, victims: Jobs) -> Mask:
        queues = session.jobs.queue[victims]
        kept = [queue for queue, item in session.queues.objects.items() if _keeps(item)]
        foreign: Mask = (queues != session.jobs.queue[job]) & ~np.isin(queues, kept)
        return foreign

    def standing(self, session: Session, queue: int, jobs: Iterable[int]) -> dict[int, int]:
        return by_queue_order(session, queue, jobs)


def _keeps(item: object) -> bool:
    return isinstance(item, VolcanoQueue) and item.spec.reclaimable is False
