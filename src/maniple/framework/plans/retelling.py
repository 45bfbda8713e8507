"""A plan reported again after pods have started: the same decisions are over, and the same causes hold.

That a pod runs on the node that it was given changes no decision unless something waits. What is reported about its job
changes: how many pods run, and its phase. `Plan.retold` asks for that instead of a cycle that would decide nothing.
"""

from dataclasses import replace

import numpy as np

from maniple.cluster.cluster import Cluster
from maniple.cluster.statuses import READY
from maniple.framework.plans.freezing import Closed

_READY = np.flatnonzero(READY)


def retold(closed: Closed, cluster: Cluster) -> Closed | None:
    """With tasks and pod groups as they are now, and nothing left to carry out.

    None if other tasks or jobs exist than when the cycle closed.
    """
    tasks, jobs = cluster.tasks, cluster.jobs
    if closed.names.tasks != tasks.keys or closed.names.jobs != jobs.keys:
        return None
    size = len(closed.jobs.queue)
    counts = jobs.counts[:, :size].copy()
    return replace(
        closed,
        tasks=replace(closed.tasks, status=tasks.status[: len(closed.tasks.status)].copy()),
        jobs=replace(
            closed.jobs,
            counts=counts,
            ready=counts[_READY].sum(axis=0),
            edition=jobs.edition[:size].copy(),
            admitted=jobs.admitted[:size].copy(),
            facts=jobs.facts.copy(),
            groups=jobs.objects.copy(),
        ),
        decided=replace(
            closed.decided, bound=(), held=(), admitted=(), annotations={}, claims={}, volumes={}
        ),
    )
