"""The account of every queue in KAI's proportion: what it may have, what it has, what it requests.

Made by `proportion` when a session opens, read by its rules. An amount is a list of numbers, one per
resource, in the units of `counting.py`: millicores, bytes of memory, hundredths of a GPU, and the other
counted resources. Infinite means unlimited.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from operator import add, le, sub
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import ALLOCATED_LIKE, Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.kai import KaiQueue, QueueResource
from maniple.plugins.kai.counting import GPU, Amount, Counting, Floats
from maniple.plugins.kai.fair_share import ShareTerms, fair_shares

RESOURCES = ("cpu", "memory", "gpu")
_THREE = len(RESOURCES)  # most often there are no others, and then a loop would cost more than it saves
_MEGABYTE = 1_000_000
_UNLIMITED = -1
_NOTHING = QueueResource()


class Quantities(NamedTuple):
    """An amount for messages, in KAI's format: millicores, bytes, GPUs."""

    cpu: float
    memory: float
    gpu: float

    def __str__(self) -> str:
        cores, gigabytes = readable(self.cpu, 1000), readable(self.memory, 10**9)
        return f"GPU: {readable(self.gpu)}, CPU: {cores} (cores), memory: {gigabytes} (GB)"


def readable(value: float, unit: float = 1) -> str:
    """At most three decimals, the rest cut off."""
    if isinf(value):
        return "Unlimited"
    whole, _, decimals = f"{value / unit:.6f}".partition(".")
    decimals = decimals[:3].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


@dataclass(slots=True, eq=False)
class Account:
    """One queue; `allocated` and `firm` follow the session, the rest is as of its opening."""

    queue: int
    parent: int  # -1 for none
    key: str
    name: str  # its display name
    priority: int
    created: float
    quota: Amount
    limit: Amount
    request: Amount
    fair: Amount
    allocatable: Amount  # what it may have before others can reclaim it
    against: Amount  # what `allocated` is compared with
    allocated: Amount
    firm: Amount  # of that, what non-preemptible jobs have
    closed: list[int] = field(init=False)  # the resources of which it may have nothing
    firm_quota: Amount = field(init=False)  # its limit for them: unlimited if unset

    def __post_init__(self) -> None:
        self.closed = [resource for resource, amount in enumerate(self.allocatable) if amount == 0]
        self.firm_quota = self.quota

    def is_above_share(self) -> bool:
        """Whether it has more than its fair share of everything."""
        fair, has = self.fair, self.allocated
        return fair[0] < has[0] and fair[1] < has[1] and fair[2] < has[2]

    def share(self, amount: Sequence[float]) -> float:
        """The largest fraction of what the queue may have that an amount is, over all resources."""
        against = self.against
        if len(against) > _THREE:
            parts = zip(amount, against, strict=True)
            return max(0.0, *[has / most if most else has * 1000 for has, most in parts])
        cpu, memory, gpu = against
        # Of what a queue may not have, every unit counts as a thousand.
        return max(
            0.0,
            amount[CPU] / cpu if cpu else amount[CPU] * 1000,
            amount[MEMORY] / memory if memory else amount[MEMORY] * 1000,
            amount[GPU] / gpu if gpu else amount[GPU] * 10,
        )


AnyAccount = TypeVar("AnyAccount", bound=Account)


def fits(amount: Sequence[float], bound: Sequence[float], of: Sequence[int] | None = None) -> bool:
    """Whether no part of the amount exceeds the bound, or none `of` some resources."""
    if of is not None:
        return all(amount[resource] <= bound[resource] for resource in of)
    if len(amount) == _THREE:
        return amount[0] <= bound[0] and amount[1] <= bound[1] and amount[2] <= bound[2]
    return all(map(le, amount, bound))


def plus(one: Sequence[float], other: Sequence[float]) -> Amount:
    if len(one) == _THREE:
        return [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
    return list(map(add, one, other))


def minus(one: Sequence[float], other: Sequence[float]) -> Amount:
    if len(one) == _THREE:
        return [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
    return list(map(sub, one, other))


# -- opening --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """What queues' objects state (resources x queues), in the units of shares: GPUs and others whole."""

    quota: Floats
    limit: Floats
    weight: Floats
    least: Floats | None = None  # divided as if at least this much were requested


def open_accounts(
    session: Session,
    counting: Counting,
    total: Floats,
    k: float,
    read: Callable[[Session, list[int]], Stated],
    make: Callable[..., AnyAccount],
) -> dict[int, AnyAccount]:
    """An account for every queue of the tree; `total` is what they divide, in millicores, bytes, GPUs and so
    on."""
    queues = _in_order(session)
    if not queues:
        return {}
    place = {queue: number for number, queue in enumerate(queues)}
    tree, units = session.queue_tree, counting.units
    parent = np.array([place.get(tree.parent(queue), -1) for queue in queues], dtype=np.int64)
    stated = read(session, queues)
    allocated, firm, pending = _held(session, counting, queues)
    for amounts in (allocated, firm, pending):
        _pass_up(amounts, parent, [len(tree.path(queue)) for queue in queues])
    request = (allocated + pending) / units
    terms = ShareTerms(
        parent=parent,
        priority=np.array([session.queues.facts[queue].priority for queue in queues], dtype=np.int64),
        quota=stated.quota,
        limit=stated.limit,
        weight=stated.weight,
        request=request if stated.least is None else np.maximum(request, stated.least),
        usage=_usage(session, counting, queues),
    )
    fair = _exact(
        fair_shares(total, terms, k=k, whole_leftovers=session.rules.queues.leftovers_are_whole) * units
    )
    quota, limit = _exact(stated.quota * units), _exact(stated.limit * units)
    allocatable = np.where(np.isinf(quota), limit, np.minimum(limit, np.maximum(quota, fair)))
    against = np.where(np.isinf(allocatable), total[:, None] * units, allocatable)
    columns = (quota, limit, allocated + pending, fair, allocatable, against, allocated, firm)
    return _accounts(session, queues, terms.priority, columns, make)


def _exact(units: Floats) -> Floats:
    """Hundredths of GPUs without the error of multiplying fractions."""
    units[GPU] = np.round(units[GPU], 6)
    return units


def _accounts(
    session: Session,
    queues: list[int],
    priority: NDArray[np.int64],
    columns: tuple[Floats, ...],
    make: Callable[..., AnyAccount],
) -> dict[int, AnyAccount]:
    found = {}
    by_queue = zip(*(column.T.tolist() for column in columns), strict=True)
    for queue, rank, amounts in zip(queues, priority.tolist(), by_queue, strict=True):
        item = session.queues.objects[queue]
        key, stated = item.metadata.name, session.queues.stated(queue, KaiQueue)
        name = stated.spec.display_name if stated is not None else ""
        created = float(session.queues.created[queue])
        parent = session.queue_tree.parent(queue)
        found[queue] = make(queue, parent, key, name or key, rank, created, *amounts)
    return found


def _in_order(session: Session) -> list[int]:
    """The older first; then by name, which identifies a queue in KAI."""
    created, keys = session.queues.created, session.queues.keys
    return sorted(session.queue_tree, key=lambda queue: (created[queue], keys[queue]))


def stated_by_kai(session: Session, queues: list[int]) -> Stated:
    """Cpu, memory and GPUs as KAI's objects state them."""
    rows: list[tuple[float, ...]] = []
    for queue in queues:
        item = session.queues.stated(queue, KaiQueue)
        stated = item.spec.resources if item is not None else None
        cpu, memory, gpu = (stated.cpu, stated.memory, stated.gpu) if stated else (_NOTHING,) * 3
        rows.append(
            (
                *(cpu.quota, memory.quota, gpu.quota),
                *(cpu.limit, memory.limit, gpu.limit),
                *(cpu.over_quota_weight, memory.over_quota_weight, gpu.over_quota_weight),
            )
        )
    matrix = np.array(rows, dtype=np.float64).T
    bounds = matrix[:6].reshape(2, 3, -1)
    bounds[:, MEMORY] = np.maximum(bounds[:, MEMORY] * _MEGABYTE, _UNLIMITED)
    bounds[bounds == _UNLIMITED] = inf
    return Stated(bounds[0], bounds[1], matrix[6:])


def _usage(session: Session, counting: Counting, queues: list[int]) -> Floats:
    """What queues used in the past, as parts of the capacity; only the first three are measured."""
    measured: Mapping[str, Mapping[str, Any]] = session.options.get("queueUsage") or {}
    usage = np.zeros((len(counting.names), len(queues)), dtype=np.float64)
    if measured:
        for number, queue in enumerate(queues):
            used = measured.get(session.queues.keys[queue], {})
            usage[:_THREE, number] = [float(used.get(resource, 0.0)) for resource in RESOURCES]
    return usage


def _held(session: Session, counting: Counting, queues: list[int]) -> tuple[Floats, Floats, Floats]:
    """By queue, without descendants: allocated, of that not preemptible, and requested by pending tasks."""
    tasks, jobs = session.tasks, session.jobs
    place = np.full(len(session.queues.keys) + 1, -1, dtype=np.int64)  # queue -1 reads the last entry
    place[queues] = np.arange(len(queues))
    home = np.full(len(tasks.job), -1, dtype=np.int64)
    grouped = tasks.job >= 0  # there may be tasks and not a single job
    home[grouped] = place[jobs.queue[tasks.job[grouped]]]
    holding = (home >= 0) & (tasks.status >= 0) & ALLOCATED_LIKE[tasks.status]
    if not session.rules.queues.pods_elsewhere_count:
        holding &= tasks.node >= 0
    waiting = (home >= 0) & (tasks.status == Status.PENDING)

    def sums(rows: TaskRows, amounts: Floats) -> Floats:
        return np.array([np.bincount(home[rows], weights=one, minlength=len(queues)) for one in amounts])

    held, wait = np.flatnonzero(holding), np.flatnonzero(waiting)
    amounts = counting.of_tasks(held)
    owners, owner = np.unique(tasks.job[held], return_inverse=True)
    lasting = ~session.are_preemptible(owners.astype(np.int64))[owner]
    firm = sums(held[lasting], amounts[:, lasting])
    return sums(held, amounts), firm, sums(wait, counting.of_tasks(wait))


def _pass_up(amounts: Floats, parent: NDArray[np.int64], depth: list[int]) -> None:
    """Add the amounts of queues to their ancestors."""
    depths = np.array(depth)
    for level in range(int(depths.max()), 1, -1):
        below = np.flatnonzero(depths == level)
        for amount in amounts:
            np.add.at(amount, parent[below], amount[below])


__all__ = [
    "Account",
    "Quantities",
    "Stated",
    "fits",
    "minus",
    "open_accounts",
    "plus",
    "readable",
    "stated_by_kai",
]
