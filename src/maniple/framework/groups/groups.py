"""The groups of a session's jobs: what is complete, what is placed next, what goes first, and where they are.

Trees are made as they are asked for (`growing.py`); those of jobs with policies or a network topology when the
session opens. Nothing is kept that a transaction would have to undo, except under the job's version, which
every change of a status moves on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.domain_sums import DomainSums, sums_of
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, NO_TASK, READY, Status, status_set
from maniple.framework.groups.growing import grown
from maniple.framework.groups.tree import NO_TASKS, Counts, Group, PodSet, Progress, TaskRows
from maniple.framework.groups.whereabouts import Whereabouts

if TYPE_CHECKING:
    from maniple.framework.session import Session

StatusSet = NDArray[np.bool_]
_READY_TO_BE_PLACED = ALIVE & ~status_set(Status.GATED)
_WAITING_THERE = status_set(Status.PIPELINED)
_STAYING = ACTIVE_ALLOCATED & ~_WAITING_THERE
_PENDING, _DONE = status_set(Status.PENDING), status_set(Status.SUCCEEDED)
_WAITS, _LEAVES = int(Status.PENDING), int(Status.RELEASING)


class Groups:
    """The trees of a session's jobs, and what is known of them."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._trials_are_remembered = session.rules.gangs.trials_are_remembered
        self._roots: dict[int, Group] = {}
        self._lists: dict[int, list[PodSet]] = {}
        self._next: dict[tuple[int, bool], tuple[int, TaskRows]] = {}
        self._known: dict[PodSet, tuple[int, Counts]] = {}  # the version of its job, and what was counted
        self._places: TaskRows | None = None  # of every task in the order of tasks
        # Jobs with policies or a network topology, and those for which a domain was cleared
        self.shaped: dict[int, Group] = {}
        self.split: set[int] = set()  # jobs with policies
        self.nominated: set[int] = set()  # jobs for which eviction cleared domains
        self.unpinned: set[int] = set()  # tasks whose nominated node is of no use any more
        self._whereabouts = Whereabouts(session)
        self._open()

    def _open(self) -> None:
        """Make the trees of jobs that have a shape of their own, and find out where these jobs are."""
        jobs = self._session.cluster.jobs
        served = set(self._session.jobs.rows.tolist()) if jobs.shaped else ()
        for job in sorted(jobs.shaped.intersection(served)):
            root = self.shaped[job] = self.root(job)
            if root.split:
                self.split.add(job)
        for job in self._whereabouts.promised():
            self.shaped[job] = self.root(job)
        self._whereabouts.locate(self.shaped.values())
        self.nominated = {
            job for job, root in self.shaped.items() if any(one.nominated != NONE for one in root.pod_sets)
        }

    @property
    def places(self) -> DomainSums:
        return sums_of(self._session.domains, self._session.cluster.memory)

    # -- the tree -------------------------------------------------------------------------------------------------

    def root(self, job: int) -> Group:
        known = self._roots.get(job)
        if known is None:
            undivided = bool(self.undivided[job])
            known = self._roots[job] = grown(self._session, job, undivided=undivided)
        return known

    def of(self, job: int) -> list[PodSet]:
        known = self._lists.get(job)
        if known is None:
            known = self._lists[job] = self.root(job).all_pod_sets()
        return known

    def of_task(self, row: int) -> PodSet | None:
        """None for a task that is in no pod set of its job, since it names one that is not there."""
        pod_sets = self.of(int(self._session.tasks.job[row]))
        if len(pod_sets) == 1 and pod_sets[0].whole:
            return pod_sets[0]
        return next((one for one in pod_sets if row in one.rows), None)

    @cached_property
    def undivided(self) -> NDArray[np.bool_]:
        """By job: it is certainly one pod set with all of its tasks, so that counting them will do."""
        session = self._session
        undivided = np.ones(len(session.jobs.queue), dtype=np.bool_)
        facts_of = session.cluster.jobs.facts
        by_roles = session.rules.gangs.roles_are_pod_sets
        parted = [
            job
            for job in session.cluster.jobs.parted
            if by_roles or facts_of[job].groups or facts_of[job].sub_groups
        ]
        undivided[parted] = False
        # Where a job takes only tasks of its own groups, a role may be none of them.
        named = np.unique(session.tasks.job[session.tasks.role >= 0]).tolist()
        undivided[[job for job in named if job in facts_of and facts_of[job].closed]] = False
        return undivided

    @contextmanager
    def narrowed(self, job: int, rows: TaskRows, *, all_needed: bool = False) -> Iterator[None]:
        """For as long as it lasts the job consists of these tasks only.

        `all_needed`: and pod sets need all that they have left.
        """
        kept, undivided = (self._roots.get(job), self._lists.get(job)), bool(self.undivided[job])
        tree = _pruned(self.root(job), rows, None, all_needed)
        self._roots[job], self._lists[job] = tree, tree.all_pod_sets()
        self.undivided[job] = False
        self._forget_next(job)
        try:
            yield
        finally:
            self.undivided[job] = undivided
            self._roots.pop(job)
            self._lists.pop(job)
            if kept[0] is not None:
                self._roots[job] = kept[0]
            if kept[1] is not None:
                self._lists[job] = kept[1]
            self._forget_next(job)

    def _forget_next(self, job: int) -> None:
        for simulated in (False, True):
            self._next.pop((job, simulated), None)

    # -- questions ------------------------------------------------------------------------------------------------

    def count(self, pod_set: PodSet, statuses: StatusSet) -> int:
        """How many of its tasks are in one of these states."""
        session = self._session
        if pod_set.whole:
            return int(statuses.dot(session.jobs.counts[:, pod_set.job]))
        return int(np.count_nonzero(statuses[session.tasks.status[pod_set.rows]]))

    def ready(self, job: int) -> bool:
        """Every pod set could reach its minimum."""
        return all(self.count(one, _READY_TO_BE_PLACED) >= one.minimum for one in self.of(job))

    def satisfied(self, job: int) -> bool:
        """Every pod set has its minimum."""
        return all(self.count(one, ACTIVE_USED) >= one.minimum for one in self.of(job))

    def elastic(self, job: int) -> bool:
        """Some pod set has more tasks than it needs."""
        return any(len(one.rows) > one.minimum for one in self.of(job))

    def below_minimum(self, job: int) -> bool:
        """Some pod set has fewer tasks on nodes, or about to be, than it needs."""
        return any(self.count(one, ACTIVE_ALLOCATED) < one.minimum for one in self.of(job))

    def stale(self, job: int) -> bool:
        """The gang is broken: some of it is there, nothing of it is done, and a pod set has too few."""
        pod_sets = self.of(job)
        if any(self.count(one, _DONE) for one in pod_sets):
            return False
        return any(self.count(one, ACTIVE_USED) for one in pod_sets) and not self.satisfied(job)

    def pending(self, job: int) -> bool:
        """Some task of a pod set waits for a place."""
        waits = self._session.jobs.counts.item(_WAITS, job) > 0
        return waits and (self.undivided.item(job) or any(self.count(one, _PENDING) for one in self.of(job)))

    def able(self, jobs: TaskRows) -> list[int]:
        """Of many jobs, those that are `pending` and `ready`."""
        columns = self._session.jobs
        jobs = jobs[columns.counts[_WAITS, jobs] > 0]
        undivided = self.undivided[jobs]
        enough = _READY_TO_BE_PLACED @ columns.counts[:, jobs] >= columns.minimum[jobs]
        # Of those that are one pod set, counting all tasks says it.
        known = zip(jobs.tolist(), undivided.tolist(), enough.tolist(), strict=True)
        return [
            job for job, whole, able in known if (able if whole else self.pending(job) and self.ready(job))
        ]

    def should_pipeline(self, job: int) -> bool:
        """Part of a gang waits for releases, so that the rest has to wait with it."""
        return self._session.pipelined(job) > 0 and any(
            self.count(one, _WAITING_THERE) > 0 and self.count(one, _STAYING) < one.minimum
            for one in self.of(job)
        )

    # -- what is next ---------------------------------------------------------------------------------------------

    def to_allocate(self, job: int, *, simulated: bool = False) -> TaskRows:
        """The tasks that are placed together next: what pod sets lack, or one more of a job that is whole.

        `simulated`: tasks that were evicted in a trial may come back, too.
        """
        session = self._session
        # Where trials are remembered, an answer holds for simulated and real calls alike, and only an empty
        # one is not remembered.
        apart = simulated and not self._trials_are_remembered and session.jobs.counts.item(_LEAVES, job) > 0
        key, version = (job, apart), session.jobs.version.item(job)
        known = self._next.get(key)
        if known is None or known[0] != version or (self._trials_are_remembered and not len(known[1])):
            known = self._next[key] = (version, self._to_allocate(job, simulated))
        return known[1]

    def _to_allocate(self, job: int, simulated: bool) -> TaskRows:
        pod_sets = self.of(job)
        if len(pod_sets) == 1:
            return self._wanted(pod_sets[0], simulated)
        lacking = sum(self.count(one, ACTIVE_ALLOCATED) < one.minimum for one in pod_sets)
        chosen: list[TaskRows] = []
        for one in self.in_order(pod_sets):
            if len(chosen) == max(lacking, 1):
                break
            wanted = self._wanted(one, simulated)
            if len(wanted):
                chosen.append(wanted)
        return np.concatenate(chosen) if chosen else NO_TASKS

    def _wanted(self, pod_set: PodSet, simulated: bool) -> TaskRows:
        session = self._session
        status = session.tasks.status[pod_set.rows]
        waiting = status == _WAITS
        if simulated:
            waiting |= (status == _LEAVES) & session.tasks.virtual[pod_set.rows]
        rows = pod_set.rows[waiting]
        have = self.count(pod_set, ACTIVE_ALLOCATED)
        lack = max(pod_set.minimum - have, pod_set.unit - have, 1)
        if pod_set.optional and len(rows) < lack:
            return NO_TASKS  # not enough of it is left to make it whole
        return self._in_task_order(rows)[:lack] if len(rows) > 1 else rows

    def to_evict(self, job: int) -> tuple[TaskRows, bool]:
        """The tasks that go first: what the job can spare of one pod set, or all of it; whether more are left."""
        pod_sets = self.of(job)
        counts = [self.count(one, ACTIVE_ALLOCATED) for one in pod_sets]
        whole = bool(self._session.cluster.jobs.evicted_whole[job])
        spare = not whole and any(count > one.minimum for one, count in zip(pod_sets, counts, strict=True))
        there = [one for one, count in zip(pod_sets, counts, strict=True) if count]
        last = self.in_order(there)[::-1]
        taken = [self._taken(one, whole=whole) for one in (last[:1] if spare else last)]
        rows = np.concatenate(taken) if taken else NO_TASKS
        return rows, len(rows) < sum(counts)

    def _taken(self, pod_set: PodSet, *, whole: bool) -> TaskRows:
        """Its last task when it stays whole without it, otherwise all of them, the last first."""
        session = self._session
        rows = pod_set.rows[ACTIVE_ALLOCATED[session.tasks.status[pod_set.rows]]]
        if len(rows) > 1:
            rows = self._in_task_order(rows)[::-1]
        return rows[:1] if not whole and len(rows) > max(pod_set.minimum, pod_set.unit) else rows

    def _in_task_order(self, rows: TaskRows) -> TaskRows:
        """Tasks of one job in their order, which nothing in a session changes."""
        if self._places is None:
            tasks = self._session.tasks
            ordered = self._session.in_task_order(
                np.flatnonzero((tasks.job >= 0) & (tasks.status != NO_TASK))
            )
            self._places = np.zeros(len(tasks), dtype=np.int64)
            self._places[ordered] = np.arange(len(ordered))
        return rows[self._places[rows].argsort()]

    def in_order(self, pod_sets: list[PodSet]) -> list[PodSet]:
        return pod_sets if len(pod_sets) == 1 else sorted(pod_sets, key=self.order)

    def order(self, one: PodSet) -> tuple[Any, ...]:
        """The order of pod sets: plugins first, then the number in the label, then the name."""
        # Those that policies made are numbered by name, and the one that no policy made comes before them.
        last = one.number if one.parent.split else one.name
        return (*self._session.hooks.pod_set_order(one), one.index, last)

    # -- is it ready ----------------------------------------------------------------------------------------------

    def counts(self, one: PodSet) -> Counts:
        """As of now. Every change of a task's status moves the version of its job on."""
        version = self._session.jobs.version.item(one.job)
        known = self._known.get(one)
        if known is None or known[0] != version:
            known = self._known[one] = (version, self._counted(one))
        return known[1]

    def _counted(self, one: PodSet) -> Counts:
        tasks = self._session.tasks
        status = tasks.status[one.rows]
        idle = (status == Status.PENDING) & tasks.best_effort[one.rows]
        if not self._session.rules.gangs.gated_pods_count:
            idle &= ~tasks.gated[one.rows]
        return Counts(int(READY[status].sum()), int((status == Status.PIPELINED).sum()), int(idle.sum()))

    def lacking(self, one: PodSet) -> int:
        """Tasks short of being ready; zero or less when there are enough."""
        counts = self.counts(one)
        return one.size - counts.ready - counts.best_effort

    def priority(self, one: PodSet) -> int:
        """That of the most important task, and never below 0."""
        return max(0, int(self._session.tasks.priority[one.rows].max(initial=0)))

    def is_ready(self, one: PodSet) -> bool:
        hooks = self._session.hooks
        return hooks.job_ready(one.job) if one.whole else hooks.pod_set_ready(one)

    def is_pipelined(self, one: PodSet) -> bool:
        hooks = self._session.hooks
        return hooks.job_pipelined(one.job) if one.whole else hooks.pod_set_pipelined(one)

    # -- where they are -------------------------------------------------------------------------------------------

    def progress(self, one: PodSet, ground: int = ROOT) -> Progress | None:
        """Where a pod set is, for placing more of it inside a domain; None where that does not matter."""
        return Progress(one, ground, one.domain) if one.limit is not None else None

    def advance(self, progress: Progress, nodes: NDArray[np.integer]) -> None:
        """The pod set that is being placed took these nodes. Nodes outside all domains say nothing."""
        places = self.places
        for home in np.unique(places.home[nodes]).tolist():
            progress.domain = places.joined(progress.domain, home)

    def nominate(self, one: PodSet, domain: int) -> None:
        """Eviction cleared a domain for a pod set."""
        one.nominated = domain
        self.shaped.setdefault(one.job, self.root(one.job))
        self.nominated.add(one.job)
        self._whereabouts.keep(self.root(one.job))

    def denominate(self, one: PodSet) -> None:
        """What was cleared for a pod set is taken, or of no use."""
        if one.nominated == NONE:
            return
        one.nominated = NONE
        if all(other.nominated == NONE for other in self.of(one.job)):
            self.nominated.discard(one.job)
        self._whereabouts.keep(self.root(one.job))

    def settle(self, root: Group, domain: int, pod_sets: dict[PodSet, int]) -> None:
        """A job was committed inside a domain, its pod sets inside theirs."""
        places = self.places
        root.domain = places.joined(root.domain, domain)
        for one, inside in pod_sets.items():
            one.domain = places.joined(one.domain, inside)
            self.denominate(one)
        self._whereabouts.keep(root)


def _pruned(group: Group, rows: TaskRows, parent: Group | None, all_needed: bool) -> Group:
    """The same tree with fewer tasks."""
    some = set(rows.tolist())
    copy = replace(group, parent=parent, pod_sets=[])
    copy.groups = [_pruned(inner, rows, copy, all_needed) for inner in group.groups]
    for one in group.pod_sets:
        own = np.array([row for row in one.rows.tolist() if row in some], dtype=np.int64)
        minimum = len(own) if all_needed and len(own) else one.minimum
        copy.pod_sets.append(replace(one, minimum=minimum, rows=own, parent=copy, whole=False))
    return copy
