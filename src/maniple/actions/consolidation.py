"""consolidation: move preemptible jobs closer together to make room for a pending preemptible job.

No task is evicted unless it gets another place. The number of jobs moved for one job is limited
(`maxConsolidationPreemptees`; -1: any number, 0: the action does nothing). A job is considered only if at least
as many GPUs as it requests are idle or being released.
"""

from collections.abc import Mapping
from typing import Any

from maniple.actions.allocate import waiting
from maniple.actions.searching.feasible import enough_gpus
from maniple.actions.searching.making_room import RoomMaking
from maniple.actions.searching.terms import Losers, Terms
from maniple.cluster.statuses import Status
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.reasons import POD, EvictionCause
from maniple.framework.session import Session
from maniple.placement.engine import Placement

_ANY_NUMBER = -1
_ASKED = ("consolidation_victim_filter", "consolidation_scenario_validator")
TEXT = f"Pod {POD} was preempted and rescheduled due to bin packing (resource consolidation) procedure"


class Consolidation:
    name = "consolidation"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action consolidation")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        limit = int(session.options.get("maxConsolidationPreemptees", 16))
        if limit == 0:
            return
        hooks, losers, plain = session.hooks, Losers(session), session.rules.words.plain
        protects = "consolidation_victim_filter" in hooks.answered

        def all_placed(outcome: ScenarioOutcome) -> bool:
            status = session.tasks.status
            left = any((status[rows] == Status.RELEASING).any() for rows in outcome.victims.values())
            return not left and hooks.consolidation_scenario_validator(outcome)

        def terms(job: int) -> Terms | None:
            if not enough_gpus(session, session.groups.to_allocate(job)):
                return None
            return Terms(
                reason=EvictionCause("" if plain else TEXT, self.name, job, _ASKED),
                losers=losers,
                allowed=lambda jobs: jobs != job,
                lets_go=(lambda victim: hooks.consolidation_victim_filter(job, victim)) if protects else None,
                accept=all_placed,
                all_return=True,
                # KAI's count stops one too late.
                most=None if limit == _ANY_NUMBER else limit + 1,
            )

        jobs = [job for job in waiting(session) if session.preemptible(job)]
        RoomMaking(session, placement, by_queue=False).serve(self.name, jobs, lambda _: True, terms)


__all__ = ["Consolidation"]
