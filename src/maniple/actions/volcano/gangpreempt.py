"""gangpreempt: the more important job of a queue takes the place of less important ones, gang by gang, in one domain of the network.

Victims are bound or running, preemptable tasks of jobs of the same queue whose priority is strictly lower and whose pod group does not forbid it. The
job that would be served last goes first. How it is done is in `gang_eviction.py`.
"""

from collections.abc import Iterable

from maniple.actions.volcano.gang_eviction import GangAction
from maniple.cluster.statuses import PREEMPTABLE
from maniple.eviction.volcano.bundles import Jobs, Mask, by_job_order
from maniple.framework.session import Session


class GangPreempt(GangAction):
    name = "gangpreempt"
    statuses = PREEMPTABLE
    guard = "preemptable"

    def may_take(self, session: Session, job: int, victims: Jobs) -> Mask:
        jobs = session.jobs
        lower: Mask = (jobs.queue[victims] == jobs.queue[job]) & (jobs.priority[victims] < jobs.priority[job])
        return lower

    def standing(self, session: Session, queue: int, jobs: Iterable[int]) -> dict[int, int]:
        return by_job_order(session, jobs)
