"""A snapshot: the cluster as one session may see and change it.

Columns that actions change are copies; the rest is shared with the cluster, which must not be edited while a session is
open. Nodes stand in the order of their names (see `nodes.py`), tasks, jobs and queues in the cluster's own rows.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.cluster import Cluster
from maniple.cluster.domains import DomainTree
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.resources import PODS, Amounts, ResourceSpace
from maniple.cluster.statuses import ALLOCATED_LIKE, READY

_READY = np.flatnonzero(READY)


class Book(IntEnum):
    """The parts of a node's books that have a row for each dimension, in their order; compiled code has it too.

    Two more rows follow: CPU and memory as requested, with kube-scheduler's defaults for containers without requests.
    """

    RELEASING = 0
    PIPELINED = 1
    USED = 2
    REQUESTED = 3


@dataclass(slots=True, eq=False)
class NodeState:
    """Accounting per node, resource by resource (R x N), nodes by name.

    What operations change is kept in one matrix, `books`, so that it is changed in one step; `releasing` to
    `nonzero_memory` are parts of it. kube-scheduler's filters and scores read amounts of their own: with what
    is pipelined, without what this session evicted.
    """

    facts: NodeFacts
    allocatable: Amounts
    books: Amounts
    releasing: Amounts
    pipelined: Amounts
    used: Amounts
    requested: Amounts
    pods: Amounts
    nonzero_cpu: Amounts
    nonzero_memory: Amounts

    def __len__(self) -> int:
        return len(self.facts)

    def row(self, book: Book, dimension: int) -> int:
        """The row of `books` that a part has for a dimension."""
        return book * len(self.allocatable) + dimension

    def idle(self) -> Amounts:
        return self.allocatable - self.used

    def future_idle(self, rows: NDArray[np.intp] | slice = slice(None)) -> Amounts:
        """What will be idle once everything under way is released, and what waits for it has come."""
        idle: Amounts = self.allocatable[:, rows] - self.used[:, rows]
        return idle + self.releasing[:, rows] - self.pipelined[:, rows]


@dataclass(slots=True, eq=False)
class TaskState:
    """Tasks in the cluster's rows; `status` and `node` change during a session."""

    status: NDArray[np.int8]
    node: NDArray[np.int32]
    job: NDArray[np.int32]
    class_of: NDArray[np.int32]
    role: NDArray[np.int32]
    priority: Amounts
    index: Amounts
    created: NDArray[np.float64]
    rank: Amounts  # place in the order of unique ids
    preemptable: NDArray[np.bool_]
    critical: NDArray[np.bool_]
    gated: NDArray[np.bool_]
    admissible: NDArray[np.bool_]
    best_effort: NDArray[np.bool_]
    virtual: NDArray[np.bool_]  # evicted by a transaction that is not committed

    def __len__(self) -> int:
        return len(self.status)


@dataclass(slots=True, eq=False)
class JobState:
    """Jobs in the cluster's rows; sums and counts change during a session."""

    rows: NDArray[np.int64]  # jobs of the session: pod group and queue exist
    queue: NDArray[np.int32]
    minimum: NDArray[np.int32]
    created: NDArray[np.float64]
    priority: Amounts
    counts: Amounts  # statuses x jobs
    ready: Amounts  # tasks that count towards the minimum
    pending_best_effort: NDArray[np.int32]
    allocated: Amounts
    pending: Amounts
    total: Amounts
    version: Amounts  # moves on whenever a task of the job changes its status
    elsewhere: Amounts | None = (
        None  # what `allocated` leaves out: tasks on nodes that are not part of the session
    )


@dataclass(slots=True, eq=False)
class Snapshot:
    cluster: Cluster
    resources: ResourceSpace
    nodes: NodeState
    tasks: TaskState
    jobs: JobState
    classes: list[TaskClass]
    domains: DomainTree


def take(cluster: Cluster) -> Snapshot:
    """Open the cluster for one session."""
    cluster.settle()
    nodes = _nodes(cluster)
    return Snapshot(
        cluster=cluster,
        resources=cluster.resources,
        nodes=nodes,
        tasks=_tasks(cluster, nodes.facts),
        jobs=_jobs(cluster),
        classes=cluster.classes.classes,
        domains=cluster.domains.tree(nodes.facts),
    )


def leave_out_pods_elsewhere(snapshot: Snapshot) -> None:
    """Let jobs hold nothing on nodes that do not exist or are not this scheduler's."""
    tasks, jobs = snapshot.tasks, snapshot.jobs
    rows = np.flatnonzero(
        (tasks.node < 0) & (tasks.job >= 0) & (tasks.status >= 0) & ALLOCATED_LIKE[tasks.status]
    )
    if not len(rows):
        return
    numbers, place = np.unique(tasks.class_of[rows], return_inverse=True)
    requests = np.array([snapshot.classes[number].request for number in numbers.tolist()])[place]
    jobs.elsewhere = np.zeros_like(jobs.allocated)
    np.add.at(jobs.elsewhere.T, tasks.job[rows], requests)
    jobs.allocated -= jobs.elsewhere


def missing_nodes(snapshot: Snapshot) -> list[str]:
    """Nodes that pods are on and that do not exist, in the order of their names."""
    cluster, tasks = snapshot.cluster, snapshot.tasks
    named = cluster.tasks.node[: len(tasks)]
    away = (tasks.node < 0) & (named >= 0) & (tasks.status >= 0) & ALLOCATED_LIKE[tasks.status]
    names = {cluster.nodes.keys[row] for row in set(named[away].tolist())}
    return sorted(names - cluster.nodes_of_others)


def _nodes(cluster: Cluster) -> NodeState:
    table, facts = cluster.nodes, cluster.node_facts()
    nonzero = table.nonzero_cpu[None], table.nonzero_memory[None]
    # `take` leaves one contiguous vector per resource; indexing would lay them out node by node.
    books = np.concatenate([table.releasing, table.pipelined, table.used, table.used, *nonzero]).take(
        facts.rows, axis=1
    )
    height = len(table.used)
    releasing, pipelined, used, requested = books[: 4 * height].reshape(4, height, -1)
    return NodeState(
        facts=facts,
        allocatable=table.allocatable.take(facts.rows, axis=1),
        books=books,
        releasing=releasing,
        pipelined=pipelined,
        used=used,
        requested=requested,
        pods=requested[PODS],
        nonzero_cpu=books[-2],
        nonzero_memory=books[-1],
    )


def _tasks(cluster: Cluster, facts: NodeFacts) -> TaskState:
    table = cluster.tasks
    size = len(table)
    by_row = np.full(len(cluster.nodes) + 1, -1, dtype=np.int32)
    by_row[facts.rows] = np.arange(len(facts), dtype=np.int32)
    return TaskState(
        status=table.status[:size].copy(),
        node=by_row[table.node[:size]],  # row -1 reads the last entry, which is -1
        job=table.job[:size],
        class_of=table.class_of[:size],
        role=table.role[:size],
        priority=table.priority[:size],
        index=table.index[:size],
        created=table.created[:size],
        rank=cluster.ranks.places,
        preemptable=table.preemptable[:size],
        critical=table.critical[:size],
        gated=table.gated[:size],
        admissible=table.admissible[:size],
        best_effort=table.best_effort[:size],
        virtual=np.zeros(size, dtype=np.bool_),
    )


def _jobs(cluster: Cluster) -> JobState:
    table = cluster.jobs
    size = len(table)
    queue = table.queue[:size]
    served = table.defined[:size] & cluster.queues.defined[queue] & (queue >= 0)
    return JobState(
        rows=np.flatnonzero(served),
        queue=queue,
        minimum=table.minimum[:size],
        created=table.created[:size],
        priority=table.priority[:size],
        counts=table.counts[:, :size].copy(),
        ready=table.counts[_READY, :size].sum(axis=0),
        pending_best_effort=table.pending_best_effort[:size].copy(),
        allocated=table.allocated[:, :size].copy(),
        pending=table.pending[:, :size].copy(),
        total=table.total[:, :size],
        version=np.zeros(size, dtype=np.int64),
    )
