"""Tasks that lose a place which they got in this very cycle: they were never bound, so nothing of theirs has to be released.

A search for victims treats them like any other victim. Before its result is committed, `settled` takes their places off the books and gives
every task that found a place in the search the same node again: at once where resources are idle now, as a claim where victims are still
leaving. A gang of which a part has to wait claims all of its places and binds none.
"""

from collections.abc import Mapping

import numpy as np

from maniple.actions.kai.allocate_job import JobPlacer
from maniple.cluster.statuses import Status
from maniple.framework.operations import Kind, Operation
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction

_CLAIMS = (Kind.PIPELINE, Kind.MOVE)


def settled(session: Session, placer: JobPlacer, found: Transaction) -> Transaction | None:
    """What a search found, without evictions of tasks that are not bound yet; None if that cannot be carried out."""
    if not _touches_fresh(session, found):
        return found
    lost = found.evictions()
    fresh = [row for row in lost if session.cluster.tasks.status[row] == Status.PENDING]
    displaced = set(fresh)
    victims = {row: why for row, why in lost.items() if row not in displaced}
    claims = [one for one in found.operations if one.kind in _CLAIMS]
    found.discard()
    # Tasks that were never bound make room at once. Where that is room enough, nothing else has to go.
    done = _spared(session, placer, fresh, victims, claims) if victims else None
    return done or _carried_out(session, placer, fresh, victims, claims)


def _spared(
    session: Session, placer: JobPlacer, fresh: list[int], victims: Mapping[int, str], claims: list[Operation]
) -> Transaction | None:
    """The same with every victim where it is; None if then not all would find their places, or a queue would have too much."""
    transaction = Transaction(session)
    transaction.withdraw(_rows(fresh))
    for one in claims:
        stays = np.isin(one.event.rows, list(victims))
        rows, nodes = one.event.rows[~stays], one.event.nodes[~stays]
        if len(rows) and not session.hooks.is_job_over_capacity(one.event.job, rows).schedulable:
            transaction.discard()
            return None
        if not all(
            placer.place_on(transaction, rows[nodes == node], node) for node in np.unique(nodes).tolist()
        ):
            transaction.discard()
            return None
    _start(session, placer, transaction, fresh, claims)
    return transaction


def _carried_out(
    session: Session, placer: JobPlacer, fresh: list[int], victims: Mapping[int, str], claims: list[Operation]
) -> Transaction | None:
    transaction = Transaction(session)
    transaction.withdraw(_rows(fresh))
    for reason in dict.fromkeys(victims.values()):
        transaction.evict(_rows([row for row, why in victims.items() if why == reason]), reason)
    if not all(_again(session, placer, transaction, one) for one in claims):
        transaction.discard()
        return None
    _start(session, placer, transaction, fresh, claims)
    return transaction


def _start(
    session: Session, placer: JobPlacer, transaction: Transaction, fresh: list[int], claims: list[Operation]
) -> None:
    """A gang of which a part has to wait claims all of its places; others begin."""
    jobs = [one.event.job for one in claims] + session.tasks.job[_rows(fresh)].tolist()
    for job in dict.fromkeys(jobs):
        if placer.has_to_wait(job):
            _hold_back(session, transaction, job)
        elif session.jobs.counts[Status.ALLOCATED, job]:
            session.start(job)


def _touches_fresh(session: Session, found: Transaction) -> bool:
    """A task without a place in the cluster is evicted, or nothing is, so that nothing has to be waited for."""
    evicted = [one.event.rows for one in found.operations if one.kind is Kind.EVICT]
    return not evicted or bool(
        (session.cluster.tasks.status[np.concatenate(evicted)] == Status.PENDING).any()
    )


def _again(session: Session, placer: JobPlacer, transaction: Transaction, claim: Operation) -> bool:
    """Give tasks the nodes that they claimed in the search."""
    rows, nodes = claim.event.rows, claim.event.nodes
    leaving = session.tasks.status[rows] == Status.RELEASING
    if leaving.any():
        groups = claim.groups and [one for one, moves in zip(claim.groups, leaving, strict=True) if moves]
        transaction.move(rows[leaving], nodes[leaving], groups)
    rows, nodes = rows[~leaving], nodes[~leaving]
    return all(placer.place_on(transaction, rows[nodes == node], node) for node in np.unique(nodes).tolist())


def _hold_back(session: Session, transaction: Transaction, job: int) -> None:
    """Turn all that a job was given in this cycle into claims, whether by this transaction or before it."""
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
