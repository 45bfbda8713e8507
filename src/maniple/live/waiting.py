"""Why pods wait, written on the pods: the condition PodScheduled=False with a reason and a message, and the nominated node.

A pod that found no node has a cause of its own. One that would have fitted waits for the rest of its gang and says what that lacks.
"""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from msgspec.structs import replace

from maniple.cluster.statuses import Status
from maniple.framework.outcome import Plan
from maniple.framework.reasons import NotWhole
from maniple.live.cache import Assumption, Ref
from maniple.live.essence import POD_SCHEDULED, scheduled_condition
from maniple.live.pace import NUMBERS_SECONDS, Pace, apart
from maniple.live.writing import Writing, now
from maniple.objects.core import Pod
from maniple.objects.meta import Condition

UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"  # nothing to add nodes for
SCHEDULER_ERROR = "SchedulerError"
BEING_RELEASED = "waits for resources that are being released on {node}"
POD_NUMBERS_SECONDS = 60.0
_WAITING = (Status.PENDING, Status.PIPELINED, Status.ALLOCATED)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a waiting pod should say. An empty nomination leaves the pod's own as it is."""

    reason: str
    message: str
    nominated: str = ""


class WaitingPods:
    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._when: datetime | None = None
        self.pace: Pace[Ref, _Said] = Pace(self._write)

    def compare(self, plan: Plan, when: datetime) -> None:
        """Find the pods that say something else than they should, and ask for them to be written."""
        self._when = when
        session, cache, moment = plan.session, self._writing.cache, now()
        tasks, table = session.tasks, session.cluster.tasks
        rows = np.flatnonzero(np.isin(tasks.status, _WAITING) & (tasks.job >= 0))
        words = _Words(plan)
        columns = (rows, tasks.job[rows], tasks.status[rows], tasks.node[rows], tasks.gated[rows])
        for row, job, status, node, gated in zip(*(column.tolist() for column in columns), strict=True):
            held = cache.held(table.keys[row]) if gated else None
            if gated and held is None:
                continue
            if held is not None:
                said = _Said(SCHEDULER_ERROR, held.why)
            elif status == Status.PIPELINED:
                cleared = session.nominated.get(row)
                nominated = session.node_name(cleared) if cleared is not None else ""
                said = _Said(UNSCHEDULABLE, BEING_RELEASED.format(node=session.node_name(node)), nominated)
            else:
                said = words.of(row, job)
            self._compare(table.pods[row], said, moment)

    def _compare(self, pod: Pod, said: _Said, moment: float) -> None:
        known, ref, between = scheduled_condition(pod), (Pod, pod.key), 0.0
        new_node = said.nominated not in ("", pod.status.nominated_node_name)
        if known is not None and not new_node and (known.status, known.reason) == ("False", said.reason):
            if known.message == said.message:
                self.pace.drop(ref)
                return
            between = apart(known.message, said.message)
            # There are many pods, and their group has the latest numbers.
            if between == NUMBERS_SECONDS and self.pace.recent(ref, moment, POD_NUMBERS_SECONDS):
                return
        self.pace.ask(ref, said, between)

    def _write(self, ref: Ref, said: _Said) -> bool:
        pod = self._writing.cache.pod(ref[1])
        if pod is None or pod.spec.node_name or self._when is None:
            return False  # it went, or got its node, while the words waited for their time
        known, when = scheduled_condition(pod), self._when
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=said.reason,
            message=said.message,
            last_transition_time=since or when,
        )
        nomination = said.nominated if said.nominated not in ("", pod.status.nominated_node_name) else None
        port = self._writing.port
        return self._writing.submit(
            ref,
            "condition",
            _assumption(pod, condition, nomination),
            lambda: port.patch_pod_condition(pod, condition, when, nomination),
            self.pace,
        )


class _Words:
    """The cause of each waiting task, in words; equal causes are worded once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._causes = plan.session.refusals.by_task()
        self._worded: dict[int, _Said] = {}
        self._of_job: dict[int, _Said] = {
            job: _Said(UNSCHEDULABLE, condition["message"])
            for job, told in plan.session.conditions.items()
            for condition in told
            if condition["type"] == UNSCHEDULABLE
        }

    def of(self, row: int, job: int) -> _Said:
        cause = self._causes.get(row)
        if cause is None:
            return self._of_job.get(job) or _Said(UNSCHEDULABLE, self._plan.why(row, job))
        worded = self._worded.get(id(cause))
        if worded is None:
            reason = SCHEDULABLE if isinstance(cause, NotWhole) else UNSCHEDULABLE
            worded = self._worded[id(cause)] = _Said(reason, str(cause))
        return worded


def _assumption(pod: Pod, condition: Condition, nomination: str | None) -> Assumption:
    def change(seen: Pod) -> Pod:
        others = tuple(c for c in seen.status.conditions if c.type != POD_SCHEDULED)
        status = replace(seen.status, conditions=(*others, condition))
        if nomination is not None:
            status = replace(status, nominated_node_name=nomination)
        return replace(seen, status=status)

    def shown(seen: Pod) -> bool:
        # A pod that was bound meanwhile has a condition that says so; why it waited is past.
        return bool(seen.spec.node_name) or change(seen) == seen

    return Assumption(uid=pod.metadata.uid, change=change, shown=shown)
