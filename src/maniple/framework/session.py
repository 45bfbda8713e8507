"""A session: one cycle's view of the cluster, and the questions and records that belong to it.

It opens on a snapshot, asks plugins through `hooks`, is changed only by transactions, and ends as a list of
effects and a record of refusals. Rows are numbers; `task_key`, `job_key`, `queue_name`, `node_name` give the
names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.changes import ChangeLog
from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import NOT_ADMITTED, JobFacts
from maniple.cluster.resources import Amounts
from maniple.cluster.snapshot import Snapshot, leave_out_pods_elsewhere, missing_nodes
from maniple.cluster.statuses import ALLOCATED_LIKE, VALID, Status
from maniple.framework.configuration.loading import Configuration, PluginOption
from maniple.framework.decisions import Decisions
from maniple.framework.devices.gpus import GpuBooks
from maniple.framework.groups.groups import Groups
from maniple.framework.points import ASK, NO_HOOKS, POINTS, Hooks, JobRows, TaskRows, answered_points
from maniple.framework.queue_tree import QueueTree
from maniple.framework.reasons import Reason, ReasonTable
from maniple.framework.refusals import Refusals
from maniple.framework.rules import Rules
from maniple.objects.meta import Object

if TYPE_CHECKING:
    from maniple.framework.traces.recorder import Recorder

_VALID, _PIPELINED = VALID.tolist(), int(Status.PIPELINED)
_TOLD = 5  # missing nodes
_SOME = 16  # jobs from which on columns beat keys
NON_PREEMPTIBLE = 100  # the priority from which on a job that does not say is not preempted


class Plugin(Protocol):
    """A policy: made for one session from its arguments, asked through the methods named after extension points."""

    name: str


PluginMaker = Callable[["Session", Mapping[str, Any]], Plugin]


class Session:
    """One cycle. Built by `Session.open`; `transaction.py` is the only writer of its state."""

    def __init__(
        self,
        snapshot: Snapshot,
        configuration: Configuration,
        *,
        rules: Rules,
        actions: tuple[str, ...],
        now: datetime | None,
        options: Mapping[str, Any],
    ) -> None:
        self.cluster = snapshot.cluster
        self.resources = snapshot.resources
        self.nodes = snapshot.nodes
        self.tasks = snapshot.tasks
        self.jobs = snapshot.jobs
        self.queues = snapshot.cluster.queues
        self.domains = snapshot.domains
        self.classes = snapshot.classes
        self.configuration = configuration
        self.rules = rules
        self.actions = actions
        self.now = now
        self.options = options
        self.total: Amounts = self.nodes.allocatable.sum(axis=1)
        if not rules.queues.pods_elsewhere_count:
            leave_out_pods_elsewhere(snapshot)
        # Reasons are numbered for as long as the node facts live, since verdicts are remembered with them.
        self.reasons = ReasonTable.of(self.nodes.facts.memory)
        self.refusals = Refusals()
        self.held_back: Mapping[int, str] = {}  # job -> why it is not served at all (`held_back.py`)
        self.warnings: list[str] = []
        self.trace: Recorder | None = None  # unless the cycle is being traced
        self._reported: set[str] = set()
        self.decisions = Decisions()
        # Something is being released or waited for, so that idle now and idle soon differ.
        self.flowing = bool(self.nodes.releasing.any() or self.nodes.pipelined.any())
        self.changes = ChangeLog(len(self.nodes))
        self.plugins: list[tuple[PluginOption, Plugin]] = []
        self.shared: dict[type, Any] = {}  # what several plugins keep together, by its type
        self._by_job: tuple[TaskRows, list[int]] | None = None
        self._task_counts: list[int] = []  # by job, filled on first use; nothing in a session changes them
        self._class_requests: Amounts | None = None
        self._job_ties: dict[int, tuple[float, str, str]] = {}
        self.counts_shortfall = self.counts_queue_room = False
        self.hooks = NO_HOOKS
        self.queue_tree = QueueTree(self.queues, flat=options.get("fullHierarchyFairness") is False)
        self.groups = Groups(self)
        self.gpus = GpuBooks(self)
        uncounted = () if rules.queues.pods_elsewhere_count else missing_nodes(snapshot)[:_TOLD]
        for name in uncounted:
            self.report(f"node {name!r} does not exist; the pods on it count nowhere")
        # task -> the places, with the shared devices there, that it is still releasing although it claims another
        self.moved: dict[int, list[tuple[int, tuple[str, ...]]]] = {}
        self.expected: dict[int, int] = {}  # leaving task -> node where room is kept for its successor

    def use(
        self,
        tiers: Iterable[Iterable[tuple[PluginOption, Plugin]]],
        refuses: Callable[[TaskClass], Reason | None] | None = None,
    ) -> None:
        """Register the plugins' answers, tier by tier; `refuses` is asked first whether a class can be placed."""
        registered: dict[str, list[list[Callable[..., Any]]]] = {name: [] for name in POINTS}
        if refuses is not None:
            registered["pre_predicate"].append([refuses])
        for tier in tiers:
            for lists in registered.values():
                lists.append([])
            for option, plugin in tier:
                self.plugins.append((option, plugin))
                for name in answered_points(plugin):
                    answer, switch = getattr(plugin, name), POINTS[name].switch
                    if answer is not None and (switch is None or option.enabled(switch)):
                        registered[name][-1].append(answer)
        self.hooks = Hooks(registered, alternatives=self.rules.victims.tiers_are_alternatives)
        # A gang may be placed at once only if every plugin that answers "ready" can tell how much is missing.
        self.counts_shortfall = "job_ready" in self.hooks.answered and self._all_tell(
            "shortfall", of="job_ready"
        )
        self.counts_queue_room = "allocatable" in self.hooks.answered and self._all_tell(
            "queue_room", of="allocatable"
        )

    def _all_tell(self, more: str, *, of: str) -> bool:
        """Every plugin that answers one point answers another too."""
        return all(hasattr(plugin, more) for _, plugin in self._answering(of))

    def answering(self, point: str) -> list[str]:
        """The names of the plugins that answer a point, in order."""
        return [option.name for option, _ in self._answering(point)]

    def traced(self, job: int, *, tasks: bool = False) -> "Recorder | None":
        """What records the job's steps, if it is traced; `tasks`: those of single tasks."""
        trace = self.trace
        if trace is None or not (trace.looks_at_tasks(job) if tasks else trace.follows(job)):
            return None
        return trace

    def plugins_answering(self, point: str) -> list[Plugin]:
        """The plugins that answer a point, in order."""
        return [plugin for _, plugin in self._answering(point)]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While it lasts, what plugins record or report is not part of the plan."""
        kept, count = self.refusals, len(self.warnings)
        self.refusals = Refusals()
        try:
            yield
        finally:
            self.refusals = kept
            self.unreport(count)

    def answers(self, point: str, *arguments: object) -> list[tuple[str, Any]]:
        """What each plugin that answers a point says, with its name: what `hooks` combines to one answer."""
        return [(name, ask(*arguments)) for name, ask in self.asking(point)]

    def asking(self, point: str) -> list[tuple[str, Callable[..., Any]]]:
        """The functions of the plugins that answer a point, by the plugins' names."""
        return [(option.name, getattr(plugin, point)) for option, plugin in self._answering(point)]

    def _answering(self, point: str) -> list[tuple[PluginOption, Plugin]]:
        switch = POINTS[point].switch
        return [
            (option, plugin)
            for option, plugin in self.plugins
            if getattr(plugin, point, None) is not None and (switch is None or option.enabled(switch))
        ]

    def refine(self, owner: str, rows: TaskRows, marks: NDArray[np.int64]) -> None:
        """Give tasks classes of their own, for this session, wherever their marks differ.

        For a plugin with an answer about nodes that depends on more than the class: on the queue, say. It
        calls this from its constructor, with marks from 0 up, and finds the mark in `class_.marks[owner]`; a
        task without a mark keeps its class.
        """
        if self.plugins:
            raise RuntimeError(f"{owner}: classes can be refined only while the session opens")
        if not len(rows):
            return
        if self.classes is self.cluster.classes.classes:
            self.classes = list(self.classes)
            self.tasks.class_of = self.tasks.class_of.copy()
        width = int(marks.max()) + 1
        pairs, places = np.unique(self.tasks.class_of[rows] * np.int64(width) + marks, return_inverse=True)
        first = len(self.classes)
        for pair in pairs.tolist():
            class_ = self.classes[pair // width]
            marked = {**class_.marks, owner: pair % width}
            self.classes.append(replace(class_, number=len(self.classes), marks=marked))
        self.tasks.class_of[rows] = first + places

    # -- names ----------------------------------------------------------------------------------------------------

    def task_key(self, row: int) -> str:
        return self.cluster.tasks.keys[row]

    def job_key(self, row: int) -> str:
        return self.cluster.jobs.name(row)

    def queue_name(self, row: int) -> str:
        return self.cluster.queues.keys[row]

    def node_name(self, row: int) -> str:
        return self.nodes.facts.names[row]

    @cached_property
    def _begun(self) -> NDArray[np.bool_]:
        """By job: some of its tasks were on nodes when the session opened."""
        there = (self.cluster.tasks.status >= 0) & (self.cluster.tasks.job >= 0)
        there &= ALLOCATED_LIKE[self.cluster.tasks.status]
        found = np.zeros(len(self.jobs.queue), dtype=np.bool_)
        found[self.cluster.tasks.job[there]] = True
        return found

    def start(self, job: int) -> None:
        """Tasks of a job are to be bound: unless it runs already, it starts now."""
        if self.now is not None and not self._begun[job]:
            self.decisions.started.setdefault(job, self.now)

    # -- jobs -----------------------------------------------------------------------------------------------------

    def job_facts(self, job: int) -> JobFacts:
        return self.cluster.jobs.facts[job]

    def phase(self, job: int) -> str:
        """The phase as of now in this session."""
        return self.decisions.phases.get(job) or self.job_facts(job).phase

    def is_waiting(self, job: int) -> bool:
        """Not admitted yet."""
        return self.phase(job) in NOT_ADMITTED

    def are_admitted(self) -> NDArray[np.bool_]:
        """By job row, whether it is admitted as of now in this session; row -1, of tasks without a job, is not."""
        admitted = np.append(self.cluster.jobs.admitted[: len(self.jobs.queue)], False)
        for job, phase in self.decisions.phases.items():
            admitted[job] = phase not in NOT_ADMITTED
        return admitted

    def waiting_jobs(self) -> list[int]:
        """All of the session's jobs that are not admitted yet and may be."""
        rows, decided, held = self.jobs.rows, self.decisions.phases, self.held_back
        waiting: list[int] = rows[~self.cluster.jobs.admitted[rows]].tolist()
        if not decided and not held:
            return waiting
        return [job for job in waiting if job not in held and self.is_waiting(job)]

    def preemptible(self, job: int) -> bool:
        """May be evicted for others: as its group says, otherwise by its priority."""
        said = self.job_facts(job).preemptible
        return said if said is not None else int(self.jobs.priority[job]) < NON_PREEMPTIBLE

    def are_preemptible(self, jobs: JobRows) -> NDArray[np.bool_]:
        """The same for many jobs."""
        said = self.cluster.jobs.preemptible[jobs]
        return np.where(said < 0, self.jobs.priority[jobs] < NON_PREEMPTIBLE, said > 0)

    def pending(self, job: int) -> bool:
        """Has a task that waits for a place."""
        return self.groups.pending(job)

    def ready(self, job: int) -> int:
        """Tasks that count towards the minimum."""
        return self.jobs.ready.item(job)

    def pipelined(self, job: int) -> int:
        return self.jobs.counts.item(_PIPELINED, job)

    def valid(self, job: int) -> int:
        """Tasks that are there or could be."""
        return sum(compress(self.jobs.counts[:, job].tolist(), _VALID))

    def task_count(self, job: int) -> int:
        if not self._task_counts:
            self._task_counts = self.jobs.counts.sum(axis=0).tolist()
        return self._task_counts[job]

    def tasks_of(self, job: int) -> TaskRows:
        if self._by_job is None:
            order = np.argsort(self.tasks.job, kind="stable")
            starts = np.searchsorted(self.tasks.job[order], np.arange(len(self.jobs.queue) + 1))
            self._by_job = order, starts.tolist()
        rows, bounds = self._by_job
        return rows[bounds[job] : bounds[job + 1]]

    def job_key_order(self, job: int) -> tuple[Any, ...]:
        """The order of jobs: plugins first, then age, then what identifies them (`queues.ties_by_name`)."""
        return (*self.hooks.job_order(job), *self._job_tie(job))

    def _job_tie(self, job: int) -> tuple[float, str, str]:
        last = self._job_ties.get(job)
        if last is None:
            mark = self._mark(self.cluster.jobs.objects[job])
            last = self._job_ties[job] = (float(self.jobs.created[job]), mark, self.job_key(job))
        return last

    def queue_tie(self, queue: int) -> tuple[Any, ...]:
        """The order of queues of which plugins say nothing: the older, then what identifies them."""
        item = self.queues.objects[queue]
        return (self.queues.created[queue], self._mark(item), item.metadata.name)

    def _mark(self, item: Object) -> str:
        return item.metadata.name if self.rules.queues.ties_by_name else item.metadata.uid

    def in_job_order(self, jobs: JobRows) -> JobRows:
        """Many jobs in that order. Where all plugins can tell it in columns, names are looked at only among equals."""
        if len(jobs) < _SOME or not self._all_tell("job_orders", of="job_order"):
            return np.array(sorted(jobs.tolist(), key=self.job_key_order), dtype=np.int64)
        columns = (*self.hooks.job_orders(jobs), self.jobs.created[jobs])
        order = np.lexsort(columns[::-1])
        changes = np.zeros(max(len(jobs) - 1, 0), dtype=np.bool_)
        for column in columns:
            placed = column[order]
            changes |= placed[1:] != placed[:-1]
        ordered: JobRows = jobs[order].astype(np.int64)
        bounds = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(jobs)]])
        for run in np.flatnonzero(np.diff(bounds) > 1).tolist():
            equal = slice(bounds[run], bounds[run + 1])
            ordered[equal] = self._by_mark(ordered[equal].tolist())
        return ordered

    def _by_mark(self, jobs: list[int]) -> list[int]:
        """Jobs of one age in the order of `_job_tie`."""
        objects = self.cluster.jobs.objects
        marks = {job: self._mark(objects[job]) for job in jobs}
        unique = len(set(marks.values())) == len(jobs)
        return sorted(jobs, key=marks.__getitem__ if unique else self._job_tie)

    def spare(self, jobs: JobRows) -> NDArray[np.int64]:
        """How many of the last of its tasks each job can lose; ASK where `surplus` has to be asked."""
        if not self._all_tell("spare", of="surplus"):
            return np.full(len(jobs), ASK)
        spare: NDArray[np.int64] = self.hooks.spare(jobs)
        return spare

    def queue_key_order(self, queue: int) -> tuple[Any, ...]:
        return (*self.hooks.queue_order(queue), *self.queue_tie(queue))

    def in_task_order(self, rows: TaskRows) -> TaskRows:
        """Tasks job by job, inside a job in task order: plugins, number in the name, age, unique id."""
        tasks = self.tasks
        jobs = tasks.job[rows]
        numbered = tasks.index[rows]
        # Numbers decide only in jobs where every task carries one: otherwise the order would not be transitive.
        unnumbered = np.zeros(len(self.jobs.queue) + 1, dtype=np.bool_)  # the last is for tasks of no job
        unnumbered[jobs[numbered < 0]] = True
        numbered = np.where(unnumbered[jobs], 0, numbered)
        keys = (tasks.rank[rows], tasks.created[rows], numbered, *reversed(self.hooks.task_order(rows)), jobs)
        return rows[np.lexsort(keys)]

    def requests(self, rows: TaskRows) -> Amounts:
        """What tasks ask for, a column each."""
        requests: Amounts = self.class_requests[self.tasks.class_of[rows]].T
        return requests

    @property
    def class_requests(self) -> Amounts:
        """What tasks of each class ask for, a row each."""
        if self._class_requests is None or len(self._class_requests) < len(self.classes):
            requests = np.array([one.request for one in self.classes], dtype=np.int64)
            self._class_requests = requests.reshape(len(self.classes), len(self.resources))
        return self._class_requests

    def report(self, warning: str) -> None:
        """Warn, once, of something that the user may not expect."""
        if warning not in self._reported:
            self._reported.add(warning)
            self.warnings.append(warning)

    def unreport(self, count: int) -> None:
        """Take back the warnings after the first ones."""
        self._reported.difference_update(self.warnings[count:])
        del self.warnings[count:]
