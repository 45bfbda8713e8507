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
from maniple.framework.points import PodVolumes, TaskRows
from maniple.framework.reasons import Histogram, joined
from maniple.framework.session import Session
from maniple.framework.standing import NO_TURN, not_ready, queue_problem, scheduling_condition
from maniple.objects.load import Problem

Amounts = dict[str, int | float]
_WAITING = np.flatnonzero(WAITING)


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
    conditions: list[dict[str, Any]]
    reasons: list[str]
    queue: str
    ready: int
    minimum: int
    total: int


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """Cpu in milli, memory in bytes, everything else in whole units.

    Where queues form a tree that jobs are served by, a queue has what those below it have, `deserved` is the fair share, `capability` the limit and
    `quota` what is promised; of the latter two, what is left out has no end. `usage` is past usage, in parts of the cluster's capacity.
    """

    deserved: Amounts
    allocated: Amounts
    capability: Amounts
    weight: int
    share: float
    jobs: int
    quota: Amounts | None = None
    parent: str = ""
    usage: dict[str, float] = field(default_factory=dict)


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
    _told_to: dict[int, list[str]] = field(default_factory=dict, repr=False)

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
        return {
            session.task_key(row): session.annotations[row]
            for row in self._placed
            if row in session.annotations
        }

    @cached_property
    def claims(self) -> dict[str, dict[str, Any]]:
        """What to write into the status of resource claims before the tasks in `binds` and `held` are bound, by claim.

        `allocation` where the claim has none yet, and the pods to add to `reservedFor`, as Kubernetes writes both.
        """
        written: dict[str, dict[str, Any]] = {}
        for _, plugin in self.session.plugins:
            if hasattr(plugin, "claims_to_write"):
                written |= plugin.claims_to_write(self._placed)
        return written

    @cached_property
    def volumes(self) -> dict[str, PodVolumes]:
        """What has to become of the volumes of the tasks in `held` before they are bound, by task."""
        found: dict[str, PodVolumes] = {}
        for _, plugin in self.session.plugins:
            if hasattr(plugin, "volumes_to_bind"):
                found |= plugin.volumes_to_bind(self._placed)
        return found

    @cached_property
    def _placed(self) -> list[int]:
        session = self.session
        return [row for rows, _ in (*session.bound, *session.held) for row in rows.tolist()]

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
    def nominations(self) -> dict[str, str]:
        """Tasks for which room is being made, and the nodes where: what to write as `status.nominatedNodeName`."""
        session = self.session
        return {session.task_key(row): session.node_name(node) for row, node in session.nominated.items()}

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
    def served(self) -> frozenset[int]:
        """Jobs whose queue exists."""
        return frozenset(self.session.jobs.rows.tolist())

    def why(self, row: int, job: int) -> str:
        """The cause of a waiting task: its own, or its job's."""
        session = self.session
        if row in self._causes:
            return str(self._causes[row])
        if job < 0:
            return "belongs to no pod group"
        if job not in session.cluster.jobs.facts:
            return f"pod group {session.job_key(job)} does not exist"
        if session.tasks.gated[row] or session.tasks.status[row] == Status.GATED:
            return "waits for its scheduling gates to be removed"
        return joined(self._told(job)) or NO_TURN

    def _told(self, job: int) -> list[str]:
        """What a job as a whole waits for."""
        if job not in self._told_to:
            self._told_to[job] = self._tell(job)
        return self._told_to[job]

    def _tell(self, job: int) -> list[str]:
        session, served, rules = self.session, job in self.served, self.session.rules
        problem = queue_problem(session, job) if not served or rules.queues.only_leaves_take_jobs else ""
        if served and not problem and rules.gangs.wait_for_pods:
            problem = not_ready(session, job)
        return [problem] if problem else list(session.refusals.jobs.get(job, ()))

    @cached_property
    def jobs(self) -> dict[str, JobOutcome]:
        session, phases = self.session, job_phases(self.session)
        rows = session.jobs.rows.tolist()
        if session.rules.queues.only_leaves_take_jobs:
            rows += [job for job in session.cluster.jobs.facts if job not in self.served]
        return {session.job_key(job): self._job(job, phases.get(job, "Pending")) for job in rows}

    def _job(self, job: int, phase: str) -> JobOutcome:
        session, reasons = self.session, self._reasons(job)
        conditions = [condition.copy() for condition in session.conditions.get(job, ())]
        told = scheduling_condition(session, job, reasons)
        return JobOutcome(
            phase=phase,
            conditions=conditions if told is None else [*conditions, told],
            reasons=reasons,
            queue=session.job_facts(job).queue,
            ready=session.ready(job),
            minimum=int(session.jobs.minimum[job]),
            total=session.task_count(job),
        )

    def _reasons(self, job: int) -> list[str]:
        """Why a job waits: its own reasons, and those of its tasks that they do not contain already."""
        session = self.session
        if session.task_count(job) and not session.jobs.counts[_WAITING, job].any():
            return list(session.refusals.jobs.get(job, ()))
        told = list(self._told(job))
        if session.jobs.counts[Status.PENDING, job]:
            rows = session.tasks_of(job)
            in_order = rows[np.argsort(session.tasks.rank[rows])].tolist()
            causes = dict.fromkeys(str(self._causes[row]) for row in in_order if row in self._causes)
            told += [cause for cause in causes if not any(cause in one for one in told)]
        return list(dict.fromkeys(told))

    @cached_property
    def queues(self) -> dict[str, QueueOutcome]:
        session = self.session
        reports = [p.queue_report for _, p in session.plugins if hasattr(p, "queue_report")]
        return {
            session.queue_name(queue): self._queue(queue, reports[0](queue) if reports else {})
            for queue in session.queues.facts
        }

    def _queue(self, queue: int, report: Mapping[str, Any]) -> QueueOutcome:
        session, describe, facts = self.session, self.session.resources.describe, self.session.queues.facts
        jobs = self._jobs_of.get(queue, [])
        allocated = session.jobs.allocated[:, jobs].sum(axis=1)
        known = {name: describe(report[name]) for name in ("deserved", "capability") if name in report}
        if "counted" in report:
            # These dimensions are the plugin's to tell: it knows of parts of devices, and nothing of them is nothing.
            counted = report["counted"]
            allocated = allocated.astype(np.float64)
            allocated[counted] = report["allocated"][counted]
            names = [session.resources.names[dimension] for dimension in counted.tolist()]
            for name in ("quota", "capability"):
                ended = {one for one in names if np.isfinite(report[name][session.resources.known(one)])}
                known[name] = {
                    **dict.fromkeys((one for one in names if one in ended), 0),
                    **describe(report[name]),
                }
        told: Mapping[str, Mapping[str, float]] = session.options.get("queueUsage") or {}
        return QueueOutcome(
            deserved=known.get("deserved", {}),
            allocated=describe(allocated),
            capability=known.get("capability", {}),
            weight=facts[queue].weight,
            share=float(report.get("share", 0.0)),
            jobs=len(jobs),
            quota=known.get("quota"),
            parent=facts[queue].parent,
            usage=dict(told.get(session.queue_name(queue), {})),
        )

    @cached_property
    def _jobs_of(self) -> dict[int, list[int]]:
        """The jobs of each queue; where the queue tree counts, with those of the queues below it."""
        session, found = self.session, dict[int, list[int]]()
        rows, in_tree = session.jobs.rows, session.rules.queues.only_leaves_take_jobs
        for job, queue in zip(rows.tolist(), session.jobs.queue[rows].tolist(), strict=True):
            inside = in_tree and queue in session.queue_tree
            for one in session.queue_tree.path(queue) if inside else [queue]:
                found.setdefault(one, []).append(job)
        return found

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
