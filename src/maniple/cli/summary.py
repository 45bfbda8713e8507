"""A plan as rows: what is placed, starts later, is evicted or waits, and why; how full nodes and queues are.

Called by `render`, which formats the rows as tables and writes the same rows as JSON and YAML, and by `plan`, which
checks whether anything waits. Nothing here prints. Row order is the plan's own order, except that nodes come
fullest first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from maniple.framework.plans.causes import counted
from maniple.objects.quantity import human_bytes, human_cpu

if TYPE_CHECKING:
    from maniple.planner import Plan, QueueOutcome

WAITING_STATUSES = frozenset({"Pending", "Gated"})
FIRST_RESOURCES = ("cpu", "memory")
BYTES = ("memory", "ephemeral-storage")
ROOT_QUEUE = "root"  # Volcano's, above all others
MOST_RESOURCES = 4
NEARLY_FULL = 0.9


@dataclass(slots=True)
class Placed:
    """The pods of one job that get a node in this plan; some only once their volumes are bound."""

    job: str
    queue: str
    nodes: Counter[str] = field(default_factory=Counter)
    held: int = 0

    @property
    def tasks(self) -> int:
        return self.nodes.total()


@dataclass(slots=True)
class Later:
    """The pods of one job that start as soon as others have left their nodes."""

    job: str
    queue: str
    nodes: Counter[str] = field(default_factory=Counter)
    reasons: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        return self.nodes.total()


@dataclass(slots=True)
class Evicted:
    """Pods of one job that leave for the same reason. `actor`: the job that gets the room, if there is one."""

    job: str
    queue: str
    actor: str
    action: str
    reason: str
    pods: list[str] = field(default_factory=list)
    nodes: Counter[str] = field(default_factory=Counter)
    moves_to: Counter[str] = field(default_factory=Counter)


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
class Summary:
    """All rows about jobs. A job is in `waiting` if its state says so, and nowhere else if all of its pods wait."""

    placed: list[Placed]
    starting: list[Later]
    evicted: list[Evicted]
    waiting: list[Waiting]


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a node or a queue is: its largest share, and amount and limit of each resource."""

    name: str
    share: float
    amounts: Mapping[str, float]
    limits: Mapping[str, float]


def summary(plan: "Plan", jobs_of: Mapping[str, str] | None = None) -> Summary:
    jobs_of = jobs_of_tasks(plan) if jobs_of is None else jobs_of
    return Summary(
        placed_jobs(plan, jobs_of),
        starting_jobs(plan, jobs_of),
        evicted_jobs(plan),
        waiting_jobs(plan, jobs_of),
    )


def jobs_of_tasks(plan: "Plan") -> dict[str, str]:
    """The job of every pod ("namespace/pod") that has one, as the plan calls it."""
    return {task: outcome.job for task, outcome in plan.tasks.items() if outcome.job is not None}


def placed_jobs(plan: "Plan", jobs_of: Mapping[str, str]) -> list[Placed]:
    """One row per job; a pod without a job is its own row."""
    rows: dict[str, Placed] = {}
    for placements, held in ((plan.binds, False), (plan.held, True)):
        for task, node in placements.items():
            job = jobs_of.get(task, task)
            row = rows.get(job)
            if row is None:
                row = rows[job] = Placed(job, _queue_of(plan, job))
            row.nodes[node] += 1
            row.held += held
    return list(rows.values())


def starting_jobs(plan: "Plan", jobs_of: Mapping[str, str]) -> list[Later]:
    """The same for pods that start later. A pod that moves is not among them: it is evicted first."""
    rows: dict[str, Later] = {}
    moving = {one.pod for one in plan.evicted if one.moves_to}
    for task, one in plan.starting.items():
        if task in moving:
            continue
        name = jobs_of.get(task, task)
        row = rows.get(name)
        if row is None:
            job = plan.jobs.get(name)
            reasons = job.reasons if job is not None and job.state == "starting" else [one.reason]
            row = rows[name] = Later(name, _queue_of(plan, name), reasons=list(reasons))
        row.nodes[one.node] += 1
    return list(rows.values())


def evicted_jobs(plan: "Plan") -> list[Evicted]:
    """One row for the pods of a job that leave for the same reason."""
    rows: dict[tuple[str, str, str], Evicted] = {}
    for one in plan.evicted:
        reason = plan.tasks[one.pod].reason
        key = (one.job or one.pod, one.actor, reason)
        row = rows.get(key)
        if row is None:
            row = rows[key] = Evicted(key[0], _queue_of(plan, one.job), one.actor, one.action, reason)
        row.pods.append(one.pod)
        row.nodes[one.node] += 1
        if one.moves_to:
            row.moves_to[one.moves_to] += 1
    return list(rows.values())


def _queue_of(plan: "Plan", job: str) -> str:
    outcome = plan.jobs.get(job)
    return "" if outcome is None else outcome.queue


def waiting_jobs(plan: "Plan", jobs_of: Mapping[str, str]) -> list[Waiting]:
    """Jobs that wait, then pods that do without a job, or whose pod group is missing."""
    rows = [
        Waiting(name, job.queue, job.waiting, job.ready, job.minimum, list(job.reasons))
        for name, job in plan.jobs.items()
        if job.state == "waiting"
    ]
    left: dict[str, list[str]] = {}
    for task, outcome in plan.tasks.items():
        name = jobs_of.get(task, task)
        if outcome.status in WAITING_STATUSES and name not in plan.jobs:
            left.setdefault(name, []).append(outcome.reason)
    return rows + [Waiting(name, "", len(given), 0, 1, counted(given)) for name, given in left.items()]


# -- how full nodes and queues are ------------------------------------------------------------------------------------


def node_fill(plan: "Plan") -> list[Fill]:
    """Every node, the fullest first."""
    rows = [Fill(name, 0.0, node.used, node.allocatable) for name, node in plan.nodes.items()]
    return sorted(measured(rows), key=lambda row: (-row.share, row.name))


def queue_fill(plan: "Plan") -> list[Fill]:
    """Every queue but the root, against what it deserves."""
    rows = [Fill(name, 0.0, queue.allocated, queue.deserved) for name, queue in shown_queues(plan)]
    return measured(rows, deserved_resources(rows))


def deserved_resources(rows: Iterable[Fill]) -> list[str]:
    """Resources that queues get a share of, because their jobs request them."""
    return [name for row in rows for name, amount in row.limits.items() if 0 < amount < inf]


def shown_queues(plan: "Plan") -> list[tuple[str, "QueueOutcome"]]:
    """Without Volcano's root: it only has what the others have together.

    In a tree with quotas any queue may be called so; one that others are below, or that has jobs, is shown.
    """
    tree = any(queue.quota is not None for queue in plan.queues.values())
    parents = {queue.parent for queue in plan.queues.values()}
    root = plan.queues.get(ROOT_QUEUE)
    shown = root is not None and (ROOT_QUEUE in parents or root.jobs > 0) if tree else len(plan.queues) == 1
    return [(name, queue) for name, queue in plan.queues.items() if name != ROOT_QUEUE or shown]


def measured(rows: Iterable[Fill], wanted: Iterable[str] = ()) -> list[Fill]:
    """With shares: each the largest of the resources that are shown."""
    rows = list(rows)
    resources = shown_resources(rows, wanted)
    return [
        replace(
            row,
            share=max(
                (
                    share_of(row.amounts.get(one, 0), row.limits[one])
                    for one in resources
                    if one in row.limits
                ),
                default=0.0,
            ),
        )
        for row in rows
    ]


def share_of(amount: float, limit: float) -> float:
    if limit > 0:
        return amount / limit
    return inf if amount > 0 else 0.0


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
    queues = dict(shown_queues(plan))
    if all(queue.quota is None for queue in queues.values()):
        return []
    fills = {fill.name: fill for fill in queue_fill(plan)}
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
        lines.append(_queue_line(fills[name], queues[name], depth, sorted(named)))
        open_ends += [(child, depth + 1) for child in sorted(below.get(name, ()), reverse=True)]
    return lines


def _queue_line(fill: Fill, queue: "QueueOutcome", depth: int, named: list[str]) -> QueueLine:
    if queue.quota is None:
        return QueueLine(fill, depth, "not in use", "-", "")
    # Without quota or limit, or if it is unlimited, there is nothing to show.
    quota = {one: queue.quota[one] for one in named if 0 < queue.quota.get(one, 0) < inf}
    limit = {one: queue.capability[one] for one in named if queue.capability.get(one, inf) < inf}
    usage = [f"{short_name(one)} {part:.0%}" for one, part in sorted(queue.usage.items())]
    return QueueLine(fill, depth, listed_amounts(quota), listed_amounts(limit), ", ".join(usage))


def listed_amounts(amounts: Mapping[str, float]) -> str:
    return (
        ", ".join(f"{short_name(name)} {human_amount(name, amount)}" for name, amount in amounts.items())
        or "-"
    )


def short_name(resource: str) -> str:
    """ "gpu" for "nvidia.com/gpu"."""
    return resource.rpartition("/")[2]


def shown_resources(
    rows: Iterable[Fill], wanted: Iterable[str] = (), most: int = MOST_RESOURCES
) -> list[str]:
    """The resources worth a column: cpu and memory, then others in use or wanted, those of most rows first.

    The number of pods is shown only if it is what a row runs short of.
    """
    users = Counter(name for name in wanted if name not in (*FIRST_RESOURCES, "pods"))
    for row in rows:
        for name, amount in row.amounts.items():
            limit = row.limits.get(name, 0)
            if name == "pods":
                users[name] += 0 < limit < inf and amount / limit >= NEARLY_FULL
            elif name not in FIRST_RESOURCES:
                users[name] += amount > 0
    others = sorted((name for name in users if users[name]), key=lambda name: (-users[name], name))
    return [*FIRST_RESOURCES, *others][:most]


def human_amount(resource: str, amount: float) -> str:
    """An amount in canonical units (millicores, bytes, whole units), formatted for output."""
    if amount == float("inf"):
        return "∞"
    if resource == "cpu":
        return human_cpu(round(amount))
    if resource in BYTES or resource.startswith("hugepages-"):
        return human_bytes(round(amount))
    return f"{amount:,.{1 if abs(amount) >= 10 else 2}f}".rstrip("0").rstrip(".")
