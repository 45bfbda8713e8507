"""Sub-jobs: how a job's tasks are split into smaller gangs, where in the network those are, and how far apart they may be.

Opened with the session, for jobs that have a network topology or sub-group policies; other jobs cost nothing until somebody asks for their
shape, and then they are one sub-job. Names of tiers and soft wishes are settled here: afterwards a limit is a tier, or there is none. Where jobs are is `whereabouts.py`'s business.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import DomainSums, sums_of
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.facts import SubGroupRule, TopologyWish
from maniple.cluster.statuses import READY, Status
from maniple.framework.job_shape import Counts, JobShape, Limit, Progress, SubJob
from maniple.framework.points import TaskRows
from maniple.framework.whereabouts import Whereabouts
from maniple.objects.selectors import matches

if TYPE_CHECKING:
    from maniple.framework.session import Session

__all__ = ["NO_SUCH_TIER", "JobShape", "Limit", "Progress", "SubJob", "SubJobs"]

NO_SUCH_TIER = "no HyperNode has the tier name {name!r}"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


class SubJobs:
    """The sub-jobs of a session's jobs, numbered."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._all: list[SubJob] = []
        self._shapes: dict[int, JobShape] = {}
        self._of_task: NDArray[np.int32] | None = None
        self._known: dict[int, tuple[int, Counts]] = {}  # by sub-job: its job's version, and what was counted
        self.split: set[int] = set()  # jobs with policies
        self.nominated: set[int] = set()  # jobs for which eviction cleared domains
        self.unpinned: set[int] = set()  # tasks whose nominated node is of no use any more
        self.progress: Progress | None = None
        served = set(session.jobs.rows.tolist()) if session.cluster.jobs.shaped else ()
        shaped = sorted(session.cluster.jobs.shaped.intersection(served))
        for job in shaped:
            self._open(job, session.tasks_of(job))
        self._whereabouts = Whereabouts(session)
        self._recall()

    def __getitem__(self, row: int) -> SubJob:
        return self._all[row]

    @property
    def shapes(self) -> dict[int, JobShape]:
        """Jobs that have a shape of their own, and those that somebody asked for."""
        return self._shapes

    @property
    def places(self) -> DomainSums:
        return sums_of(self._session.domains, self._session.cluster.memory)

    def of(self, job: int) -> JobShape:
        """The shape of any job."""
        if job not in self._shapes:
            self._open(job, self._session.tasks_of(job))
        return self._shapes[job]

    def of_tasks(self, rows: TaskRows) -> NDArray[np.int32]:
        """The rows of the sub-jobs of tasks whose job has policies."""
        assert self._of_task is not None
        return self._of_task[rows]

    # -- opening --------------------------------------------------------------------------------------------------

    def _open(self, job: int, rows: TaskRows) -> None:
        session, facts = self._session, self._session.job_facts(job)
        limit = self._limit(facts.topology, None)
        shape = JobShape(job, limit, bool(facts.sub_groups), {})
        for rule in facts.sub_groups:
            shape.least[rule.name] = rule.least
        if not shape.split:
            minimum = int(session.jobs.minimum[job])
            shape.sub_jobs.append(self._new(job, "", "", minimum, "", rows, limit))
        else:
            self._part(shape, facts.sub_groups, rows)
            self.split.add(job)
        self._shapes[job] = shape

    def _part(self, shape: JobShape, rules: Iterable[SubGroupRule], rows: TaskRows) -> None:
        """The sub-jobs of a job with policies: each task goes to the first policy that takes it."""
        parts: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        rules = tuple(rules)
        pods = self._session.cluster.tasks.pods
        for row in rows.tolist():
            parts.setdefault(self._part_of(rules, pods[row].metadata.labels), []).append(row)
        made = []
        for (number, values), members in parts.items():
            tasks = np.array(members, dtype=np.int64)
            if number < 0:
                made.append(self._new(shape.job, "", "", 1, "", tasks, shape.limit))
                continue
            rule = rules[number]
            first = values[0] if values else ""
            limit = self._limit(rule.topology, shape.limit)
            name = f"{rule.name}-{'-'.join(values)}"
            made.append(self._new(shape.job, rule.name, name, rule.size, first, tasks, limit))
        shape.sub_jobs = sorted(made, key=lambda one: (one.name, one.row))
        if self._of_task is None:
            self._of_task = np.full(len(self._session.tasks), -1, dtype=np.int32)
        for one in made:
            self._of_task[one.tasks] = one.row

    def _part_of(
        self, rules: tuple[SubGroupRule, ...], labels: dict[str, str]
    ) -> tuple[int, tuple[str, ...]]:
        for number, rule in enumerate(rules):
            if rule.selector is not None and not matches(rule.selector, labels):
                continue
            values = tuple(labels.get(key, "") for key in rule.keys)
            if all(values) and (values or self._session.rules.gangs.policies_without_keys_match):
                return number, values
        return -1, ()

    def _new(
        self, job: int, group: str, name: str, minimum: int, value: str, tasks: TaskRows, limit: Limit | None
    ) -> SubJob:
        index = int(value) if _INTEGER.fullmatch(value) else 0
        priorities = self._session.tasks.priority
        one = SubJob(len(self._all), job, group, name, minimum, index, tasks, priorities, limit)
        self._all.append(one)
        return one

    def _limit(self, wish: TopologyWish | None, around: Limit | None) -> Limit | None:
        """A wish as a tier. A soft one inside a bounded job goes as far as the job may."""
        if wish is None:
            return None
        domains = self._session.domains
        if wish.mode == "soft":
            bounded = around is not None and around.highest is not None
            return Limit(around.highest if bounded and around else int(domains.tier[ROOT]), wished=True)
        if wish.highest_tier is not None or not wish.highest_tier_name:
            return Limit(wish.highest_tier)
        tier = domains.tier_names.get(wish.highest_tier_name)
        return Limit(tier, unknown="" if tier is not None else wish.highest_tier_name)

    # -- counting -------------------------------------------------------------------------------------------------

    def counts(self, one: SubJob) -> Counts:
        """As of now. Every change of a task's status moves the version of its job on."""
        version = self._session.jobs.version.item(one.job)
        known = self._known.get(one.row)
        if known is None or known[0] != version:
            known = self._known[one.row] = (version, self._counted(one))
        return known[1]

    def _counted(self, one: SubJob) -> Counts:
        tasks = self._session.tasks
        status = tasks.status[one.tasks]
        idle = (status == Status.PENDING) & tasks.best_effort[one.tasks]
        if not self._session.rules.gangs.gated_pods_count:
            idle &= ~tasks.gated[one.tasks]
        return Counts(int(READY[status].sum()), int((status == Status.PIPELINED).sum()), int(idle.sum()))

    def lacking(self, one: SubJob) -> int:
        """Tasks short of the minimum; zero or less when there are enough."""
        counts = self.counts(one)
        return one.minimum - counts.ready - counts.best_effort

    def is_ready(self, one: SubJob) -> bool:
        hooks = self._session.hooks
        return hooks.sub_job_ready(one.row) if one.job in self.split else hooks.job_ready(one.job)

    def is_pipelined(self, one: SubJob) -> bool:
        hooks = self._session.hooks
        return hooks.sub_job_pipelined(one.row) if one.job in self.split else hooks.job_pipelined(one.job)

    def order(self, one: SubJob) -> tuple[Any, ...]:
        """The order of sub-jobs: plugins first, then the number in the label, then the name."""
        return (*self._session.hooks.sub_job_order(one.row), one.index, one.name)

    # -- where they are -------------------------------------------------------------------------------------------

    def begin(self, one: SubJob, ground: int = ROOT) -> None:
        """From here on tasks of this sub-job are placed, inside a domain."""
        self.progress = Progress(one, ground, one.domain) if one.limit is not None else None

    def advance(self, nodes: NDArray[np.integer]) -> None:
        """The sub-job that is being placed took these nodes. Nodes that are nowhere at home say nothing."""
        progress, places = self.progress, self.places
        if progress is not None:
            for home in np.unique(places.home[nodes]).tolist():
                progress.domain = places.joined(progress.domain, home)

    def nominate(self, one: SubJob, domain: int) -> None:
        """Eviction cleared a domain for a sub-job."""
        one.nominated = domain
        self.nominated.add(one.job)
        self._whereabouts.keep(self._shapes[one.job])

    def denominate(self, one: SubJob) -> None:
        """What was cleared for a sub-job is taken, or of no use."""
        if one.nominated == NONE:
            return
        one.nominated = NONE
        if all(other.nominated == NONE for other in self._shapes[one.job].sub_jobs):
            self.nominated.discard(one.job)
        self._whereabouts.keep(self._shapes[one.job])

    def settle(self, shape: JobShape, domain: int, sub_jobs: dict[int, int]) -> None:
        """A job was committed inside a domain, its sub-jobs (by row) inside theirs."""
        places = self.places
        shape.domain = places.joined(shape.domain, domain)
        for row, inside in sub_jobs.items():
            one = self._all[row]
            one.domain = places.joined(one.domain, inside)
            self.denominate(one)
        self._whereabouts.keep(shape)

    def _recall(self) -> None:
        """Find out where jobs are; also those that were promised a domain though they have no shape of their own."""
        for job in self._whereabouts.promised():
            self.of(job)
        self._whereabouts.locate(self._shapes.values())
        self.nominated = {one.job for one in self._all if one.nominated != NONE}
