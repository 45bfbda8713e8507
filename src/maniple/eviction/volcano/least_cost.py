"""Topology-aware preemption: try nodes, and take the one with the lowest victim cost.

On each node the allowed victims leave one by one until the task fits; then, starting with the most important,
each victim that is not needed comes back. Of the nodes tried the best is the one with the lowest of the highest
victim priorities, then the smallest sum of priorities, then the fewest victims, then the latest start among the
most important ones, then the first by name. The limits say how many nodes are tried.

Each victim leaves once and comes back at most once, so a trial ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import seconds
from maniple.eviction.telling import PodSearch
from maniple.eviction.volcano.per_node import approved, roomy
from maniple.framework.criteria import Filter
from maniple.framework.points import TaskRows
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session
from maniple.framework.transactions.operations import Operation
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.victim_order import in_victim_order
from maniple.framework.wholes import units
from maniple.placement.engine import Placement

COUNTED = "the pod would fit; what the victims cost is compared with other nodes"
NO_HELP = "evicting does not help here, or is not needed"
_ABOVE_ANY_PRIORITY = 2**31
_Gone = tuple[TaskRows, list[Operation]]  # what left together on trial, and how


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    percentage: int
    least: int
    most: int

    def count(self, nodes: int) -> int:
        wanted = min(max(nodes * self.percentage // 100, self.least), self.most)
        return max(min(wanted, nodes), 0)


class Trial:
    """What has to hold, besides resources, while victims are away from a node on trial."""

    def __init__(self, session: Session, placement: Placement, queue: int, class_: TaskClass) -> None:
        self._session = session
        self._placement = placement
        self._queue = queue
        self._class = class_

    def fits(self, node: int) -> bool:
        return self._within_limits() and self._is_admitted(node)

    def fits_at_last(self, node: int) -> bool:
        """When all have left that could."""
        return self.fits(node)

    def _within_limits(self) -> bool:
        return self._session.hooks.allocatable(self._queue, self._class, 1) > 0

    def _is_admitted(self, node: int) -> bool:
        return int(self._placement.judging.verdicts(self._class, resources=False)[node]) == FITS


class LenientTrial(Trial):
    """As in the original: few filters run, a closed queue counts as open, and in the end its limits are ignored.

    A plugin is notified of evictions only with one of two switches on. With both off its filters judge the node
    as it was.
    """

    def __init__(self, session: Session, placement: Placement, queue: int, class_: TaskClass) -> None:
        super().__init__(session, placement, queue, class_)
        self._before = None if _is_told(session, "predicates") else self._judged(_counts_before)

    def fits_at_last(self, node: int) -> bool:
        return self._is_admitted(node)

    def _within_limits(self) -> bool:
        return self._session.hooks.simulated_allocatable(self._queue, self._class, 1) > 0

    def _is_admitted(self, node: int) -> bool:
        if self._before is None:
            return int(self._judged(_is_asked)[node]) == FITS
        now = self._judged(lambda one: _is_asked(one) and not one.prepared)
        return int(now[node]) == FITS and int(self._before[node]) == FITS

    def _judged(self, by: Callable[[Filter], bool]) -> Verdicts:
        return self._placement.judging.judged(self._class, by)


def _is_asked(one: Filter) -> bool:
    return one.asked_on_trial


def _counts_before(one: Filter) -> bool:
    return one.asked_on_trial and one.prepared


def _is_told(session: Session, plugin: str) -> bool:
    """Whether a plugin hears of tasks that leave and come back on trial."""
    switches = ("enablePreemptable", "enabledAllocatable")
    return any(
        option.enabled(switch)
        for option, _ in session.plugins
        if option.name == plugin
        for switch in switches
    )


@dataclass(frozen=True, slots=True, eq=False)
class CheapSearch:
    """What one action looks for."""

    candidates: TaskRows  # tasks that may be victims, anywhere
    approve: Callable[[int, TaskRows], TaskRows]
    trial: Trial
    reason: str
    limits: CandidateLimits


def make_room_cheaply(
    session: Session, transaction: Transaction, task: int, nodes: Sequence[int], search: CheapSearch
) -> bool:
    """Pipeline a task onto the node where that costs least."""
    class_ = session.classes[session.tasks.class_of[task]]
    where = session.tasks.node[search.candidates]
    found: list[tuple[tuple[Any, ...], int, TaskRows]] = []
    told = PodSearch(session, task)
    told.begin(search.candidates, search.approve, search.reason)
    for node in nodes:
        if len(found) >= search.limits.count(len(nodes)):
            break
        there = search.candidates[where == node]
        victims = approved(session, task, there, search.candidates, search.approve)
        needed = _needed(session, class_, node, in_victim_order(session, task, victims), search)
        if told:
            told.tried(
                node, needed if len(needed) else victims, fits=False, why=COUNTED if len(needed) else NO_HELP
            )
        if len(needed):
            found.append((_cost(session, needed), node, needed))
    if not found:
        return False
    _, node, victims = min(found, key=lambda one: (one[0], one[1]))
    if told:
        told.tried(node, victims, fits=True, why="these cost least")
    transaction.evict(victims, search.reason)
    transaction.pipeline(np.array([task]), np.array([node]))
    return True


def _needed(
    session: Session, class_: TaskClass, node: int, victims: TaskRows, search: CheapSearch
) -> TaskRows:
    """The victims that are needed, in the order in which they leave. Nothing is changed.

    Empty if evicting would not help or is not needed.
    """
    trial = Transaction(session)
    gone: list[_Gone] = []
    for unit in units(session, victims):
        if gone and roomy(session, class_, node) and search.trial.fits(node):
            break
        gone.append((unit, trial.evict(unit, search.reason)))
    fits = bool(gone) and roomy(session, class_, node) and search.trial.fits_at_last(node)
    needed = _reprieved(session, class_, node, trial, gone, search) if fits else []
    trial.discard()
    return np.concatenate([np.zeros(0, dtype=np.int64), *needed])


def _reprieved(
    session: Session, class_: TaskClass, node: int, trial: Transaction, gone: list[_Gone], search: CheapSearch
) -> list[TaskRows]:
    """Those that cannot come back. The last to leave are the most important, and are tried first."""
    needed = []
    for unit, operations in reversed(gone):
        for operation in reversed(operations):
            trial.retract(operation)
        if not (roomy(session, class_, node) and search.trial.fits(node)):
            trial.evict(unit, search.reason)
            needed.append(unit)
    return needed[::-1]


def _cost(session: Session, victims: TaskRows) -> tuple[Any, ...]:
    """The key by which victims are compared.

    With `cost_is_of_last_victim` the last to leave counts as the most important, whatever its priority.
    """
    pods = [session.cluster.tasks.pods[row] for row in victims.tolist()]
    priorities = [pod.spec.priority or 0 for pod in pods]
    highest = max(priorities)
    starts = [
        seconds(pod.status.start_time) if pod.status.start_time is not None else inf
        for pod, priority in zip(pods, priorities, strict=True)
        if priority == highest
    ]
    first = priorities[-1] if session.rules.victims.cost_is_of_last_victim else highest
    return (first, sum(priorities) + _ABOVE_ANY_PRIORITY * len(pods), len(pods), -min(starts))
