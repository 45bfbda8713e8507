"""Placing a job that needs room, sub-job by sub-job, on what will be free in a domain.

Called by `gang_eviction.py` after every bundle. All tasks are pipelined or none. Sums are compared before
anything is tried. By the rules `gang_eviction`, tasks may be placed one after the other, on any node without a
lasting objection, and sub-jobs only until the job counts as pipelined.
"""

from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, Amounts
from maniple.eviction.asking import Demand
from maniple.eviction.volcano.bundles import Mask
from maniple.framework.groups.tree import Group, PodSet, Progress
from maniple.framework.points import Purpose, TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement
from maniple.placement.tables import trace_choice, trace_proposal

Places = dict[PodSet, int]  # -> domain


@dataclass(frozen=True, slots=True, eq=False)
class PodSetDemand:
    """A sub-job's tasks that need room."""

    pod_set: PodSet
    rows: TaskRows
    demands: list[Demand]


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """A job that requests room for all of some tasks."""

    job: int
    queue: int
    shape: Group
    parts: list[PodSetDemand]
    rows: TaskRows
    need: Amounts
    demand: dict[int, int]  # class -> tasks

    @property
    def asker(self) -> int:
        return int(self.rows[0])


class GangPlacer:
    """Places jobs in one session."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._rules = session.rules.gang_eviction
        self._placement = placement

    def free(self, within: Mask) -> Amounts:
        """What will be free on the nodes of a domain. What one node owes no other has to pay.

        With `claimed_room_is_free` what others wait for there counts, too.
        """
        nodes, rows = self._session.nodes, np.flatnonzero(within)
        ahead = nodes.future_idle(rows)
        if self._rules.claimed_room_is_free:
            ahead = ahead + nodes.pipelined[:, rows]
        free: Amounts = np.maximum(ahead, 0).sum(axis=1)
        return free

    def place_if_roomy(self, transaction: Transaction, asking: Asking, domain: int) -> Places | None:
        within = self._session.domains.members[domain]
        if not covers(self.free(within), asking.need):
            return None
        if not self._rules.places_pod_by_pod:
            for number, count in asking.demand.items():
                column = self._placement.column(self._session.classes[number])
                if int(column.later[within].sum()) < count:
                    return None
        return self.place(transaction, asking, domain)

    def place(self, transaction: Transaction, asking: Asking, domain: int) -> Places | None:
        """Pipeline all tasks, sub-job by sub-job; None, and nothing done, when they do not all fit."""
        session, checkpoint, places = self._session, transaction.checkpoint(), Places()
        for part in asking.parts:
            if places and self._rules.later_sub_groups_wait and session.hooks.job_pipelined(asking.job):
                break
            domains = self._domains_inside(asking.shape, part.pod_set, domain)
            inside = next((one for one in domains if self._place_part(transaction, asking, part, one)), None)
            if inside is None:
                transaction.rollback(checkpoint)
                return None
            places[part.pod_set] = inside
        if not session.hooks.job_pipelined(asking.job):
            transaction.rollback(checkpoint)
            return None
        return places

    def _domains_inside(self, shape: Group, one: PodSet, domain: int) -> list[int]:
        if not shape.bounded:
            return [domain]
        gradients = self._session.hooks.hyper_node_gradient_for_pod_set(one, domain, Purpose.EVICT)
        return list(dict.fromkeys(inside for gradient in gradients for inside in gradient))

    def _place_part(self, transaction: Transaction, asking: Asking, part: PodSetDemand, domain: int) -> bool:
        session, checkpoint = self._session, transaction.checkpoint()
        within, one = session.domains.members[domain], part.pod_set
        if self._rules.places_pod_by_pod:  # how near the others of the pod set are does not count then
            fits = all(
                self._place_singly(transaction, asking.queue, row, within) for row in part.rows.tolist()
            )
            fits = fits and (session.groups.is_ready(one) or session.groups.is_pipelined(one))
        else:
            beside = session.groups.progress(one, domain)
            fits = all(
                self._place_demand(transaction, asking.queue, demand, within, beside)
                for demand in part.demands
            )
        if not fits:
            transaction.rollback(checkpoint)
        return fits

    def _place_demand(
        self, transaction: Transaction, queue: int, demand: Demand, within: Mask, beside: Progress | None
    ) -> bool:
        session, rows = self._session, demand.rows
        if session.hooks.allocatable(queue, demand.class_, len(rows)) < len(rows):
            return False
        everywhere = None if within.all() else within
        while len(rows):
            proposal = self._placement.fill(demand.class_, len(rows), everywhere, beside)
            if session.traced(int(session.tasks.job[rows[0]]), tasks=True) is not None:
                trace_proposal(session, self._placement, rows, proposal, everywhere, beside)
            if proposal is None:
                return False
            transaction.pipeline(rows[: len(proposal)], proposal.nodes)
            if beside is not None:
                session.groups.advance(beside, proposal.nodes)
            rows = rows[len(proposal) :]
        return True

    def _place_singly(self, transaction: Transaction, queue: int, row: int, within: Mask) -> bool:
        """One task, on any node that nothing lasting speaks against: idle before idle later, then the best score."""
        session = self._session
        class_ = session.classes[session.tasks.class_of[row]]
        if session.hooks.allocatable(queue, class_, 1) == 0:
            return False
        nodes = self._placement.evictable_nodes(class_, row)
        nodes = nodes[within[nodes]]
        nodes = nodes[_fits(class_, session.nodes.future_idle(nodes))]
        now = nodes[_fits(class_, session.nodes.idle()[:, nodes])]
        best = self._placement.by_score(class_, now if len(now) else nodes)[:1]
        if len(best):
            if session.traced(int(session.tasks.job[row]), tasks=True) is not None:
                trace_choice(session, row, int(best[0]))
            transaction.pipeline(np.array([row]), best)
        return len(best) > 0


def covers(free: Amounts, need: Amounts) -> bool:
    return bool(((need <= free) | (need <= 0)).all())


def _fits(class_: TaskClass, free: Amounts) -> Mask:
    """By column, whether a task fits. Cpu and memory count even if the request for them is zero."""
    asked = class_.request[:, None]
    enough = (asked <= free) | (asked <= 0)
    enough[[CPU, MEMORY]] = (asked <= free)[[CPU, MEMORY]]
    return np.asarray(enough.all(axis=0))
