"""reclaim: a queue that has less than its fair share takes back from queues that have more.

Considers jobs with which their queue stays within its share. Victims are preemptible jobs of all other queues,
unless plugins protect them. The loss must be justified by the shares as they were before
(`reclaim_scenario_validator`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.actions.allocate import waiting
from maniple.actions.searching.making_room import RoomMaking
from maniple.actions.searching.terms import Losers, Terms
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import JobRows
from maniple.framework.reasons import JOB, POD, QUEUE, EvictionCause
from maniple.framework.session import Session
from maniple.placement.engine import Placement

_ASKED = ("reclaim_victim_filter", "reclaim_scenario_validator")
_RULE = f"which stays within its fair share, while queue {QUEUE} has more than its own"


class Reclaim:
    name = "reclaim"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action reclaim")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        hooks, losers = session.hooks, Losers(session)

        def terms(job: int) -> Terms:
            hooks.on_job_solution_start()
            own = session.jobs.queue[job]

            def others(jobs: JobRows) -> NDArray[np.bool_]:
                foreign: NDArray[np.bool_] = session.jobs.queue[jobs] != own
                return foreign

            return Terms(
                reason=EvictionCause(_text(session), self.name, job, _ASKED, _RULE),
                losers=losers,
                allowed=others,
                not_allowed=lambda _: "reclaim takes from other queues, and this job is in the same queue",
                lets_go=lambda victim: hooks.reclaim_victim_filter(job, victim),
                accept=hooks.reclaim_scenario_validator,
            )

        RoomMaking(session, placement, by_queue=True).serve(
            self.name, waiting(session), hooks.can_reclaim_resources, terms
        )


def _text(session: Session) -> str:
    if session.rules.words.plain:
        return ""
    return f"Pod {POD} was preempted by workload {JOB}."


__all__ = ["Reclaim"]
