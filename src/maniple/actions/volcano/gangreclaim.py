"""gangreclaim: a queue that has less than it deserves gets it back from other queues, gang by gang, in one domain of the network.

Victims are running, preemptable tasks of jobs in other queues that let go of theirs, where the pod group does not forbid it; queue by queue as the plugins
order victims. Queues that have used up what they deserve do not ask, nor do jobs whose queue may not take so much. How it is done is in `gang_eviction.py`.
"""

from collections.abc import Iterable

import numpy as np

from maniple.actions.volcano.gang_eviction import GangAction
from maniple.cluster.statuses import Status, status_set
from maniple.eviction.volcano.bundles import Jobs, Mask, by_queue_order
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.volcano import VolcanoQueue


class GangReclaim(GangAction):
    name = "gangreclaim"
    statuses = status_set(Status.RUNNING)
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
