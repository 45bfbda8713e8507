"""The accounts of capacity: deserved amounts and ceilings, of sibling queues or in a tree.

Called by capacity when a session opens. Without a tree: ceiling as in `ceilings.py`; deserved =
max(min(stated, ceiling), guarantee). Only queues with a job take part. In a tree, from the root down:
deserved = max(stated, guarantee); an unset capability is the parent's; ceiling = min(max(parent's ceiling -
guarantees of all its children, 0) + own guarantee, capability). The root has no ceiling unless it states a
capability, and deserves and guarantees what its children do together. Amounts of a queue count for all its
ancestors.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import PODS, Amounts
from maniple.framework.session import Session
from maniple.plugins.fairness.amounts import TOLERANCE
from maniple.plugins.fairness.capacity_account import CapacityAccount
from maniple.plugins.fairness.ceilings import ceilings
from maniple.plugins.fairness.queue_amounts import QueueSums
from maniple.plugins.fairness.queue_lineage import ASSUMED_ROOT, ROOT, Lineage
from maniple.plugins.fairness.queue_terms import QueueTerms, terms_of
from maniple.plugins.fairness.water_filling import Vectors

Accounts = dict[int, CapacityAccount]


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Resources x queues."""

    deserved: Vectors
    counts: NDArray[np.bool_]
    guarantee: Amounts
    ceiling: Vectors
    allocated: Amounts
    kept: Amounts
    elastic: Amounts


def side_by_side(session: Session, sums: QueueSums) -> Accounts:
    queues: list[int] = sums.queues.tolist()
    limits = ceilings(session, sums.queues)
    terms = [terms_of(session, queue) for queue in queues]
    stated, named = _stated(terms, len(session.total))
    deserved = np.maximum(np.minimum(stated, limits.limit), limits.guarantee)
    columns = _Columns(
        deserved=deserved,
        counts=_counts(deserved, named),
        guarantee=limits.guarantee,
        ceiling=limits.ceiling,
        allocated=sums.allocated,
        kept=sums.kept,
        elastic=sums.elastic,
    )
    return _accounts(session, queues, columns, {})


def in_a_tree(session: Session, sums: QueueSums, lineage: Lineage) -> Accounts:
    placed = sorted(lineage.above, key=lambda row: len(lineage.above[row]))  # each after its parent
    queues = [*placed, *sorted(lineage.problems)]
    place_of = {queue: place for place, queue in enumerate(queues)}
    parent = [place_of[lineage.above[queue][0]] if lineage.above[queue] else -1 for queue in placed]
    terms = [_terms(session, queue) for queue in queues]
    stated, named = _stated(terms, len(session.total))
    guarantee = np.stack([one.guarantee for one in terms], axis=1)
    deserved = np.maximum(stated, guarantee)
    ceiling = _descend(session, terms, parent, deserved, named, guarantee)
    have = _ascend(sums, [place_of[queue] for queue in sums.queues.tolist()], parent, len(queues))
    columns = _Columns(deserved, _counts(deserved, named), guarantee, ceiling, *have)
    return _accounts(session, queues, columns, lineage.above)


# -- from the root down -------------------------------------------------------------------------------------------


def _descend(
    session: Session,
    terms: list[QueueTerms],
    parent: list[int],
    deserved: Vectors,
    named: NDArray[np.bool_],
    guarantee: Amounts,
) -> Vectors:
    """The ceilings; the root's deserved amount and guarantee are written into its columns on the way."""
    ceiling, capability = np.zeros_like(deserved), np.full_like(deserved, math.inf)
    capability[:, 0], ceiling[:, 0] = _root_limits(session, terms[0])
    below: dict[int, list[int]] = {}
    for place, above in enumerate(parent[1:], start=1):
        below.setdefault(above, []).append(place)
    for above, children in sorted(below.items()):  # parents before their children
        own = np.stack([terms[child].capability for child in children], axis=1)
        limited = np.stack([terms[child].limits for child in children], axis=1)
        capability[:, children] = np.where(limited, own, capability[:, above, None])
        promised = guarantee[:, children].sum(axis=1)
        free = np.maximum(ceiling[:, above] - promised, 0.0)[:, None]
        ceiling[:, children] = np.minimum(free + guarantee[:, children], capability[:, children])
        if above == 0:
            guarantee[:, 0] = promised
            deserved[:, 0] = deserved[:, children].sum(axis=1)
            named[:, 0] = named[:, children].any(axis=1)
    return ceiling


def _root_limits(session: Session, terms: QueueTerms) -> tuple[Vectors, Vectors]:
    """The root's capability for its children, and its ceiling: it is not limited to today's capacity.

    The root has 0 of a resource that no node lists. With `queues.unnamed_limits_are_zero` a root with any
    limit has 0 of what it does not name.
    """
    offered = _offered(session)
    unlimited = np.full(len(session.total), math.inf)
    limited = terms.limits & (terms.capability > 0)
    if not np.delete(limited, PODS).any():
        return unlimited, np.where(offered, unlimited, 0.0)
    if not session.rules.queues.unnamed_limits_are_zero:
        return terms.capability, np.where(offered | terms.limits, terms.capability, 0.0)
    passed_on = terms.capability.copy()
    passed_on[:PODS][~terms.limits[:PODS]] = 0.0
    return passed_on, np.where(terms.limits, terms.capability, 0.0)


def _offered(session: Session) -> NDArray[np.bool_]:
    """By resource: whether any node lists it."""
    offered = session.total > 0
    offered[:PODS] = True
    nodes, names = session.nodes.facts.objects, session.resources.names
    for dimension in np.flatnonzero(~offered).tolist():
        offered[dimension] = any(names[dimension] in one.status.allocatable for one in nodes)
    return offered


# -- from the leaves up -------------------------------------------------------------------------------------------


def _ascend(
    sums: QueueSums, places: list[int], parent: list[int], queues: int
) -> tuple[Amounts, Amounts, Amounts]:
    """Allocated, kept and elastic amounts, each queue's with those of all queues below it."""
    stacked = np.concatenate([sums.allocated, sums.kept, sums.elastic])
    totals = np.zeros((len(stacked), queues), dtype=np.int64)
    totals[:, places] = stacked
    for place in range(len(parent) - 1, 0, -1):
        totals[:, parent[place]] += totals[:, place]
    allocated, kept, elastic = np.split(totals, 3)
    return allocated, kept, elastic


# -- accounts -----------------------------------------------------------------------------------------------------


def _accounts(
    session: Session, queues: list[int], columns: _Columns, above: Mapping[int, tuple[int, ...]]
) -> Accounts:
    """Ancestors come before their descendants."""
    lists = {column.name: getattr(columns, column.name).T.tolist() for column in fields(columns)}
    accounts: Accounts = {}
    for place, queue in enumerate(queues):
        own = {name: values[place] for name, values in lists.items()}
        ancestors = tuple([accounts[row] for row in above.get(queue, ())])
        accounts[queue] = CapacityAccount(**own, **_identity(session, queue), above=ancestors)
        accounts[queue].measure()
    return accounts


def _identity(session: Session, queue: int) -> dict[str, Any]:
    if queue == ASSUMED_ROOT:
        return {"name": ROOT, "open": True, "priority": 0, "tie": (0.0, "", ROOT)}
    facts, meta = session.queues.facts[queue], session.queues.objects[queue].metadata
    return {
        "name": session.queue_name(queue),
        "open": facts.open,
        "priority": facts.priority,
        "tie": (float(session.queues.created[queue]), meta.uid, meta.name),
    }


def _terms(session: Session, queue: int) -> QueueTerms:
    if queue != ASSUMED_ROOT:
        return terms_of(session, queue)
    nothing, none = np.zeros_like(session.total), np.zeros(len(session.total), dtype=np.bool_)
    return QueueTerms(nothing, none, nothing, none, np.full(len(session.total), math.inf), none)


def _stated(terms: Sequence[QueueTerms], height: int) -> tuple[Vectors, NDArray[np.bool_]]:
    """The deserved amounts that queues state, and the resources that they name there or as a guarantee."""
    stated, named = np.zeros((height, len(terms))), np.zeros((height, len(terms)), dtype=np.bool_)
    for place, one in enumerate(terms):
        stated[:, place] = one.deserved
        named[:, place] = one.deserves | one.guarantees
    return stated, named


def _counts(deserved: Vectors, named: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where exceeding the deserved amount makes a victim: CPU and memory if any is deserved, others if named."""
    counts = named.copy()
    counts[:PODS] = deserved[:PODS] >= TOLERANCE
    return counts
