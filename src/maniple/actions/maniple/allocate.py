"""allocate: jobs are let in, and get places.

The second is KAI's (`actions/kai/allocate.py`). The first is for Volcano's groups, whose pods may not be made before their phase is Inqueue: a group is let in as soon as its queue takes it and
no plugin objects (`job_enqueueable`: resourcequota, extender). A job whose pods are there has been let in by whoever made them.
"""

from maniple.actions.kai import allocate
from maniple.cluster.statuses import ALIVE
from maniple.framework.session import Session
from maniple.objects.volcano import VolcanoPodGroup
from maniple.placement.engine import Placement

_INQUEUE, _NOT_YET = "Inqueue", ("", "Pending")


class Allocate(allocate.Allocate):
    def run(self, session: Session, placement: Placement) -> None:
        _let_in(session)
        super().run(session, placement)


def _let_in(session: Session) -> None:
    hooks, groups = session.hooks, session.cluster.jobs.objects
    alive = ALIVE @ session.jobs.counts
    rows = [
        job
        for job in session.jobs.rows.tolist()
        if isinstance(groups[job], VolcanoPodGroup)
        and session.phase(job) in _NOT_YET
        and session.queue_tree.serves(int(session.jobs.queue[job]))
    ]
    if "job_enqueueable" in hooks.answered:  # otherwise it does not matter who comes first
        rows.sort(key=session.job_key_order)
    for job in rows:
        there = alive[job] >= session.jobs.minimum[job]
        if there or (_takes(session, job) and hooks.job_enqueueable(job)):
            session.decisions.phases[job] = _INQUEUE
            if not there:
                hooks.job_enqueued(job)


def _takes(session: Session, job: int) -> bool:
    """Whether its queue and those above it are open."""
    path = session.queue_tree.path(int(session.jobs.queue[job]))
    return all(session.queues.facts[queue].open for queue in path)


__all__ = ["Allocate"]
