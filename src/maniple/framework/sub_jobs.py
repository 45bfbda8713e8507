"""Sub-jobs: how a job's tasks are split into smaller gangs, where in the network those are, and how far apart they may be.

Opened with the session, for jobs that have a network topology or sub-group policies; other jobs cost nothing until somebody asks for their
shape, and then they are one sub-job. Transactions keep the counts of sub-jobs (`count`) as long as a job has several. Names of tiers and soft
wishes are settled here: afterwards a limit is a tier, or there is none. Where a job has settled (`domain`) is remembered from cycle to cycle, and
worked out again from its tasks where memory has nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import DomainSums, sums_of
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.facts import SubGroupRule, TopologyWish
from maniple.cluster.statuses import ALLOCATED_LIKE, READY, Status
from maniple.framework.points import TaskRows
from maniple.objects.selectors import matches

if TYPE_CHECKING:
    from maniple.framework.session import Session

NO_SUCH_TIER = "no HyperNode has the tier name {name!r}"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_READY = [int(member) for member in READY]


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest tier that tasks may be spread over; None where nothing holds them together."""

    highest: int | None
    wished: bool = False  # a soft wish: as close as possible, and no further limit
    unknown: str = ""  # a tier name that no HyperNode has


@dataclass(slots=True, eq=False)
class SubJob:
    """A part of a job that is placed together. Counts are kept only where the job has policies."""

    row: int
    job: int
    group: str  # the policy that made it; empty for tasks that no policy took
    name: str  # unique in its job
    minimum: int
    index: int  # number in its first label value, 0 for none
    tasks: TaskRows
    priority: int
    limit: Limit | None
    ready: int = 0
    pipelined: int = 0
    best_effort: int = 0  # waiting, not gated, asking for nothing
    domain: int = NONE  # around what is placed
    nominated: int = NONE  # cleared for it by eviction


@dataclass(slots=True, eq=False)
class JobShape:
    """A job as a tree of sub-jobs."""

    job: int
    limit: Limit | None
    split: bool  # by policies
    least: dict[str, int]  # policy -> sub-jobs that have to be ready
    sub_jobs: list[SubJob] = field(default_factory=list)
    domain: int = NONE

    @property
    def limits(self) -> list[Limit]:
        return [limit for limit in (self.limit, *(one.limit for one in self.sub_jobs)) if limit is not None]

    @property
    def bounded(self) -> bool:
        """Something limits how far apart tasks may be."""
        return any(limit.highest is not None for limit in self.limits)


@dataclass(slots=True, eq=False)
class Progress:
    """The sub-job that is being placed: inside which domain, and around what it has so far."""

    sub_job: SubJob
    ground: int
    domain: int


@dataclass(frozen=True, slots=True)
class _Settled:
    """Where a job was when it was last committed, by name."""

    uid: str
    domain: str
    sub_jobs: dict[str, tuple[str, str]]  # name -> domain, nominated domain


class SubJobs:
    """The sub-jobs of a session's jobs, numbered."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._all: list[SubJob] = []
        self._shapes: dict[int, JobShape] = {}
        self._of_task: NDArray[np.int32] | None = None
        self.split: set[int] = set()  # jobs with policies
        self.nominated: set[int] = set()  # jobs for which eviction cleared domains
        self.unpinned: set[int] = set()  # tasks whose nominated node is of no use any more
        self.progress: Progress | None = None
        served = set(session.jobs.rows.tolist()) if session.cluster.jobs.shaped else ()
        for job in sorted(session.cluster.jobs.shaped.intersection(served)):
            self._open(job)
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
            self._open(job)
        return self._shapes[job]

    def of_tasks(self, rows: TaskRows) -> NDArray[np.int32]:
        """The rows of the sub-jobs of tasks whose job has policies."""
        assert self._of_task is not None
        return self._of_task[rows]

    # -- opening --------------------------------------------------------------------------------------------------

    def _open(self, job: int) -> None:
        session, facts = self._session, self._session.job_facts(job)
        limit = self._limit(facts.topology, None)
        shape = JobShape(job, limit, bool(facts.sub_groups), {})
        for rule in facts.sub_groups:
            shape.least[rule.name] = rule.least
        rows = session.tasks_of(job)
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
        for one in made:
            self._tally(one)

    def _part_of(
        self, rules: tuple[SubGroupRule, ...], labels: dict[str, str]
    ) -> tuple[int, tuple[str, ...]]:
        for number, rule in enumerate(rules):
            if rule.selector is not None and not matches(rule.selector, labels):
                continue
            values = tuple(labels.get(key, "") for key in rule.keys)
            # In the original a policy without keys takes nobody; here it takes all that its selector means, as one.
            if all(values) and (values or not self._session.strict):
                return number, values
        return -1, ()

    def _new(
        self, job: int, group: str, name: str, minimum: int, value: str, tasks: TaskRows, limit: Limit | None
    ) -> SubJob:
        index = int(value) if _INTEGER.fullmatch(value) else 0
        priority = max(0, int(self._session.tasks.priority[tasks].max(initial=0)))
        one = SubJob(len(self._all), job, group, name, minimum, index, tasks, priority, limit)
        self._all.append(one)
        return one

    def _tally(self, one: SubJob) -> None:
        one.ready, one.pipelined, one.best_effort = self._counts(one)
        if self._of_task is None:
            self._of_task = np.full(len(self._session.tasks), -1, dtype=np.int32)
        self._of_task[one.tasks] = one.row

    def _counts(self, one: SubJob) -> tuple[int, int, int]:
        tasks = self._session.tasks
        status = tasks.status[one.tasks]
        idle = (status == Status.PENDING) & tasks.best_effort[one.tasks] & ~tasks.gated[one.tasks]
        return int(READY[status].sum()), int((status == Status.PIPELINED).sum()), int(idle.sum())

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

    def count(self, rows: TaskRows, before: Status, after: Status, *, best_effort: bool) -> None:
        """Tasks of a job with policies went from one status to another."""
        changes = (
            _READY[after] - _READY[before],
            (after is Status.PIPELINED) - (before is Status.PIPELINED),
            ((after is Status.PENDING) - (before is Status.PENDING)) * best_effort,
        )
        numbers: dict[int, int] = {}
        for number in self.of_tasks(rows).tolist():
            numbers[number] = numbers.get(number, 0) + 1
        for number, times in numbers.items():
            one = self._all[number]
            one.ready += changes[0] * times
            one.pipelined += changes[1] * times
            one.best_effort += changes[2] * times

    def problems(self) -> list[str]:
        """Counts that are not what the tasks say; empty when all is well."""
        wrong = []
        for job in sorted(self.split):
            for one in self._shapes[job].sub_jobs:
                kept, true = (one.ready, one.pipelined, one.best_effort), self._counts(one)
                if kept != true:
                    wrong.append(f"sub-job {self._session.job_key(job)}/{one.name}: {kept} is not {true}")
        return wrong

    def lacking(self, one: SubJob) -> int:
        """Tasks short of the minimum; zero or less when there are enough."""
        return one.minimum - one.ready - one.best_effort

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
        self._keep(one.job)

    def denominate(self, one: SubJob) -> None:
        """What was cleared for a sub-job is taken, or of no use."""
        if one.nominated == NONE:
            return
        one.nominated = NONE
        if all(other.nominated == NONE for other in self._shapes[one.job].sub_jobs):
            self.nominated.discard(one.job)
        self._keep(one.job)

    def settle(self, shape: JobShape, domain: int, sub_jobs: dict[int, int]) -> None:
        """A job was committed inside a domain, its sub-jobs (by row) inside theirs."""
        places = self.places
        shape.domain = places.joined(shape.domain, domain)
        for row, inside in sub_jobs.items():
            one = self._all[row]
            one.domain = places.joined(one.domain, inside)
            self.denominate(one)
        self._keep(shape.job)

    def _keep(self, job: int) -> None:
        names, shape = self._session.domains.names, self._shapes[job]
        settled = _settled(self._session)
        promised = not self._session.strict  # the original forgets what it cleared for whom
        settled[self._session.job_key(job)] = _Settled(
            self._session.cluster.jobs.objects[job].metadata.uid,
            _name(names, shape.domain),
            {
                one.name: (_name(names, one.domain), _name(names, one.nominated) if promised else "")
                for one in shape.sub_jobs
            },
        )

    def _recall(self) -> None:
        """Where jobs are: as remembered, as long as that is still there and holds something; else by their tasks."""
        session = self._session
        settled = _settled(session)
        if session.strict and session.domains.broken:
            return
        if not session.cluster.jobs.shaped and not settled:
            return
        for key in list(settled):
            row = session.cluster.jobs.index_of(key)
            known = session.cluster.jobs.objects.get(row) if row is not None else None
            if known is None or known.metadata.uid != settled[key].uid:
                del settled[key]
            elif row is not None and any(nominated for _, nominated in settled[key].sub_jobs.values()):
                self.of(row)
        for shape in self._shapes.values():
            self._locate(shape, settled.get(session.job_key(shape.job)))

    def _locate(self, shape: JobShape, known: _Settled | None) -> None:
        index = self._session.domains.index
        found = False
        for one in shape.sub_jobs:
            domain, nominated = known.sub_jobs.get(one.name, ("", "")) if known else ("", "")
            if nominated in index:
                one.nominated = index[nominated]
                self.nominated.add(shape.job)
            one.domain = index.get(domain, NONE) if self._held(one.tasks) is not None else NONE
            if one.limit is not None and one.domain == NONE:
                one.domain = self._around(one.tasks)
                found = found or one.domain != NONE
        if not shape.limits:
            return
        shape.domain = index.get(known.domain, NONE) if known and self._placed(shape) is not None else NONE
        if shape.domain == NONE or found:
            shape.domain = self._job_domain(shape)

    def _job_domain(self, shape: JobShape) -> int:
        """Around all sub-jobs. The original looks only at those that have a topology of their own."""
        if not self._session.strict:
            return self._around(
                np.concatenate([one.tasks for one in shape.sub_jobs] or [np.zeros(0, np.int64)])
            )
        domain = NONE
        for one in shape.sub_jobs:
            domain = self.places.joined(domain, one.domain)
        return domain

    def _placed(self, shape: JobShape) -> NDArray[np.int32] | None:
        held = [nodes for one in shape.sub_jobs if (nodes := self._held(one.tasks)) is not None]
        return np.concatenate(held) if held else None

    def _held(self, rows: TaskRows) -> NDArray[np.int32] | None:
        """The nodes of tasks that hold some; None when none does."""
        tasks = self._session.tasks
        rows = rows[ALLOCATED_LIKE[tasks.status[rows]]]
        return tasks.node[rows] if len(rows) else None

    def _around(self, rows: TaskRows) -> int:
        nodes = self._held(rows)
        if nodes is None or (nodes < 0).any():
            return NONE
        if self._session.strict and not self._session.domains.members[1:, nodes].any():
            return NONE  # tasks that are in no HyperNode at all do not keep the others out of them there
        return self.places.around(nodes)


def _settled(session: "Session") -> dict[str, _Settled]:
    return session.cluster.memory.setdefault(_Settled, {})  # type: ignore[return-value]  # put there by us


def _name(names: list[str], domain: int) -> str:
    return names[domain] if domain != NONE else ""
