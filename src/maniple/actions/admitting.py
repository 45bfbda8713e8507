"""Admitting jobs: before allocate places pods, it admits pod groups that have no pods yet.

The pods of a Volcano PodGroup may not be created before its phase is Inqueue. A group is admitted as soon as
its queue accepts it and no plugin objects (`job_enqueueable`: resourcequota, extender). A group that has pods
has been admitted already. Groups of other systems need no admission.
"""

from maniple.cluster.statuses import ALIVE
from maniple.framework.session import Session
from maniple.framework.traces.recorder import Recorder
from maniple.objects.volcano import VolcanoPodGroup

_INQUEUE = "Inqueue"


def admit(session: Session) -> None:
    hooks, groups = session.hooks, session.cluster.jobs.objects
    alive = ALIVE @ session.jobs.counts
    rows = [
        job
        for job in session.waiting_jobs()
        if isinstance(groups[job], VolcanoPodGroup)
        and session.queue_tree.serves(int(session.jobs.queue[job]))
    ]
    if "job_enqueueable" in hooks.answered:  # otherwise the order does not matter
        rows.sort(key=session.job_key_order)
    for job in rows:
        there = alive[job] >= session.jobs.minimum[job]
        admitted = there or (_takes(session, job) and hooks.job_enqueueable(job))
        if (trace := session.traced(job)) is not None:
            _tell(trace, job, admitted=admitted, there=there)
        if admitted:
            session.decisions.phases[job] = _INQUEUE
            if not there:
                hooks.job_enqueued(job)


def _tell(trace: Recorder, job: int, *, admitted: bool, there: bool) -> None:
    if not there and not _takes(trace.session, job):
        trace.left_out(job, "it is not admitted: its queue, or one above it, is not open")
    elif not there:
        trace.asked(job, "job_enqueueable", admitted)


def _takes(session: Session, job: int) -> bool:
    """Whether its queue and those above it are open."""
    path = session.queue_tree.path(int(session.jobs.queue[job]))
    return all(session.queues.facts[queue].open for queue in path)


__all__ = ["admit"]
