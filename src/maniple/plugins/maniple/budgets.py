"""pdb: no more pods are evicted than their PodDisruptionBudgets allow, whether for others or to move them.

A job with only protected tasks is no victim; a scenario whose evictions, together with those of this cycle,
exceed a budget is refused. `plugins/victims/pdb.py` says which budgets a pod has.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import PodDisruptionBudget
from maniple.plugins.settings import takes_none
from maniple.plugins.victims.pdb import Allowances


class Budgets:
    """No arguments."""

    name = "pdb"
    triggers = Triggers(kinds=(PodDisruptionBudget,))

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._allowances = Allowances(session)
        if self._allowances:
            self.reclaim_victim_filter = self._may_lose_some
            self.preempt_victim_filter = self._may_lose_some
            self.consolidation_victim_filter = self._may_lose_some
            self.reclaim_scenario_validator = self._within
            self.preempt_scenario_validator = self._within
            self.consolidation_scenario_validator = self._within

    def _may_lose_some(self, _actor: int, victim: int) -> bool:
        session = self._session
        rows = session.tasks_of(victim)
        rows = rows[ACTIVE_ALLOCATED[session.tasks.status[rows]]]
        taken = self._taken(row for row, _ in session.decisions.evicted)
        return any(self._left(row, taken) for row in rows.tolist())

    def _left(self, row: int, taken: Counter[int]) -> bool:
        allowances = self._allowances
        return all(allowances.left[number] > taken[number] for number in allowances.of_task(row))

    def _within(self, outcome: ScenarioOutcome) -> bool:
        """Tasks that find another place are evicted all the same; those that stay after all are not."""
        virtual = self._session.tasks.virtual
        going = [row for rows in outcome.victims.values() for row in rows[virtual[rows]].tolist()]
        taken = self._taken((*going, *(row for row, _ in self._session.decisions.evicted)))
        return all(self._allowances.left[number] >= count for number, count in taken.items())

    def _taken(self, rows: Iterable[int]) -> Counter[int]:
        return Counter(number for row in dict.fromkeys(rows) for number in self._allowances.of_task(row))
