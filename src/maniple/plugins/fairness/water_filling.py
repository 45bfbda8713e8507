"""Water filling: divide the cluster among queues by weight, each up to its request and its limit.

Called by proportion. All arguments are resources x queues; the result is what each queue deserves.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import PODS, Amounts
from maniple.plugins.fairness.amounts import TOLERANCE, at_most

Vectors = NDArray[np.float64]


def water_fill(
    total: Amounts, weights: Amounts, request: Amounts, limit: Vectors, guarantee: Amounts
) -> Vectors:
    """In rounds, divide what remains among the queues that are not met yet, in proportion to their weights.

    deserved = max(min(deserved + remaining x weight / all weights, limit, request), guarantee). A queue is
    met if it has all that it requests, or if a round brought it nothing. What a queue could not take goes
    into the next round.
    """
    deserved = np.zeros(request.shape, dtype=np.float64)
    remaining = total.astype(np.float64)
    unmet = np.arange(len(weights))
    while weights[unmet].sum() > 0:
        before = deserved[:, unmet]
        poured = before + np.outer(remaining, weights[unmet] / weights[unmet].sum())
        wanted = np.minimum(np.minimum(poured, limit[:, unmet]), request[:, unmet])
        after = np.maximum(wanted, guarantee[:, unmet])
        deserved[:, unmet] = after
        taken = np.maximum(after - before, 0).sum(axis=1)
        given_back = np.maximum(before - after, 0).sum(axis=1)
        left = np.maximum(remaining + given_back - taken, 0)
        met = at_most(request[:, unmet], after) | (after == before).all(axis=0)
        unmet = unmet[~met]
        if _is_empty(left) or np.array_equal(left, remaining):
            break
        remaining = left
    return deserved


def _is_empty(amounts: Vectors) -> bool:
    """Whether nothing is left to divide; `pods` alone does not count."""
    return not (np.delete(amounts, PODS) >= TOLERANCE).any()
