"""The ceilings of queues without a tree: what is guaranteed to no other queue, up to their capability.

Called by proportion and capacity when a session opens. ceiling = min(max(total - all guarantees, 0) + own
guarantee, capability), per resource. A capability does not limit resources that it does not name, nor CPU and
memory if they are not positive.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import PODS, Amounts
from maniple.framework.session import Session
from maniple.plugins.fairness.queue_terms import terms_of
from maniple.plugins.fairness.water_filling import Vectors


@dataclass(frozen=True, slots=True, eq=False)
class Ceilings:
    """Resources x queues; `limit` applies to what a queue deserves, see
    `queues.exhausted_scalars_are_unlimited`."""

    ceiling: Vectors
    limit: Vectors
    guarantee: Amounts


def ceilings(session: Session, queues: NDArray[np.int32]) -> Ceilings:
    shape = (len(session.total), len(queues))
    result = Ceilings(np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))
    everybodys = np.zeros(len(session.total))
    for row in session.queues.facts:
        everybodys += terms_of(session, row).guarantee
    free = np.maximum(session.total - everybodys, 0.0)
    for place, queue in enumerate(queues.tolist()):
        terms = terms_of(session, queue)
        result.guarantee[:, place] = terms.guarantee
        result.ceiling[:, place] = np.minimum(free + terms.guarantee, terms.capability)
        result.limit[:, place] = result.ceiling[:, place]
        if session.rules.queues.exhausted_scalars_are_unlimited:
            # A scalar that is used up drops out of the list of limits, so it limits no queue.
            dropped = (free == 0) & ~terms.guarantees
            dropped[:PODS] = False
            result.limit[dropped, place] = math.inf
    return result
