"""What a cycle leaves behind for the people and programs around it: the plan.

A plan is a view of the closed session. Nothing is worked out before somebody looks at it, so that a cycle costs what it decides and
not what could be said about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from maniple.cluster.statuses import COMPLETED, NO_TASK, SCHEDULED, WAITING, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.points import TaskRows
from maniple.framework.reasons import Histogram, joined
from maniple.framework.session import Session
from maniple.objects.load import Problem

Amounts = dict[str, int | float]


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    status: str
    node: str | None = None
    gpu_groups: tuple[str, ...] = ()
    reason: str = ""
    job: str | None = None


@dataclass(frozen=True, slots=True)
class JobOutcome:
    phase: str
    conditions: list[dict[str, str]]
    reasons: list[str]
    queue: str
    ready: int
    minimum: int
    total: int


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """Cpu in milli, memory in bytes, everything else in whole units."""

    deserved: Amounts
    allocated: Amounts
    capability: Amounts
    weight: int
    share: float
    jobs: int


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    idle: Amounts
    releasing: Amounts
    used: Amounts
    allocatable: Amounts


@dataclass(eq=False)
class Plan:
    """The decisions of one cycle, by name."""

    session: Session = field(repr=False)
    problems: Sequence[Problem] = ()
    warnings: Sequence[str] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def binds(self) -> dict[str, str]:
        """Committed allocations in the order in which they were decided. Their claims are to be written first, see `claims`."""
        return self._named(self.session.bound)

    @cached_property
    def held(self) -> dict[str, str]:
        """Committed allocations whose volumes have to be bound to the node first."""
        return self._named(self.session.held)

    @cached_property
    def annotations(self) -> dict[str, dict[str, str]]:
        """What the bindings carry: the devices that were chosen, as the agents on the nodes read them."""
        session = self.session
        placed = [row for rows, _ in (*session.bound, *session.held) for row in rows.tolist()]
        return {
            session.task_key(row): session.annotations[row] for row in placed if row in session.annotations
        }

    @cached_property
    def claims(self) -> dict[str, dict[str, Any]]:
        """What to write into the status of resource claims before the tasks in `binds` and `held` are bound, by claim.

        `allocation` where the claim has none yet, and the pods to add to `reservedFor`, as Kubernetes writes both.
        """
        session = self.session
        placed = [row for rows, _ in (*session.bound, *session.held) for row in rows.tolist()]
        written: dict[str, dict[str, Any]] = {}
        for _, plugin in session.plugins:
            if hasattr(plugin, "claims_to_write"):
                written |= plugin.claims_to_write(placed)
        return written

    def _named(self, placed: list[tuple[TaskRows, NodeRows]]) -> dict[str, str]:
        keys, names = self.session.cluster.tasks.keys, self.session.nodes.facts.names
        return {
            keys[row]: names[node]
            for rows, nodes in placed
            for row, node in zip(rows.tolist(), nodes.tolist(), strict=True)
        }

    @cached_property
    def evictions(self) -> list[str]:
        return [self.session.task_key(row) for row, _ in self.session.evicted]

    @cached_property
    def started(self) -> dict[str, datetime]:
        """Jobs that got their first place in this cycle, and when."""
        return {self.session.job_key(job): since for job, since in self.session.started.items()}

    @cached_property
    def stale_since(self) -> dict[str, datetime | None]:
        """Jobs whose gang broke in this cycle, and when; None for those that are whole again."""
        return {self.session.job_key(job): since for job, since in self.session.stale_since.items()}

    @cached_property
    def pipelined(self) -> dict[str, str]:
        session = self.session
        rows = np.flatnonzero(session.tasks.status == Status.PIPELINED).tolist()
        return {session.task_key(row): session.node_name(int(session.tasks.node[row])) for row in rows}

    @cached_property
    def tasks(self) -> dict[str, TaskOutcome]:
        session, names = self.session, self.session.nodes.facts.names
        words = {int(status): status.word for status in Status}
        outcomes = {}
        for row in np.flatnonzero(session.tasks.status != NO_TASK).tolist():
            node, status = int(session.tasks.node[row]), int(session.tasks.status[row])
            job = int(session.tasks.job[row])
            if status == Status.PENDING and session.tasks.gated[row]:
                status = Status.GATED
            outcomes[session.task_key(row)] = TaskOutcome(
                status=words[status],
                node=names[node] if node >= 0 else None,
                gpu_groups=session.gpus.groups_of.get(row, ()),
                reason=self.why(row, job) if WAITING[status] else "",
                job=session.job_key(job) if job >= 0 else None,
            )
        return outcomes

    @cached_property
    def _causes(self) -> Mapping[int, Histogram | str]:
        return self.session.refusals.by_task()

    @cached_property
    def _served(self) -> frozenset[int]:
        return frozenset(self.session.jobs.rows.tolist())

    def why(self, row: int, job: int) -> str:
        """The cause of a waiting task: its own, or its job's."""
        session = self.session
        if row in self._causes:
            return str(self._causes[row])
        if job < 0:
            return "belongs to no pod group"
        if job not in self._served:
            return _why_not_served(session, job)
        if session.tasks.gated[row]:
            return "waits for its scheduling gates to be removed"
        return joined(session.refusals.jobs.get(job, ())) or "its turn did not come in this cycle"

    @cached_property
    def jobs(self) -> dict[str, JobOutcome]:
        session, phases = self.session, job_phases(self.session)
        return {
            session.job_key(job): JobOutcome(
                phase=phases[job],
                conditions=[condition.copy() for condition in session.conditions.get(job, ())],
                reasons=self._reasons(job),
                queue=session.queue_name(int(session.jobs.queue[job])),
                ready=session.ready(job),
                minimum=int(session.jobs.minimum[job]),
                total=session.task_count(job),
            )
            for job in session.jobs.rows.tolist()
        }

    def _reasons(self, job: int) -> list[str]:
        session = self.session
        told = list(session.refusals.jobs.get(job, ()))
        if session.jobs.counts[Status.PENDING, job]:
            rows = session.tasks_of(job)
            in_order = rows[np.argsort(session.tasks.rank[rows])].tolist()
            told += [str(self._causes[row]) for row in in_order if row in self._causes]
        return list(dict.fromkeys(told))

    @cached_property
    def queues(self) -> dict[str, QueueOutcome]:
        session, describe = self.session, self.session.resources.describe
        reports = [p.queue_report for _, p in session.plugins if hasattr(p, "queue_report")]
        outcomes = {}
        for queue, facts in session.queues.facts.items():
            own = session.jobs.rows[session.jobs.queue[session.jobs.rows] == queue]
            report = reports[0](queue) if reports else {}
            outcomes[session.queue_name(queue)] = QueueOutcome(
                deserved=describe(report["deserved"]) if "deserved" in report else {},
                allocated=describe(session.jobs.allocated[:, own].sum(axis=1)),
                capability=describe(report["capability"]) if "capability" in report else {},
                weight=facts.weight,
                share=float(report.get("share", 0.0)),
                jobs=len(own),
            )
        return outcomes

    @cached_property
    def nodes(self) -> dict[str, NodeOutcome]:
        nodes, describe = self.session.nodes, self.session.resources.describe
        idle = nodes.idle()
        return {
            name: NodeOutcome(
                idle=describe(idle[:, i]),
                releasing=describe(nodes.releasing[:, i]),
                used=describe(nodes.used[:, i]),
                allocatable=describe(nodes.allocatable[:, i]),
            )
            for i, name in enumerate(nodes.facts.names)
        }


def _why_not_served(session: Session, job: int) -> str:
    facts = session.cluster.jobs.facts.get(job)
    if facts is None:
        return f"pod group {session.job_key(job)} does not exist"
    return f"queue {facts.queue!r} does not exist"


def job_phases(session: Session) -> dict[int, str]:
    """The phase of every job at the end of the session.

    Unknown: something runs, yet the gang is unschedulable. Running or Completed: enough tasks are (or were) on nodes. Otherwise a job
    stays admitted once it is, and waits until then.
    """
    rows, counts = session.jobs.rows, session.jobs.counts
    leaving = np.bincount(
        session.tasks.job[(session.tasks.status == Status.RELEASING) & (session.tasks.node >= 0)].clip(0),
        minlength=counts.shape[1],
    )
    scheduled = counts[np.flatnonzero(SCHEDULED)].sum(axis=0) + leaving
    over = counts[np.flatnonzero(COMPLETED)].sum(axis=0)
    phases = {}
    for job in rows.tolist():
        refused = any(c["type"] == "Unschedulable" for c in session.conditions.get(job, ()))
        if refused and counts[Status.RUNNING, job]:
            phases[job] = "Unknown"
        elif scheduled[job] >= session.jobs.minimum[job]:
            phases[job] = "Completed" if scheduled[job] == over[job] else "Running"
        else:
            phases[job] = "Inqueue" if session.phase(job) == "Inqueue" else "Pending"
    return phases
