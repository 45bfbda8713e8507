"""task-topology: tasks of a job with affinity go to one node, tasks with anti-affinity do not.

A job's annotations state the affinity of its roles (`roles.py`); its tasks are gathered in buckets
accordingly (`buckets.py`).
- order: tasks in buckets first; the bucket with more pending tasks first, then the older; inside it by the
  job's order of roles
- score: weight * 100 * (tasks of the bucket on the node - tasks of the job there with anti-affinity to this
  one + tasks of the bucket that would fit there together, this one included) / tasks in the largest bucket; 0
  if the task itself does not fit

"Fit" is into what is idle or being released. To find how many fit, the heaviest of the others are left out
first (Volcano leaves out any). The order is that of the session's beginning: a bucket is placed completely
before the next begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session
from maniple.plugins.settings import report
from maniple.plugins.topology.buckets import Bucket, JobBuckets
from maniple.plugins.topology.roles import ANNOTATIONS, RoleRules, RolesError

_HIGHEST = 100.0


@dataclass(frozen=True, slots=True)
class TaskTopologySettings:
    weight: int = 1

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "TaskTopologySettings":
        given = Arguments(values, TaskTopology.name)
        settings = cls(given.int("task-topology.weight", 1))
        report(session, given)
        return settings


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """The state of a class of tasks: its job's buckets, its own bucket, its role."""

    job: JobBuckets
    bucket: Bucket
    role: str
    order: tuple[int, ...]  # the bucket's tasks, the first to be left out first


class TaskTopology:
    name = "task-topology"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = TaskTopologySettings.read(session, arguments)
        self._jobs: dict[int, JobBuckets] = {}
        self._order: Amounts = np.zeros(len(session.tasks), dtype=np.int64)
        self._places: list[_Place] = []
        for job in session.jobs.rows.tolist():
            rules = self._rules(job)
            if rules is not None:
                self._jobs[job] = buckets = JobBuckets(session, job, rules)
                self._order[buckets.rows] = _order(buckets)
        self._mark_tasks()

    def task_order(self, rows: TaskRows) -> Amounts:
        return self._order[rows]

    def scorers(self) -> list[Scorer]:
        if not self._settings.weight or not self._places:
            return []
        weight = float(self._settings.weight)
        return [Scorer("TaskTopology", weight, Dependence.CLUSTER, self._score, applies=self._applies)]

    def on_allocate(self, event: Event) -> None:
        job = self._jobs.get(event.job)
        if job is not None:
            for row, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
                job.placed(row, node)

    def on_deallocate(self, event: Event) -> None:
        job = self._jobs.get(event.job)
        if job is not None:
            for row, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
                job.taken_away(row, node)

    # -- rules of jobs --------------------------------------------------------------------------------------------

    def _rules(self, job: int) -> RoleRules | None:
        """The rules of a job with pending tasks; None if it has none, or no valid ones."""
        session = self._session
        annotations = session.cluster.jobs.objects[job].metadata.annotations
        if annotations.keys().isdisjoint(ANNOTATIONS):
            return None
        if not session.jobs.counts[[Status.PENDING, Status.GATED], job].any():
            return None
        names = [*session.cluster.tasks.roles, ""]
        try:
            return RoleRules.read(
                annotations, {names[role] for role in session.tasks.role[session.tasks_of(job)].tolist()}
            )
        except RolesError as error:
            session.report(
                f"{self.name}: job {session.job_key(job)}: annotation {error}; its rules are ignored"
            )
            return None

    def _mark_tasks(self) -> None:
        """Pending tasks of one bucket and role are equal; others, though of the same class, are not."""
        marks: dict[int, int] = {}
        for job in self._jobs.values():
            for bucket in job.buckets:
                keys = self._session.task_key
                order = tuple(sorted(bucket.waiting, key=lambda row: (-job.weights[row], keys(row))))
                numbers: dict[str, int] = {}
                for row in order:
                    role = job.role_of[row]
                    if role not in numbers:
                        numbers[role] = len(self._places)
                        self._places.append(_Place(job, bucket, role, order))
                    marks[row] = numbers[role]
        rows = np.array(list(marks), dtype=np.int64)
        self._session.refine(self.name, rows, np.array(list(marks.values()), dtype=np.int64))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _applies(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        nodes, place = self._session.nodes, self._places[class_.marks[self.name]]
        free = nodes.allocatable - nodes.used + nodes.releasing  # of all nodes: cheaper than picking some
        fits = (free >= class_.request[:, None]).all(axis=0)
        together = self._company(place) + self._fitting(place, class_, free)
        scores: Scores = np.where(fits, together * (_HIGHEST / place.job.largest), 0.0)
        return scores[cells.rows]

    def _company(self, place: _Place) -> Amounts:
        """By node: tasks of the bucket there, less those of the job with anti-affinity."""
        company = np.zeros(len(self._session.nodes), dtype=np.int64)
        for node, count in place.bucket.on_node.items():
            company[node] += count
        for node, roles in place.job.roles_on.items():
            company[node] += place.job.rules.push(place.role, roles)
        return company

    def _fitting(self, place: _Place, class_: TaskClass, free: Amounts) -> Amounts:
        """By node: how many of the bucket's pending tasks fit, as the first of the others are left out one by
        one."""
        others = [row for row in place.order if row in place.bucket.waiting]
        own = next((row for row in others if self._session.tasks.class_of[row] == class_.number), None)
        if own is not None:
            others.remove(own)
        count = len(others)
        requests = self._session.requests(np.array(others, dtype=np.int64))
        # What the task and the last of the others request together: none of them, one, two, ...
        sums = np.zeros((len(class_.request), count + 1), dtype=np.int64)
        np.cumsum(requests[:, ::-1], axis=1, out=sums[:, 1:])
        sums += class_.request[:, None]
        most = np.full(free.shape[1], count + 1, dtype=np.int64)
        for dimension in range(len(sums)):
            np.minimum(most, np.searchsorted(sums[dimension], free[dimension], side="right"), out=most)
        return np.maximum(most, 1)


def _order(job: JobBuckets) -> list[int]:
    """For each task of the job, its turn; tasks in no bucket come last."""
    keys: dict[int, tuple[int, ...]] = {}
    for row, bucket in job.bucket_of.items():
        wanted, kind = job.rules.ranks[job.role_of[row]]
        keys[row] = (-len(bucket.waiting), bucket.number, -wanted, -kind)
    turns = {key: turn for turn, key in enumerate(sorted(set(keys.values())))}
    return [turns[keys[row]] if row in keys else len(turns) for row in job.rows.tolist()]
