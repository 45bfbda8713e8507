"""A plan as rows: what is placed, what is pending and why, how full nodes and queues are.

Called by `render`, which formats the rows, and by `plan`, which checks whether anything is pending. Nothing
here prints. Row order is the plan's own order, except that nodes come fullest first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from maniple.objects.quantity import human_bytes, human_cpu

if TYPE_CHECKING:
    from maniple.planner import Plan, QueueOutcome

# Annotations that name a pod's gang: Volcano's, then KAI's.
WAITING_STATUSES = frozenset({"Pending", "Gated"})
NO_PODS = "none of its pods names this scheduler"
FIRST_RESOURCES = ("cpu", "memory")
BYTES = ("memory", "ephemeral-storage")


@dataclass(slots=True)
class Placed:
    """The tasks of one job that get a node in this plan."""

    job: str
    queue: str
    nodes: Counter[str] = field(default_factory=Counter)
    pipelined: int = 0

    @property
    def tasks(self) -> int:
        return self.nodes.total()


@dataclass(slots=True)
class Waiting:
    """A job that lacks tasks it needs, or has tasks left that fit no node."""

    job: str
    queue: str
    tasks: int
    ready: int
    minimum: int
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a node or a queue is: its largest share, and amount and limit of each resource."""

    name: str
    share: float
    amounts: Mapping[str, float]
    limits: Mapping[str, float]


def jobs_of_tasks(plan: "Plan") -> dict[str, str]:
    """The job of every pod ("namespace/pod") that has one, as the plan calls it."""
    return {task: outcome.job for task, outcome in plan.tasks.items() if outcome.job is not None}


def placed_jobs(plan: "Plan", jobs_of: Mapping[str, str]) -> list[Placed]:
    """One row per job; a pod without a job is its own row."""
    rows: dict[str, Placed] = {}
    for placements, pipelined in ((plan.binds, False), (plan.pipelined, True)):
        for task, node in placements.items():
            job = jobs_of.get(task, task)
            row = rows.get(job)
            if row is None:
                row = rows[job] = Placed(job, _queue_of(plan, job))
            row.nodes[node] += 1
            row.pipelined += pipelined
    return list(rows.values())


def _queue_of(plan: "Plan", job: str) -> str:
    outcome = plan.jobs.get(job)
    return "" if outcome is None else outcome.queue


def waiting_jobs(plan: "Plan", jobs_of: Mapping[str, str]) -> list[Waiting]:
    """Jobs below their minimum, and jobs (or single pods) with tasks that fit no node."""
    left: dict[str, list[str]] = {}
    for task, outcome in plan.tasks.items():
        if outcome.status in WAITING_STATUSES:
            left.setdefault(jobs_of.get(task, task), []).append(outcome.reason)
    rows = []
    for name, job in plan.jobs.items():
        short = job.ready < job.minimum and job.phase != "Completed"
        task_reasons = left.pop(name, [])
        if short or task_reasons:
            reasons = list(job.reasons) or _counted(task_reasons) or _condition_messages(job.conditions)
            if not reasons and not job.total:
                reasons = [NO_PODS]
            rows.append(Waiting(name, job.queue, len(task_reasons), job.ready, job.minimum, reasons))
    rows += [Waiting(name, "", len(given), 0, 1, _counted(given)) for name, given in left.items()]
    return rows


def _counted(reasons: Iterable[str]) -> list[str]:
    """Distinct reasons, the most frequent first, with the number of tasks."""
    counts = Counter(reason for reason in reasons if reason)
    if len(counts) == 1:
        return list(counts)
    return [f"{count} task{'' if count == 1 else 's'}: {reason}" for reason, count in counts.most_common()]


def _condition_messages(conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        str(each["message"]) for each in conditions if each.get("status") == "True" and each.get("message")
    ]


def node_fill(plan: "Plan") -> list[Fill]:
    """Every node, the fullest first."""
    rows = []
    for name, node in plan.nodes.items():
        share = max(
            (_share(node.used.get(key, 0), limit) for key, limit in node.allocatable.items()), default=0.0
        )
        rows.append(Fill(name, share, node.used, node.allocatable))
    return sorted(rows, key=lambda row: (-row.share, row.name))


def _share(amount: float, limit: float) -> float:
    return amount / limit if limit > 0 else 0.0


def queue_fill(plan: "Plan") -> list[Fill]:
    """Every queue, against what it deserves."""
    return [Fill(name, queue.share, queue.allocated, queue.deserved) for name, queue in plan.queues.items()]


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue in its tree: its fair share, and its quota and limit, as text."""

    fill: Fill
    depth: int
    quota: str
    limit: str
    usage: str


def queue_lines(plan: "Plan") -> list[QueueLine]:
    """Every queue below its parent, if the plan's queues have quotas; none otherwise."""
    queues = plan.queues
    if all(queue.quota is None for queue in queues.values()):
        return []
    named = {one for queue in queues.values() for one in (*(queue.quota or ()), *queue.deserved)}
    below: dict[str, list[str]] = {}
    for name, queue in queues.items():
        # One with a missing parent, or in a cycle, has no quota here, and stands by itself.
        inside = queue.quota is not None and queue.parent in queues
        below.setdefault(queue.parent if inside else "", []).append(name)
    lines: list[QueueLine] = []
    open_ends = [(name, 0) for name in sorted(below.get("", ()), reverse=True)]
    while open_ends:
        name, depth = open_ends.pop()
        lines.append(_queue_line(name, queues[name], depth, sorted(named)))
        open_ends += [(child, depth + 1) for child in sorted(below.get(name, ()), reverse=True)]
    return lines


def _queue_line(name: str, queue: "QueueOutcome", depth: int, named: list[str]) -> QueueLine:
    fill = Fill(name, queue.share, queue.allocated, queue.deserved)
    if queue.quota is None:
        return QueueLine(fill, depth, "not in use", "-", "")
    # Without quota or limit, as for most resources, there is nothing to show.
    quota = {one: queue.quota.get(one, inf) for one in named if queue.quota.get(one, inf)}
    limit = {one: queue.capability[one] for one in named if one in queue.capability}
    usage = [f"{_short(one)} {part:.0%}" for one, part in sorted(queue.usage.items())]
    return QueueLine(fill, depth, _listed(quota), _listed(limit), ", ".join(usage))


def _listed(amounts: Mapping[str, float]) -> str:
    return (
        ", ".join(f"{_short(name)} {human_amount(name, amount)}" for name, amount in amounts.items()) or "-"
    )


def _short(resource: str) -> str:
    """ "gpu" for "nvidia.com/gpu"."""
    return resource.rpartition("/")[2]


def shown_resources(rows: Iterable[Fill], most: int = 4) -> list[str]:
    """The resources worth a column: cpu and memory, then those that most rows use, such as GPUs."""
    users: Counter[str] = Counter()
    for row in rows:
        for name, limit in row.limits.items():
            if limit > 0 and name not in FIRST_RESOURCES and name != "pods":
                users[name] += 1 if row.amounts.get(name, 0) else 0
    others = sorted(users, key=lambda name: (-users[name], name))
    return [*FIRST_RESOURCES, *others][:most]


def human_amount(resource: str, amount: float) -> str:
    """An amount in canonical units (millicores, bytes, whole units), formatted for output."""
    if amount == float("inf"):
        return "∞"
    if resource == "cpu":
        return human_cpu(round(amount))
    if resource in BYTES or resource.startswith("hugepages-"):
        return human_bytes(round(amount))
    return f"{amount:g}"
