"""Why pods wait, written on the pods: the condition PodScheduled=False with a reason and a message, and the nominated node.

A pod that found no node has a cause of its own. One that would have fitted waits for the rest of its gang and says what that lacks.
"""

from datetime import datetime

import numpy as np
from msgspec.structs import replace

from maniple.cluster.statuses import Status
from maniple.framework.outcome import Plan
from maniple.live.cache import Assumption
from maniple.live.essence import POD_SCHEDULED, scheduled_condition
from maniple.live.pace import NUMBERS_SECONDS, Pace, apart
from maniple.live.writing import Writing, ref_of
from maniple.live.writing import now as time
from maniple.objects.core import Pod
from maniple.objects.meta import Condition

UNSCHEDULABLE = "Unschedulable"
POD_NUMBERS_SECONDS = 60.0
SCHEDULER_ERROR = "SchedulerError"
BEING_RELEASED = "waits for resources that are being released on {node}"
_WAITING = (Status.PENDING, Status.PIPELINED, Status.ALLOCATED)


class WaitingPods:
    def __init__(self, writing: Writing, pace: Pace) -> None:
        self._writing = writing
        self._pace = pace

    def write(self, plan: Plan, now: datetime) -> None:
        session, cache = plan.session, self._writing.cache
        tasks, table = session.tasks, session.cluster.tasks
        rows = np.flatnonzero(np.isin(tasks.status, _WAITING) & (tasks.job >= 0))
        words = _Words(plan)
        columns = (rows, tasks.job[rows], tasks.status[rows], tasks.node[rows], tasks.gated[rows])
        for row, job, status, node, gated in zip(*(column.tolist() for column in columns), strict=True):
            held = cache.held(table.keys[row]) if gated else None
            if gated and held is None:
                continue
            nominated, reason = "", UNSCHEDULABLE
            if held is not None:
                message, reason = held.why, SCHEDULER_ERROR
            elif status == Status.PIPELINED:
                message = BEING_RELEASED.format(node=session.node_name(node))
                cleared = session.nominated.get(row)
                nominated = session.node_name(cleared) if cleared is not None else ""
            else:
                message = words.of(row, job)
            self._write(table.pods[row], reason, message, nominated, now)

    def _write(self, pod: Pod, reason: str, message: str, nominated: str, now: datetime) -> None:
        known = scheduled_condition(pod)
        nomination = nominated if nominated and nominated != pod.status.nominated_node_name else None
        between = 0.0
        if known is not None and nomination is None and (known.status, known.reason) == ("False", reason):
            if known.message == message:
                self._pace.drop(ref_of(pod))
                return
            between = apart(known.message, message)
            # There are many pods and the group has the latest numbers: they are not worth waiting for their turn.
            if between == NUMBERS_SECONDS and self._pace.recent(ref_of(pod), time(), POD_NUMBERS_SECONDS):
                return
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=reason,
            message=message,
            last_transition_time=since or now,
        )
        self._writing.ask(
            ref_of(pod),
            "condition",
            _assumption(pod, condition, nomination),
            lambda: self._writing.port.patch_pod_condition(pod, condition, now, nomination),
            self._pace,
            apart=between,
        )


class _Words:
    """The cause of each waiting task, in words; equal causes are worded once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._causes = plan.session.refusals.by_task()
        self._worded: dict[int, str] = {}
        self._of_job = {
            job: condition["message"]
            for job, told in plan.session.conditions.items()
            for condition in told
            if condition["type"] == UNSCHEDULABLE
        }

    def of(self, row: int, job: int) -> str:
        cause = self._causes.get(row)
        if cause is None:
            return self._of_job.get(job) or self._plan.why(row, job)
        worded = self._worded.get(id(cause))
        if worded is None:
            worded = self._worded[id(cause)] = str(cause)
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
