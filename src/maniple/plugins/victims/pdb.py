"""pdb: no more pods are evicted than their PodDisruptionBudgets allow.

Each candidate, in order, takes one from status.disruptionsAllowed of every budget of its namespace whose
selector matches it; one for which some budget has nothing left is protected. An empty selector matches no
pod, and a pod in a budget's disruptedPods has been counted there already.

Better than in Volcano, whose behaviour the rules `budgets` can restore (`compat: strict` does):
- a pod without labels matches no budget and may be a victim (Volcano protects it);
- evictions of this session are subtracted from the budgets (Volcano starts afresh on every call, so that a
  budget holds only within one node);
- `victim_tasks` adds no victims, the budgets only filter those of other plugins (in Volcano they name every
  running pod that they do not protect, which then is evicted).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import Pod, PodDisruptionBudget
from maniple.objects.meta import LabelSelector
from maniple.objects.selectors import matches
from maniple.plugins.settings import takes_none


@dataclass(frozen=True, slots=True)
class _Budget:
    number: int
    selector: LabelSelector
    disrupted: frozenset[str]


class Allowances:
    """The budgets of a session, numbered: how many evictions each allows, and which ones a task is in."""

    def __init__(self, session: Session) -> None:
        self._pods = session.cluster.tasks.pods
        self._by_namespace: dict[str, list[_Budget]] = {}
        self._of_task: dict[int, tuple[int, ...]] = {}
        self.left: list[int] = []
        for budget in session.cluster.all(PodDisruptionBudget).values():
            self._add(budget)

    def __len__(self) -> int:
        return len(self.left)

    def _add(self, budget: PodDisruptionBudget) -> None:
        selector = budget.spec.selector
        if selector is None or not (selector.match_labels or selector.match_expressions):
            return
        entry = _Budget(len(self.left), selector, frozenset(budget.status.disrupted_pods))
        self.left.append(budget.status.disruptions_allowed)
        self._by_namespace.setdefault(_namespace(budget), []).append(entry)

    def of_task(self, row: int) -> tuple[int, ...]:
        known = self._of_task.get(row)
        if known is None:
            pod = self._pods[row]
            known = self._of_task[row] = tuple(
                budget.number
                for budget in self._by_namespace.get(_namespace(pod), ())
                if pod.metadata.labels
                and pod.metadata.name not in budget.disrupted
                and matches(budget.selector, pod.metadata.labels)
            )
        return known


class Budgets:
    """No arguments."""

    name = "pdb"
    triggers = Triggers(kinds=(PodDisruptionBudget,))

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._pods = session.cluster.tasks.pods
        self._allowances = Allowances(session)
        self._left = self._allowances.left
        self._gone: set[int] = set()  # evicted by this session
        rules = session.rules.budgets
        self._spares_unlabelled = rules.spare_unlabelled_pods
        if rules.name_victims:
            self.victim_tasks = self._within
        else:
            self.victims_allowed = self._within
        if rules.count_evictions:
            self.on_deallocate = self._evicted
            self.on_allocate = self._kept_after_all

    def preemptable(self, _task: int, candidates: TaskRows) -> TaskRows:
        return self._within(candidates)

    def reclaimable(self, _task: int, candidates: TaskRows) -> TaskRows:
        return self._within(candidates)

    def _within(self, candidates: TaskRows) -> TaskRows:
        """The candidates that the budgets allow, counted from the first one on."""
        left = self._left.copy()
        allowed = np.ones(len(candidates), dtype=np.bool_)
        for place, row in enumerate(candidates.tolist()):
            if row in self._gone:
                continue  # it is subtracted already
            if self._spares_unlabelled and not self._pods[row].metadata.labels:
                allowed[place] = False
            for number in self._allowances.of_task(row):
                left[number] -= 1
                if left[number] < 0:
                    allowed[place] = False
        return candidates[allowed]

    # -- evictions of this session --------------------------------------------------------------------------------

    def _evicted(self, event: Event) -> None:
        held_before = self._session.cluster.tasks.node
        for row in event.rows.tolist():
            if held_before[row] >= 0:  # a pod that was placed in this session is in no budget yet
                self._gone.add(row)
                for number in self._allowances.of_task(row):
                    self._left[number] -= 1

    def _kept_after_all(self, event: Event) -> None:
        for row in event.rows.tolist():
            if row in self._gone:
                self._gone.discard(row)
                for number in self._allowances.of_task(row):
                    self._left[number] += 1


def _namespace(item: Pod | PodDisruptionBudget) -> str:
    return item.metadata.namespace or "default"
