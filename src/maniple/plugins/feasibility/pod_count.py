"""Pod count: a node takes no more pods than its allocatable `pods`."""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import Verdicts
from maniple.framework.session import Session

FULL = "node(s) pod number exceeded"


def pod_count_filter(session: Session) -> Filter:
    full = np.int16(session.reasons.number(FULL))

    def check(_: TaskClass, cells: Cells) -> Verdicts:
        verdict: Verdicts = (cells.allocatable(PODS) <= cells.pods()) * full  # 0 is FITS
        return verdict

    return Filter("PodCount", Dependence.NODE, check)
