"""nodegroup: a queue's tasks run on the node groups that its affinity names, up to a limit for each group.

A node's group is its label volcano.sh/nodegroup-name. A queue's affinity and anti-affinity name groups as
required or preferred.
- filter: the group is required or preferred, and not required by anti-affinity; preferred by anti-affinity
  admits it again
- score: 100 if required + 50 if preferred; -1 if preferred by anti-affinity. With `enablePreferredOrder` the
  i-th of n preferred groups gives 50 * (n - i) / n, i from 0

A node without a group is open only to queues without affinity, and only if `strict` is off; a node with one
is closed to those. The queue's annotation volcano.sh/nodegroup-resource-limits, {group: {resource:
quantity}}, limits what the queue holds in a group; an invalid one closes all nodes to the queue. With
`enableHierarchy` a queue without affinity has that of its nearest ancestor.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ALLOCATED_LIKE, Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import Event
from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.objects.quantity import parse
from maniple.objects.volcano import NodeGroupTerms, QueueAffinity, VolcanoQueue
from maniple.plugins.settings import is_hierarchical, report

GROUP = "volcano.sh/nodegroup-name"
LIMITS = "volcano.sh/nodegroup-resource-limits"
ROOT = "root"

NO_GROUP = "node is in no node group"
NO_AFFINITY = "node is in a node group, and the queue names none"
OTHER_GROUP = "node group is not among those of the queue"
FULL = "queue has reached its limit in the node group"
UNREADABLE = f"queue's annotation {LIMITS} cannot be read"

_REQUIRED, _PREFERRED, _AGAINST = 100.0, 50.0, -1.0
_NOTHING = NodeGroupTerms()
Limits = Mapping[str, Mapping[int, int]]  # group -> dimension -> base units


@dataclass(frozen=True, slots=True)
class NodeGroupSettings:
    strict: bool = True
    preferred_order: bool = False

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "NodeGroupSettings":
        given = Arguments(values, NodeGroup.name)
        settings = cls(given.bool("strict", True), given.bool("enablePreferredOrder", False))
        report(session, given)
        return settings


@dataclass(frozen=True, slots=True, eq=False)
class _Policy:
    """The policy of a queue, by the number of the node's group; the last entry is for nodes without one."""

    verdicts: Verdicts
    scores: Scores
    limits: Limits
    held: Amounts  # resources x groups; of a queue with limits


class NodeGroup:
    name = "nodegroup"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = NodeGroupSettings.read(session, arguments)
        column = session.nodes.facts.label(GROUP)
        self._groups = column.values
        self._group_of = column.codes  # -1, hence the last entry, where the label is missing
        self._policies: list[_Policy] = []
        self._policy_of: dict[int, int] = {}
        self._refused = {
            text: session.reasons.number(text, Code.UNRESOLVABLE)
            for text in (NO_GROUP, NO_AFFINITY, OTHER_GROUP, FULL, UNREADABLE)
        }
        self._read_queues(is_hierarchical(session, self.name))
        self._mark_tasks()
        self._count_held()

    def filters(self) -> list[Filter]:
        # Not static: a queue may change while the nodes stay the same.
        return [
            Filter("NodeGroup", Dependence.NODE, self._check_group, self._applies),
            Filter("NodeGroupLimit", Dependence.CLUSTER, self._check_limit, self._has_limits),
        ]

    def scorers(self) -> list[Scorer]:
        return [Scorer("NodeGroup", 1.0, Dependence.STATIC, self._score, applies=self._applies)]

    def on_allocate(self, event: Event) -> None:
        self._follow(event, +1)

    def on_deallocate(self, event: Event) -> None:
        self._follow(event, -1)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _applies(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    def _has_limits(self, class_: TaskClass) -> bool:
        return self._applies(class_) and bool(self._policy(class_).limits)

    def _policy(self, class_: TaskClass) -> _Policy:
        return self._policies[class_.marks[self.name]]

    def _check_group(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = self._policy(class_).verdicts[self._group_of[cells.rows]]
        return np.broadcast_to(verdict, np.broadcast_shapes(verdict.shape, np.shape(cells.extra)))

    def _check_limit(self, class_: TaskClass, cells: Cells) -> Verdicts:
        policy = self._policy(class_)
        full = np.full(len(self._groups) + 1, FITS, dtype=np.int16)
        for number, group in enumerate(self._groups):
            for dimension, limit in policy.limits.get(group, {}).items():
                if policy.held[dimension, number] + class_.request[dimension] > limit:
                    full[number] = self._refused[FULL]
        return full[self._group_of[cells.rows]]

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        return self._policy(class_).scores[self._group_of[cells.rows]]

    # -- allocated by group ---------------------------------------------------------------------------------------

    def _count_held(self) -> None:
        session, tasks = self._session, self._session.tasks
        limited = [queue for queue, number in self._policy_of.items() if self._policies[number].limits]
        if not limited:
            return
        counted = ALLOCATED_LIKE[tasks.status] & (tasks.node >= 0) & (tasks.job >= 0)
        rows = np.flatnonzero(counted)
        rows = rows[np.isin(tasks.job[rows], session.jobs.rows)]
        queues = session.jobs.queue[tasks.job[rows]]
        for queue in limited:
            own = rows[queues == queue]
            held = self._policies[self._policy_of[queue]].held
            np.add.at(held.T, self._group_of[tasks.node[own]], session.requests(own).T)

    def _follow(self, event: Event, sign: int) -> None:
        if event.job < 0:
            return
        policy = self._policy_of.get(int(self._session.jobs.queue[event.job]))
        if policy is None or not self._policies[policy].limits:
            return
        held = self._policies[policy].held
        for node in event.nodes[event.nodes >= 0].tolist():
            held[:, self._group_of[node]] += sign * event.class_.request

    # -- policies of queues ---------------------------------------------------------------------------------------

    def _read_queues(self, hierarchical: bool) -> None:
        """A policy for each queue of the session's jobs; equal policies without limits are shared."""
        session = self._session
        shared: dict[tuple[QueueAffinity | None, bool], int] = {}
        for queue in np.unique(session.jobs.queue[session.jobs.rows]).tolist():
            affinity = self._affinity(queue, hierarchical)
            limits = self._limits(queue)
            number = shared.get((affinity, limits is None)) if not limits else None
            if number is None:
                number = len(self._policies)
                self._policies.append(self._make(affinity, limits))
                if not limits:
                    shared[affinity, limits is None] = number
            self._policy_of[queue] = number

    def _mark_tasks(self) -> None:
        session, tasks = self._session, self._session.tasks
        rows = np.flatnonzero((tasks.status == Status.PENDING) & (tasks.job >= 0))
        rows = rows[np.isin(tasks.job[rows], session.jobs.rows)]
        policy_of = np.full(len(session.queues), -1, dtype=np.int64)
        policy_of[list(self._policy_of)] = list(self._policy_of.values())
        session.refine(self.name, rows, policy_of[session.jobs.queue[tasks.job[rows]]])

    def _make(self, affinity: QueueAffinity | None, limits: Limits | None) -> _Policy:
        size = len(self._groups) + 1
        verdicts = np.full(size, self._refused[UNREADABLE], dtype=np.int16)
        scores = np.zeros(size)
        if limits is not None:
            stated = _Stated.of(affinity)
            open_ = not self._settings.strict and stated.empty
            verdicts[-1] = FITS if open_ else self._refused[NO_GROUP]
            for number, group in enumerate(self._groups):
                refusal = NO_AFFINITY if stated.empty else OTHER_GROUP
                verdicts[number] = FITS if stated.lets(group) else self._refused[refusal]
                scores[number] = stated.score(group, self._settings.preferred_order)
        held = np.zeros((len(self._session.total), size if limits else 0), dtype=np.int64)
        return _Policy(verdicts, scores, limits or {}, held)

    def _affinity(self, queue: int, hierarchical: bool) -> QueueAffinity | None:
        for row in self._lineage(queue) if hierarchical else (queue,):
            item = self._session.queues.stated(row, VolcanoQueue)
            if item is not None and item.spec.affinity is not None:
                return item.spec.affinity
        return None

    def _lineage(self, queue: int) -> Iterator[int]:
        """The queue and its ancestors, the nearest first, as far as they exist and form no cycle."""
        queues, seen = self._session.queues, set[int]()
        row: int | None = queue
        while row is not None and row not in seen and row in queues.facts:
            seen.add(row)
            yield row
            name = self._session.queue_name(row)
            row = queues.index_of(queues.facts[row].parent or ROOT) if name != ROOT else None

    def _limits(self, queue: int) -> Limits | None:
        """The queue's annotation; None if it cannot be parsed."""
        text = self._session.queues.objects[queue].metadata.annotations.get(LIMITS, "")
        if not text:
            return {}
        try:
            written = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float] | None] | None)
            return {group: self._amounts(amounts or {}) for group, amounts in (written or {}).items()}
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            where = f"{self.name}: queue {self._session.queue_name(queue)}: annotation {LIMITS}"
            self._session.report(f"{where}: {error}; no node is open to the queue")
            return None

    def _amounts(self, written: Mapping[str, str | int | float]) -> dict[int, int]:
        """By dimension, in base units; a resource that no pod and no node has cannot be used up."""
        resources = self._session.resources
        exact = {name: parse(amount) for name, amount in written.items()}
        known = {name: resources.known(name) for name in exact}
        return {d: resources.base_units(d, exact[name]) for name, d in known.items() if d is not None}


@dataclass(frozen=True, slots=True)
class _Stated:
    """The groups that an affinity names."""

    required: tuple[str, ...]
    preferred: tuple[str, ...]
    never: tuple[str, ...]
    rather_not: tuple[str, ...]

    @classmethod
    def of(cls, affinity: QueueAffinity | None) -> "_Stated":
        for_, against = _NOTHING, _NOTHING
        if affinity is not None:
            for_ = affinity.node_group_affinity or _NOTHING
            against = affinity.node_group_anti_affinity or _NOTHING
        return cls(
            for_.required_during_scheduling_ignored_during_execution,
            for_.preferred_during_scheduling_ignored_during_execution,
            against.required_during_scheduling_ignored_during_execution,
            against.preferred_during_scheduling_ignored_during_execution,
        )

    @property
    def empty(self) -> bool:
        return not (self.required or self.preferred or self.never or self.rather_not)

    def lets(self, group: str) -> bool:
        named = group in self.required or group in self.preferred
        return (named and group not in self.never) or group in self.rather_not

    def score(self, group: str, in_order: bool) -> float:
        if group in self.rather_not:
            return _AGAINST
        score = _REQUIRED if group in self.required else 0.0
        places = {name: place for place, name in enumerate(self.preferred)}
        if group in places:
            left = (len(places) - places[group]) / len(places) if in_order else 1.0
            score += _PREFERRED * left
        return score
