"""The tree of groups inside a job: pod sets with a minimum each, held by sets of groups to any depth.

A job without sub-groups is one pod set, "default". Every rule about gangs that look at parts of a job is here: what is allocated next, what
is evicted first, whether the gang is whole or stale. Asked by KAI's actions and plugins. Nothing is kept that a transaction would have to
undo, except under the job's version, which every change of a status moves on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.facts import GroupFacts, LevelWish
from maniple.cluster.statuses import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, NO_TASK, Status, status_set

if TYPE_CHECKING:
    from maniple.framework.job_shape import JobShape, Limit
    from maniple.framework.session import Session

TaskRows = NDArray[np.int64]
StatusSet = NDArray[np.bool_]
DEFAULT = "default"
_READY_TO_BE_PLACED = ALIVE & ~status_set(Status.GATED)
_WAITING_THERE = status_set(Status.PIPELINED)
_STAYING = ACTIVE_ALLOCATED & ~_WAITING_THERE
_PENDING, _DONE = status_set(Status.PENDING), status_set(Status.SUCCEEDED)
_WAITS, _LEAVES = int(Status.PENDING), int(Status.RELEASING)
_NO_TASKS = np.zeros(0, dtype=np.int64)


@dataclass(slots=True, eq=False)
class GroupSet:
    """Groups that belong together; the job itself is the root, which has no name."""

    name: str = ""
    wish: LevelWish | None = None
    parent: "GroupSet | None" = None
    sets: "list[GroupSet]" = field(default_factory=list)
    pod_sets: "list[PodSet]" = field(default_factory=list)
    limit: "Limit | None" = None  # how far apart in the tree of HyperNodes

    def all_pod_sets(self) -> "list[PodSet]":
        """Its own and those of the sets inside."""
        inside = [one for inner in self.sets for one in inner.all_pod_sets()] if self.sets else []
        return inside + self.pod_sets


@dataclass(slots=True, eq=False)
class PodSet:
    """Tasks of which at least `minimum` are needed.

    One that the job can do without has no minimum, but may be a gang of its own: it is there with at least `unit` tasks or not at all.
    """

    number: int  # among the pod sets of its job
    job: int
    name: str
    minimum: int
    rows: TaskRows
    parent: GroupSet
    wish: LevelWish | None = None
    limit: "Limit | None" = None
    whole: bool = False  # it is all of the job
    unit: int = 0

    @property
    def optional(self) -> bool:
        return self.minimum == 0


class PodSets:
    """The groups of a session's jobs, made as they are asked for."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._trials_are_remembered = session.rules.gangs.trials_are_remembered
        self._roots: dict[int, GroupSet] = {}
        self._lists: dict[int, list[PodSet]] = {}
        self._next: dict[tuple[int, bool], tuple[int, TaskRows]] = {}
        self._places: TaskRows | None = None  # of every task in the order of tasks

    # -- the tree -------------------------------------------------------------------------------------------------

    def root(self, job: int) -> GroupSet:
        known = self._roots.get(job)
        if known is None:
            known = self._roots[job] = self._tree(job)
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
        parted = [job for job, facts in facts_of.items() if facts.groups or facts.role_minimums]
        undivided[[*parted, *session.sub_jobs.shapes]] = False
        # Where a job takes only tasks of its own groups, a role may be none of them.
        named = np.unique(session.tasks.job[session.tasks.role >= 0]).tolist()
        undivided[[job for job in named if job in facts_of and facts_of[job].closed]] = False
        return undivided

    def _tree(self, job: int) -> GroupSet:
        facts, shape = self._session.job_facts(job), self._session.sub_jobs.shapes.get(job)
        root = GroupSet(wish=facts.level_wish, limit=shape.limit if shape is not None else None)
        rows = self._session.tasks_of(job)
        if self.undivided[job]:
            root.pod_sets.append(PodSet(0, job, DEFAULT, facts.minimum, rows, root, whole=True))
        elif facts.groups and _is_tree(facts.groups):
            self._hang(job, root, facts.groups, rows)
        elif shape is not None and shape.split:
            self._by_policies(shape, root)
        elif facts.role_minimums:
            self._by_roles(job, root, rows)
        else:
            self._as_one(job, root, rows)
        return root

    def _as_one(self, job: int, root: GroupSet, rows: TaskRows) -> None:
        session, facts = self._session, self._session.job_facts(job)
        roles = session.tasks.role[rows]
        ours = (roles < 0) | (roles == self._role_of(DEFAULT)) | (not facts.closed)
        whole = bool(ours.all())
        own = rows if whole else rows[ours]
        minimum = facts.minimum
        forgets = not session.rules.gangs.malformed_groups_keep_minimum
        if forgets and facts.groups and not _is_circle(facts.groups):
            minimum, root.wish = 1, None
        root.pod_sets.append(PodSet(0, job, DEFAULT, minimum, own, root, whole=whole))
        if facts.groups:
            session.report(
                f"PodGroup {session.job_key(job)}: spec.subGroups: a parent is missing, a name is used twice,"
                " or the groups form a circle; they are ignored"
            )

    def _by_policies(self, shape: "JobShape", root: GroupSet) -> None:
        """One pod set for every sub-job. Those that the job can do without have no minimum."""
        facts, needed = self._session.job_facts(shape.job), 0
        taken: dict[str, int] = {}
        for number, one in enumerate(shape.sub_jobs):
            taken[one.group] = taken.get(one.group, 0) + 1
            wanted = taken[one.group] <= shape.least.get(one.group, 0) or needed < facts.minimum
            least = min(one.minimum, len(one.tasks))
            minimum = least if wanted else 0
            needed += minimum
            name = one.name or DEFAULT
            root.pod_sets.append(
                PodSet(number, shape.job, name, minimum, one.tasks, root, limit=one.limit, unit=least)
            )
        for group, least in shape.least.items():
            if taken.get(group, 0) < least:  # sub-groups that are not there yet
                number = len(root.pod_sets)
                root.pod_sets.append(PodSet(number, shape.job, group, least, _NO_TASKS, root))
        _raise_minimums(root.pod_sets, facts.minimum)

    def _by_roles(self, job: int, root: GroupSet, rows: TaskRows) -> None:
        """One pod set for every role with a minimum, and one for the rest, which is the first to give what the job needs beyond that."""
        session, facts = self._session, self._session.job_facts(job)
        roles = session.tasks.role[rows]
        named = {name: self._role_of(name) for name in sorted(facts.role_minimums)}
        parts = [(DEFAULT, rows[~np.isin(roles, list(named.values()))], 0)]
        parts += [(name, rows[roles == role], facts.role_minimums[name]) for name, role in named.items()]
        for name, own, minimum in parts:
            if len(own) or minimum:
                root.pod_sets.append(PodSet(len(root.pod_sets), job, name, minimum, own, root))
        _raise_minimums(root.pod_sets, facts.minimum)

    def _hang(self, job: int, root: GroupSet, groups: tuple[GroupFacts, ...], rows: TaskRows) -> None:
        """Put every group under its parent: sets where groups follow, pod sets at the ends."""
        parents = {one.parent for one in groups}
        sets = {"": root} | {one.name: GroupSet(one.name, one.wish) for one in groups if one.name in parents}
        number = 0
        for one in groups:
            above = sets[one.parent]
            if one.name in sets:
                sets[one.name].parent = above
                above.sets.append(sets[one.name])
            else:
                own = rows[self._session.tasks.role[rows] == self._role_of(one.name)]
                above.pod_sets.append(PodSet(number, job, one.name, one.minimum, own, above, one.wish))
                number += 1

    def _role_of(self, name: str) -> int:
        roles = self._session.cluster.tasks.roles
        # Names are compared as they are; a role that no task has is no role.
        return roles.index(name) if name in roles else -2

    @contextmanager
    def narrowed(self, job: int, rows: TaskRows, *, all_needed: bool = False) -> Iterator[None]:
        """For as long as it lasts the job consists of these tasks only. `all_needed`: and pod sets need all that they have left."""
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
        # Where trials are remembered, an answer holds for whoever asks, and only nothing is not remembered.
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
        return np.concatenate(chosen) if chosen else _NO_TASKS

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
            return _NO_TASKS  # not enough of it is left to make it whole
        return self._in_task_order(rows)[:lack] if len(rows) > 1 else rows

    def to_evict(self, job: int) -> tuple[TaskRows, bool]:
        """The tasks that go first: what the job can spare of one pod set, or all of it; and whether more would be left."""
        pod_sets = self.of(job)
        counts = [self.count(one, ACTIVE_ALLOCATED) for one in pod_sets]
        spare = any(count > one.minimum for one, count in zip(pod_sets, counts, strict=True))
        there = [one for one, count in zip(pod_sets, counts, strict=True) if count]
        last = self.in_order(there)[::-1]
        taken = [self._taken(one) for one in (last[:1] if spare else last)]
        rows = np.concatenate(taken) if taken else _NO_TASKS
        return rows, len(rows) < sum(counts)

    def _taken(self, pod_set: PodSet) -> TaskRows:
        """Its last task when it stays whole without it, otherwise all of them, the last first."""
        session = self._session
        rows = pod_set.rows[ACTIVE_ALLOCATED[session.tasks.status[pod_set.rows]]]
        if len(rows) > 1:
            rows = self._in_task_order(rows)[::-1]
        return rows[:1] if len(rows) > max(pod_set.minimum, pod_set.unit) else rows

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
        """As plugins say, then by name."""
        if len(pod_sets) == 1:
            return pod_sets
        order = self._session.hooks.pod_set_order
        return sorted(pod_sets, key=lambda one: (*order(one), one.name))


def _raise_minimums(pod_sets: list[PodSet], needed: int) -> None:
    """What a job needs beyond the minimums of its parts, they need together: each as much as it has, the first first.

    What is then still missing has no pods yet. The first part needs it, so that the job waits for them.
    """
    lack = needed - sum(one.minimum for one in pod_sets)
    for one in pod_sets:
        more = min(max(lack, 0), max(len(one.rows) - one.minimum, 0))
        one.minimum += more
        lack -= more
    if lack > 0 and pod_sets:
        pod_sets[0].minimum += lack


def _pruned(group: GroupSet, rows: TaskRows, parent: GroupSet | None, all_needed: bool) -> GroupSet:
    """The same tree with fewer tasks."""
    some = set(rows.tolist())
    copy = GroupSet(group.name, group.wish, parent, limit=group.limit)
    copy.sets = [_pruned(inner, rows, copy, all_needed) for inner in group.sets]
    for one in group.pod_sets:
        own = np.array([row for row in one.rows.tolist() if row in some], dtype=np.int64)
        minimum = len(own) if all_needed and len(own) else one.minimum
        copy.pod_sets.append(replace(one, minimum=minimum, rows=own, parent=copy, whole=False))
    return copy


def _is_tree(groups: tuple[GroupFacts, ...]) -> bool:
    """Every parent is there, no name is used twice, and nobody is inside itself."""
    above = {one.name: one.parent for one in groups}
    return len(above) == len(groups) and all(_reaches_the_top(above, name) for name in above)


def _is_circle(groups: tuple[GroupFacts, ...]) -> bool:
    """Every parent is there and no name is used twice."""
    names = {one.name for one in groups}
    return len(names) == len(groups) and all(not one.parent or one.parent in names for one in groups)


def _reaches_the_top(above: dict[str, str], name: str) -> bool:
    for _ in range(len(above)):
        if name not in above:
            return False
        name = above[name]
        if not name:
            return True
    return False


def runs(rows: TaskRows, class_of: NDArray[np.int32]) -> Iterator[TaskRows]:
    """Tasks in order, cut where the class changes."""
    if len(rows):
        classes = class_of[rows]
        yield from np.split(rows, np.flatnonzero(np.diff(classes)) + 1)
