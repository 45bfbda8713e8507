"""The pods that a job could take room from, and the rule that spares each: asked of the plugins that decide it.

Candidates are the pods on nodes that suit the waiting one. Profiles whose plugins vote on tasks (`preemptable`,
`reclaimable`) are asked so; the others are asked about jobs (`preempt_victim_filter`, `reclaim_victim_filter`).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.priorities import NEVER
from maniple.cluster.statuses import ACTIVE_ALLOCATED, ON_NODE
from maniple.eviction.protection import JobProtectors, protectors
from maniple.explaining.model import Protection
from maniple.explaining.names import Names
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.reasons import SearchRanOut
from maniple.framework.session import Session
from maniple.framework.wholes import is_whole, there
from maniple.objects.core import PodDisruptionBudget
from maniple.objects.printable import printable
from maniple.objects.selectors import matches
from maniple.placement.engine import Mask

FREE = "MayBeEvicted"
_FILTERS = ("preempt_victim_filter", "reclaim_victim_filter")
NOT_KNOWN = "SearchRanOut"
_RAN_OUT = (
    "may be evicted, but the search for room used up its budget for this cycle (option searchBudget); "
    "the next cycles try again"
)
_IN_VAIN = "may be evicted, but that would not make enough room"
_TOGETHER = (
    "EvictedWhole",
    "evicted whole or not at all (disruptionMode), and other pods of the group are protected",
)
_JOBS = 3  # to name
# Jobs that one rule spares, whatever else is true of them; from _PRIORITIES on, those of a queue with one priority.
_EACH_FOR_ITSELF, _NOT_PREEMPTIBLE, _NO_PREEMPT, _NO_RECLAIM, _PRIORITIES = range(5)
_BY_PLUGIN = {
    "gang": ("GangMinimum", "the gang would fall below its minimum"),
    "priority": ("Priority", "the priority is not lower"),
    "conformance": ("Critical", "critical for the cluster"),
    "drf": ("Share", "the dominant share of the job is not above that of the waiting one"),
    "minruntime": ("MinRuntime", "the minimum run time is not over"),
    "proportion": ("WithinShare", "{queue} has no more than its share"),
    "capacity": ("WithinShare", "{queue} has no more than it deserves"),
    "fairness": ("NotReclaimable", "{queue} is not reclaimable"),
    "cdp": ("Cooldown", "the cooldown time is not over"),
    "tdm": ("RevocableZone", "not in a revocable zone"),
}


class Victims:
    """Of one session."""

    def __init__(self, session: Session, names: Names) -> None:
        self._session = session
        self._names = names
        actions = set(session.actions)
        self._preempts = bool(actions & {"preempt", "gangpreempt"})
        self._reclaims = bool(actions & {"reclaim", "gangreclaim"})
        self._reclaiming: dict[int, bool] = {}
        self._content: dict[int, bool] = {}  # by queue: it has no more than its share
        self._job_protectors = {point: JobProtectors(session, point) for point in _FILTERS}
        self._queues: dict[int, str] = {}  # their names, printable
        self._votes = not session.hooks.answered.isdisjoint(
            {"preemptable", "reclaimable", "unified_evictable"}
        )

    def protections(self, job: int, task: int, nodes: Mask) -> tuple[Protection, ...]:
        """The pods on these nodes by the rule that spares them: first those that none does, then most pods first."""
        tasks = self._session.tasks
        rows = np.flatnonzero((tasks.node >= 0) & ON_NODE[tasks.status] & (tasks.job != job))
        rows = rows[nodes[tasks.node[rows]]]
        causes = self._session.refusals.jobs.get(job, ())
        ran_out = any(isinstance(one, SearchRanOut) for one in causes)
        sorted_: dict[tuple[str, str], list[int]] = {}
        with self._session.aside():
            for why, some in self._sorted(job, task, rows):
                told = (NOT_KNOWN, _RAN_OUT) if ran_out and why[0] == FREE else why
                sorted_.setdefault(told, []).extend(some)
        made = [
            Protection(kind=kind, phrase=phrase, pods=len(some), jobs=self._jobs(some))
            for (kind, phrase), some in sorted_.items()
        ]
        return tuple(sorted(made, key=lambda one: (one.kind not in (FREE, NOT_KNOWN), -one.pods, one.kind)))

    def _jobs(self, rows: Sequence[int]) -> tuple[str, ...]:
        owners = np.unique(self._session.tasks.job[list(rows)])
        return tuple(self._session.job_key(job) for job in owners[owners >= 0][:_JOBS].tolist())

    def _sorted(self, job: int, task: int, rows: TaskRows) -> Iterator[tuple[tuple[str, str], list[int]]]:
        session = self._session
        owners = session.tasks.job[rows]
        others = ~np.isin(owners, session.jobs.rows)
        if others.any():
            yield ("NotOurs", "not a pod of this scheduler's jobs"), rows[others].tolist()
        rows = rows[~others]
        before = session.cluster.tasks.node[rows] >= 0
        if (~before).any():
            yield ("JustPlaced", "placed in this cycle"), rows[~before].tolist()
        rows = rows[before]
        if not self._preempts and not self._reclaims:
            if len(rows):
                yield ("NoEviction", "no action that evicts pods is configured"), rows.tolist()
            return
        if session.cluster.tasks.pods[task].spec.preemption_policy == NEVER:
            yield ("PreemptionPolicy", "preemptionPolicy of the waiting pod is Never"), rows.tolist()
            return
        if not len(rows):
            return
        rows = rows[np.argsort(session.tasks.job[rows], kind="stable")]
        owners, starts, places = np.unique(session.tasks.job[rows], return_index=True, return_inverse=True)
        alike = self._alike(job, owners.astype(np.int64))
        groups, bounds = alike[places], [*starts.tolist(), len(rows)]
        for group in dict.fromkeys(alike.tolist()):
            if group != _EACH_FOR_ITSELF:
                together = rows[groups == group]
                yield from self._of_job(job, task, int(session.tasks.job[together[0]]), together)
                continue
            for place in np.flatnonzero(alike == group).tolist():
                some = rows[bounds[place] : bounds[place + 1]]
                yield from self._of_job(job, task, int(owners[place]), some)

    def _alike(self, job: int, owners: JobRows) -> NDArray[np.int64]:
        """By owner: jobs with the same number are spared by the same rule, in the same words, so that one stands for
        all of them; those with none are to be asked about each."""
        jobs = self._session.jobs
        same = jobs.queue[owners] == jobs.queue[job]
        found = np.full(len(owners), _EACH_FOR_ITSELF, dtype=np.int64)
        if not self._votes:
            _, numbers = np.unique(jobs.priority[owners], return_inverse=True)
            spared = same & (jobs.priority[owners] >= jobs.priority[job])
            if (~same).any() and self._reclaims and not self._may_reclaim(job):
                found[~same] = _NO_RECLAIM
            found[spared] = _PRIORITIES + numbers[spared]
            found[~self._session.are_preemptible(owners)] = _NOT_PREEMPTIBLE
        if not self._preempts:
            found[same] = _NO_PREEMPT
        if not self._reclaims:
            found[~same] = _NO_RECLAIM
        return found

    # -- one job ------------------------------------------------------------------------------------------------------

    def _of_job(
        self, job: int, task: int, victim: int, rows: TaskRows
    ) -> Iterator[tuple[tuple[str, str], list[int]]]:
        session = self._session
        same = bool(session.jobs.queue[job] == session.jobs.queue[victim])
        if same and not self._preempts:
            yield ("NoPreempt", "action preempt is not configured"), rows.tolist()
        elif not same and not self._reclaims:
            yield ("NoReclaim", "action reclaim is not configured"), rows.tolist()
        elif self._votes:
            yield from self._by_votes(job, task, victim, rows, same=same)
        else:
            yield self._by_filters(job, victim, same=same), rows.tolist()

    def _by_votes(
        self, job: int, task: int, victim: int, rows: TaskRows, *, same: bool
    ) -> Iterator[tuple[tuple[str, str], list[int]]]:
        """Each plugin's vote; a pod is counted with the first that spares it."""
        session, point = self._session, "preemptable" if same else "reclaimable"
        # Where all of it goes or nothing, plugins are asked about all of it.
        every = there(session, victim) if is_whole(session, victim) else rows
        asked = session.tasks.preemptable
        if (~asked[rows]).any():
            yield ("NotPreemptible", "not preemptible"), rows[~asked[rows]].tolist()
        rows = rows[asked[rows]]
        by = protectors(session, (point,), task, every[asked[every]])
        for name in dict.fromkeys(by.values()):
            spared = np.array([row for row in rows.tolist() if by.get(row) == name], dtype=np.int64)
            if len(spared):
                yield self._rule(name, job, victim, spared), spared.tolist()
        free = [row for row in rows.tolist() if row not in by]
        if free:
            held = is_whole(session, victim) and (bool(by) or not asked[every].all())
            yield (_TOGETHER if held else (FREE, _IN_VAIN)), free

    def _by_filters(self, job: int, victim: int, *, same: bool) -> tuple[str, str]:
        session = self._session
        if not session.preemptible(victim):
            return "NotPreemptible", "not preemptible"
        mine, theirs = int(session.jobs.priority[job]), int(session.jobs.priority[victim])
        if same and theirs >= mine:
            word = "the same" if theirs == mine else "a higher"
            return "Priority", f"{word} priority ({theirs}; the waiting job has {mine})"
        if not same and not self._may_reclaim(job):
            return "OwnShare", f"queue {self._queue(job)} would have more than its own share"
        point = _FILTERS[0] if same else _FILTERS[1]
        by = self._job_protectors[point].first(job, victim)
        if by:
            rows = session.tasks_of(victim)
            return self._rule(by, job, victim, rows[ACTIVE_ALLOCATED[session.tasks.status[rows]]])
        if not same and self._within_share(victim):
            return "WithinShare", f"{self._theirs(job, victim)} has no more than its share"
        return FREE, _IN_VAIN

    def _may_reclaim(self, job: int) -> bool:
        if job not in self._reclaiming:
            self._reclaiming[job] = self._session.hooks.can_reclaim_resources(job)
        return self._reclaiming[job]

    def _within_share(self, victim: int) -> bool:
        queue = int(self._session.jobs.queue[victim])
        if queue not in self._content:
            report = self._session.hooks.queue_report(queue)
            within = "deserved" in report and (
                np.asarray(report["allocated"]) <= np.asarray(report["deserved"])
            )
            self._content[queue] = bool(np.all(within))
        return self._content[queue]

    def _rule(self, plugin: str, job: int, victim: int, rows: TaskRows) -> tuple[str, str]:
        if plugin == "pdb":
            names = ", ".join(filter(self._names.shows, self._budgets(rows))) or "of theirs"
            return "DisruptionBudget", f"PodDisruptionBudget {names} allows no more disruptions"
        kind, phrase = _BY_PLUGIN.get(plugin, ("Plugin", f"protected by plugin {plugin}"))
        return kind, phrase.format(queue=self._theirs(job, victim))

    def _budgets(self, rows: TaskRows) -> list[str]:
        session, found = self._session, dict[str, None]()
        budgets = session.cluster.all(PodDisruptionBudget)
        for row in rows.tolist():
            pod = session.cluster.tasks.pods[row]
            for key, one in budgets.items():
                own = key.partition("/")[0] == (pod.metadata.namespace or "default")
                if own and matches(one.spec.selector, pod.metadata.labels):
                    found[printable(key)] = None
        return list(found)

    def _queue(self, job: int) -> str:
        queue = int(self._session.jobs.queue[job])
        if queue not in self._queues:
            self._queues[queue] = printable(self._session.queue_name(queue))
        return self._queues[queue]

    def _theirs(self, job: int, victim: int) -> str:
        """The queue of a job that is spared; one of another namespace may have a queue that is not to be named."""
        same = self._session.jobs.queue[job] == self._session.jobs.queue[victim]
        known = same or self._names.all or self._names.shows(self._session.job_key(victim))
        return f"queue {self._queue(victim)}" if known else "their queue"
