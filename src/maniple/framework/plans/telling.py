"""The records of a plan, made from a closed session: rows become names, columns become amounts, causes become words.

Called by `plan.py`, for each part when it is read for the first time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import COMPLETED, NO_TASK, SCHEDULED, WAITING, Status
from maniple.framework.devices.gpu_facts import UNIT
from maniple.framework.plans import news
from maniple.framework.plans.causes import Causes
from maniple.framework.plans.evictions import Evictions
from maniple.framework.plans.freezing import Closed
from maniple.framework.plans.outcome import (
    GpuShare,
    GroupOutcome,
    JobOutcome,
    NodeOutcome,
    QueueAccount,
    QueueHolding,
    QueueOutcome,
    State,
    TaskOutcome,
    WaitingPod,
)
from maniple.framework.plans.standing import REFUSED
from maniple.framework.reasons import NotWhole

_WORDS = [status.word for status in Status]
_WITHOUT_NODE = (Status.PENDING, Status.GATED, Status.PIPELINED, Status.ALLOCATED)
_PENDING, _GATED, _PIPELINED, _RUNNING = (
    int(one) for one in (Status.PENDING, Status.GATED, Status.PIPELINED, Status.RUNNING)
)

_SCHEDULED, _COMPLETED = np.flatnonzero(SCHEDULED), np.flatnonzero(COMPLETED)


# -- decisions --------------------------------------------------------------------------------------------------------


def gpu_shares(closed: Closed) -> dict[str, GpuShare]:
    tasks = closed.tasks
    return {
        closed.names.tasks[row]: GpuShare(devices, portion, tasks.groups.get(row, ()))
        for row, (devices, portion) in tasks.shares.items()
    }


# -- tasks ------------------------------------------------------------------------------------------------------------


def tasks(closed: Closed, causes: Causes, evictions: Evictions) -> dict[str, TaskOutcome]:
    names, columns, outcomes = closed.names, closed.tasks, {}
    told = {key: one.reason for key, one in evictions.starting().items()}
    told |= {names.tasks[row]: why for row, why in evictions.reasons.items()}
    for row in np.flatnonzero(columns.status != NO_TASK).tolist():
        node, status, job = int(columns.node[row]), int(columns.status[row]), int(columns.job[row])
        if status == _PENDING and columns.gated[row]:
            status = _GATED
        outcomes[names.tasks[row]] = TaskOutcome(
            status=_WORDS[status],
            node=names.nodes[node] if node >= 0 else None,
            gpu_groups=columns.groups.get(row, ()),
            reason=causes.of_task(row, job, gated=status == _GATED)
            if WAITING[status]
            else told.get(names.tasks[row], ""),
            job=names.job(job) if job >= 0 else None,
        )
    return outcomes


def waiting(closed: Closed, causes: Causes) -> dict[str, WaitingPod]:
    names, columns, alike = closed.names, closed.tasks, dict[Any, WaitingPod]()
    rows = np.flatnonzero(np.isin(columns.status, _WITHOUT_NODE) & (columns.job >= 0))
    parts = (rows, columns.job[rows], columns.status[rows], columns.gated[rows], columns.node[rows])
    found = {}
    for row, job, status, gated, node in zip(*(part.tolist() for part in parts), strict=True):
        if row in columns.moved:
            continue  # it is where it was, and leaves
        own = causes.own.get(row)
        key = (job, status, gated, id(own), node)
        one = alike.get(key)
        if one is None:
            claims = status == _PIPELINED
            one = alike[key] = WaitingPod(
                job=names.job(job),
                reason="" if claims else causes.of_task(row, job, gated=gated or status == _GATED),
                own=own is not None,
                fits=isinstance(own, NotWhole),
                gated=gated,
                node=names.nodes[node] if claims else "",
                held_back=job in closed.jobs.held_back,
            )
        found[names.tasks[row]] = one
    return found


# -- jobs -------------------------------------------------------------------------------------------------------------


def jobs(
    closed: Closed, causes: Causes, evictions: Evictions, among: Sequence[int] | None = None
) -> dict[str, JobOutcome]:
    """Those that the cycle served, then those that it could not, because of their queue; all, or those `among`."""
    columns, all_phases, placed = closed.jobs, phases(closed, among), _placed(closed)
    if among is not None:
        rows = [job for job in among if job in columns.facts]
    else:
        rows = columns.rows.tolist()
        served = frozenset(rows)
        rows += [job for job in columns.facts if job not in served]
    return {
        closed.names.job(job): _job(
            closed, causes, evictions, job, all_phases.get(job, "Pending"), placed.get(job, 0)
        )
        for job in rows
    }


def _placed(closed: Closed) -> Counter[int]:
    """By job: how many of its tasks got a node in this cycle."""
    decided, counts = closed.decided, Counter[int]()
    for rows, _ in (*decided.bound, *decided.held):
        counts.update(closed.tasks.job[rows].tolist())
    return counts


def _job(
    closed: Closed, causes: Causes, evictions: Evictions, job: int, phase: str, placed: int
) -> JobOutcome:
    columns, causes_found = closed.jobs, causes.with_tasks(job)
    counts = columns.counts[:, job]
    conditions = _conditions(closed, job)
    own = causes.condition(job, causes_found)
    moved = evictions.moved_of_job[job]
    outcome = JobOutcome(
        phase=phase,
        conditions=conditions if own is None else [*conditions, own],
        reasons=causes_found,
        queue=columns.facts[job].queue,
        ready=int(columns.ready[job]),
        minimum=int(columns.minimum[job]),
        total=int(counts.sum()),
        placed=placed,
        starting=int(counts[_PIPELINED]) - moved,
        waiting=int(counts[_PENDING] + counts[_GATED]),
        evicted=evictions.of_job[job],
    )
    state = state_of(outcome, moved)
    reasons = {
        "starting": evictions.starts_of_job,
        "evicted": evictions.reason_of_job,
        "waiting": causes.complete,
    }.get(state)
    return replace(outcome, state=state, reasons=reasons(job) if reasons is not None else [])


def state_of(job: JobOutcome, moved: int) -> State:
    """One word for a job; `moved`: its pods that move to another node."""
    lacks = job.ready + job.starting + moved < job.minimum and job.phase != "Completed"
    if job.waiting or (lacks and not job.evicted):
        return "waiting"
    if job.starting:
        return "starting"
    if job.evicted:
        return "evicted"
    if job.placed:
        return "placed"
    if job.phase == "Completed":
        return "completed"
    return "running" if job.total else "idle"


def phases(closed: Closed, among: Sequence[int] | None = None) -> dict[int, str]:
    """The phase of every job (or of those `among`) that was served, at the end of the session.

    Unknown: something runs, yet the gang is unschedulable. Running or Completed: enough tasks are (or were) on
    nodes. Otherwise a job stays admitted once it is, and waits until then.
    """
    columns, refused, found = closed.jobs, closed.refused, dict[int, str]()
    rows = columns.rows if among is None else _served_among(closed, among)
    counts = columns.counts[:, rows]
    scheduled = counts[_SCHEDULED].sum(axis=0)
    if counts[Status.RELEASING].any():
        scheduled += news.leaving(closed)[rows]
    parts = (counts[_RUNNING], scheduled, counts[_COMPLETED].sum(axis=0), columns.minimum[rows])
    for job, running, there, over, minimum in zip(
        rows.tolist(), *(part.tolist() for part in parts), strict=True
    ):
        unschedulable = any(c["type"] == "Unschedulable" for c in refused.conditions.of(job))
        if unschedulable and running:
            found[job] = "Unknown"
        elif there >= minimum:
            found[job] = "Completed" if there == over else "Running"
        else:
            phase = columns.phases.get(job) or columns.facts[job].phase
            found[job] = "Inqueue" if phase == "Inqueue" else "Pending"
    return found


def _served_among(closed: Closed, among: Sequence[int]) -> NDArray[np.int64]:
    """Those of some jobs that the cycle served, in the order of their rows."""
    served = np.zeros(len(closed.jobs.queue), dtype=np.bool_)
    served[closed.jobs.rows] = True
    rows = np.array(sorted(among), dtype=np.int64)
    return rows[served[rows]]


def groups(closed: Closed, causes: Causes, rows: Sequence[int]) -> dict[str, GroupOutcome]:
    """The pod groups of these jobs."""
    columns, refused, chosen = closed.jobs, closed.refused, np.array(rows, dtype=np.int64)
    counts, all_phases = columns.counts[:, chosen].T.tolist(), phases(closed, rows)
    broken, behind = closed.decided.stale_since, _gated(closed)
    found = {}
    for job, numbers in zip(rows, counts, strict=True):
        group, facts = columns.groups[job], columns.facts[job]
        waits, held = numbers[_PENDING] or numbers[_GATED], columns.held_back.get(job, "")
        found[closed.names.job(job)] = GroupOutcome(
            key=group.key,
            api_group=group.api_group,
            queue=facts.queue,
            served=job in all_phases,
            phase=all_phases.get(job, "Pending"),
            counts={_WORDS[status]: number for status, number in enumerate(numbers) if number},
            conditions=_conditions(closed, job),
            queue_problem=causes.queue_problem(job),
            not_ready=causes.not_ready(job) if waits and not held else "",
            refusals=[held] if held else [str(one) for one in refused.jobs.get(job, ())],
            over=causes.over(job),
            pod_sets=causes.pod_sets(job),
            gated=tuple(behind.get(job, ())),
            stale_since=broken.get(job, facts.stale_since),
            of_others=job in columns.foreign and not any(numbers),
            held_back=bool(held),
        )
    return found


def _conditions(closed: Closed, job: int) -> list[dict[str, Any]]:
    """Those that plugins state; of a job that is not served at all, with that reason in place of theirs."""
    stated: list[dict[str, Any]] = [one.copy() for one in closed.refused.conditions.of(job)]
    held = closed.jobs.held_back.get(job)
    for one in stated if held else ():
        if one["type"] == "Unschedulable":
            one |= {"reason": REFUSED, "message": held}
    return stated


def _gated(closed: Closed) -> dict[int, list[str]]:
    """By job: its pods behind scheduling gates."""
    columns, found = closed.tasks, dict[int, list[str]]()
    for row in np.flatnonzero((columns.status == Status.GATED) & (columns.job >= 0)).tolist():
        found.setdefault(int(columns.job[row]), []).append(closed.names.tasks[row])
    return found


# -- queues and nodes ------------------------------------------------------------------------------------------------


def queues(closed: Closed) -> dict[str, QueueOutcome]:
    below = _jobs_below(closed)
    return {
        closed.names.queues[queue]: _queue(closed, queue, below.get(queue, []))
        for queue in closed.queues.facts
    }


def _queue(closed: Closed, queue: int, below: list[int]) -> QueueOutcome:
    describe, names = closed.resources.describe, closed.resources.names
    facts, report = closed.queues.facts[queue], closed.queues.reports.get(queue, {})
    allocated: NDArray[Any] = closed.jobs.allocated[:, below].sum(axis=1)
    known = {name: describe(report[name]) for name in ("deserved", "capability") if name in report}
    if "counted" in report:
        # The plugin accounts for these dimensions: it knows parts of devices, and an amount of zero is stated.
        counted = report["counted"]
        allocated = allocated.astype(np.float64)
        allocated[counted] = report["allocated"][counted]
        for name in ("quota", "capability"):
            ended = [names[one] for one in counted.tolist() if np.isfinite(report[name][one])]
            known[name] = {**dict.fromkeys(ended, 0), **describe(report[name])}
    name = closed.names.queues[queue]
    return QueueOutcome(
        deserved=known.get("deserved", {}),
        allocated=describe(allocated),
        capability=known.get("capability", {}),
        weight=facts.weight,
        share=float(report.get("share", 0.0)),
        jobs=len(below),
        quota=known.get("quota"),
        parent=facts.parent,
        usage=dict(closed.queues.usage.get(name, {})),
    )


def _jobs_below(closed: Closed) -> dict[int, list[int]]:
    """The jobs of each queue; where the queue tree counts, with those of the queues below it."""
    rows, found = closed.jobs.rows, dict[int, list[int]]()
    for job, queue in zip(rows.tolist(), closed.jobs.queue[rows].tolist(), strict=True):
        for one in closed.queues.paths.get(queue, (queue,)):
            found.setdefault(one, []).append(job)
    return found


def holdings(closed: Closed) -> dict[str, QueueHolding]:
    columns, rows = closed.jobs, closed.jobs.rows
    held, fixed = columns.allocated[:, rows], columns.fixed[rows]
    amounts, requested = (
        _by_queue(closed, rows, held),
        _by_queue(closed, rows, held + columns.pending[:, rows]),
    )
    of_fixed = _by_queue(closed, rows[fixed], held[:, fixed])
    counts = columns.counts[:, rows]
    left = rows[(COMPLETED @ counts < counts.sum(axis=0)) | ~counts.any(axis=0)]
    jobs = np.bincount(columns.queue[left], minlength=len(closed.names.queues)).tolist()
    shared = {int(columns.queue[job]) for job in columns.foreign}
    return {
        closed.names.queues[queue]: QueueHolding(
            parent=facts.parent,
            amounts=amounts.get(queue, {}),
            shared=queue in shared,
            fixed=of_fixed.get(queue, {}),
            requested=requested.get(queue, {}),
            jobs=jobs[queue],
        )
        for queue, facts in closed.queues.facts.items()
    }


def _by_queue(
    closed: Closed, rows: NDArray[np.int64], amounts: NDArray[np.int64]
) -> dict[int, dict[str, int]]:
    """Amounts of jobs added up by their queues; nothing of what a queue has nothing of."""
    if not len(rows):
        return {}
    queues = closed.jobs.queue[rows]
    order = np.argsort(queues, kind="stable")
    numbers, starts = np.unique(queues[order], return_index=True)
    sums = np.add.reduceat(amounts[:, order], starts, axis=1).T.tolist()
    names = closed.resources.names
    return {
        queue: {names[one]: amount for one, amount in enumerate(own) if amount}
        for queue, own in zip(numbers.tolist(), sums, strict=True)
    }


def accounts(closed: Closed) -> dict[str, QueueAccount]:
    """Queues that evictions are about, before the cycle: reports are of its end, so that its changes are taken off."""
    names, queues_, changed = closed.names.queues, closed.queues, _changes(closed)
    found = {}
    for queue, path in queues_.paths.items() if closed.decided.evicted else ():
        report = queues_.reports.get(queue, {})
        if "quota" in report:
            used = _three(closed, report["allocated"]) - changed.get(queue, np.zeros(3))
            cpu, memory, gpus = used.tolist()
            found[names[queue]] = QueueAccount(
                parent=names[path[1]] if len(path) > 1 else "",
                used=(cpu, memory, gpus),
                quota=_ended(_three(closed, report["quota"])),
                fair_share=_ended(_three(closed, report["deserved"])),
                priority=queues_.facts[queue].priority,
            )
    return found


def _changes(closed: Closed) -> dict[int, NDArray[np.float64]]:
    """By queue, with those above: what the cycle placed there less what it evicted."""
    rows, amounts = closed.queues.changed
    found: dict[int, NDArray[np.float64]] = {}
    for place, job in enumerate(closed.tasks.job[rows].tolist()):
        queue = int(closed.jobs.queue[job]) if job >= 0 else -1
        for one in closed.queues.paths.get(queue, ()):
            found[one] = found.get(one, np.zeros(3)) + amounts[:, place]
    return found


def _three(closed: Closed, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cpu in milli, memory in bytes, GPUs."""
    gpu = closed.queues.gpu
    return np.array([vector[CPU], vector[MEMORY], vector[gpu] / UNIT if gpu is not None else 0.0])


def _ended(amounts: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    cpu, memory, gpus = (one if np.isfinite(one) else None for one in amounts.tolist())
    return cpu, memory, gpus


def nodes(closed: Closed) -> dict[str, NodeOutcome]:
    columns, describe = closed.nodes, closed.resources.describe
    idle = columns.allocatable - columns.used
    return {
        name: NodeOutcome(
            idle=describe(idle[:, i]),
            releasing=describe(columns.releasing[:, i]),
            used=describe(columns.used[:, i]),
            allocatable=describe(columns.allocatable[:, i]),
        )
        for i, name in enumerate(closed.names.nodes)
    }


def time_matters(closed: Closed) -> bool:
    """A broken gang has only so much time; a job that has only just started may be no victim yet; and a search
    that left nodes out looks at others later."""
    columns, decided = closed.jobs, closed.decided
    if decided.half_gangs or decided.goes_on_later or decided.stale_since or columns.stale:
        return True
    return closed.protects and bool(columns.counts[Status.PENDING, columns.rows].any())
