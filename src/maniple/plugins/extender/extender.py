"""extender: delegates decisions to an HTTP service.

POST `extender.urlPrefix`/`extender.<verb>Verb` for each verb that is configured:
- onSessionOpen, onSessionClose: notified that a session begins or ends
- predicate, prioritize: whether this task fits this node; scores for the remaining nodes
- preemptable, reclaimable: which of these tasks may be evicted for that one
- queueOverused, jobEnqueueable, jobReady, jobEnqueued: as the extension points of these names
- allocateFunc, deallocateFunc: notified that a task got a node or lost it; an error from the former keeps the
  task pending

Only tasks that name one of `extender.managedResources` are sent, if any are given. If there is no response:
with `extender.ignorable` nodes and jobs pass, without it they are refused, queues count as overused and jobs
as ready; nothing is evicted either way. If onSessionOpen fails, the session runs without the extender, unless
that is ignorable.

Every task is a class of its own here, since the service may read anything; it is called again whenever
something has moved.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.combine import Vote
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import FITS, Code, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.plugins.extender.channel import Channel, ExtenderError, ExtenderSettings
from maniple.plugins.extender.shapes import Shapes

NO_ANSWER = "extender: {cause}"
REFUSED = "refused by the extender"

# By the code in the response; a message without a code, and a wait or skip, make a node unresolvable.
_CODES = {2: Code.UNSCHEDULABLE, 3: Code.UNRESOLVABLE}
_MOST_TEXTS = 1000  # beyond these, refusals are no longer distinguished
_ABOUT_NODES = ("predicate", "prioritize", "allocateFunc")


class _Verdict(msgspec.Struct):
    status: str | None = None
    code: int | None = None


class _Points(msgspec.Struct, rename="camel"):
    node_score: dict[str, float] | None = None
    error_message: str | None = None


class _Victim(msgspec.Struct, rename="pascal"):
    uid: str = msgspec.field(name="UID", default="")
    name: str = ""
    namespace: str = ""


class _Victims(msgspec.Struct):
    status: int | None = None
    victims: list[_Victim] | None = None


class _Overused(msgspec.Struct):
    overused: bool | None = None


class _Voted(msgspec.Struct):
    status: int | None = None


class _Ready(msgspec.Struct):
    status: bool | None = None


class _Heard(msgspec.Struct, rename="camel"):
    error_message: str | None = None


class Extender:
    name = "extender"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = ExtenderSettings.read(session, arguments, self.name)
        self._channel = Channel(self._settings, session.options.get("extenderTransport"))
        self._shapes = Shapes(session)
        self._interest: dict[int, bool] = {}  # by spec
        self._asked: dict[tuple[int, int], tuple[int, int]] = {}  # task, node -> as of when, verdict
        self._reserved: set[int] = set()  # allocations that the service already knows
        self._part = self._open()
        if self._part:
            self._answer()
            if any(map(self._channel.asks, _ABOUT_NODES)):
                self._mark_tasks()

    def asks(self, verb: str) -> bool:
        """Whether the service is configured to be asked this."""
        return self._channel.asks(verb)

    def _open(self) -> bool:
        """Whether the extender takes part in this session."""
        if not self._channel.asks("onSessionOpen"):
            return True
        sent = self._notify("onSessionOpen", self._shapes.everything())
        return sent or self._settings.ignorable

    def _answer(self) -> None:
        """Implement the points whose verbs are configured; for the others this plugin does not exist."""
        for verb, point, answer in (
            ("preemptable", "preemptable", self._preemptable),
            ("reclaimable", "reclaimable", self._reclaimable),
            ("queueOverused", "overused", self._overused),
            ("jobEnqueueable", "job_enqueueable", self._job_enqueueable),
            ("jobEnqueued", "job_enqueued", self._job_enqueued),
            ("jobReady", "job_ready", self._job_ready),
            ("allocateFunc", "reserve", self._reserve),
            ("allocateFunc", "on_allocate", self._on_allocate),
            ("deallocateFunc", "on_deallocate", self._on_deallocate),
        ):
            if self._channel.asks(verb):
                setattr(self, point, answer)

    def on_close(self) -> None:
        if self._channel.asks("onSessionClose"):
            self._notify("onSessionClose", {})

    def _notify(self, verb: str, notice: Mapping[str, Any]) -> bool:
        try:
            self._channel.notify(verb, notice)
        except ExtenderError as error:
            self._report(verb, error)
            return False
        return True

    def _report(self, verb: str, error: object) -> None:
        self._session.report(f"{self.name}: {verb}: {error}")

    # -- which tasks are sent -------------------------------------------------------------------------------------

    def _concerns(self, row: int) -> bool:
        spec = self._session.classes[self._session.tasks.class_of[row]].spec
        known = self._interest.get(spec.number)
        if known is None:
            known = self._interest[spec.number] = self._names_a_managed_resource(spec.pod)
        return known

    def _names_a_managed_resource(self, pod: Pod) -> bool:
        managed = self._settings.managed_resources
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return not managed or any(
            not managed.isdisjoint(amounts)
            for container in containers
            for amounts in (container.resources.requests, container.resources.limits)
        )

    def _mark_tasks(self) -> None:
        tasks = self._session.tasks
        waiting = np.flatnonzero((tasks.status == Status.PENDING) & (tasks.job >= 0)).tolist()
        rows = np.array([row for row in waiting if self._concerns(row)], dtype=np.int64)
        self._session.refine(self.name, rows, rows)

    def _applies(self, class_: TaskClass) -> bool:
        return self.name in class_.marks

    # -- nodes ----------------------------------------------------------------------------------------------------

    def filters(self) -> list[Filter]:
        if not (self._part and self._channel.asks("predicate")):
            return []
        return [Filter("Extender", Dependence.CLUSTER, self._check, self._applies)]

    def scorers(self) -> list[Scorer]:
        if not (self._part and self._channel.asks("prioritize")):
            return []
        return [Scorer("Extender", 1.0, Dependence.CLUSTER, self._score, applies=self._applies)]

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        row = class_.marks[self.name]
        verdicts = [self._verdict(row, node) for node in cells.node_rows().tolist()]
        return np.array(verdicts, dtype=np.int16)

    def _verdict(self, row: int, node: int) -> int:
        """Called once for every state of the cluster."""
        stamp = len(self._session.changes)
        known = self._asked.get((row, node))
        if known is None or known[0] != stamp:
            known = self._asked[row, node] = (stamp, self._ask_verdict(row, node))
        return known[1]

    def _ask_verdict(self, row: int, node: int) -> int:
        question = {"task": self._shapes.task(row), "node": self._shapes.node(node)}
        try:
            answer = self._channel.ask("predicate", question, _Verdict)
        except ExtenderError as error:
            self._report("predicate", error)
            return (
                FITS if self._settings.ignorable else self._number(NO_ANSWER.format(cause=error), Code.ERROR)
            )
        if not answer.status:
            return FITS
        return self._number(answer.status, _CODES.get(answer.code or 0, Code.ERROR))

    def _number(self, text: str, code: Code) -> int:
        reasons = self._session.reasons
        return reasons.number(text if len(reasons.reasons) < _MOST_TEXTS else REFUSED, code)

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        """No scores if the response fails; a single remaining node needs none."""
        nodes = cells.node_rows()
        if len(nodes) < 2:
            return np.zeros(len(nodes))
        row = class_.marks[self.name]
        question = {
            "task": self._shapes.task(row),
            "nodes": [self._shapes.node(node) for node in nodes.tolist()],
        }
        try:
            answer = self._channel.ask("prioritize", question, _Points)
        except ExtenderError as error:
            self._report("prioritize", error)
            return np.full(len(nodes), 0.0 if self._settings.ignorable else -np.inf)
        if answer.error_message or answer.node_score is None:
            self._report("prioritize", answer.error_message or "the answer has no nodeScore")
            return np.full(len(nodes), -np.inf)
        points = [answer.node_score.get(self._session.node_name(node), 0.0) for node in nodes.tolist()]
        return np.array(points, dtype=np.float64)

    # -- victims --------------------------------------------------------------------------------------------------

    def _preemptable(self, task: int, candidates: TaskRows) -> TaskRows | None:
        return self._victims("preemptable", task, candidates)

    def _reclaimable(self, task: int, candidates: TaskRows) -> TaskRows | None:
        return self._victims("reclaimable", task, candidates)

    def _victims(self, verb: str, task: int, candidates: TaskRows) -> TaskRows | None:
        if not self._concerns(task):
            return None
        shapes = {row: self._shapes.task(row) for row in candidates.tolist()}
        question = {"evictor": self._shapes.task(task), "evictees": list(shapes.values())}
        try:
            answer = self._channel.ask(verb, question, _Victims)
        except ExtenderError as error:
            self._report(verb, error)
            return candidates[:0]
        if not answer.status:
            return None
        by_name = {
            _key(shape["UID"], shape["Namespace"], shape["Name"]): row for row, shape in shapes.items()
        }
        named = (_key(one.uid, one.namespace, one.name) for one in answer.victims or ())
        return np.array([by_name[key] for key in dict.fromkeys(named) if key in by_name], dtype=np.int64)

    # -- jobs and queues ------------------------------------------------------------------------------------------

    def _overused(self, queue: int) -> bool:
        try:
            answer = self._channel.ask("queueOverused", {"queue": self._shapes.queue(queue)}, _Overused)
        except ExtenderError as error:
            self._report("queueOverused", error)
            return not self._settings.ignorable
        return bool(answer.overused)

    def _job_enqueueable(self, job: int) -> int:
        try:
            answer = self._channel.ask("jobEnqueueable", {"job": self._shapes.job(job)}, _Voted)
        except ExtenderError as error:
            self._report("jobEnqueueable", error)
            return Vote.PERMIT if self._settings.ignorable else Vote.REJECT
        return answer.status or Vote.ABSTAIN

    def _job_enqueued(self, job: int) -> None:
        self._notify("jobEnqueued", {"job": self._shapes.job(job)})

    def _job_ready(self, job: int) -> bool:
        try:
            answer = self._channel.ask("jobReady", {"job": self._shapes.job(job)}, _Ready)
        except ExtenderError as error:
            self._report("jobReady", error)
            return not self._settings.ignorable
        return bool(answer.status)

    # -- placements -----------------------------------------------------------------------------------------------

    def _reserve(self, event: Event) -> str | None:
        """The service may refuse an allocation; then it is notified of the deallocation."""
        sent: list[tuple[int, int]] = []
        for row, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            if not self._concerns(row):
                continue
            sent.append((row, node))
            objection = self._objection(row, node)
            if objection is not None:
                for earlier, where in sent:
                    self._take_back(earlier, where)
                return objection
        self._reserved.update(row for row, _ in sent)
        return None

    def _objection(self, row: int, node: int) -> str | None:
        question = {"task": self._shapes.task(row, node=node, status=Status.ALLOCATED)}
        try:
            answer = self._channel.ask("allocateFunc", question, _Heard)
        except ExtenderError as error:
            self._report("allocateFunc", error)
            return None if self._settings.ignorable else NO_ANSWER.format(cause=error)
        return NO_ANSWER.format(cause=answer.error_message) if answer.error_message else None

    def _on_allocate(self, event: Event) -> None:
        """What the service does not know yet: a repeated plan, room made by eviction, an eviction undone."""
        for row, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            if row in self._reserved:
                self._reserved.discard(row)
            elif self._concerns(row):
                self._report_move("allocateFunc", row, node)

    def _on_deallocate(self, event: Event) -> None:
        for row, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
            if self._concerns(row):
                self._report_move("deallocateFunc", row, node)

    def _take_back(self, row: int, node: int) -> None:
        self._reserved.discard(row)
        if self._channel.asks("deallocateFunc"):
            self._report_move("deallocateFunc", row, node)

    def _report_move(self, verb: str, row: int, node: int) -> None:
        try:
            answer = self._channel.ask(verb, {"task": self._shapes.task(row, node=node)}, _Heard)
        except ExtenderError as error:
            self._report(verb, error)
        else:
            if answer.error_message:
                self._report(verb, answer.error_message)


def _key(uid: str, namespace: str, name: str) -> str:
    return uid or f"{namespace}/{name}"
