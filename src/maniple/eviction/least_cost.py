"""Topology-aware preemption: try nodes out, and take the one whose victims cost least.

On each node the allowed victims leave one by one until the task fits; then, from the most important on, each comes back that the task can do
without. Of the nodes tried the best is the one with the lowest of the highest victim priorities, then the smallest sum of priorities, then the fewest
victims, then the latest start among the most important ones, then the first by name. As many nodes are tried as the limits say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import seconds
from maniple.eviction.per_node import Search, roomy
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.framework.victim_order import in_victim_order

_ABOVE_ANY_PRIORITY = 2**31


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    percentage: int
    least: int
    most: int

    def count(self, nodes: int) -> int:
        wanted = min(max(nodes * self.percentage // 100, self.least), self.most)
        return max(min(wanted, nodes), 0)


def make_room_cheaply(
    session: Session,
    transaction: Transaction,
    task: int,
    nodes: Sequence[int],
    search: Search,
    limits: CandidateLimits,
) -> bool:
    """Pipeline a task onto the node where that costs least."""
    class_ = session.classes[session.tasks.class_of[task]]
    where = session.tasks.node[search.candidates]
    found: list[tuple[tuple[Any, ...], int, TaskRows]] = []
    for node in nodes:
        if len(found) >= limits.count(len(nodes)):
            break
        there = search.candidates[where == node]
        victims = search.approve(task, in_victim_order(session, task, there)) if len(there) else there
        needed = _needed(session, class_, node, in_victim_order(session, task, victims), search)
        if len(needed):
            found.append((_cost(session, needed), node, needed))
    if not found:
        return False
    _, node, victims = min(found, key=lambda one: (one[0], one[1]))
    transaction.evict(victims, search.reason)
    transaction.pipeline(np.array([task]), np.array([node]))
    return True


def _needed(session: Session, class_: TaskClass, node: int, victims: TaskRows, search: Search) -> TaskRows:
    """The victims that have to go; none when that would not help or nobody has to. Nothing is changed."""
    trial = Transaction(session)
    gone: list[int] = []
    for victim in victims.tolist():
        if gone and roomy(session, class_, node) and search.fits(class_, node):
            break
        trial.evict(np.array([victim]), search.reason)
        gone.append(victim)
    fits = bool(gone) and roomy(session, class_, node) and search.fits(class_, node)
    needed = _reprieved(session, class_, node, trial, gone, search) if fits else []
    trial.discard()
    return np.array(needed, dtype=np.int64)


def _reprieved(
    session: Session, class_: TaskClass, node: int, trial: Transaction, gone: list[int], search: Search
) -> list[int]:
    """Those that cannot come back. The last to leave are the most important, and are asked first."""
    needed = []
    for operation, victim in reversed(list(zip(trial.operations, gone, strict=True))):
        trial.retract(operation)
        if not (roomy(session, class_, node) and search.fits(class_, node)):
            trial.evict(np.array([victim]), search.reason)
            needed.append(victim)
    return needed[::-1]


def _cost(session: Session, victims: TaskRows) -> tuple[Any, ...]:
    priority = session.tasks.priority[victims]
    highest = int(priority.max())
    pods = session.cluster.tasks.pods
    starts = [seconds(pods[row].status.start_time) for row in victims[priority == highest].tolist()]
    return (highest, int((priority + _ABOVE_ANY_PRIORITY).sum()), len(victims), -min(starts))
