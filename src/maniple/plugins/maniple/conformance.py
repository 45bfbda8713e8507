"""conformance: pods that keep the cluster itself running, or say that they must not be evicted, are no
victims.

A job is protected, also from being moved, if one of its placed pods is critical (see
`Pod.is_critical`) or carries Volcano's annotation `volcano.sh/preemptable: "false"`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class Conformance:
    """No arguments."""

    name = "conformance"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def reclaim_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def preempt_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def consolidation_victim_filter(self, _actor: int, victim: int) -> bool:
        return self._may_go(victim)

    def _may_go(self, job: int) -> bool:
        return job not in self._spared

    @cached_property
    def _spared(self) -> frozenset[int]:
        tasks = self._session.tasks
        spared = ACTIVE_ALLOCATED[tasks.status] & (tasks.critical | ~tasks.preemptable)
        return frozenset(tasks.job[spared].tolist())


__all__ = ["Conformance"]
