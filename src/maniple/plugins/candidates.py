"""What the rules about victims share: which jobs count, and sums over candidates in their given order.

Called by the plugins that answer `preemptable`, `reclaimable` and `unified_evictable`. Candidates are task
rows in order; every function here keeps that order.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.framework.session import Session

Groups = NDArray[np.integer]


def served_jobs(session: Session) -> NDArray[np.bool_]:
    """By job row, whether the job takes part in the session.

    Row -1, a task without a job, reads the last entry: no.
    """
    served = np.zeros(len(session.jobs.queue) + 1, dtype=np.bool_)
    served[session.jobs.rows] = True
    return served


def sums_before(amounts: Amounts, group: Groups) -> Amounts:
    """For each column, the sum of the columns before it that are in the same group."""
    if not len(group):
        return amounts
    order = np.argsort(group, kind="stable")
    sorted_group, sorted_amounts = group[order], amounts[:, order]
    before = np.cumsum(sorted_amounts, axis=1) - sorted_amounts
    first = np.searchsorted(sorted_group, sorted_group)
    result = np.empty_like(before)
    result[:, order] = before - before[:, first]
    return result


def place_in_group(group: Groups) -> Amounts:
    """For each entry, how many entries before it are in the same group."""
    places: Amounts = sums_before(np.ones((1, len(group)), dtype=np.int64), group)[0]
    return places
