"""The end of a session: what its plan needs is copied out, so that a plan is a value and the session can go.

Called by the planner when a cycle closes. It costs a few copies of columns: names and words are made from
them by `plan.py`, when they are read. Columns that the session made are taken as they are; those that it
shares with the cluster are copied.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.facts import JobFacts, QueueFacts
from maniple.cluster.resources import Amounts, ResourceSpace
from maniple.cluster.statuses import ACTIVE_USED, ALIVE, STATUSES, Status
from maniple.cluster.tables import job_name
from maniple.framework.conditions import Conditions
from maniple.framework.criteria import NodeRows
from maniple.framework.groups.remembered import remembered
from maniple.framework.plans.outcome import PodSetOutcome
from maniple.framework.plans.standing import QueueProblem, queue_problem
from maniple.framework.points import Capacity, PodVolumes, TaskRows
from maniple.framework.reasons import EvictionCause, Histogram
from maniple.framework.session import Session
from maniple.objects.meta import Object

Placed = tuple[tuple[TaskRows, NodeRows], ...]
# The statuses that a pod set's tasks are counted in: there, gated, used.
COUNTED = np.array([ALIVE, np.arange(STATUSES) == Status.GATED, ACTIVE_USED], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """Of rows, as they were."""

    tasks: list[str]
    jobs: list[str]  # as keys, see `job`
    doubled: frozenset[str]
    queues: list[str]
    nodes: Sequence[str]

    def job(self, row: int) -> str:
        return job_name(self.jobs[row], self.doubled)


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """Resource by resource, nodes by name."""

    allocatable: Amounts
    used: Amounts
    releasing: Amounts
    pipelined: Amounts


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """Columns by task row."""

    status: NDArray[np.int8]
    node: NDArray[np.int32]
    job: NDArray[np.int32]
    gated: NDArray[np.bool_]
    rank: Amounts
    class_of: NDArray[np.int32]
    wanted: Mapping[int, TaskClass]  # the classes of tasks that wait, by number
    moved: Mapping[int, int]  # they claim another place and have not left this node
    groups: Mapping[int, tuple[str, ...]]  # shared devices
    shares: Mapping[
        int, tuple[int, float]
    ]  # of placed tasks that get parts of devices: how many, and what part of each


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """Columns by job row; `rows` are those that the cycle served."""

    rows: NDArray[np.int64]
    queue: NDArray[np.int32]
    minimum: NDArray[np.int32]
    counts: Amounts
    ready: Amounts
    edition: Amounts  # of the pod groups
    admitted: NDArray[np.bool_]
    allocated: Amounts
    pending: Amounts  # what the tasks that wait request
    fixed: NDArray[np.bool_]  # not preemptible
    facts: Mapping[int, JobFacts]
    groups: Mapping[int, Object]
    held_back: Mapping[int, str]  # job -> why it is not served at all
    phases: Mapping[int, str]
    stale: frozenset[int]  # whose gang was known to be broken
    parts: Mapping[int, tuple[PodSetOutcome, ...]]  # of jobs that are not one pod set with all of their tasks
    foreign: Mapping[int, Mapping[str, int]]  # pods of a job that name other schedulers, counted by name


@dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """By queue row. `paths`: the queues of the tree with those above them, where jobs are served by it."""

    facts: Mapping[int, QueueFacts]
    reports: Mapping[int, Mapping[str, Any]]
    problems: Mapping[int, QueueProblem]  # why jobs of a queue cannot be served
    paths: Mapping[int, Sequence[int]]
    usage: Mapping[str, Mapping[str, float]]
    gpu: int | None  # the dimension that GPUs are reported as
    # Tasks placed and evicted, and by how much that changed what queues use
    changed: tuple[TaskRows, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """What the cycle decided, by row."""

    bound: Placed
    held: Placed
    pipelined: NDArray[np.intp]
    evicted: tuple[tuple[int, str], ...]
    # By the points at which plugins could have protected pods: which plugins were asked there
    asked: Mapping[tuple[str, ...], tuple[str, ...]]
    admitted: tuple[TaskRows, ...]
    nominated: Mapping[int, int]
    annotations: Mapping[int, dict[str, str]]
    claims: Mapping[str, dict[str, Any]]
    volumes: Mapping[str, PodVolumes]
    started: Mapping[int, datetime]
    stale_since: Mapping[int, datetime | None]
    half_gangs: bool
    goes_on_later: bool


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """Why tasks and jobs were not served."""

    tasks: Sequence[tuple[TaskRows, Histogram | str]]
    jobs: Mapping[int, list[str]]
    found: Mapping[int, int]
    over: Mapping[int, Capacity]
    conditions: Conditions

    def by_task(self) -> dict[int, Histogram | str]:
        """The first cause of a task counts."""
        found: dict[int, Histogram | str] = {}
        for rows, cause in self.tasks:
            for row in rows.tolist():
                found.setdefault(row, cause)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """A session at its end."""

    names: Names
    resources: ResourceSpace  # it only grows
    nodes: Nodes
    tasks: Tasks
    jobs: Jobs
    queues: Queues
    decided: Decided
    refused: Refused
    by_pod_sets: bool  # jobs wait until their pod sets have enough pods
    by_queue_tree: bool  # jobs are served by the queue tree
    plain_words: bool
    names_others: bool  # messages to one namespace may name what is in another
    pool: str
    scheduler_names: tuple[str, ...]
    actions: tuple[str, ...]
    protects: bool  # some plugin protects jobs that have not run for long enough


def freeze(session: Session) -> Closed:
    """Take out of a session whose last action has run what its plan tells."""
    cluster = session.cluster
    return Closed(
        names=Names(
            tasks=cluster.tasks.keys.copy(),
            jobs=cluster.jobs.keys.copy(),
            doubled=frozenset(cluster.jobs.doubled),
            queues=cluster.queues.keys.copy(),
            nodes=session.nodes.facts.names,
        ),
        resources=session.resources,
        nodes=_nodes(session),
        tasks=_tasks(session),
        jobs=_jobs(session),
        queues=_queues(session),
        decided=_decided(session),
        refused=Refused(
            tasks=session.refusals.of_each_task(),
            jobs=session.refusals.jobs,
            found=session.refusals.found,
            over=session.refusals.over,
            conditions=session.decisions.conditions,
        ),
        by_pod_sets=session.rules.gangs.wait_for_pods,
        by_queue_tree=session.rules.queues.only_leaves_take_jobs,
        plain_words=session.rules.words.plain,
        names_others=session.rules.words.name_others,
        pool=str(session.options.get("nodePoolLabelValue") or "default"),
        scheduler_names=tuple(sorted(cluster.dialect.scheduler_names)),
        actions=session.actions,
        protects=any(getattr(plugin, "protects", False) for _, plugin in session.plugins),
    )


def _nodes(session: Session) -> Nodes:
    nodes = session.nodes
    return Nodes(nodes.allocatable, nodes.used, nodes.releasing, nodes.pipelined)


def _wanted(session: Session) -> dict[int, TaskClass]:
    """The classes of tasks that still wait; not where causes already say what these request."""
    if session.rules.words.plain:
        return {}
    classes = np.flatnonzero(np.bincount(session.tasks.class_of[session.tasks.status == Status.PENDING]))
    return {number: session.classes[number] for number in classes.tolist()}


def _placed(session: Session) -> TaskRows:
    """Tasks that got a place for good, in the order in which that was decided."""
    rows = [rows for rows, _ in (*session.decisions.bound, *session.decisions.held)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows])


def _of_classes(session: Session, rows: TaskRows, chosen: NDArray[np.bool_]) -> list[int]:
    """The tasks among many whose classes were chosen."""
    return rows[chosen[session.tasks.class_of[rows]]].tolist() if chosen.any() else []


def _tasks(session: Session) -> Tasks:
    tasks, placed = session.tasks, _placed(session)
    met = np.flatnonzero(np.bincount(tasks.class_of[placed], minlength=len(session.classes)))
    share = np.zeros(len(session.classes), dtype=np.bool_)
    share[[number for number in met.tolist() if session.classes[number].share is not None]] = True
    shares = {}
    for row in _of_classes(session, placed, share):
        class_ = session.classes[tasks.class_of[row]]
        assert class_.share is not None
        shares[row] = class_.share.devices, session.gpus.portion_on(class_, int(tasks.node[row]))
    return Tasks(
        status=tasks.status,
        node=tasks.node,
        job=tasks.job.copy(),
        gated=tasks.gated.copy(),
        rank=tasks.rank,
        class_of=tasks.class_of.copy(),
        wanted=_wanted(session),
        moved={row: places[0][0] for row, places in session.moved.items() if places},
        groups=session.gpus.groups_of,
        shares=shares,
    )


def _jobs(session: Session) -> Jobs:
    jobs, table = session.jobs, session.cluster.jobs
    return Jobs(
        rows=jobs.rows,
        queue=jobs.queue.copy(),
        minimum=jobs.minimum.copy(),
        counts=jobs.counts,
        ready=jobs.ready,
        edition=table.edition[: len(jobs.queue)].copy(),
        admitted=table.admitted[: len(jobs.queue)].copy(),
        # Also what pods hold on nodes of others: a queue's status is about all of the cluster.
        allocated=jobs.allocated if jobs.elsewhere is None else jobs.allocated + jobs.elsewhere,
        pending=jobs.pending,
        fixed=~session.are_preemptible(np.arange(len(jobs.queue))),
        facts=table.facts.copy(),
        held_back=session.held_back,
        groups=table.objects.copy(),
        phases=session.decisions.phases,
        stale=frozenset(table.stale),
        parts=_parts(session) if session.rules.gangs.wait_for_pods else {},
        foreign=_foreign(session),
    )


def _foreign(session: Session) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for job, scheduler in session.cluster.foreign.values():
        row = session.cluster.jobs.index_of(job)
        if row is not None:
            found.setdefault(row, Counter())[scheduler] += 1
    return found


def _parts(session: Session) -> dict[int, tuple[PodSetOutcome, ...]]:
    """The pod sets of jobs that are divided, with the tasks of each counted by status."""
    facts = session.cluster.jobs.facts
    divided = [job for job in np.flatnonzero(~session.groups.undivided).tolist() if job in facts]
    return remembered(session, "parts", divided, lambda job: _parts_of(session, job))


def _parts_of(session: Session, job: int) -> tuple[PodSetOutcome, ...]:
    found = []
    for one in session.groups.of(job):
        by_status = np.bincount(session.tasks.status[one.rows], minlength=STATUSES)
        found.append(PodSetOutcome(one.name, one.minimum, *(by_status @ COUNTED.T).tolist()))
    return tuple(found)


def _queues(session: Session) -> Queues:
    report = session.hooks.queue_report
    facts, asked = session.queues.facts.copy(), session.jobs.queue[session.jobs.queue >= 0]
    named = np.flatnonzero(np.bincount(asked)).tolist() if len(asked) else []
    used: Mapping[str, Mapping[str, float]] = session.options.get("queueUsage") or {}
    return Queues(
        facts=facts,
        reports={queue: report(queue) for queue in facts} if "queue_report" in session.hooks.answered else {},
        problems={queue: problem for queue in named if (problem := queue_problem(session, queue))},
        paths=session.queue_tree.paths() if session.rules.queues.only_leaves_take_jobs else {},
        usage={name: dict(amounts) for name, amounts in used.items()},
        gpu=session.gpus.reported_as,
        changed=_changed(session),
    )


def _changed(session: Session) -> tuple[TaskRows, NDArray[np.float64]]:
    """Cpu, memory and GPUs of tasks that the cycle placed, and less than nothing of those that it evicted.

    Only evictions tell of queues as they were, so that nothing is counted where there are none.
    """
    if not session.decisions.evicted or not session.rules.queues.only_leaves_take_jobs:
        return np.zeros(0, dtype=np.int64), np.zeros((3, 0))
    claimed = np.flatnonzero(session.tasks.status == Status.PIPELINED)
    came = np.concatenate([_placed(session), claimed]).astype(np.int64)
    went = np.array([row for row, _ in session.decisions.evicted], dtype=np.int64)
    amounts = np.concatenate([session.gpus.of_tasks(came), -session.gpus.of_tasks(went)], axis=1)
    return np.concatenate([came, went]), amounts


def _asked(session: Session) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The names of the plugins that were asked about evictions."""
    causes = dict.fromkeys(
        why.asked for _, why in session.decisions.evicted if isinstance(why, EvictionCause)
    )
    return {
        points: tuple(dict.fromkeys(name for point in points for name in session.answering(point)))
        for points in causes
    }


def _decided(session: Session) -> Decided:
    placed = _placed(session)
    needy = np.zeros(len(session.classes), dtype=np.bool_)
    for number in np.flatnonzero(np.bincount(session.tasks.class_of[placed])).tolist():
        spec = session.classes[number].spec.pod.spec
        needy[number] = bool(spec.resource_claims or spec.volumes)
    rows, hooks = _of_classes(session, placed, needy), session.hooks
    return Decided(
        bound=tuple(session.decisions.bound),
        held=tuple(session.decisions.held),
        pipelined=np.flatnonzero(session.tasks.status == Status.PIPELINED),
        evicted=tuple(session.decisions.evicted),
        asked=_asked(session),
        admitted=tuple(session.decisions.admitted),
        nominated=session.decisions.nominated,
        annotations=session.decisions.annotations,
        claims=hooks.claims_to_write(rows) if rows else {},
        volumes=hooks.volumes_to_bind(rows) if rows else {},
        started=session.decisions.started,
        stale_since=session.decisions.stale_since,
        half_gangs=session.decisions.half_gangs,
        goes_on_later=session.decisions.goes_on_later,
    )
