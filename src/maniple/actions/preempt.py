"""preempt: inside a queue, jobs of higher priority get room from preemptible jobs of lower priority."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.actions import words
from maniple.actions.allocate import waiting
from maniple.actions.searching.making_room import RoomMaking
from maniple.actions.searching.terms import Losers, Terms
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import JobRows
from maniple.framework.reasons import JOB, POD, EvictionCause
from maniple.framework.session import Session
from maniple.placement.engine import Placement

_ASKED = ("preempt_victim_filter", "preempt_scenario_validator")


class Preempt:
    name = "preempt"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action preempt")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        hooks, losers = session.hooks, Losers(session)

        def terms(job: int) -> Terms | None:
            rows = session.groups.to_allocate(job)
            if not hooks.is_non_preemptible_job_over_queue_quota(job, rows).schedulable:
                return None
            queue, priority = session.jobs.queue[job], session.jobs.priority[job]

            def lower(jobs: JobRows) -> NDArray[np.bool_]:
                below = session.jobs.priority[jobs] < priority
                found: NDArray[np.bool_] = below & (session.jobs.queue[jobs] == queue)
                return found

            return Terms(
                reason=EvictionCause(_text(session), self.name, job, _ASKED, words.HIGHER_PRIORITY),
                losers=losers,
                allowed=lower,
                not_allowed=lambda victim: _spared(session, job, victim),
                lets_go=lambda victim: hooks.preempt_victim_filter(job, victim),
                accept=hooks.preempt_scenario_validator,
            )

        RoomMaking(session, placement, by_queue=True).serve(
            self.name, waiting(session), lambda _: True, terms
        )


def _spared(session: Session, job: int, victim: int) -> str:
    queue = int(session.jobs.queue[victim])
    if queue != session.jobs.queue[job]:
        return f"preempt stays inside a queue, and this job is in queue {session.queue_name(queue)!r}"
    own, theirs = int(session.jobs.priority[job]), int(session.jobs.priority[victim])
    return f"its priority {theirs} is not lower than {own}"


def _text(session: Session) -> str:
    if session.rules.words.plain:
        return ""
    return f"Pod {POD} was preempted by higher priority workload {JOB}"


__all__ = ["Preempt"]
