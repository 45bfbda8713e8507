"""The columns of nodes, tasks, jobs and queues, in rows that stay put.

These are the mutable tables that a `Cluster` keeps up to date. They hold facts and sums, no policy. `-1` in a
column of rows means "none".
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.facts import AT, JobFacts, QueueFacts, TaskFacts, as_one, job_key, seconds
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import NO_TASK, STATUSES
from maniple.cluster.table import Table
from maniple.objects.core import Node, Pod
from maniple.objects.meta import Object
from maniple.objects.switches import is_suspended

Rows32 = NDArray[np.int32]
Kind = TypeVar("Kind", bound=Object)


class NodeTable(Table):
    """One row per node, also for a node that so far is only named by pods (`defined` is then false)."""

    COLUMNS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "defined": (np.bool_, False),
        "pods": (np.int32, 0),
        "nonzero_cpu": (np.int64, 0),
        "nonzero_memory": (np.int64, 0),
    }
    MATRICES = ("allocatable", "used", "releasing", "pipelined")

    defined: NDArray[np.bool_]
    pods: NDArray[np.int32]  # pods that are on the node and not finished
    nonzero_cpu: Amounts
    nonzero_memory: Amounts
    allocatable: Amounts
    used: Amounts
    releasing: Amounts
    pipelined: Amounts

    def __init__(self, height: int) -> None:
        super().__init__(height)
        self.objects: dict[int, Node] = {}


class TaskTable(Table):
    """One row per pod that is in a job or on a node."""

    COLUMNS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "status": (np.int8, NO_TASK),
        "node": (np.int32, -1),
        "job": (np.int32, -1),
        "spec": (np.int32, -1),
        "class_of": (np.int32, -1),
        "role": (np.int32, -1),
        "priority": (np.int64, 0),
        "index": (np.int64, -1),
        "created": (np.float64, 0.0),
        "preemptable": (np.bool_, False),
        "critical": (np.bool_, False),
        "gated": (np.bool_, False),
        "admissible": (np.bool_, False),
        "best_effort": (np.bool_, False),
    }

    status: NDArray[np.int8]
    node: Rows32
    job: Rows32
    spec: Rows32
    class_of: Rows32
    role: Rows32
    priority: Amounts
    index: Amounts
    created: NDArray[np.float64]
    preemptable: NDArray[np.bool_]
    critical: NDArray[np.bool_]  # keeps the cluster itself running
    gated: NDArray[np.bool_]
    admissible: NDArray[np.bool_]
    best_effort: NDArray[np.bool_]

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[int, Pod] = {}
        self.nominated: dict[int, str] = {}
        self.gpu_groups: dict[int, tuple[str, ...]] = {}
        self.labels: dict[int, Mapping[str, str]] = {}  # of those with a label that the dialect orders by
        self.roles: list[str] = []
        self._role_numbers: dict[str, int] = {}

    def set_facts(self, row: int, facts: TaskFacts, order_labels: frozenset[str]) -> None:
        """What is read from the pod of a row; `order_labels`: those that tasks are ordered by."""
        pod = self.pods[row]
        self.role[row] = self.role_number(facts.role)
        self.priority[row] = facts.priority
        self.index[row] = facts.index
        self.preemptable[row] = facts.preemptable
        self.critical[row] = pod.is_critical
        self.gated[row] = facts.gated
        self.admissible[row] = facts.admissible
        if facts.nominated:
            self.nominated[row] = facts.nominated
        if facts.gpu_groups:
            self.gpu_groups[row] = facts.gpu_groups
        labels = pod.metadata.labels
        if labels and not order_labels.isdisjoint(labels):
            self.labels[row] = labels

    def clear(self, row: int) -> None:
        """The pod of a row is gone."""
        del self.pods[row]
        for kept in (self.nominated, self.gpu_groups, self.labels):
            kept.pop(row, None)

    def role_number(self, role: str) -> int:
        """Roles are numbered over the whole cluster; a task without one has -1."""
        if not role:
            return -1
        number = self._role_numbers.get(role)
        if number is None:
            number = self._role_numbers[role] = len(self.roles)
            self.roles.append(role)
        return number

    def known_role(self, role: str) -> int | None:
        return self._role_numbers.get(role)

    def forget_roles(self) -> None:
        """Number those anew that a task has, in the same order."""
        used = np.unique(self.role[self.role >= 0])
        self.roles = [self.roles[number] for number in used.tolist()]
        self._role_numbers = {role: number for number, role in enumerate(self.roles)}
        self.role = np.where(self.role >= 0, np.searchsorted(used, self.role), -1).astype(np.int32)


class JobTable(Table):
    """One row per job, also for one whose pod group has not been seen yet (`defined` is then false)."""

    COLUMNS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "defined": (np.bool_, False),
        "queue": (np.int32, -1),
        "minimum": (np.int32, 0),
        "created": (np.float64, 0.0),
        "priority": (np.int64, 0),
        "pending_best_effort": (np.int32, 0),
        "admitted": (np.bool_, False),
        "preemptible": (np.int8, -1),
        "evicted_whole": (np.bool_, False),
        "edition": (np.int64, 0),
        "moved": (np.int64, 0),
    }
    MATRICES = ("allocated", "pending", "total")

    defined: NDArray[np.bool_]
    queue: Rows32
    minimum: Rows32
    created: NDArray[np.float64]
    priority: Amounts
    pending_best_effort: Rows32  # waiting, not gated, asking for nothing
    admitted: NDArray[np.bool_]  # by its pod group
    preemptible: NDArray[np.int8]  # as its group says; -1 if it does not
    evicted_whole: NDArray[np.bool_]  # or not at all
    edition: Amounts  # of the pod group; each one that arrives, new or changed, has a number of its own
    moved: Amounts  # of the last change of the pod group or of a task; each has a number of its own
    allocated: Amounts
    pending: Amounts
    total: Amounts

    def __init__(self, height: int) -> None:
        super().__init__(height)
        self.objects: dict[int, Object] = {}
        self.facts: dict[int, JobFacts] = {}
        self.refusals: dict[int, str] = {}  # of groups that are too large: why
        self.shaped: set[int] = set()  # jobs with a topology or with sub-groups
        self.parted: set[int] = set()  # with groups, sub-groups or roles
        self.stale: set[int] = set()  # whose gang is known to be broken
        self.unnamed: set[int] = set()  # whose group names no queue
        self.suspended: set[int] = set()  # whose group says so (`objects/switches.py`)
        self.counts: Amounts = np.zeros((STATUSES, self._capacity), dtype=np.int64)
        self._named: Counter[str] = Counter()  # how many systems have a job of a name
        self._systems: set[str] = set()
        self.doubled: set[str] = set()  # names that several systems have a job of

    def define(self, row: int, item: Object, facts: JobFacts) -> None:
        """What is read from the pod group of a row."""
        self.defined[row] = True
        self.objects[row], self.facts[row] = item, facts
        self.admitted[row] = facts.admitted
        self.preemptible[row] = -1 if facts.preemptible is None else facts.preemptible
        self.evicted_whole[row] = facts.evicted_whole
        self.minimum[row] = facts.minimum
        self.created[row] = seconds(item.metadata.creation_timestamp)
        for rows, belongs in (
            (self.shaped, facts.shaped),
            (self.parted, facts.parted),
            (self.stale, facts.stale),
            (self.suspended, is_suspended(item)),
            (self.unnamed, not facts.names_queue),
        ):
            if belongs:
                rows.add(row)

    def clear(self, row: int) -> None:
        """The pod group of a row is gone."""
        self.defined[row] = False
        self.queue[row] = -1
        self.minimum[row] = self.created[row] = self.priority[row] = 0
        self.admitted[row], self.preemptible[row], self.evicted_whole[row] = False, -1, False
        del self.objects[row], self.facts[row]
        self.refusals.pop(row, None)
        for rows in (self.shaped, self.parted, self.stale, self.suspended, self.unnamed):
            rows.discard(row)

    def name(self, row: int) -> str:
        return job_name(self.keys[row], self.doubled)

    def rows_named(self, name: str) -> list[int]:
        """The rows of a name, as `name` gives it, or of a group's key, which several systems may have."""
        keys = (name, *(job_key(name, system) for system in self._systems))
        return [row for key in keys if (row := self.index_of(key)) is not None]

    def owned_by(self, name: str) -> list[int]:
        """The rows of groups in memory whose owner has this name, as namespace/name: `ml/job:train` is ml/train's."""
        namespace, _, own = name.partition("/")
        return [
            row
            for row, item in self.objects.items()
            if (item.metadata.namespace or "default") == namespace
            and item.metadata.name.partition(":")[2] == own
        ]

    def hold(self, key: str) -> int:
        name, at, system = key.partition(AT)
        if at:
            self._systems.add(system)
        if at and self.index_of(key) is None:
            self._named[name] += 1
            if self._named[name] > 1:
                self.doubled.add(name)
        return super().hold(key)

    def _grow(self) -> None:
        self.counts = np.concatenate([self.counts, np.zeros((STATUSES, self._capacity), np.int64)], axis=1)
        super()._grow()

    def release(self, row: int) -> bool:
        name, at, _ = self.keys[row].partition(AT)
        gone = super().release(row)
        if gone:
            self.counts[:, row] = 0
        if gone and at:
            self._named[name] -= 1
            self.doubled.discard(name)  # of two systems
            if not self._named[name]:
                del self._named[name]
        return gone


def job_name(key: str, doubled: Collection[str]) -> str:
    """The name of a job's group; with the system that it is of only if the other has a group of that name, too."""
    name, at, _ = key.partition(AT)
    return key if at and name in doubled else name


class QueueTable(Table):
    """One row per queue, also for one that is only named by a job or a child.

    Objects of several systems with the same name are one queue: `said` has all of them, `objects` the first
    by its kind.
    """

    COLUMNS: ClassVar[dict[str, tuple[Any, Any]]] = {
        "defined": (np.bool_, False),
        "created": (np.float64, 0.0),
    }

    defined: NDArray[np.bool_]
    created: NDArray[np.float64]

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[int, Object] = {}
        self.said: dict[int, dict[type[Object], tuple[Object, QueueFacts]]] = {}
        self.facts: dict[int, QueueFacts] = {}

    def stated(self, row: int, kind: type[Kind]) -> Kind | None:
        """What the system of that kind says of a queue, if it does."""
        found = self.said[row].get(kind)
        return found[0] if found is not None else None  # type: ignore[return-value]  # keyed by their own type

    def all_of(self, row: int) -> list[Object]:
        """All objects that define a queue."""
        return [item for item, _ in self.said[row].values()]

    def way_up(self, row: int) -> list[int]:
        """A queue, its parent and so on, as far as they are there; a circle ends where it closes."""
        rows = [row]
        while rows[-1] in self.facts and (parent := self.index_of(self.facts[rows[-1]].parent)) is not None:
            if parent in rows:
                break
            rows.append(parent)
        return rows

    def define(self, item: Object, facts: QueueFacts) -> None:
        """A queue, or what another system says of it, has come or has changed."""
        row = self.index_of(item.metadata.name)
        if row is None or not self.defined[row]:
            row = self.hold(item.metadata.name)
        self.defined[row] = True
        self._say(row, type(item), item, facts)

    def drop(self, item: Object) -> None:
        """One system's object is gone."""
        row = self.index_of(item.metadata.name)
        if row is None or not self.defined[row] or type(item) not in self.said[row]:
            return
        self._say(row, type(item), None, None)
        if row not in self.said:
            self.defined[row] = False
            self.release(row)

    def _say(self, row: int, kind: type[Object], item: Object | None, facts: QueueFacts | None) -> None:
        """One system's object has come, has changed or (None) is gone. Whatever came first, the outcome is the same."""
        said = self.said.setdefault(row, {})
        said.pop(kind, None)
        if item is not None and facts is not None:
            said[kind] = (item, facts)
        ordered = self.said[row] = dict(sorted(said.items(), key=lambda one: one[0].api_group))
        if not ordered:
            del self.said[row], self.objects[row], self.facts[row]
            self.created[row] = 0
            return
        found = [*ordered.values()]
        self.objects[row] = found[0][0]
        self.facts[row] = found[0][1] if len(found) == 1 else as_one([facts for _, facts in found])
        self.created[row] = min(seconds(one.metadata.creation_timestamp) for one, _ in found)
