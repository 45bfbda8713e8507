"""cdp: a pod that has just got its node is protected for a while.

So elastic jobs do not evict each other in turns. A running pod is no victim while now < time it was scheduled
+ its cooldown. The cooldown is the pod's label volcano.sh/cooldown-time, else its annotation of that name, as
a duration ("10m"); the time it was scheduled is when its condition PodScheduled became true. All other pods
may be victims. Without a clock every cooldown is still running.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import Pod
from maniple.plugins.settings import takes_none

COOLDOWN = "volcano.sh/cooldown-time"
_SECOND = 10**9


class Cooldown:
    """No arguments."""

    name = "cdp"
    triggers = Triggers(time=True)

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._pods = session.cluster.tasks.pods
        self._cooling: dict[int, bool] = {}

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows:
        allowed = [not self._is_cooling(row) for row in candidates.tolist()]
        return candidates[np.array(allowed, dtype=np.bool_)]

    def reclaimable(self, task: int, candidates: TaskRows) -> TaskRows:
        return self.preemptable(task, candidates)

    def _is_cooling(self, row: int) -> bool:
        known = self._cooling.get(row)
        if known is None:
            known = self._cooling[row] = self._cools(self._pods[row], row)
        return known

    def _cools(self, pod: Pod, row: int) -> bool:
        meta = pod.metadata
        text = meta.labels.get(COOLDOWN, meta.annotations.get(COOLDOWN))
        scheduled = _scheduled_at(pod)
        if text is None or scheduled is None or pod.status.phase != "Running":
            return False
        try:
            cooldown = nanoseconds(text) / _SECOND
        except ValueError as error:
            self._session.report(
                f"{self.name}: pod {self._session.task_key(row)}: {COOLDOWN}: {error}, ignored"
            )
            return False
        now = self._session.now
        return now is None or (now - scheduled).total_seconds() < cooldown


def _scheduled_at(pod: Pod) -> datetime | None:
    conditions = (c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "True")
    first = next(conditions, None)
    return first.last_transition_time if first is not None else None
