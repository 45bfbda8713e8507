"""Checks that the model matches its objects; tests run them after every step, debug mode after every cycle.

`validate` recomputes every sum from the tasks, one by one, and reports where a column differs. `overfull`
reports nodes that were given more than they have. Both only read. `Opened` is a session or a snapshot.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import Spec, TaskClass
from maniple.cluster.cluster import Cluster
from maniple.cluster.resources import Amounts
from maniple.cluster.snapshot import JobState, NodeState, TaskState
from maniple.cluster.statuses import ALLOCATED_LIKE, NO_TASK, ON_NODE, READY, STATUSES, WAITING, Status
from maniple.cluster.table import Table

Mask = NDArray[np.bool_]
Where = NDArray[np.integer[Any]]
_PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)


class Opened(Protocol):
    """What a snapshot and a session have in common."""

    cluster: Cluster
    nodes: NodeState
    tasks: TaskState
    jobs: JobState
    classes: list[TaskClass]


# -- sums --------------------------------------------------------------------------------------------------------------


def validate(model: Cluster | Opened) -> list[str]:
    """Every way in which columns and tasks disagree; empty when all is well."""
    if isinstance(model, Cluster):
        model.settle()
        return [*_table_problems(model), *_reference_problems(model)]
    return [*_node_problems(model), *_job_problems(model), *_place_problems(model)]


class _Tasks:
    """Live tasks with what each of them asks for, and sums of it by node or by job."""

    def __init__(
        self,
        status: NDArray[np.int8],
        kind_of: NDArray[np.int32],
        kinds: Sequence[tuple[Amounts, Spec]],
        height: int,
    ) -> None:
        self.rows = np.flatnonzero(status != NO_TASK)
        self.status = status[self.rows]
        self._height = height
        requests = np.zeros((height, len(self.rows)), dtype=np.int64)
        self._nonzero = np.zeros((2, len(self.rows)), dtype=np.int64)
        for place, kind in enumerate(kind_of[self.rows].tolist()):
            request, spec = kinds[kind]
            requests[: len(request), place] = request
            self._nonzero[:, place] = spec.nonzero_cpu, spec.nonzero_memory
        self.requests = requests

    def sums(self, where: Where, mask: Mask, width: int) -> Amounts:
        return _added(self.requests, where, mask, width)

    def nonzero(self, where: Where, mask: Mask, width: int) -> Amounts:
        return _added(self._nonzero, where, mask, width)


def _added(amounts: Amounts, where: Where, mask: Mask, width: int) -> Amounts:
    total = np.zeros((len(amounts), width), dtype=np.int64)
    chosen = mask & (where >= 0)
    for summed, column in zip(total, amounts, strict=True):
        np.add.at(summed, where[chosen], column[chosen])
    return total


def _counted(where: Where, mask: Mask, width: int) -> Amounts:
    return np.bincount(where[mask & (where >= 0)], minlength=width).astype(np.int64)


def _differences(
    kind: str, column: str, names: Sequence[str], parts: Sequence[str], stored: Amounts, expected: Amounts
) -> Iterator[str]:
    """Where a column is not the sum over tasks, or below zero. `parts` name the rows of a matrix."""
    stored, expected = np.atleast_2d(stored), np.atleast_2d(expected)
    if stored.shape != expected.shape:
        yield f"{kind}s: {column} has the shape {stored.shape}, not {expected.shape}"
        return
    for part, row in np.argwhere((stored != expected) | (stored < 0)).tolist():
        what = f"{column} {parts[part]}" if parts[part] else column
        yield f"{kind} {names[row]}: {what} is {stored[part, row]}, the tasks sum to {expected[part, row]}"


def _tasks_of(opened: Opened) -> _Tasks:
    kinds = [(class_.request, class_.spec) for class_ in opened.classes]
    return _Tasks(opened.tasks.status, opened.tasks.class_of, kinds, len(opened.cluster.resources))


def _node_problems(opened: Opened) -> Iterator[str]:
    nodes, tasks = opened.nodes, _tasks_of(opened)
    where, status, width = opened.tasks.node[tasks.rows], tasks.status, len(nodes)
    on_node, pipelined, releasing = ON_NODE[status], status == Status.PIPELINED, status == Status.RELEASING
    # What this session evicts has left kube-scheduler's books; what was leaving before is still on them.
    leaving = opened.cluster.tasks.status[tasks.rows] == Status.RELEASING
    booked = (on_node | pipelined) & ~(releasing & ~leaving)
    kept, every = _expected(opened, tasks), np.ones(len(where), dtype=np.bool_)
    nonzero = tasks.nonzero(where, booked, width) + tasks.nonzero(kept, every, width)
    resources, names = opened.cluster.resources.names, nodes.facts.names
    behind, taken, freed = _elsewhere(opened)
    for column, stored, expected in (
        ("used", nodes.used - taken, tasks.sums(where, on_node, width) + behind),
        ("releasing", nodes.releasing - freed, tasks.sums(where, releasing, width) + behind),
        (
            "pipelined",
            nodes.pipelined,
            tasks.sums(where, pipelined, width) + tasks.sums(kept, every, width),
        ),
        (
            "requested",
            nodes.requested,
            tasks.sums(where, booked, width) + tasks.sums(kept, every, width),
        ),
    ):
        yield from _differences("node", column, names, resources, stored, expected)
    for column, stored, expected in (
        ("pods", nodes.pods, _counted(where, booked, width) + _counted(kept, every, width)),
        ("nonzero cpu", nodes.nonzero_cpu, nonzero[0]),
        ("nonzero memory", nodes.nonzero_memory, nonzero[1]),
    ):
        yield from _differences("node", column, names, ("",), stored, expected)


def _expected(opened: Opened, tasks: _Tasks) -> Where:
    """Of leaving tasks whose successors are expected on a node: which one; -1 for all others."""
    expected: dict[int, int] = getattr(opened, "expected", {})
    return np.array([expected.get(row, -1) for row in tasks.rows.tolist()], dtype=np.int64)


def _elsewhere(opened: Opened) -> tuple[Amounts, Amounts, Amounts]:
    """What a session has on nodes besides its tasks.

    First, the places that moved tasks are still releasing. Then the whole devices behind shared ones, twice:
    those that are taken, and those that are being released.
    """
    behind, taken, freed = (np.zeros_like(opened.nodes.used) for _ in range(3))
    for row, places in getattr(opened, "moved", {}).items():
        request = opened.classes[opened.tasks.class_of[row]].request
        for node, _ in places:
            if node >= 0:
                behind[: len(request), node] += request
    books: Any = getattr(opened, "gpus", None)
    if books is not None and books.dimension is not None:
        scale = opened.cluster.resources.scale(books.dimension)
        taken[books.dimension], freed[books.dimension] = (devices * scale for devices in books.booked())
    return behind, taken, freed


def _job_problems(opened: Opened) -> Iterator[str]:
    tasks = _tasks_of(opened)
    where = opened.tasks.job[tasks.rows]
    asking_nothing = opened.tasks.best_effort[tasks.rows] & ~opened.tasks.gated[tasks.rows]
    counted = np.ones(len(tasks.rows), dtype=np.bool_)
    if opened.jobs.elsewhere is not None:
        counted = opened.tasks.node[tasks.rows] >= 0
    yield from _job_sums(opened.cluster, opened.jobs, tasks, where, asking_nothing, counted)
    names, ready = opened.cluster.jobs.keys, _counted(where, READY[tasks.status], len(opened.jobs.ready))
    yield from _differences("job", "ready", names, ("",), opened.jobs.ready, ready)


def _job_sums(
    cluster: Cluster, jobs: Any, tasks: _Tasks, where: Where, asking_nothing: Mask, counted: Mask
) -> Iterator[str]:
    """Jobs' sums, which have the same names in the table and in a session; `counted`: tasks that may be allocated."""
    width, names, resources = len(cluster.jobs), cluster.jobs.keys, cluster.resources.names
    waiting, everything = WAITING[tasks.status], np.ones(len(tasks.rows), dtype=np.bool_)
    for column, mask in (
        ("allocated", ALLOCATED_LIKE[tasks.status] & counted),
        ("pending", waiting),
        ("total", everything),
    ):
        stored = getattr(jobs, column)[:, :width]
        yield from _differences("job", column, names, resources, stored, tasks.sums(where, mask, width))
    counts = np.array([_counted(where, tasks.status == status, width) for status in range(STATUSES)])
    words = [status.word for status in Status]
    yield from _differences("job", "count", names, words, jobs.counts[:, :width], counts)
    stored = jobs.pending_best_effort[:width].astype(np.int64)
    expected = _counted(where, waiting & asking_nothing, width)
    yield from _differences("job", "pending best effort", names, ("",), stored, expected)


def _place_problems(opened: Opened) -> Iterator[str]:
    tasks, keys = opened.tasks, opened.cluster.tasks.keys
    for row in np.flatnonzero(np.isin(tasks.status, _PLACED) & (tasks.node < 0)).tolist():
        yield f"task {keys[row]}: is {Status(tasks.status[row]).word} on no node"
    for row in np.flatnonzero((tasks.status >= 0) & WAITING[tasks.status] & (tasks.node >= 0)).tolist():
        yield f"task {keys[row]}: is {Status(tasks.status[row]).word}, but has a node"


def _table_problems(cluster: Cluster) -> Iterator[str]:
    nodes, table = cluster.nodes, cluster.tasks
    kinds = [(spec.request, spec) for spec in cluster.specs.specs]
    tasks = _Tasks(table.status[: len(table)], table.spec[: len(table)], kinds, len(cluster.resources))
    where, width = table.node[tasks.rows], len(nodes)
    on_node, releasing = ON_NODE[tasks.status], tasks.status == Status.RELEASING
    nonzero = tasks.nonzero(where, on_node, width)
    for column, mask in (("used", on_node), ("releasing", releasing), ("pipelined", np.zeros_like(on_node))):
        stored, expected = getattr(nodes, column)[:, :width], tasks.sums(where, mask, width)
        yield from _differences("node", column, nodes.keys, cluster.resources.names, stored, expected)
    for column, stored, expected in (
        ("pods", nodes.pods[:width].astype(np.int64), _counted(where, on_node, width)),
        ("nonzero cpu", nodes.nonzero_cpu[:width], nonzero[0]),
        ("nonzero memory", nodes.nonzero_memory[:width], nonzero[1]),
    ):
        yield from _differences("node", column, nodes.keys, ("",), stored, expected)
    asking_nothing = table.best_effort[tasks.rows] & ~table.gated[tasks.rows]
    everything = np.ones(len(tasks.rows), dtype=np.bool_)
    yield from _job_sums(cluster, cluster.jobs, tasks, table.job[tasks.rows], asking_nothing, everything)


# -- rows --------------------------------------------------------------------------------------------------------------


def _reference_problems(cluster: Cluster) -> Iterator[str]:
    """A row is held exactly as long as its object exists or another object names it; a free row is blank."""
    nodes, tasks, jobs, queues = cluster.nodes, cluster.tasks, cluster.jobs, cluster.queues
    named_nodes, named_jobs = set(tasks.node.tolist()), set(tasks.job.tolist())
    for kind, table, there, named in (
        ("node", nodes, set(nodes.objects), named_nodes),
        ("task", tasks, set(tasks.pods), set()),
        ("job", jobs, set(jobs.objects), named_jobs),
        ("queue", queues, set(queues.objects), set(jobs.queue.tolist())),
    ):
        held = set(table)
        for row in held ^ (there | (named - {-1})):
            yield f"{kind} row {row} ({table.keys[row]!r}) is {'held for nobody' if row in held else 'not held'}"
        yield from _row_problems(kind, table, held)
    for kind, defined, objects in (
        ("node", nodes.defined, nodes.objects),
        ("job", jobs.defined, jobs.objects),
        ("queue", queues.defined, queues.objects),
    ):
        if set(np.flatnonzero(defined).tolist()) != set(objects):
            yield f"{kind}s: the rows that are defined are not those that have an object"


def _row_problems(kind: str, table: Table, held: set[int]) -> Iterator[str]:
    for row in held:
        if table.index_of(table.keys[row]) != row:
            yield f"{kind} row {row}: {table.keys[row]!r} is the name of row {table.index_of(table.keys[row])}"
    free = [row for row in range(len(table)) if row not in held]
    for column, (_, empty) in table.COLUMNS.items():
        if (getattr(table, column)[free] != empty).any():
            yield f"{kind}s: {column} is not blank in a free row"
    for matrix in table.MATRICES:
        if getattr(table, matrix)[:, free].any():
            yield f"{kind}s: {matrix} is not blank in a free row"


# -- limits ------------------------------------------------------------------------------------------------------------


def overfull(opened: Opened) -> list[str]:
    """Nodes on which this session placed a task requesting something of which the node has too little.

    A node may be overcommitted from the start (it shrank, or pods were bound by hand); that alone is not an
    error of the session.
    """
    nodes, tasks = opened.nodes, _tasks_of(opened)
    where, status, width = opened.tasks.node[tasks.rows], tasks.status, len(nodes)
    came = WAITING[opened.cluster.tasks.status[tasks.rows]]
    pipelined = status == Status.PIPELINED  # also those that move
    bound = came & ((status == Status.ALLOCATED) | (status == Status.BINDING))
    short_now = (tasks.sums(where, bound, width) > 0) & (nodes.idle() < 0)
    short_then = (tasks.sums(where, pipelined, width) > 0) & (nodes.future_idle() < 0)
    names, resources = nodes.facts.names, opened.cluster.resources.names
    return [
        f"node {names[row]}: was given more {resources[dimension]} than it {verb}"
        for verb, short in (("has", short_now), ("will have", short_then))
        for dimension, row in np.argwhere(short).tolist()
    ]
