"""What queues of both systems state, as one: quota, limit, weight and guarantee of every resource.

Read by `fairness` when a session opens. A KAI queue states quota, limit and over-quota weight of CPU, memory
and GPUs; of everything else it has no quota, no limit, and its weight for GPUs. A Volcano queue's `deserved`
is its quota, its `capability` a limit, and its weight counts for every resource; its `guarantee` is part of
the quota, and a parent queue is guaranteed at least the sum of its children's guarantees.

A guarantee is never available to others, so it is subtracted from the limit of every sibling (`limit`).
Amounts are in the units of shares: GPUs and other resources whole, CPU in millicores, bytes.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY, PODS
from maniple.framework.session import Session
from maniple.objects.kai import KaiQueue
from maniple.objects.volcano import VolcanoQueue
from maniple.plugins.fairness.queue_terms import terms_of
from maniple.plugins.kai.counting import GPU, Counting, Floats
from maniple.plugins.kai.queue_accounts import stated_by_kai

Mask = NDArray[np.bool_]
_DEVICE = 1000.0  # base units of a whole device
_VOLUMES = "attachable-volumes-"


def divided(session: Session) -> Counting:
    """Every resource that nodes offer, except pod and volume slots, which are per node."""
    names, gpu = session.resources.names, session.gpus.dimension
    others = [
        dimension
        for dimension, amount in enumerate(session.total.tolist())
        if amount > 0
        and dimension not in (CPU, MEMORY, PODS, gpu)
        and not names[dimension].startswith(_VOLUMES)
    ]
    return Counting(session, others)


@dataclass(frozen=True, slots=True, eq=False)
class QueueTerms:
    """Resources x queues."""

    quota: Floats  # 0 where nothing is said
    states: Mask  # whether a quota is stated
    limit: Floats
    weight: Floats
    guarantee: Floats
    ceiling: Floats  # the limit as it was stated
    bound: Floats  # the most that a queue and its siblings may have together


def read_terms(session: Session, counting: Counting, queues: list[int], total: Floats) -> QueueTerms:
    """Of queues in any order of parents and children."""
    shape = (len(counting.names), len(queues))
    quota, guarantee, weight = np.zeros(shape), np.zeros(shape), np.ones(shape)
    limit, states = np.full(shape, inf), np.zeros(shape, dtype=np.bool_)
    of_kai, three = stated_by_kai(session, queues), GPU + 1
    for place, queue in enumerate(queues):
        kai = session.queues.stated(queue, KaiQueue)
        if session.queues.stated(queue, VolcanoQueue) is not None:
            stated = terms_of(session, queue)
            guarantee[:, place] = _picked(session, counting, stated.guarantee)
            quota[:, place] = _picked(session, counting, stated.deserved)
            states[:, place] = _picked(session, counting, stated.deserves | stated.guarantees) > 0
            limits = _picked(session, counting, stated.limits) > 0
            # Without a limit on shareable GPUs there is none on all GPUs together; other vendors' keep theirs
            # by name.
            gpu = session.gpus.reported_as
            limits[GPU] &= gpu is not None and bool(stated.limits[gpu])
            capability = np.where(stated.limits, stated.capability, 0.0)
            limit[limits, place] = _picked(session, counting, capability)[limits]
            # A weight of 0 means unset.
            weight[:, place] = session.queues.facts[queue].weight or 1
        elif kai is not None:
            weight[:, place] = of_kai.weight[GPU, place]
        if kai is None or (kai.spec.resources is None and len(session.queues.said[queue]) > 1):
            continue
        # If both systems' queues of a name state one, both guarantees are kept and neither limit is exceeded.
        states[:three, place] = True
        quota[:three, place] = np.maximum(quota[:three, place], of_kai.quota[:, place])
        limit[:three, place] = np.minimum(limit[:three, place], of_kai.limit[:, place])
        weight[:three, place] = of_kai.weight[:, place]
    _add_up(session, queues, guarantee, quota)
    ceiling = limit
    limit, bound = _below_guarantees(session, queues, limit, guarantee, total)
    return QueueTerms(quota, states, limit, weight, guarantee, ceiling, bound)


def _picked(session: Session, counting: Counting, vector: NDArray[np.generic]) -> Floats:
    """Of a vector over the session's dimensions, what is counted."""
    found = np.zeros(len(counting.names))
    values = vector.astype(np.float64)
    found[[CPU, MEMORY]] = values[[CPU, MEMORY]]
    found[GPU] = values[session.gpus.devices].sum() / _DEVICE
    found[GPU + 1 :] = values[counting.others] / counting.units[GPU + 1 :, 0]
    return found


def _by_depth(session: Session, queues: list[int]) -> list[tuple[int, int]]:
    """Indices of queues with the index of the parent (-1: none), top queues first."""
    tree, place = session.queue_tree, {queue: number for number, queue in enumerate(queues)}
    ordered = sorted(queues, key=lambda queue: len(tree.path(queue)))
    return [(place[queue], place.get(tree.parent(queue), -1)) for queue in ordered]


def _add_up(session: Session, queues: list[int], guarantee: Floats, quota: Floats) -> None:
    """A queue is guaranteed what its children are, and a quota is never less than a guarantee."""
    below = np.zeros_like(guarantee)
    for place, parent in reversed(_by_depth(session, queues)):
        guarantee[:, place] = np.maximum(guarantee[:, place], below[:, place])
        quota[:, place] = np.maximum(quota[:, place], guarantee[:, place])
        if parent >= 0:
            below[:, parent] += guarantee[:, place]


def _below_guarantees(
    session: Session, queues: list[int], limit: Floats, guarantee: Floats, total: Floats
) -> tuple[Floats, Floats]:
    """Limits without what is guaranteed to others, and what each level may have together."""
    pairs = _by_depth(session, queues)
    promised = np.zeros((len(total), len(queues) + 1))  # by parent; the last column is the top's
    for place, parent in pairs:
        promised[:, parent] += guarantee[:, place]
    limit, bound = limit.copy(), np.zeros_like(limit)
    reach = np.zeros_like(promised)
    reach[:, -1] = total
    for place, parent in pairs:
        bound[:, place] = reach[:, parent]
        others = promised[:, parent] - guarantee[:, place]
        left = np.maximum(bound[:, place] - others, guarantee[:, place])
        limit[:, place] = np.where(others > 0, np.minimum(limit[:, place], left), limit[:, place])
        reach[:, place] = np.minimum(limit[:, place], bound[:, place])
    return limit, bound


__all__ = ["QueueTerms", "divided", "read_terms"]
