"""The state of the cluster for display: jobs with the states of their tasks, nodes with their utilisation.

Made between cycles, for the view of `maniple run`. Plain values; nothing here writes or prints.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.reasons import joined
from maniple.live.writing import ref_of

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler

_STARTING = (Status.ALLOCATED, Status.BINDING, Status.BOUND)


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
    jobs: tuple[JobLine, ...]
    nodes: tuple[NodeLine, ...]
    cycle: int


def overview(scheduler: "Scheduler") -> Overview:
    """The state now; call it between cycles only."""
    return Overview(tuple(_jobs(scheduler)), tuple(_nodes(scheduler)), scheduler.cycles)


def _jobs(scheduler: "Scheduler") -> list[JobLine]:
    cluster, why, leaving = scheduler.cache.cluster, scheduler.why, _evicted(scheduler)
    tasks, jobs = cluster.tasks, cluster.jobs
    size = len(tasks)
    status, node = tasks.status[:size], tasks.node[:size]
    on_node = np.flatnonzero((tasks.job[:size] >= 0) & (node >= 0) & ON_NODE[status])
    places: dict[int, Counter[str]] = {}
    for row in on_node.tolist():
        places.setdefault(int(tasks.job[row]), Counter())[cluster.nodes.keys[node[row]]] += 1
    lines = []
    for row, facts in jobs.facts.items():
        count = jobs.counts[:, row].tolist()
        lines.append(
            JobLine(
                key=jobs.name(row),
                queue=facts.queue,
                minimum=facts.minimum,
                waiting=count[Status.PENDING] + count[Status.GATED],
                starting=sum(count[each] for each in _STARTING),
                binding=scheduler.binding.groups.get(ref_of(jobs.objects[row]), 0),
                running=count[Status.RUNNING],
                leaving=count[Status.RELEASING],
                succeeded=count[Status.SUCCEEDED],
                failed=count[Status.FAILED] + count[Status.UNKNOWN],
                why=why.get(ref_of(jobs.objects[row]), ""),
                evicted=len(leaving.get(jobs.name(row), ())),
                evicted_why=joined(leaving.get(jobs.name(row), ())),
                starts=scheduler.starting.get(jobs.name(row), ""),
                nodes=places.get(row, {}),
            )
        )
    return sorted(lines, key=lambda line: line.key)


def _evicted(scheduler: "Scheduler") -> dict[str, list[str]]:
    """By job: why its pods were evicted that are not gone yet."""
    found: dict[str, list[str]] = {}
    for one in scheduler.evicted.values():
        found.setdefault(one.job, []).append(f"{one.action}: {one.why}" if one.action else one.why)
    return found


def _nodes(scheduler: "Scheduler") -> list[NodeLine]:
    cluster = scheduler.cache.cluster
    describe, nodes = cluster.resources.describe, cluster.nodes
    lines = []
    for row in nodes.objects:
        used, limit = nodes.used[:, row], nodes.allocatable[:, row]
        there = limit > 0
        share = float((used[there] / limit[there]).max()) if there.any() else 0.0
        lines.append(NodeLine(nodes.keys[row], share, describe(used), describe(limit)))
    return sorted(lines, key=lambda line: line.name)
