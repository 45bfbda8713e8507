"""conformance: pods that keep the cluster itself running, or say that they must not be evicted, are no
victims.

A job is protected, also from being moved, if one of its placed pods is critical (see
`plugins/gang/conformance.py`) or carries Volcano's annotation `volcano.sh/preemptable: "false"`.
"""

from collections.abc import Mapping
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.session import Session
from maniple.plugins.gang.conformance import is_critical
from maniple.plugins.settings import takes_none


class Conformance:
    """No arguments."""

    name = "conformance"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._known: dict[int, bool] = {}

    def reclaim_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def preempt_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def consolidation_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def _may_go(self, job: int) -> bool:
        known = self._known.get(job)
        if known is None:
            tasks, pods = self._session.tasks, self._session.cluster.tasks.pods
            rows = self._session.tasks_of(job)
            rows = rows[ACTIVE_ALLOCATED[tasks.status[rows]]]
            spared = not tasks.preemptable[rows].all() or any(is_critical(pods[row]) for row in rows.tolist())
            known = self._known[job] = not spared
        return known


__all__ = ["Conformance"]
