"""Buckets: tasks of one job that should be placed together, by the affinity rules of its roles.

Called by task-topology, once per job. Tasks on nodes come first and make a bucket per node; then the pending
ones, by the job's own order, the kind of rule and the name. Each goes to the bucket with the highest
affinity, if that is not negative, of equal ones to the one with the smallest request (1m of CPU counts like 1
Mi and like a thousandth of anything else); else it opens a new one. A bucket follows placements and their
undoing. Tasks whose role no rule names are in none.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.plugins.topology.roles import RoleRules

_MEBIBYTE = 1024 * 1024


@dataclass(slots=True, eq=False)
class Bucket:
    """`waiting` are its tasks without a node; `on_node` counts those with one, by node."""

    number: int
    roles: dict[str, int] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    on_node: dict[int, int] = field(default_factory=dict)
    weight: float = 0.0  # of the tasks that waited when the session opened
    version: int = 0  # grows with every task that joins

    def count(self, node: int, change: int) -> None:
        self.on_node[node] = self.on_node.get(node, 0) + change
        if not self.on_node[node]:
            del self.on_node[node]


class JobBuckets:
    """The buckets of one job."""

    def __init__(self, session: Session, job: int, rules: RoleRules) -> None:
        self._session = session
        self.rules = rules
        self._roles_are_forgotten = session.rules.topology.roles_are_forgotten
        self.rows = session.tasks_of(job)
        self.role_of = _roles(session, self.rows, rules)
        self.buckets: list[Bucket] = []
        self.bucket_of: dict[int, Bucket] = {}
        self.roles_on: dict[int, dict[str, int]] = {}  # node -> role -> tasks of the job there
        self.weights = _weights(session, self.rows)
        # By role, buckets that may take a task of it, the best first; outdated entries are skipped.
        self._best: dict[str, list[tuple[int, float, int, int]]] = {role: [] for role in rules.ranks}
        self._first: set[int] = set()  # had a node when the session opened
        self._gather_placed()
        self._gather_waiting()
        sizes = [len(bucket.waiting) + sum(bucket.on_node.values()) for bucket in self.buckets]
        self.largest = max(sizes, default=0)

    # -- updates --------------------------------------------------------------------------------------------------

    def placed(self, row: int, node: int) -> None:
        """A task got a node, or has it again after all."""
        bucket = self.bucket_of.get(row)
        if bucket is not None:
            bucket.waiting.discard(row)
            bucket.count(node, 1)
            self._count_role(row, node, 1)

    def taken_away(self, row: int, node: int) -> None:
        """The opposite; only a task that had no node before this session is pending again."""
        bucket = self.bucket_of.get(row)
        if bucket is not None:
            bucket.count(node, -1)
            if row not in self._first:
                bucket.waiting.add(row)
            self._count_role(row, node, -1)

    def _count_role(self, row: int, node: int, change: int) -> None:
        if self._roles_are_forgotten and row in self._first:
            return
        roles, role = self.roles_on.setdefault(node, {}), self.role_of[row]
        roles[role] = roles.get(role, 0) + change

    # -- gathering ------------------------------------------------------------------------------------------------

    def _gather_placed(self) -> None:
        tasks, rows = self._session.tasks, self.rows
        finished_hold = self._session.rules.topology.finished_pods_hold_buckets
        there = (tasks.node[rows] >= 0) & (ON_NODE[tasks.status[rows]] | finished_hold)
        placed = rows[there]
        by_node: dict[int, Bucket] = {}
        for row in placed[np.lexsort((tasks.rank[placed], tasks.node[placed]))].tolist():
            self._first.add(row)
            if row in self.role_of:
                node = int(tasks.node[row])
                if node not in by_node:
                    by_node[node] = self._open()
                self._join(by_node[node], row)
                by_node[node].count(node, 1)
                self._count_role(row, node, 1)

    def _gather_waiting(self) -> None:
        rows = self.rows[self._session.tasks.status[self.rows] == Status.PENDING].tolist()
        for row in sorted((row for row in rows if row in self.role_of), key=self._turn):
            bucket = self._drawn_to(self.role_of[row]) or self._open()
            bucket.waiting.add(row)
            bucket.weight += self.weights[row]
            self._join(bucket, row)

    def _turn(self, row: int) -> tuple[int, int, str]:
        wanted, kind = self.rules.ranks[self.role_of[row]]
        return -wanted, -kind, self._session.task_key(row)

    def _drawn_to(self, role: str) -> Bucket | None:
        best = self._best[role]
        while best:
            _, _, number, version = best[0]
            if self.buckets[number].version == version:
                return self.buckets[number]
            heappop(best)
        return None

    def _open(self) -> Bucket:
        self.buckets.append(Bucket(len(self.buckets)))
        return self.buckets[-1]

    def _join(self, bucket: Bucket, row: int) -> None:
        self.bucket_of[row] = bucket
        own = self.role_of[row]
        bucket.roles[own] = bucket.roles.get(own, 0) + 1
        bucket.version += 1
        for role, best in self._best.items():
            draw = self.rules.draw(role, bucket.roles)
            if draw >= 0:
                heappush(best, (-draw, bucket.weight, bucket.number, bucket.version))


def _roles(session: Session, rows: TaskRows, rules: RoleRules) -> dict[int, str]:
    """By task, its role if some rule names it."""
    names = [*session.cluster.tasks.roles, ""]  # the last: tasks without one
    named = (
        (row, names[number])
        for row, number in zip(rows.tolist(), session.tasks.role[rows].tolist(), strict=True)
    )
    return {row: role for row, role in named if role and role in rules.ranks}


def _weights(session: Session, rows: TaskRows) -> dict[int, float]:
    requests = session.requests(rows).T
    return {row: _weight(request) for row, request in zip(rows.tolist(), requests, strict=True)}


def _weight(request: Amounts) -> float:
    others = int(request.sum()) - int(request[CPU]) - int(request[MEMORY])
    return float(int(request[CPU]) + others) + int(request[MEMORY]) / _MEBIBYTE
