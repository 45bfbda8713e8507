"""Volcano's own search: for one task, node by node, the first victims in victim order that make room.

Used where victims are sought pod by pod, and for what concerns one task only. On each node the plugins are
called for the tasks there; if what will be idle and all allowed victims together suffice, victims are evicted
one by one until the task fits, and the task is pipelined. A node on which that fails is rolled back. A job that is
evicted whole or not at all goes at once, with its tasks on other nodes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.eviction.telling import PodSearch
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.victim_order import in_victim_order
from maniple.framework.wholes import unbroken, units, with_mates

TOO_LITTLE = "without all of them the node would still have too little"
NOT_ADMITTED = "another filter, or the limit of the queue, keeps the pod away even without them"


@dataclass(frozen=True, slots=True, eq=False)
class NodeSearch:
    """What one action looks for."""

    candidates: TaskRows  # tasks that may be victims, anywhere
    approve: Callable[[int, TaskRows], TaskRows]
    fits: Callable[[TaskClass, int], bool]  # besides resources: may the task now go to the node
    reason: str
    needs_candidates: bool = True  # skip nodes without candidates
    needs_victims: bool = True  # skip nodes without allowed victims, though the task may fit there as it is


def make_room(
    session: Session, transaction: Transaction, task: int, nodes: Iterable[int], search: NodeSearch
) -> bool:
    """Pipeline a task onto the first of the nodes where evicting makes room."""
    class_ = session.classes[session.tasks.class_of[task]]
    where = session.tasks.node[search.candidates]
    told = PodSearch(session, task)
    told.begin(search.candidates, search.approve, search.reason)
    for node in nodes:
        there = search.candidates[where == node]
        if search.needs_candidates and not len(there):
            continue
        victims = approved(session, task, there, search.candidates, search.approve)
        if search.needs_victims and not len(victims):
            continue
        if not _suffice(session, class_, node, victims):
            if told:
                told.tried(node, victims, fits=False, why=TOO_LITTLE)
            continue
        checkpoint = transaction.checkpoint()
        if _evict_until_fit(
            session, transaction, class_, node, in_victim_order(session, task, victims), search
        ):
            if told:
                gone = transaction.evictions()
                told.tried(node, [row for row in victims.tolist() if row in gone], fits=True)
            transaction.pipeline(np.array([task]), np.array([node]))
            return True
        if told:
            told.tried(node, victims, fits=False, why=NOT_ADMITTED)
        transaction.rollback(checkpoint)
    return False


def approved(
    session: Session,
    task: int,
    there: TaskRows,
    candidates: TaskRows,
    approve: Callable[[int, TaskRows], TaskRows],
) -> TaskRows:
    """What the plugins give up of the candidates on a node, and the other pods of jobs that go whole."""
    if not len(there):
        return there
    together = with_mates(session, there)
    if together is there:
        return approve(task, in_victim_order(session, task, there))
    asked = unbroken(session, together[np.isin(together, candidates)])
    if not len(asked):
        return asked
    return unbroken(session, approve(task, in_victim_order(session, task, asked)))


def _suffice(session: Session, class_: TaskClass, node: int, victims: TaskRows) -> bool:
    here = victims[session.tasks.node[victims] == node]
    return roomy(session, class_, node, session.requests(here).sum(axis=1))


def _evict_until_fit(
    session: Session,
    transaction: Transaction,
    class_: TaskClass,
    node: int,
    victims: TaskRows,
    search: NodeSearch,
) -> bool:
    for unit in units(session, victims):
        if roomy(session, class_, node) and search.fits(class_, node):
            return True
        transaction.evict(unit, search.reason)
    return roomy(session, class_, node) and search.fits(class_, node)


def roomy(session: Session, class_: TaskClass, node: int, more: np.ndarray | int = 0) -> bool:
    """Whether a task of the class will fit on a node, with something more released there."""
    nodes = session.nodes
    free = (
        nodes.allocatable[:, node] - nodes.used[:, node] + nodes.releasing[:, node] - nodes.pipelined[:, node]
    )
    asked = class_.request
    enough = (asked <= free + more) | (asked <= 0)
    enough[:2] = asked[:2] <= (free + more)[:2]  # cpu and memory count even if the request is zero
    return bool(enough.all())
