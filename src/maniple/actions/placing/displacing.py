"""Tasks that lose a place which they got in the same cycle.

They were never bound, so none of their resources have to be released. A search for victims treats them like any
other victim. Before its result is committed, `settled` removes their places and assigns every task that was
placed in the search to the same node again: at once where resources are idle now, as a claim where victims are
still terminating. If the displaced tasks alone make enough room, no victim is evicted. A gang with tasks that
have to wait claims all of its places and binds none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maniple.actions.placing.job_placer import JobPlacer
from maniple.cluster.statuses import Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.operations import Kind, Operation
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Mask

_CLAIMS = (Kind.PIPELINE, Kind.MOVE)


def settled(session: Session, placer: JobPlacer, found: Transaction) -> Transaction | None:
    """What a search found, without evictions of tasks that are not bound yet; None if that cannot be carried out."""
    if _only_waits(session, found):
        return found
    lost = found.evictions()
    fresh = [row for row in lost if session.cluster.tasks.status[row] == Status.PENDING]
    displaced = set(fresh)
    victims = {row: why for row, why in lost.items() if row not in displaced}
    claims = [one for one in found.operations if one.kind in _CLAIMS]
    found.discard()
    settling = _Settling(session, placer, fresh, claims)
    return (settling.without(victims) if victims else None) or settling.evicting(victims)


def _only_waits(session: Session, found: Transaction) -> bool:
    """All that is evicted has a place in the cluster, and some of it leaves: claims have something to wait for."""
    evicted, status = (
        [one.event.rows for one in found.operations if one.kind is Kind.EVICT],
        session.cluster.tasks.status,
    )
    if not evicted or any((status[rows] == Status.PENDING).any() for rows in evicted):
        return False
    return all(one.kind is not Kind.RESTORE for one in found.operations) or bool(found.evictions())


@dataclass(slots=True, eq=False)
class _Settling:
    session: Session
    placer: JobPlacer
    fresh: list[int]  # tasks that lose the places which they got in this cycle
    claims: list[Operation]  # the places that tasks found in the search

    def without(self, victims: Mapping[int, str]) -> Transaction | None:
        """With every victim where it is; None if then not all find their places, or a queue would have too much."""
        transaction = self._begun()
        leaving = self._leaving([])
        for one in self.claims:
            others = ~np.isin(one.event.rows, list(victims))
            rows = one.event.rows[others]
            allowed = (
                not len(rows) or self.session.hooks.is_job_over_capacity(one.event.job, rows).schedulable
            )
            if not allowed or not self._place(transaction, rows, one.event.nodes[others], leaving):
                transaction.discard()
                return None
        self._finish(transaction)
        return transaction

    def evicting(self, victims: Mapping[int, str]) -> Transaction | None:
        transaction = self._begun()
        leaving = self._leaving(list(victims))
        for reason in dict.fromkeys(victims.values()):
            transaction.evict(_rows([row for row, why in victims.items() if why == reason]), reason)
        if not all(self._again(transaction, one, leaving) for one in self.claims):
            transaction.discard()
            return None
        self._finish(transaction)
        return transaction

    def _begun(self) -> Transaction:
        transaction = Transaction(self.session)
        transaction.withdraw(_rows(self.fresh))
        return transaction

    def _leaving(self, victims: list[int]) -> Mask:
        """Nodes that pods evicted in this cycle have not left yet. Filters take them for gone."""
        session = self.session
        nodes = session.tasks.node[victims].tolist()
        for row, _ in session.decisions.evicted:
            moved = session.moved.get(row)
            nodes.append(moved[0][0] if moved else int(session.tasks.node[row]))
        leaving = np.zeros(len(session.nodes), dtype=np.bool_)
        leaving[[node for node in nodes if node >= 0]] = True
        return leaving

    def _again(self, transaction: Transaction, claim: Operation, leaving: Mask) -> bool:
        """Give tasks the nodes that they claimed in the search."""
        rows, nodes = claim.event.rows, claim.event.nodes
        moves = self.session.tasks.status[rows] == Status.RELEASING
        if moves.any():
            groups = claim.groups and [one for one, goes in zip(claim.groups, moves, strict=True) if goes]
            transaction.move(rows[moves], nodes[moves], groups)
        return self._place(transaction, rows[~moves], nodes[~moves], leaving)

    def _place(self, transaction: Transaction, rows: TaskRows, nodes: TaskRows, leaving: Mask) -> bool:
        return all(
            self.placer.place_on(transaction, rows[nodes == node], node, leaving)
            for node in np.unique(nodes).tolist()
        )

    def _finish(self, transaction: Transaction) -> None:
        """A gang of which a part has to wait claims all of its places; others start."""
        session = self.session
        jobs = [one.event.job for one in self.claims] + session.tasks.job[_rows(self.fresh)].tolist()
        for job in dict.fromkeys(jobs):
            if session.groups.should_pipeline(job):
                self._hold_back(transaction, job)
            elif session.jobs.counts[Status.ALLOCATED, job]:
                session.start(job)

    def _hold_back(self, transaction: Transaction, job: int) -> None:
        """Turn all that a job was given in this cycle into claims, whether by this transaction or before it."""
        session = self.session
        transaction.to_pipelined(job)
        rows = session.tasks_of(job)
        bound = session.tasks.status[rows] == Status.BINDING
        rows = rows[bound & (session.cluster.tasks.status[rows] == Status.PENDING)]
        nodes, groups = session.tasks.node[rows].astype(np.intp), session.gpus.groups_of
        shared = [groups.get(row) for row in rows.tolist()]
        transaction.withdraw(rows)
        for place in range(len(rows)):
            one, held = slice(place, place + 1), shared[place]
            transaction.pipeline(rows[one], nodes[one], None if held is None else [held])


def _rows(rows: list[int]) -> TaskRows:
    return np.array(rows, dtype=np.int64)


__all__ = ["settled"]
