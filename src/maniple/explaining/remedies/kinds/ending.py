"""Jobs that would have to end, or to leave the line: as few as are enough.

Which ones is a good guess by sums: jobs on the nodes that give most room for the fewest of them, jobs of the same
queue, and jobs that get their places in the same cycle. The search then finds out how many of these it takes, and
leaves out every one that can stay.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ALLOCATED_LIKE, ON_NODE, WAITING
from maniple.explaining.remedies.kinds.amounts import listed, plural
from maniple.explaining.remedies.kinds.nodes import likeness
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject
from maniple.explaining.remedies.values import Change

_MANY = 64  # jobs that a guess consists of at most
_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Holder:
    """A job whose pods are to go. `likeness`: equal for jobs of which one is worth as much as the other."""

    name: str
    pods: tuple[str, ...]
    waits: bool
    held: Mapping[str, float]  # by node, which part of it
    likeness: Hashable


def ending(subject: Subject, rivals: Collection[str]) -> Iterator[Choice]:
    """Three guesses: `rivals` are keys of jobs that get places in the cycle as it is."""
    columns = _Columns(subject)
    seen: set[tuple[int, ...]] = set()
    for rows in (columns.placed_now(rivals), columns.on_nodes(), columns.in_queues(), columns.everywhere()):
        chosen = tuple(rows[:_MANY])
        if chosen and chosen not in seen:
            seen.add(chosen)
            yield _prefixes([columns.holder(row) for row in chosen], columns.enough(chosen))


def _prefixes(holders: list[_Holder], guess: int) -> Choice:
    """One knob: the first so many of them; then a knob for each that is left."""

    def build(levels: Levels) -> tuple[Change, ...]:
        return _without(holders[: levels[0]])

    def words(levels: Levels) -> tuple[str, str]:
        return _words(holders[: levels[0]])

    def refined(levels: Levels) -> Choice:
        return _each(holders[: levels[0]])

    def enough(filled: Mapping[str, float]) -> tuple[int]:
        """The first of them that held as much as was filled of their nodes."""
        freed = {node for one in holders for node in one.held}
        total = sum(filled.get(node, 0.0) for node in freed)
        held = np.cumsum([sum(one.held.values()) for one in holders]).round(6)
        return (min(int(np.searchsorted(held, round(total, 6))) + 1, len(holders)),)

    return Choice(
        "ending jobs", (len(holders),), build, words, guesses=((guess,),), refined=refined, enough=enough
    )


def _each(holders: list[_Holder]) -> Choice:
    def chosen(levels: Levels) -> list[_Holder]:
        return [one for one, level in zip(holders, levels, strict=True) if level]

    def build(levels: Levels) -> tuple[Change, ...]:
        return _without(chosen(levels))

    def words(levels: Levels) -> tuple[str, str]:
        return _words(chosen(levels))

    alike = tuple(one.likeness for one in holders)
    return Choice("ending jobs", (1,) * len(holders), build, words, alike=alike)


def _without(holders: list[_Holder]) -> tuple[Change, ...]:
    pods = tuple(pod for one in holders for pod in one.pods)
    return (Change(operation="delete", kind="Pod", objects=pods),) if pods else ()


def _words(holders: list[_Holder]) -> tuple[str, str]:
    names = [one.name for one in holders[:_NAMED]]
    if len(holders) > _NAMED:
        names.append(f"{len(holders) - _NAMED} more")
    waits, runs = any(one.waits for one in holders), not all(one.waits for one in holders)
    how = "ended or left the line" if waits and runs else "left the line" if waits else "ended"
    job = "job" if len(holders) == 1 else "jobs"
    return plural(len(holders), "job"), f"If {job} {listed(names)} {how},"


class _Columns:
    """The cluster's columns, as far as they tell which jobs are in the way."""

    def __init__(self, subject: Subject) -> None:
        self._subject, cluster = subject, subject.cluster
        self._cluster = cluster
        size = len(cluster.tasks)
        self._job, self._node = cluster.tasks.job[:size], cluster.tasks.node[:size]
        status = cluster.tasks.status[:size]
        own = self._own = cluster.jobs.index_of(subject.key)
        there = (status >= 0) & (self._job >= 0) & (self._job != own)
        self._running = np.flatnonzero(there & ALLOCATED_LIKE[status] & (self._node >= 0))
        self._waiting = np.flatnonzero(there & WAITING[status])
        self._held = np.flatnonzero(there & ON_NODE[status])
        self._alike: dict[int, bytes] = {}  # by node, see `_node_likeness`

    def holder(self, row: int) -> _Holder:
        keys, tasks = self._cluster.tasks.keys, self._running[self._job[self._running] == row]
        waits = not len(tasks)
        if waits:
            tasks = self._waiting[self._job[self._waiting] == row]
        pods = tuple(sorted(keys[task] for task in tasks.tolist()))
        nodes = () if waits else self._node[tasks].tolist()
        held, likeness = self._parts_held(tasks, nodes), self._likeness(row, tasks, nodes)
        return _Holder(self._cluster.jobs.name(row), pods, waits, held, likeness)

    def _parts_held(self, tasks: NDArray[np.int64], nodes: Sequence[int]) -> dict[str, float]:
        """By node, which part of it pods hold, of the resource of which that is most."""
        cluster, table = self._cluster, self._cluster.nodes
        taken = {node: np.zeros(len(table.allocatable)) for node in nodes}
        for task, node in zip(tasks.tolist(), nodes, strict=bool(nodes)):
            request = cluster.specs.specs[cluster.tasks.spec[task]].request
            size = len(request)
            taken[node][:size] += request / np.maximum(table.allocatable[:size, node], 1)
        return {table.keys[node]: float(parts.max(initial=0.0)) for node, parts in taken.items()}

    def _likeness(self, row: int, tasks: NDArray[np.int64], nodes: Sequence[int]) -> Hashable:
        """The standing of a job, what its pods hold, and what their nodes are like and have left."""
        cluster, columns = self._cluster, self._cluster.tasks
        facts = cluster.jobs.facts.get(row)  # None for pods whose group is gone
        standing = (int(cluster.jobs.queue[row]), facts.minimum if facts is not None else 0)
        pods = zip(*(column[tasks].tolist() for column in (columns.spec, columns.preemptable)), strict=True)
        return (*standing, *sorted(pods), *sorted(map(self._node_likeness, nodes)))

    def _node_likeness(self, node: int) -> bytes:
        known = self._alike.get(node)
        if known is None:
            table = self._cluster.nodes
            item = table.objects.get(node)  # None for a node that is gone
            like = likeness(item) if item is not None else b""
            known = self._alike[node] = like + table.used[:, node].tobytes()
        return known

    def placed_now(self, rivals: Collection[str]) -> list[int]:
        rows = [self._cluster.jobs.index_of(key) for key in sorted(rivals)]
        return [row for row in rows if row is not None and self._cluster.jobs.keys[row] != self._subject.key]

    def enough(self, rows: tuple[int, ...]) -> int:
        """How many of these jobs, the first ones, hold what the job and those ahead of it in its queue request."""
        subject, cluster = self._subject, self._cluster
        own = {int(cluster.jobs.queue[self._own])} if self._own is not None else set[int]()
        demand, ahead = subject.demand(), subject.demand_ahead(own)
        asked = cluster.resources.vector({name: demand[name] + ahead.get(name, 0) for name in demand})
        held = np.zeros((len(rows), len(asked)), dtype=np.int64)
        places = {row: place for place, row in enumerate(rows)}
        for task in self._held[np.isin(self._job[self._held], rows)].tolist():
            request = cluster.specs.specs[cluster.tasks.spec[task]].request
            held[places[int(self._job[task])], : len(request)] += request
        covered = (held.cumsum(axis=0) >= asked).all(axis=1)
        return int(covered.argmax()) + 1 if covered.any() else len(rows)

    def everywhere(self) -> list[int]:
        """All of the running jobs, where they are few."""
        rows = np.unique(self._job[self._running]).tolist()
        return rows if len(rows) <= _MANY else []

    def in_queues(self) -> list[int]:
        """Running jobs of the same queue, those with most pods first; then of its parent, and so on."""
        jobs, queues = self._cluster.jobs, self._cluster.queues
        rows, sizes = np.unique(self._job[self._running], return_counts=True)
        order = rows[np.argsort(-sizes, kind="stable")].tolist()
        found: list[int] = []
        for name, _ in self._subject.queues:
            row = queues.index_of(name)
            inside = {row, *(one for one, facts in queues.facts.items() if facts.parent == name)}
            found += [job for job in order if int(jobs.queue[job]) in inside and job not in found]
            if len(found) >= _MANY:
                break
        return found

    def on_nodes(self) -> list[int]:
        """Jobs on the nodes that hold most of the job's pods when they are empty, for the fewest jobs."""
        cluster, subject = self._cluster, self._subject
        room = self._room_gained()
        pairs = np.unique(
            self._node[self._running] * np.int64(len(cluster.jobs) + 1) + self._job[self._running]
        )
        nodes, jobs = np.divmod(pairs, len(cluster.jobs) + 1)
        crowd = np.bincount(nodes, minlength=len(room))[: len(room)]
        worth = np.where(crowd > 0, room / np.maximum(crowd, 1), 0.0)
        order = sorted(
            np.flatnonzero(worth > 0).tolist(), key=lambda one: (-worth[one], cluster.nodes.keys[one])
        )
        found: dict[int, None] = {}
        gained = 0
        for node in order:
            item = cluster.nodes.objects.get(node)
            if item is None or not subject.admits(item):
                continue
            found |= dict.fromkeys(jobs[nodes == node].tolist())
            gained += int(room[node])
            if gained >= 2 * subject.needed or len(found) >= _MANY:
                break
        return list(found)

    def _room_gained(self) -> NDArray[np.int64]:
        """By node: how many more of the job's pods it would hold without the jobs that run there."""
        cluster, size = self._cluster, len(self._cluster.nodes)
        table = cluster.nodes
        idle = table.allocatable[:, :size] - table.used[:, :size]
        freed = np.zeros_like(idle)
        specs = cluster.specs.specs
        numbers, places = np.unique(cluster.tasks.spec[self._running], return_inverse=True)
        requests = np.zeros((len(numbers), len(idle)), dtype=np.int64)
        for place, number in enumerate(numbers.tolist()):
            request = specs[number].request
            requests[place, : len(request)] = request
        np.add.at(freed.T, self._node[self._running], requests[places])
        gained = np.zeros(size, dtype=np.int64)
        for kind in self._subject.kinds:
            request = cluster.resources.vector({**kind.requests, "pods": 1})
            asked = np.flatnonzero(request)
            before, after = (
                np.maximum(amounts[asked] // request[asked, None], 0).min(axis=0)
                for amounts in (idle, idle + freed)
            )
            gained += np.minimum(after, len(kind.pods)) - np.minimum(before, len(kind.pods))
        return np.maximum(gained, 0)
