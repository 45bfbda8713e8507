"""The recorder: actions and the placement engine tell it what they do; it keeps that as events.

A session has none unless a trace was asked for, so that not tracing costs one test of an attribute for each job, run of
tasks, domain or search. A recorder follows one job, or all of them to a certain depth for the log. Of other jobs it
keeps turns and results, one event each, so that a reader sees which jobs came first.

Recording changes nothing: plugins are asked again, one by one, with refusals and warnings kept apart (`aside`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from maniple.cluster.statuses import Status
from maniple.framework.combine import votes
from maniple.framework.points import POINTS, Vote
from maniple.framework.reasons import POD
from maniple.framework.traces import events as made
from maniple.framework.traces.events import Answer, AnyEvent, Key, KeyPart, Rival, Trace
from maniple.framework.traces.values import answer, is_yes, plain

if TYPE_CHECKING:
    from maniple.framework.points import TaskRows
    from maniple.framework.session import Session

_THERE = [Status.RUNNING, Status.BOUND, Status.BINDING]
_RIVALS = 5  # of a turn
_NAMED = 16  # pods in one event, domains, candidates


class Depth(IntEnum):
    """How much is recorded of the jobs that are followed; the numbers are those of klog's levels."""

    TURNS = 3  # queues, jobs, transactions
    TASKS = 4  # also: each pod, and why nodes refuse it
    NODES = 5  # also: each node's verdicts and scores


class UnknownSubjectError(LookupError):
    """There is no pod and no job of that name. `known`: the names that there are."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(name)
        self.name = name
        self.known = known


class Recorder:
    """What is recorded of one cycle.

    `subject`: a pod or a job, as namespace/name; empty: all jobs. `nodes`: nodes whose verdicts and scores are
    recorded in any case. `everything`: no list is cut short.
    """

    def __init__(
        self,
        subject: str = "",
        *,
        depth: Depth = Depth.NODES,
        nodes: Iterable[str] = (),
        everything: bool = False,
        keys: bool = False,
    ) -> None:
        """`keys`: record the key of every job's turn, without its rivals."""
        self._keys = keys
        self.subject = subject
        self.depth = depth
        self.nodes = frozenset(nodes)
        self.everything = everything
        self.pod = ""
        self.job = -1
        self.trials = 0  # in the search that is under way
        self._events: list[AnyEvent] = []
        self._lists: list[list[AnyEvent]] = [self._events]
        self._turns: list[made.QueueTurn] = []  # of queues, until a job of the last one has its turn
        self._excluded = ""
        self._session: Session | None = None

    # -- for the planner --------------------------------------------------------------------------------------------

    def begin(self, session: "Session") -> None:
        """Record this session; raises `UnknownSubjectError`."""
        self._session = session
        session.trace = self
        if self.subject:
            self.job, self.pod = _found(session, self.subject)
            self._excluded = self._exclusion()

    @property
    def events(self) -> list[AnyEvent]:
        return self._events

    def trace(self, profile: str) -> Trace:
        """What has been recorded."""
        return Trace(profile, self._job(self.job) if self.job >= 0 else "", self.pod, tuple(self._events))

    def action(self, name: str) -> None:
        self._turns.clear()
        self.add(made.Action(name))
        if self.job >= 0 and self._excluded:
            self.left_out(self.job, self._excluded)

    @property
    def considered(self) -> bool:
        """One job is followed, and actions may consider it."""
        return self.job >= 0 and not self._excluded

    def _exclusion(self) -> str:
        """Why no action considers the job, if so."""
        session, job = self.session, self.job
        if job in session.held_back:
            return session.held_back[job]
        if job in session.jobs.rows:
            return ""
        queue = int(session.jobs.queue[job])
        if job not in session.cluster.jobs.objects:
            return "its pod group does not exist"
        if queue not in session.queues.objects:
            return f"queue {self._queue(queue)!r} does not exist"
        return "it is not for this scheduler"

    def outcome(self) -> None:
        """How the followed jobs stand."""
        session = self.session
        told = [self.job]
        if self.job < 0:  # jobs with something to tell
            counts = session.jobs.counts
            active = (
                (counts[Status.PENDING] > 0) | (counts[Status.BINDING] > 0) | (counts[Status.PIPELINED] > 0)
            )
            told = session.jobs.rows[active[session.jobs.rows]].tolist()
        bound: dict[int, dict[int, int]] = {}
        for placed, nodes in (*session.decisions.bound, *session.decisions.held):
            if len(placed):  # each is about one job
                own = bound.setdefault(int(session.tasks.job[placed[0]]), {})
                own.update(zip(placed.tolist(), nodes.tolist(), strict=True))
        evicted: dict[int, list[int]] = {}
        for row, _ in session.decisions.evicted:
            evicted.setdefault(int(session.tasks.job[row]), []).append(row)
        for job in told:
            self.add(self._outcome(job, bound.get(job, {}), evicted.get(job, [])))

    # -- what is recorded -------------------------------------------------------------------------------------------

    @property
    def session(self) -> "Session":
        assert self._session is not None  # recording begins with a session
        return self._session

    def follows(self, job: int) -> bool:
        """Whether what happens inside this job's turn is recorded."""
        return self.job < 0 or job == self.job

    def looks_at_victims(self, job: int) -> bool:
        """Whether every pod that may not be evicted for this job is recorded: that costs much for all jobs."""
        return self.follows(job) and (self.job >= 0 or self.depth >= Depth.NODES)

    def looks_at_tasks(self, job: int) -> bool:
        return self.depth >= Depth.TASKS and self.follows(job)

    def add(self, event: AnyEvent) -> None:
        self._lists[-1].append(event)

    def some(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names for an event, not too many."""
        return tuple(names if self.everything else names[:_NAMED])

    def pods(self, rows: "TaskRows | Sequence[int]") -> tuple[str, ...]:
        few = rows if self.everything else rows[:_NAMED]
        return tuple(self.session.task_key(int(row)) for row in few)

    # -- turns ------------------------------------------------------------------------------------------------------

    def queue_turn(
        self,
        queue: int,
        point: str,
        key: Sequence[Any],
        others: Sequence[tuple[Sequence[Any], int]],
        *,
        below: bool = False,
    ) -> None:
        """A queue was chosen; it counts once one of its jobs has its turn, or the queue is passed over.

        `below`: it was chosen among those of the queue that was chosen before.
        """
        own = self._queues_of_subject()
        shown = [one for one in others if one[1] in own]
        if self.job < 0 and others:  # of all jobs: the queue that would have been next
            shown = [min(others, key=lambda one: tuple(one[0]))]
        if queue in own or self.everything:
            shown = sorted(others, key=lambda one: tuple(one[0]))[: None if self.everything else _RIVALS]
        rivals = tuple(Rival(self._queue(one), self._key(point, known)) for known, one in shown)
        if not below:
            self._turns.clear()
        self._turns.append(made.QueueTurn(self._queue(queue), self._key(point, key), rivals, len(others) + 1))

    def passed_over(self, queue: int, point: str, why: str, jobs: Sequence[int]) -> None:
        """A queue gets nothing, because of what plugins said at a point."""
        if jobs and (self.job < 0 or self.job in jobs or queue in self._queues_of_subject()):
            self._take_turn()
            answers = self.answers(point, queue)
            self.add(made.QueuePassedOver(self._queue(queue), why, answers, len(jobs)))

    def job_turn(self, job: int, others: Iterable[int] = ()) -> None:
        self._take_turn()
        session, rivals, key = self.session, tuple[Rival, ...](), tuple[KeyPart, ...]()
        beside = self.job >= 0 and session.jobs.queue[job] == session.jobs.queue[self.job]
        if beside or self.everything or self._keys:  # jobs of other queues are not compared with it
            key = self._key("job_order", session.job_key_order(job))
        if key and self.follows(job) and not self._keys:
            few = list(others)[: None if self.everything else _RIVALS]
            rivals = tuple(
                Rival(self._job(one), self._key("job_order", session.job_key_order(one))) for one in few
            )
        queue = int(session.jobs.queue[job])
        self.add(made.JobTurn(self._job(job), self._queue(queue), key, rivals))

    def _take_turn(self) -> None:
        for turn in self._turns:
            self.add(turn)
        self._turns.clear()

    def left_out(self, job: int, why: str) -> None:
        self.add(made.LeftOut(self._job(job), why))

    def absent(self, jobs: Iterable[int]) -> None:
        """Of the job that is followed: why it is not among those that are in line."""
        job, session = self.job, self.session
        if not self.considered or job in jobs:
            return
        queue = int(session.jobs.queue[job])
        minimum = int(session.jobs.minimum[job])
        if not session.task_count(job):
            why = "it has no pods of this scheduler"
        elif not session.groups.pending(job):
            gated = int(session.jobs.counts[Status.GATED, job])
            why = f"pods behind scheduling gates: {gated}" if gated else "no pod of it waits for a node"
        elif not session.groups.ready(job):
            why = f"its minimum is {minimum}, and {session.valid(job)} of its pods can be scheduled or run"
        elif not session.queue_tree.serves(queue):
            why = f"queue {self._queue(queue)!r} is not served"
        else:
            why = "it is not eligible for this action"
        self.left_out(job, why)

    # -- questions to plugins ---------------------------------------------------------------------------------------

    def asked(self, job: int, point: str, outcome: object, *arguments: object) -> None:
        """A question was put to the plugins; the arguments are the job unless given."""
        answers = self.answers(point, *(arguments or (job,)))
        if answers:
            self.add(made.Asked(self._job(job), point, is_yes(outcome), answers))

    def answers(self, point: str, *arguments: object) -> tuple[Answer, ...]:
        """What each plugin says."""
        with self.session.aside():
            said = self.session.answers(point, *arguments)
        if POINTS[point].rule is votes:
            said = [(name, Vote(max(min(int(one), 1), -1))) for name, one in said]
        return tuple(answer(name, one) for name, one in said)

    # -- tasks and domains ------------------------------------------------------------------------------------------

    def task_order(self, job: int, rows: "TaskRows") -> None:
        if len(rows) and self.depth >= Depth.TASKS:
            self.add(made.TaskOrder(self._job(job), self.pods(rows), len(rows)))

    def refused(self, job: int, rows: "TaskRows", why: str) -> None:
        text = why.replace(POD, self.session.task_key(int(rows[0]))) if len(rows) else why
        self.add(made.TaskRefused(self._job(job), self.pods(rows), text))

    def domain(
        self, job: int, part: str, name: str, nodes: int, fits: bool, *, score: float | None = None
    ) -> None:
        self.add(made.DomainTried(self._job(job), part, name, nodes, fits, score))

    def domains_left(self, job: int, part: str, needed: int, room: Mapping[str, int]) -> None:
        if room:
            some = {name: room[name] for name in self.some(list(room))}
            self.add(made.DomainsLeft(self._job(job), part, needed, some, len(room)))

    # -- victims ----------------------------------------------------------------------------------------------------

    @contextmanager
    def inside_trial(self) -> Iterator[list[AnyEvent]]:
        """Events while it lasts belong to a trial; the list goes into its event."""
        found: list[AnyEvent] = []
        self._lists.append(found)
        try:
            yield found
        finally:
            self._lists.pop()

    def trial(
        self,
        job: int,
        victims: "TaskRows | Sequence[int]",
        fits: bool,
        *,
        task: int = -1,
        node: int = -1,
        why: str = "",
        events: Sequence[AnyEvent] = (),
    ) -> None:
        """A trial is over. What happened inside the one before is dropped."""
        own, self.trials = self._lists[-1], self.trials + 1
        if self.depth < Depth.TASKS:
            return
        if own and isinstance(before := own[-1], made.Trial) and before.events and not self.everything:
            own[-1] = msgspec.structs.replace(before, events=())
        where = self.session.node_name(node) if node >= 0 else ""
        pod = self.session.task_key(task) if task >= 0 else ""
        gone = self.pods(victims)
        self.add(made.Trial(self._job(job), gone, fits, pod, where, why, events=tuple(events)))

    def judged(self, why: str, answers: tuple[Answer, ...]) -> None:
        """The trial that was recorded last was refused after all."""
        own = self._lists[-1]
        if own and isinstance(last := own[-1], made.Trial):
            own[-1] = msgspec.structs.replace(last, fits=False, why=why, answers=answers)

    def search_ended(self, job: int, found: bool, why: str = "") -> None:
        self.add(made.SearchEnded(self._job(job), found, self.trials, why))
        self.trials = 0

    # -- transactions -----------------------------------------------------------------------------------------------

    def kept(
        self,
        bound: Mapping[int, int],
        waiting: Mapping[int, int],
        moved: Mapping[int, int],
        evicted: Iterable[int],
    ) -> None:
        """What a committed transaction leaves: nodes by task, and the tasks that lose theirs."""
        session, gone = self.session, list(evicted)
        owners = [int(session.tasks.job[row]) for row in (*bound, *waiting)]
        for job in dict.fromkeys(owners) or ([-1] if gone else []):
            own = [{r: n for r, n in one.items() if session.tasks.job[r] == job} for one in (bound, waiting)]
            named = self.follows(job)
            lost = [row for row in gone if named or session.tasks.job[row] == self.job]
            self.add(
                made.Kept(
                    self._job(job) if job >= 0 else "",
                    len(own[0]) + len(own[1]),
                    self._nodes(own[0]) if named else {},
                    self._nodes(own[1]) if named else {},
                    self._nodes(moved) if named else {},
                    tuple(session.task_key(row) for row in lost),
                    len(gone),
                )
            )
            gone = []

    def undone(self, job: int, placed: int, why: str, point: str = "") -> None:
        """The job keeps nothing of what it was given; `point`: what plugins were asked that decided it."""
        answers = self.answers(point, job) if point else ()
        self.add(made.Undone(self._job(job), placed, why, answers))

    def _nodes(self, placed: Mapping[int, int]) -> dict[str, str]:
        session = self.session
        return {session.task_key(row): session.node_name(node) for row, node in placed.items()}

    def _outcome(self, job: int, bound: dict[int, int], evicted: list[int]) -> made.Outcome:
        session = self.session
        rows = session.tasks_of(job)
        status, node = session.tasks.status[rows], session.tasks.node[rows]

        def there(*states: Status) -> dict[int, int]:
            chosen = np.isin(status, states)
            return dict(zip(rows[chosen].tolist(), node[chosen].tolist(), strict=True))

        running = int(session.jobs.counts[_THERE, job].sum()) - len(bound)
        return made.Outcome(
            self._job(job),
            self._queue(int(session.jobs.queue[job])),
            session.phase(job) if job in session.cluster.jobs.facts else "",
            self._nodes(bound),
            self._nodes(there(Status.PIPELINED, Status.ALLOCATED)),
            self.pods(evicted),
            self.pods(rows[np.isin(status, (Status.PENDING, Status.GATED))]),
            max(running, 0),
        )

    # -- names ------------------------------------------------------------------------------------------------------

    def _job(self, job: int) -> str:
        return self.session.job_key(job)

    def _queue(self, queue: int) -> str:
        return self.session.queue_name(queue)

    def _queues_of_subject(self) -> tuple[int, ...]:
        """Its queue and those above it."""
        if self.job < 0:
            return ()
        return tuple(self.session.queue_tree.path(int(self.session.jobs.queue[self.job])))

    def _key(self, point: str, key: Sequence[Any]) -> Key:
        """The parts of a key with the plugins that gave them; the last ones are what breaks ties."""
        rules, plugins = self.session.rules.queues, self.session.plugins_answering(point)
        parts: list[KeyPart] = []
        for plugin, given in zip(plugins, key, strict=False):
            # A plugin that gives several values may name them.
            names = getattr(plugin, "key_parts", {}).get(point, ())
            if names and isinstance(given, tuple):
                named = zip(names, given, strict=False)
                parts += [KeyPart(f"{plugin.name}: {name}", plain(one)) for name, one in named]
            else:
                parts.append(KeyPart(plugin.name, plain(given)))
        ties = zip(
            ("created", "name" if rules.ties_by_name else "uid", "name"), key[len(plugins) :], strict=False
        )
        return (*parts, *(KeyPart(name, plain(one)) for name, one in ties))


def _found(session: "Session", subject: str) -> tuple[int, str]:
    """The job of a name, or of a pod of that name, which is given back then."""
    jobs, tasks = session.cluster.jobs, session.cluster.tasks
    served = set(session.jobs.rows.tolist())
    found = sorted((job for job in jobs.rows_named(subject)), key=lambda job: job not in served)
    if found:
        return found[0], ""
    row = tasks.index_of(subject)
    if row is not None and session.tasks.job[row] >= 0:
        return int(session.tasks.job[row]), subject
    owned = jobs.owned_by(subject)
    if len(owned) == 1:
        return owned[0], ""
    pods = (tasks.keys[row] for row in tasks if session.tasks.job[row] >= 0)
    raise UnknownSubjectError(subject, sorted({*map(jobs.name, jobs), *pods}))


__all__ = ["Depth", "Recorder", "UnknownSubjectError"]
