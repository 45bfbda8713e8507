"""Bundles: what gang-aware eviction takes of a job inside a domain.

A bundle is either tasks that the job can spare (safe), or the rest (whole). A task is safe while its job has
more than its minimum, its role keeps its own minimum, and its policy keeps as many sub-jobs as it needs. A job
that is below its minimum has nothing left to lose: all of its tasks are safe. The tasks that are not safe are
one bundle, and taking it breaks the gang.

worth = sum over requested resources of min(freed here, need)/need, divided by the sum of (all that the job
holds)/need; infinite for a safe bundle. With `waiting_pods_are_held` the requests of the job's pending tasks
count as held.

Safe bundles come before whole ones; then victims in the order of the action; then, among jobs that it considers
equal, the highest worth first. Whole means whole: a gang that breaks is evicted everywhere, and not at all if
some of it may not be evicted. Without `gangs_go_everywhere` a whole bundle ends at the border of its domain,
and the rest of the gang stays where it is. These are rules of `gang_eviction`. A job that is evicted whole or not at
all is one whole bundle, whatever the rules are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ALLOCATED_LIKE, READY
from maniple.framework.configuration.scalars import parse_bool
from maniple.framework.groups.tree import PodSet
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.wholes import is_whole

PREEMPTABLE_KEY = "volcano.sh/preemptable"
_HOLDING = np.flatnonzero(ALLOCATED_LIKE)

Mask = NDArray[np.bool_]
Jobs = NDArray[np.int64]
Standing = Callable[
    [Iterable[int]], dict[int, int]
]  # jobs -> their places among victims; the smaller goes first


@dataclass(slots=True, eq=False)
class Bundle:
    """Tasks of one job, the least important first."""

    job: int
    rows: TaskRows
    whole: bool
    worth: float = inf


# -- which tasks may be victims --------------------------------------------------------------------------------------


def candidates(session: Session, statuses: Mask) -> TaskRows:
    """Preemptable tasks in some statuses on nodes, the least important first.

    Only of jobs where the pod group does not forbid it.
    """
    tasks = session.tasks
    rows = np.flatnonzero(
        (tasks.status >= 0) & statuses[tasks.status] & tasks.preemptable & (tasks.node >= 0)
    )
    rows = rows[np.isin(tasks.job[rows], session.jobs.rows)]
    refusing = [job for job in np.unique(tasks.job[rows]).tolist() if not _lets_go(session, job)]
    rows = rows[~np.isin(tasks.job[rows], refusing)]
    return rows[np.lexsort((tasks.rank[rows], tasks.priority[rows], tasks.job[rows]))]


def _lets_go(session: Session, job: int) -> bool:
    """A pod group without the setting is preemptable; one with an unreadable value is not."""
    meta = session.cluster.jobs.objects[job].metadata
    said = meta.annotations.get(PREEMPTABLE_KEY, meta.labels.get(PREEMPTABLE_KEY))
    return said is None or parse_bool(said) is True


# -- in what order ---------------------------------------------------------------------------------------------------


def by_job_order(session: Session, jobs: Iterable[int]) -> dict[int, int]:
    """The job that would be served last goes first: in plugin order, then the younger, then by identity."""
    last_first = sorted(jobs, key=session.job_key_order, reverse=True)
    return {job: place for place, job in enumerate(last_first)}


def by_queue_order(session: Session, asking: int, jobs: Iterable[int]) -> dict[int, int]:
    """The order of jobs by queue: the plugins' first victim queue first, otherwise the one served last."""
    queue_of = {job: int(session.jobs.queue[job]) for job in jobs}
    queues = sorted(set(queue_of.values()), key=session.queue_key_order, reverse=True)
    queues.sort(key=lambda queue: session.hooks.victim_queue_order(queue, asking))
    turn = {queue: place for place, queue in enumerate(queues)}
    return {job: turn[queue] for job, queue in queue_of.items()}


# -- what plugins leave of them --------------------------------------------------------------------------------------


def approved(
    session: Session, bundles: Iterable[Bundle], approve: Callable[[TaskRows], TaskRows], few: int
) -> Iterator[Bundle]:
    """What the plugins leave of bundles in order: less of a safe one, all or nothing of a whole one.

    They are called for a few tasks first, then for more and more, since most bundles are never needed. The
    caller evicts a bundle before it takes the next, so that the plugins see what is gone, unless they have to
    approve all at once.
    """
    rules, protected = session.rules.gang_eviction, set[int]()
    for asked in _portions(bundles, len(session.tasks) if rules.approved_at_once else few):
        allowed = np.zeros(len(session.tasks), dtype=np.bool_)
        allowed[approve(np.concatenate([bundle.rows for bundle in asked]))] = True
        for bundle in asked:
            rows = bundle.rows[allowed[bundle.rows]]
            if len(rows) < len(bundle.rows):
                protected.add(bundle.job)
            # A job that must not lose what it can spare must not lose the rest either.
            refused = len(rows) < len(bundle.rows)
            if rules.surplus_protects_gang:
                refused = bundle.job in protected
            if len(rows) and not (bundle.whole and refused):
                yield replace(bundle, rows=rows)


def _portions(bundles: Iterable[Bundle], few: int) -> Iterator[list[Bundle]]:
    """Bundles of so many tasks together, then of twice as many, and so on."""
    portion, size = list[Bundle](), 0
    for bundle in bundles:
        portion.append(bundle)
        size += len(bundle.rows)
        if size >= few:
            yield portion
            portion, size, few = [], 0, 2 * few
    if portion:
        yield portion


# -- what is one -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """What a job has in a domain."""

    safe: TaskRows
    whole: TaskRows
    freed: Amounts  # in the domain, by taking what is whole


class BundlePool:
    """The bundles of all jobs that may lose tasks in an action, by domain."""

    def __init__(self, session: Session, statuses: Mask) -> None:
        self._session = session
        self._statuses = statuses
        rows = candidates(session, statuses)
        self._rows = {
            int(session.tasks.job[rows[start]]): rows[start:stop] for start, stop in _stretches(session, rows)
        }
        self._domains: dict[int, dict[int, _Split]] = {}
        self._ties = ties(session, self._rows)

    def bundles(
        self, domain: int, may_take: Callable[[Jobs], Mask], need: Amounts, standing: Standing
    ) -> list[Bundle]:
        """The bundles in a domain, in order, of jobs that may be evicted for a job with this need."""
        splits = self._splits(domain)
        known = np.array(list(splits), dtype=np.int64)
        jobs = known[may_take(known)]
        worth = self._worth(jobs, [splits[job].freed for job in jobs.tolist()], need)
        bundles = []
        for job, own in zip(jobs.tolist(), worth, strict=True):
            split = splits[job]
            if len(split.safe):
                bundles.append(Bundle(job, split.safe, whole=False))
            if len(split.whole):
                bundles.append(Bundle(job, split.whole, whole=True, worth=own))
        return in_order(bundles, standing({bundle.job for bundle in bundles}), self._ties)

    def lose(self, jobs: Iterable[int]) -> None:
        """Tasks of these jobs were evicted for good."""
        status = self._session.tasks.status
        for job in jobs:
            self._rows[job] = self._rows[job][self._statuses[status[self._rows[job]]]]
            for domain, splits in self._domains.items():
                splits.pop(job, None)
                self._enter(domain, job)

    def _splits(self, domain: int) -> dict[int, _Split]:
        if domain not in self._domains:
            self._domains[domain] = {}
            for job in self._rows:
                self._enter(domain, job)
        return self._domains[domain]

    def _enter(self, domain: int, job: int) -> None:
        session, rows = self._session, self._rows[job]
        inside = session.domains.members[domain][session.tasks.node[rows]]
        here = rows[inside]
        if not len(here):
            return
        only_whole = is_whole(session, job)
        safe, rest = (here[:0], here) if only_whole else safe_and_rest(session, job, here)
        whole = rest
        if (only_whole or session.rules.gang_eviction.gangs_go_everywhere) and len(rest):
            # A gang of which some may not go cannot be lost whole.
            losable = int(session.jobs.counts[_HOLDING, job].sum()) <= len(rows)
            whole = np.concatenate([rest, rows[~inside]]) if losable else rest[:0]
        self._domains[domain][job] = _Split(safe, whole, session.requests(rest).sum(axis=1))

    def _worth(self, jobs: Jobs, freed: list[Amounts], need: Amounts) -> list[float]:
        """How much of the need each job frees, relative to how much of it the job loses."""
        if not freed:
            return []
        asked = need > 0
        gain = (np.minimum(np.array(freed)[:, asked], need[asked]) / need[asked]).sum(axis=1)
        loss = (self._held(jobs)[asked].T / need[asked]).sum(axis=1)
        worth: list[float] = np.divide(gain, loss, out=np.full(len(jobs), inf), where=loss > 0).tolist()
        return worth

    def _held(self, jobs: Jobs) -> Amounts:
        session = self._session
        if not session.rules.gang_eviction.waiting_pods_are_held:
            return session.jobs.allocated[:, jobs]
        return np.stack(
            [session.requests(session.tasks_of(job)).sum(axis=1) for job in jobs.tolist()], axis=1
        )


def ties(session: Session, jobs: Iterable[int]) -> dict[int, int]:
    """The place of each job where nothing else tells its bundles from others'."""
    objects = session.cluster.jobs.objects
    by_uid = sorted(jobs, key=lambda job: (objects[job].metadata.uid, session.job_key(job)))
    return {job: place for place, job in enumerate(by_uid)}


def in_order(bundles: list[Bundle], places: Mapping[int, int], ties: Mapping[int, int]) -> list[Bundle]:
    """Safe ones first, then by the standing of their jobs, then what is worth most."""
    return sorted(bundles, key=lambda one: (one.whole, places[one.job], -one.worth, ties[one.job]))


def safe_and_rest(session: Session, job: int, rows: TaskRows) -> tuple[TaskRows, TaskRows]:
    """A job's tasks, the least important first: those that it can lose and still be whole, and the others."""
    spare = session.ready(job) - int(session.jobs.minimum[job])
    if spare < 0:
        return rows, rows[:0]
    if spare == 0 or not (session.job_facts(job).role_minimums or job in session.groups.split):
        return rows[:spare], rows[spare:]
    roles, pod_sets = _RoleSpare(session, job), _PodSetSpare(session, job)
    safe: list[int] = []
    rest: list[int] = []
    for row in rows.tolist():
        free = len(safe) < spare and roles.allows(row) and pod_sets.allows(row)
        if free:
            roles.take(row)
            pod_sets.take(row)
        (safe if free else rest).append(row)
    return np.array(safe, dtype=np.int64), np.array(rest, dtype=np.int64)


class _RoleSpare:
    """How many tasks of each role a job can lose. Minimums that add up to more than the job's own do not count."""

    def __init__(self, session: Session, job: int) -> None:
        self._role_of = session.tasks.role
        self._spare: dict[int, int] = {}
        minimums = session.job_facts(job).role_minimums
        if not minimums or int(session.jobs.minimum[job]) < sum(minimums.values()):
            return
        own = session.tasks_of(job)
        ready = session.tasks.role[own[READY[session.tasks.status[own]]]]
        names = session.cluster.tasks.roles
        for name, least in minimums.items():
            role = names.index(name) if name in names else -1
            if role >= 0 or not name:  # tasks without a role go by the empty name
                self._spare[role] = int((ready == role).sum()) - least

    def allows(self, row: int) -> bool:
        return self._spare.get(int(self._role_of[row]), 1) > 0

    def take(self, row: int) -> None:
        role = int(self._role_of[row])
        if role in self._spare:
            self._spare[role] -= 1


class _PodSetSpare:
    """How many pod sets of each policy a job can lose. One that is incomplete is free to lose more."""

    def __init__(self, session: Session, job: int) -> None:
        self._owner: dict[int, PodSet] = {}
        # Tasks that a pod set can lose before it is incomplete; negative once it is
        self._extra: dict[PodSet, int] = {}
        self._spare: dict[str, int] = {}
        if job not in session.groups.split:
            return
        shape = session.groups.root(job)
        self._spare = {policy: -least for policy, least in shape.least.items() if least > 0}
        for one in shape.members:
            if one.policy not in self._spare:
                continue
            extra = -session.groups.lacking(one)
            lost_with_one = session.rules.gang_eviction.sub_groups_lost_with_one_pod
            self._extra[one] = min(extra, 0) if lost_with_one else extra
            self._spare[one.policy] += extra >= 0
            self._owner.update(dict.fromkeys(one.rows.tolist(), one))

    def allows(self, row: int) -> bool:
        one = self._owner.get(row)
        return one is None or self._extra[one] != 0 or self._spare[one.policy] > 0

    def take(self, row: int) -> None:
        one = self._owner.get(row)
        if one is not None:
            self._spare[one.policy] -= self._extra[one] == 0
            self._extra[one] -= 1


def _stretches(session: Session, rows: TaskRows) -> Iterator[tuple[int, int]]:
    """Where the tasks of each job begin and end."""
    bounds = np.flatnonzero(np.diff(session.tasks.job[rows], prepend=-1)).tolist()
    return pairwise([*bounds, len(rows)])
