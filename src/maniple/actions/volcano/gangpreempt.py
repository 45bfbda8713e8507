"""gangpreempt: a job takes the place of lower-priority jobs of its queue, gang by gang, in one network domain.

Victims are bound or running, preemptable tasks of jobs of the same queue with a strictly lower priority, where
the pod group does not forbid it. The job that would be served last is evicted first. `gang_eviction.py` has the
algorithm.
"""

from collections.abc import Iterable

from maniple.actions import words
from maniple.actions.volcano.gang_eviction import GangAction
from maniple.cluster.statuses import PREEMPTABLE
from maniple.eviction.volcano.bundles import Jobs, Mask, by_job_order
from maniple.framework.session import Session


class GangPreempt(GangAction):
    name = "gangpreempt"
    statuses = PREEMPTABLE
    rule = words.HIGHER_PRIORITY
    guard = "preemptable"

    def may_take(self, session: Session, job: int, victims: Jobs) -> Mask:
        jobs = session.jobs
        lower: Mask = (jobs.queue[victims] == jobs.queue[job]) & (jobs.priority[victims] < jobs.priority[job])
        return lower

    def standing(self, session: Session, queue: int, jobs: Iterable[int]) -> dict[int, int]:
        return by_job_order(session, jobs)
