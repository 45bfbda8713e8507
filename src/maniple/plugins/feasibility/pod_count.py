"""Pod count: a node takes no more pods than its allocatable `pods`.

The slot of a terminating pod counts as free, as everything else that is being released does: whether a task
has to wait for it is decided with the resources, of which `pods` is one. Tasks that are placed without a
resource check, because they request nothing or part of a device, wait until the pod is gone; with strict
rules, so do all.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS
from maniple.cluster.snapshot import Book
from maniple.framework.criteria import Cells, Dependence, Filter, Limit
from maniple.framework.reasons import Detail, Verdicts
from maniple.framework.session import Session

FULL = "node(s) pod number exceeded"


def pod_count_filter(session: Session) -> Filter:
    full = np.int16(session.reasons.number(FULL))
    places = session.nodes.allocatable[PODS].copy()
    # Including pods that were terminating before this cycle; pods evicted in it are not counted anyway.
    coming = places + session.nodes.releasing[PODS]

    leaving_count = session.rules.placing.leaving_pods_hold_places

    def check(class_: TaskClass, cells: Cells) -> Verdicts:
        waits = leaving_count or class_.best_effort or class_.share is not None
        verdict: Verdicts = ((places if waits else coming)[cells.rows] <= cells.pods()) * full  # 0 is FITS
        return verdict

    return Filter(
        "PodCount",
        Dependence.NODE,
        check,
        by_amounts=True,
        counts_pods=True,
        limit=Limit(places if leaving_count else coming, session.nodes.row(Book.REQUESTED, PODS)),
        detail=lambda _, node: pods_detail(session, node),
    )


def pods_detail(session: Session, node: int) -> Detail:
    most = int(session.nodes.allocatable[PODS, node]) // session.resources.scale(PODS)
    return Detail("PodsPerNode", f"all {most} places for pods are taken", "pods")
