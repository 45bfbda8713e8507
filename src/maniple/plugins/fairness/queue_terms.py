"""The amounts in a queue's object: deserved, guarantee and capability, in the session's dimensions.

Read by the plugins that divide the cluster among queues. A list is read once and kept until the queue
changes, since most queues are the same from session to session.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import PODS, Amounts
from maniple.framework.session import Session
from maniple.objects.volcano import VolcanoQueue, VolcanoQueueSpec
from maniple.plugins.fairness.amounts import stated
from maniple.plugins.fairness.water_filling import Vectors

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class QueueTerms:
    """Vectors over resources; each mask says which of them the list beside it names."""

    deserved: Amounts
    deserves: Mask
    guarantee: Amounts
    guarantees: Mask
    capability: Vectors  # infinite if unset, and for CPU and memory that are not positive
    limits: Mask  # where it is finite


class _Read:
    """Terms by queue row, with the object that they were read from."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.terms: dict[int, tuple[Any, QueueTerms]] = {}


def queue_spec(session: Session, queue: int) -> VolcanoQueueSpec:
    found = session.queues.stated(queue, VolcanoQueue)
    return found.spec if found is not None else VolcanoQueueSpec()


def terms_of(session: Session, queue: int) -> QueueTerms:
    height, memory = len(session.total), session.nodes.facts.memory
    known = memory.get(_Read)
    if not isinstance(known, _Read) or known.height != height:
        known = memory[_Read] = _Read(height)
    found = session.queues.stated(queue, VolcanoQueue)
    written, terms = known.terms.get(queue, (None, None))
    if terms is None or written is not found:
        terms = _read(session, queue_spec(session, queue))
        known.terms[queue] = (found, terms)
    return terms


def _read(session: Session, spec: VolcanoQueueSpec) -> QueueTerms:
    deserved, deserves, _ = stated(session, spec.deserved)
    guarantee, guarantees, _ = stated(session, spec.guarantee.resource)
    capability, limits, _ = stated(session, spec.capability)
    limits[:PODS] &= capability[:PODS] > 0
    return QueueTerms(
        deserved=deserved,
        deserves=deserves,
        guarantee=guarantee,
        guarantees=guarantees,
        capability=np.where(limits, capability.astype(np.float64), math.inf),
        limits=limits,
    )
