"""Why the pods of a job are where they are, and why they leave.

Where a pod would go is asked as if it had to be placed now: it is taken off its node in a transaction that is undone,
and filters and scorers say what they would have said to the engine. What was best when it was placed may not be any
more; the sentence says which it is. Evictions come from the plan, or from the condition that the scheduler wrote on a
pod.
"""

from collections import Counter
from collections.abc import Container, Iterator
from datetime import datetime

import numpy as np

from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.explaining.losses import amounts, duration, lost, requested, time_run
from maniple.explaining.model import Departure, Place
from maniple.framework.plans.plan import Plan
from maniple.framework.session import Session
from maniple.framework.traces.events import NodeScore, TaskTried
from maniple.framework.traces.recorder import Recorder
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.printable import printable
from maniple.placement.engine import Placement
from maniple.placement.tables import Tables

EVICTED = "DisruptionTarget"
_ASKED = 3  # kinds of pods
_PARTS = 3  # of a score
_REFUSALS = 2


class Places:
    """Of one session whose last action has run; `when`: the time of the cycle, if it has one."""

    def __init__(self, session: Session, plan: Plan, when: datetime | None) -> None:
        self._session = session
        self._plan = plan
        self._when = when

    # -- why there ----------------------------------------------------------------------------------------------------

    def of(self, job: int) -> tuple[Place, ...]:
        """The nodes of a job, each with how many pods it has; the first pod of each kind says why it is there."""
        session = self._session
        rows = session.tasks_of(job)
        rows = rows[(session.tasks.node[rows] >= 0) & ACTIVE_ALLOCATED[session.tasks.status[rows]]]
        counts = Counter(session.tasks.node[rows].tolist())
        said: dict[int, list[str]] = {}
        kinds, firsts = np.unique(session.tasks.class_of[rows], return_index=True)
        for row in rows[np.sort(firsts[: min(len(kinds), _ASKED)])].tolist():
            said.setdefault(int(session.tasks.node[row]), []).append(self._why(row))
        return tuple(
            Place(node=session.node_name(node), pods=count, why="; ".join(said.get(node, ())))
            for node, count in sorted(counts.items(), key=lambda one: session.node_name(one[0]))
        )

    def _why(self, row: int) -> str:
        """Why a pod is on its node, as far as nodes tell it now."""
        session, node = self._session, int(self._session.tasks.node[row])
        class_ = session.classes[int(session.tasks.class_of[row])]
        name, transaction = session.node_name(node), Transaction(session)
        try:
            transaction.evict(np.array([row]), "")
            tables = Tables(session, Placement(session), class_, None, None)
            table = tables.of(Recorder(nodes=(name,)), row, node)
        finally:
            transaction.discard()
        return f"{printable(table.pod)}: {_choice(table, name)}"

    # -- why not any more ---------------------------------------------------------------------------------------------

    def departures(self, job: int) -> tuple[Departure, ...]:
        """The pods of a job that leave: in this cycle, or evicted before and not gone yet."""
        key = self._session.job_key(job)
        decided = {one.pod: one for one in self._plan.evicted if one.job == key}
        rows = self._session.tasks_of(job)
        leaving = rows[self._session.tasks.status[rows] == Status.RELEASING].tolist()
        rows_by_name = {self._session.task_key(row): row for row in rows.tolist()}
        found = [
            self._departure(rows_by_name[pod], one.why, one.action, one.actor, one.node, one.allowed_by)
            for pod, one in decided.items()
            if pod in rows_by_name
        ]
        return (*found, *(one for row in leaving for one in self._under_way(row, decided)))

    def _under_way(self, row: int, decided: Container[str]) -> Iterator[Departure]:
        """A pod that was evicted in an earlier cycle: the scheduler wrote on it why."""
        pod = self._session.cluster.tasks.pods[row]
        said = next(
            (one for one in pod.status.conditions if one.type == EVICTED and one.status == "True"), None
        )
        if pod.key not in decided and said is not None:
            yield self._departure(row, said.message, node=pod.spec.node_name or "")

    def _departure(
        self, row: int, why: str, action: str = "", by: str = "", node: str = "", asked: tuple[str, ...] = ()
    ) -> Departure:
        pod = self._session.cluster.tasks.pods[row]
        ran = time_run(pod, self._when) if self._when is not None else 0.0
        cost = lost(requested(pod), ran)
        return Departure(
            pod=printable(pod.key),
            node=node,
            by=printable(by),
            action=action,
            why=printable(why),
            allowed_by=asked,
            seconds=ran,
            lost={name: round(amount, 3) for name, amount in cost.items() if amount},
        )


def work_lost(departures: tuple[Departure, ...]) -> str:
    """What evictions cost, in words; empty if nothing is known."""
    total: Counter[str] = Counter()
    for one in departures:
        total.update(one.lost)
    longest = max((one.seconds for one in departures), default=0.0)
    return f"up to {duration(longest)} of work is lost: {amounts(total)}" if longest else ""


def _choice(table: TaskTried, node: str) -> str:
    suit = f"{table.candidates} of {table.nodes} nodes would take it now"
    refused = sorted((one for one in table.refused if not one.outside), key=lambda one: -one.count)
    others = "; ".join(f"{one.count} {one.reason.removeprefix('node(s) ')}" for one in refused[:_REFUSALS])
    head = f"{suit} ({others})" if others and table.candidates < table.nodes else suit
    scores = {one.node: one for one in table.scores}
    own, best = scores.get(node), scores.get(table.best)
    if own is None:
        return f"{head}, and {node} not any more"
    if table.candidates == 1:
        return f"{head}: {node}"
    if best is None or own.total >= best.total:
        rest = [one for one in table.scores if one.node != node]
        next_ = f"; next is {rest[0].node} with {rest[0].total:.4g}" if rest else ""
        equal = bool(rest) and rest[0].total == own.total
        return (
            f"{head}; {node} has {'as many points as any' if equal else 'most points'}: {_points(own)}{next_}"
        )
    return f"{head}; {best.node} would have more points by now, {best.total:.4g}; {node} has {_points(own)}"


def _points(score: NodeScore) -> str:
    parts = sorted((one for one in score.parts if one.points), key=lambda one: -one.points)
    named = ", ".join(f"{one.scorer} {one.points:.4g}" for one in parts[:_PARTS])
    return f"{score.total:.4g} ({named})" if named else f"{score.total:.4g}"


__all__ = ["Places", "work_lost"]
