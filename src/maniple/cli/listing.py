"""Queues and jobs as they are now, for `maniple queue` and `maniple job`: rows for tables, values for programs.

Amounts and counts are those of the input, before the cycle that is planned. The cycle says what a queue deserves, why
a job waits, and in which order jobs have their turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maniple.cli import InputError
from maniple.cli.planning import Question
from maniple.cli.progress import progress
from maniple.cli.summary import share_of, shown_queues
from maniple.cluster.resources import scale, written
from maniple.cluster.statuses import ALLOCATED_LIKE, COMPLETED, WAITING, Status
from maniple.framework.configuration.document import suggestion
from maniple.framework.traces.events import JobTurn, Key, QueueTurn
from maniple.framework.traces.recorder import Depth, Recorder
from maniple.objects.kai import KaiQueue
from maniple.objects.quantity import parse
from maniple.objects.switches import CLOSED, CLOSING, OPEN, is_closed
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue

if TYPE_CHECKING:
    from maniple.cluster.cluster import Cluster
    from maniple.planner import Plan

STARTS = "starts in the next cycle"
LEAVES = "starts when others have left"
SUSPENDED, RUNNING, PENDING, FAILED, DONE = "Suspended", "Running", "Pending", "Failed", "Completed"
_SYSTEMS = {VolcanoQueue: "volcano", KaiQueue: "kai"}


@dataclass(frozen=True, slots=True)
class PodLine:
    pod: str
    status: str
    node: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A job's place in the order of the cycle, and the keys that decided it: of its queue among queues, then its own.

    A key has what each plugin said, and ties at the end; the smaller one comes first.
    """

    place: int
    queue_key: dict[str, Any] = field(default_factory=dict)
    key: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job. `running`: its pods that have a node; `age` in seconds, which alone is no news to watch for."""

    job: str
    queue: str
    phase: str
    priority: int
    running: int
    minimum: int
    total: int
    age: float | None = field(default=None, compare=False)
    why: str = ""
    turn: Turn | None = None
    holds: dict[str, str] = field(default_factory=dict)  # amounts as Kubernetes writes them


@dataclass(frozen=True, slots=True)
class JobDetails:
    """One job with everything about it."""

    line: JobLine
    group: str  # kind and name of its pod group; empty if it was made for its pods
    priority_class: str
    owners: tuple[str, ...]
    conditions: tuple[dict[str, str], ...]
    pods: tuple[PodLine, ...]


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue; amounts as in a plan: milli-cpu, bytes, whole units. `pending` and `running` are jobs, with those of
    queues below."""

    queue: str
    parent: str
    depth: int
    state: str
    weight: int
    running: int
    pending: int
    share: float
    allocated: dict[str, float]
    requested: dict[str, float]
    deserved: dict[str, float]
    quota: dict[str, float]
    limit: dict[str, float]
    systems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueDetails:
    line: QueueLine
    path: tuple[QueueLine, ...]  # from the top to this one
    children: tuple[str, ...]
    holders: tuple[JobLine, ...]
    waiting: tuple[JobLine, ...]


class Listing:
    """What a question reads, planned once. `turns`: jobs have theirs, which takes the cycle a few times as long."""

    def __init__(self, asking: Question, *, turns: bool = True) -> None:
        self._recorder = Recorder(depth=Depth.TURNS, keys=True) if turns else None
        with progress("planning"):
            planner, cluster, now = asking.opened()
            self._cluster: Cluster = cluster
            self._now: datetime | None = now
            self.plan: Plan = planner.cycle(cluster, now, trace=self._recorder)
        self.plan.problems[:0] = asking.unjudged

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def jobs(self, namespace: str = "", queues: Iterable[str] = ()) -> list[JobLine]:
        """By name; those of one namespace, those of some queues and all below them."""
        wanted = [self._checked(name) for name in queues]
        rows = {row: None for name in wanted for row in self._inside.get(name, ())}
        found = [self._job(row) for row in (rows if wanted else self._cluster.jobs.facts)]
        prefix = f"{namespace}/" if namespace else ""
        return sorted((one for one in found if one.job.startswith(prefix)), key=lambda one: one.job)

    def in_order(self, lines: Iterable[JobLine]) -> list[JobLine]:
        """Those that have a turn, in its order; then the others."""
        last = len(self.plan.jobs) + 1
        return sorted(lines, key=lambda one: (one.turn.place if one.turn else last, one.job))

    def job(self, name: str) -> JobDetails:
        rows = [row for row in self._cluster.jobs.rows_named(name) if row in self._cluster.jobs.facts]
        tasks = self._cluster.tasks
        if not rows and (task := tasks.index_of(name)) is not None and int(tasks.job[task]) >= 0:
            rows = [int(tasks.job[task])]  # a pod of it
        if not rows or rows[0] not in self._cluster.jobs.facts:
            known = [self._cluster.jobs.name(row) for row in self._cluster.jobs.facts]
            raise InputError(f"no job {name!r}{suggestion(name, known) or ' in the input'}")
        group = self._cluster.jobs.objects[rows[0]]
        made = ":" in group.metadata.name
        own = getattr(group.status, "conditions", ()) if isinstance(group, VolcanoPodGroup) else ()
        own = own or getattr(getattr(group, "status", None), "scheduling_conditions", ())
        return JobDetails(
            line=self._job(rows[0]),
            group="" if made else f"PodGroup {group.key} ({group.api_group})",
            priority_class=self._cluster.jobs.facts[rows[0]].priority_class,
            owners=tuple(f"{one.kind} {one.name}" for one in group.metadata.owner_references),
            conditions=tuple(
                {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
                for one in own
            ),
            pods=tuple(self._pods(rows[0])),
        )

    def _job(self, row: int) -> JobLine:
        jobs = self._cluster.jobs
        counts, facts, name = jobs.counts[:, row], jobs.facts[row], jobs.name(row)
        created = jobs.objects[row].metadata.creation_timestamp
        age = (self._now - created).total_seconds() if self._now is not None and created is not None else None
        phase = self._phase(row)
        names = self._cluster.resources.names
        held = zip(names, jobs.allocated[:, row].tolist(), strict=False)
        return JobLine(
            job=name,
            queue=facts.queue,
            phase=phase,
            priority=int(jobs.priority[row]),
            running=int(ALLOCATED_LIKE @ counts),
            minimum=int(jobs.minimum[row]),
            total=int(counts.sum()),
            age=age,
            why=self._why(name) if phase in (PENDING, SUSPENDED) or bool(WAITING @ counts) else "",
            turn=self._turns.get(name),
            holds={one: written(one, amount) for one, amount in held if amount},
        )

    def _phase(self, row: int) -> str:
        jobs = self._cluster.jobs
        counts = jobs.counts[:, row]
        total, on_nodes = int(counts.sum()), int(ALLOCATED_LIKE @ counts)
        if total and int(COMPLETED @ counts) == total:
            return FAILED if counts[Status.FAILED] else DONE
        if on_nodes and on_nodes + int(counts[Status.SUCCEEDED]) >= int(jobs.minimum[row]):
            return RUNNING
        return SUSPENDED if row in jobs.suspended else PENDING

    def _why(self, name: str) -> str:
        found = self.plan.jobs.get(name)
        if found is None:
            return ""
        if found.state == "placed":
            return STARTS
        return LEAVES if found.state == "starting" else next(iter(found.reasons), "")

    @cached_property
    def _turns(self) -> dict[str, Turn]:
        found, of_queue = dict[str, Turn](), dict[str, dict[str, Any]]()
        for event in self._recorder.events if self._recorder is not None else ():
            if isinstance(event, QueueTurn):
                of_queue[event.queue] = _values(event.key)
            elif isinstance(event, JobTurn) and event.job not in found:
                found[event.job] = Turn(len(found) + 1, of_queue.get(event.queue, {}), _values(event.key))
        return found

    def _pods(self, row: int) -> Iterator[PodLine]:
        tasks, told = self._cluster.tasks, self.plan.tasks
        own = [one for one in tasks.pods if tasks.job[one] == row]
        for one in sorted(own, key=lambda task: tasks.keys[task]):
            key, status, node = tasks.keys[one], Status(tasks.status[one]), int(tasks.node[one])
            waits = bool(WAITING[status])
            why = told[key].reason if key in told and waits else ""
            yield PodLine(key, status.word, self._cluster.nodes.keys[node] if node >= 0 else "", why)

    # -- queues -------------------------------------------------------------------------------------------------------

    def queues(self) -> list[QueueLine]:
        """Each below its parent."""
        shown = {name for name, _ in shown_queues(self.plan)}
        below: dict[str, list[str]] = {}
        for name in sorted(shown):
            parent = self.plan.queues[name].parent
            above = parent if parent in shown and name not in self._way_up(parent) else ""
            below.setdefault(above, []).append(name)
        found, left = [], [(name, 0) for name in reversed(below.get("", []))]
        while left:
            name, depth = left.pop()
            found.append(self._queue(name, depth))
            left += [(child, depth + 1) for child in reversed(below.get(name, []))]
        return found

    def queue(self, name: str) -> QueueDetails:
        jobs = self.in_order(self.jobs(queues=(name,)))
        path = [self._queue(one, depth) for depth, one in enumerate(reversed(self._way_up(name)))]
        return QueueDetails(
            line=path[-1],
            path=tuple(path),
            children=tuple(sorted(one for one in self.plan.queues if self.plan.queues[one].parent == name)),
            holders=tuple(one for one in jobs if one.running),
            waiting=tuple(one for one in jobs if one.why),
        )

    def _queue(self, name: str, depth: int) -> QueueLine:
        outcome, table = self.plan.queues[name], self._cluster.queues
        row = table.index_of(name)
        assert row is not None
        rows = self._inside.get(name, [])
        phases = [self._phase(one) for one in rows]
        allocated = self._amounts(self._cluster.jobs.allocated[:, rows])
        deserved = {key: float(value) for key, value in outcome.deserved.items()}
        shares = [share_of(amount, deserved[key]) for key, amount in allocated.items() if key in deserved]
        left = sum(1 for one in phases if one not in (DONE, FAILED))
        closed = any(map(is_closed, table.all_of(row)))
        return QueueLine(
            queue=name,
            parent=table.facts[row].parent,
            depth=depth,
            state=OPEN if not closed else CLOSING if left else CLOSED,
            weight=outcome.weight,
            running=phases.count(RUNNING),
            pending=phases.count(PENDING) + phases.count(SUSPENDED),
            share=max(shares, default=0.0),
            allocated=allocated,
            requested=self._amounts(
                self._cluster.jobs.allocated[:, rows] + self._cluster.jobs.pending[:, rows]
            ),
            deserved=deserved,
            quota=self._said(row, outcome.quota, "deserved"),
            limit=self._said(row, outcome.capability if outcome.quota is not None else None, "capability"),
            systems=tuple(_SYSTEMS[type(one)] for one in table.all_of(row) if type(one) in _SYSTEMS),
        )

    def _said(self, row: int, known: dict[str, int | float] | None, field: str) -> dict[str, float]:
        """As the queue tree has it; in Volcano's profile, what the object says."""
        if known is not None:
            return _stated(known)
        item = self._cluster.queues.stated(row, VolcanoQueue)
        amounts = getattr(item.spec, field) if item is not None else {}
        return {
            name: float(parse(amount)) * (1000 if name == "cpu" else 1) for name, amount in amounts.items()
        }

    def _amounts(self, columns: Any) -> dict[str, float]:
        sums = np.asarray(columns).sum(axis=1).tolist()
        found = zip(self._cluster.resources.names, sums, strict=False)
        return {
            name: amount if name == "cpu" else amount / scale(name)
            for name, amount in found
            if amount and name != "pods"
        }

    def _way_up(self, name: str) -> list[str]:
        row = self._cluster.queues.index_of(name)
        if row is None:
            return []
        table = self._cluster.queues
        return [table.keys[one] for one in table.way_up(row) if one in table.facts]

    @cached_property
    def _inside(self) -> dict[str, list[int]]:
        """By queue: its jobs, and those of all queues below."""
        found: dict[str, list[int]] = {}
        ways: dict[str, list[str]] = {}
        for row, facts in self._cluster.jobs.facts.items():
            if facts.queue not in ways:
                ways[facts.queue] = self._way_up(facts.queue)
            for name in ways[facts.queue]:
                found.setdefault(name, []).append(row)
        return found

    def _checked(self, queue: str) -> str:
        if queue not in self.plan.queues:
            raise InputError(f"no queue {queue!r}{suggestion(queue, self.plan.queues) or ' in the input'}")
        return queue


def _values(key: Key) -> dict[str, Any]:
    return {part.plugin: part.value for part in key}


def _stated(amounts: dict[str, int | float]) -> dict[str, float]:
    """Without what is unlimited."""
    return {name: float(amount) for name, amount in amounts.items() if amount != float("inf")}
