"""The state of the cluster for display: jobs with the states of their tasks, nodes with their utilisation.

Made between cycles, for the view of `maniple run`. Plain values; nothing here writes or prints.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.cluster import Cluster
from maniple.cluster.statuses import ON_NODE, Status
from maniple.cluster.tables import NodeTable
from maniple.framework.reasons import joined
from maniple.live.refs import Ref, ref_of

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler

Line = TypeVar("Line")
_STARTING = (Status.ALLOCATED, Status.BINDING, Status.BOUND)
_FEW = 64  # lines: up to here putting each into its place beats sorting them all


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job; `nodes` counts the tasks on each node.

    `binding`: how many of those that start have not been bound yet, as far as the cluster has confirmed it.
    `evicted`: how many of its pods were evicted and are not gone yet; `evicted_why` says by what, and for which job.
    `starts`: when it starts, if it waits for others to leave.
    """

    key: str
    queue: str
    minimum: int
    waiting: int = 0
    starting: int = 0
    binding: int = 0
    running: int = 0
    leaving: int = 0
    succeeded: int = 0
    failed: int = 0
    why: str = ""
    evicted: int = 0
    evicted_why: str = ""
    starts: str = ""
    nodes: Mapping[str, int] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        return self.waiting + self.starting + self.running + self.leaving + self.succeeded + self.failed

    @property
    def state(self) -> str:
        """One word for all of it."""
        if self.evicted:
            return "evicted"
        if self.starting:
            return "starts"
        if self.running or self.leaving:
            return "runs"
        if self.waiting and self.starts:
            return "pipelined"
        if self.waiting or not self.tasks:
            return "waits"
        return "failed" if self.failed else "done"


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node: its fullest resource's share, and amounts as `ResourceSpace.describe` gives them."""

    name: str
    share: float
    used: Mapping[str, float]
    allocatable: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Overview:
    """Lines in the order of their names; the tuples of names are the same objects until a name comes or goes.

    `renewed`: the jobs whose lines may be others than in the view before, all of them in the first; None if that is
    not known.
    """

    jobs: tuple[JobLine, ...]
    nodes: tuple[NodeLine, ...]
    cycle: int
    job_names: tuple[str, ...] = ()
    node_names: tuple[str, ...] = ()
    renewed: tuple[JobLine, ...] | None = field(default=None, compare=False)


def overview(scheduler: "Scheduler") -> Overview:
    """The state now; call it between cycles only."""
    return Board().state(scheduler)


class Board:
    """Keeps the lines between two views, so that one costs what has changed since the last."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self._cluster = cluster
        self._jobs: _Lines[JobLine] = _Lines(lambda line: line.key)
        self._nodes: _Lines[NodeLine] = _Lines(lambda line: line.name)
        self._said: set[int] = set()  # jobs whose line says more than their columns do
        self._binding: dict[Ref, int] = {}  # pods being bound, by group, as they were
        self._tasks: dict[str, NDArray[Any]] = {}  # columns as they were
        self._groups: dict[str, NDArray[Any]] = {}
        self._amounts: dict[str, NDArray[Any]] = {}
        self._keys: list[str] = []  # by row: the names of nodes

    def state(self, scheduler: "Scheduler") -> Overview:
        """The state now; call it between cycles only."""
        if scheduler.cache.cluster is not self._cluster:
            vars(self).update(vars(Board(scheduler.cache.cluster)))
        renewed = self._renew_jobs(scheduler)
        self._renew_nodes(scheduler)
        jobs, nodes = self._jobs, self._nodes
        return Overview(
            jobs.ordered(), nodes.ordered(), scheduler.cycles, jobs.names(), nodes.names(), renewed
        )

    def _renew_jobs(self, scheduler: "Scheduler") -> tuple[JobLine, ...]:
        jobs, renewed = scheduler.cache.cluster.jobs, list[JobLine]()
        said = _Said(scheduler)
        news = self._changed_jobs(scheduler) | self._said | said.rows | self._binding_jobs(scheduler)
        places = _places(scheduler, news)
        self._said = said.rows
        for row in news:
            if row in jobs.facts:
                line = self._jobs[row] = _job(scheduler, said, row, places.get(row, {}))
                renewed.append(line)
        if len(self._jobs) > len(jobs.facts):  # every job has a line by now
            for row in self._jobs.keys() - jobs.facts.keys():
                del self._jobs[row]
        return tuple(sorted(renewed, key=lambda line: line.key))

    def _changed_jobs(self, scheduler: "Scheduler") -> set[int]:
        cluster = scheduler.cache.cluster
        tasks, jobs, before = cluster.tasks, cluster.jobs, self._tasks
        columns = {name: getattr(tasks, name)[: len(tasks)] for name in ("status", "node", "job")}
        rows = _differences(columns, before)
        gone = before["job"][rows[rows < len(before["job"])]] if before else rows
        changed = {*columns["job"][rows].tolist(), *gone.tolist()}
        groups = {"edition": jobs.edition[: len(jobs)], "count": jobs.counts[:, : len(jobs)].sum(axis=0)}
        changed.update(_differences(groups, self._groups).tolist())
        self._tasks = {name: column.copy() for name, column in columns.items()}
        self._groups = {name: column.copy() for name, column in groups.items()}
        return changed

    def _binding_jobs(self, scheduler: "Scheduler") -> set[int]:
        """Jobs of which another number of pods is being bound."""
        before, self._binding = self._binding, dict(scheduler.binding.groups)
        changed = {key for (_, key), _ in before.items() ^ self._binding.items()}
        return {row for key in changed for row in scheduler.cache.cluster.jobs.rows_named(key)}

    def _renew_nodes(self, scheduler: "Scheduler") -> None:
        cluster = scheduler.cache.cluster
        nodes, size = cluster.nodes, len(cluster.nodes)
        amounts: dict[str, NDArray[Any]] = {
            f"{name} {i}": row[:size] for name in ("used", "allocatable") for i, row in _rows(nodes, name)
        }
        amounts["defined"] = nodes.defined[:size]
        changed = set(_differences(amounts, self._amounts).tolist())
        self._amounts = {name: column.copy() for name, column in amounts.items()}
        if self._keys != nodes.keys:
            changed.update(_renamed(self._keys, nodes.keys))
            self._keys = list(nodes.keys)
        for row in changed:
            if row in nodes.objects:
                self._nodes[row] = _node(cluster, row)
            elif row in self._nodes:
                del self._nodes[row]


def _renamed(before: list[str], now: list[str]) -> Iterable[int]:
    """The rows that have another name, or one that they had not."""
    return (row for row, name in enumerate(now) if row >= len(before) or before[row] != name)


class _Lines(dict[int, Line]):
    """Lines by row, and in the order of their names: of few that come or go each is put in its place."""

    def __init__(self, name: Callable[[Line], str]) -> None:
        super().__init__()
        self._name = name
        self._order: list[tuple[str, int]] = []  # names, each with its row
        self._ordered: list[Line] = []  # the lines beside them
        self._names: tuple[str, ...] = ()
        self._came: set[int] = set()  # rows that are not in the order yet
        self._left: list[tuple[str, int]] = []  # what has to be taken out of it

    def __setitem__(self, row: int, line: Line) -> None:
        if row in self and self._name(self[row]) != self._name(line):
            del self[row]
        if row not in self:
            self._came.add(row)
        elif row not in self._came:
            self._ordered[bisect_left(self._order, (self._name(line), row))] = line
        super().__setitem__(row, line)

    def __delitem__(self, row: int) -> None:
        if row in self._came:
            self._came.discard(row)
        else:
            self._left.append((self._name(self[row]), row))
        super().__delitem__(row)

    def ordered(self) -> tuple[Line, ...]:
        self._sort()
        return tuple(self._ordered)

    def names(self) -> tuple[str, ...]:
        self._sort()
        return self._names

    def _sort(self) -> None:
        if not self._came and not self._left:
            return
        if len(self._came) + len(self._left) > _FEW:
            self._order = sorted((self._name(line), row) for row, line in self.items())
            self._ordered = [self[row] for _, row in self._order]
        else:
            for entry in self._left:
                place = bisect_left(self._order, entry)
                del self._order[place], self._ordered[place]
            for row in self._came:
                place = bisect_left(self._order, entry := (self._name(self[row]), row))
                self._order.insert(place, entry)
                self._ordered.insert(place, self[row])
        self._came, self._left = set(), []
        self._names = tuple([name for name, _ in self._order])


def _rows(nodes: NodeTable, name: str) -> Iterable[tuple[int, NDArray[np.int64]]]:
    return enumerate(getattr(nodes, name))


def _differences(columns: Mapping[str, NDArray[Any]], before: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """The rows in which columns are not as they were."""
    size = len(next(iter(columns.values())))
    if columns.keys() != before.keys():
        return np.arange(size)
    known = min(size, len(next(iter(before.values()))))
    changed = np.ones(size, dtype=np.bool_)
    changed[:known] = False
    for name, column in columns.items():
        changed[:known] |= column[:known] != before[name][:known]
    return np.flatnonzero(changed)


class _Said:
    """What there is to say about jobs beside their columns, and which jobs that is about."""

    def __init__(self, scheduler: "Scheduler") -> None:
        jobs = scheduler.cache.cluster.jobs
        self.evicted = _evicted(scheduler)
        keys = {key for _, key in scheduler.why}
        names = {*self.evicted, *scheduler.starting}
        self.rows = {row for name in keys | names for row in jobs.rows_named(name)}


def _places(scheduler: "Scheduler", jobs: Collection[int]) -> dict[int, Counter[str]]:
    """By job: how many of its tasks are on which nodes."""
    cluster = scheduler.cache.cluster
    tasks, size = cluster.tasks, len(cluster.tasks)
    status, node = tasks.status[:size], tasks.node[:size]
    wanted = np.isin(tasks.job[:size], [*jobs]) & (tasks.job[:size] >= 0) & (node >= 0) & ON_NODE[status]
    places: dict[int, Counter[str]] = {}
    for row in np.flatnonzero(wanted).tolist():
        places.setdefault(int(tasks.job[row]), Counter())[cluster.nodes.keys[node[row]]] += 1
    return places


def _job(scheduler: "Scheduler", said: _Said, row: int, nodes: Mapping[str, int]) -> JobLine:
    jobs = scheduler.cache.cluster.jobs
    facts, count, name = jobs.facts[row], jobs.counts[:, row].tolist(), jobs.name(row)
    ref = ref_of(jobs.objects[row])
    return JobLine(
        key=name,
        queue=facts.queue,
        minimum=facts.minimum,
        waiting=count[Status.PENDING] + count[Status.GATED],
        starting=sum(count[each] for each in _STARTING),
        binding=scheduler.binding.groups.get(ref, 0),
        running=count[Status.RUNNING],
        leaving=count[Status.RELEASING],
        succeeded=count[Status.SUCCEEDED],
        failed=count[Status.FAILED] + count[Status.UNKNOWN],
        why=scheduler.why.get(ref, ""),
        evicted=len(said.evicted.get(name, ())),
        evicted_why=joined(said.evicted.get(name, ())),
        starts=scheduler.starting.get(name, ""),
        nodes=nodes,
    )


def _evicted(scheduler: "Scheduler") -> dict[str, list[str]]:
    """By job: why its pods were evicted that are not gone yet."""
    found: dict[str, list[str]] = {}
    for one in scheduler.evicted.values():
        found.setdefault(one.job, []).append(f"{one.action}: {one.why}" if one.action else one.why)
    return found


def _node(cluster: Cluster, row: int) -> NodeLine:
    describe, nodes = cluster.resources.describe, cluster.nodes
    used, limit = nodes.used[:, row], nodes.allocatable[:, row]
    there = limit > 0
    share = float((used[there] / limit[there]).max()) if there.any() else 0.0
    return NodeLine(nodes.keys[row], share, describe(used), describe(limit))
