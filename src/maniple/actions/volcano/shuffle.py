"""shuffle: evict running tasks that a plugin selects, so that they start again where there is room.

Plugins get all running tasks of the session's jobs, the least important first; tasks that they select
(`victim_tasks`), and that no plugin protects (`victims_allowed`), are evicted. A job that is evicted whole goes with
them, or stays if anything of it is protected. Tasks that are not preemptable
are left alone (`victims.shuffle_spares_non_preemptable`). Plugins tell why they selected a task (`victim_reason`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.cluster.statuses import Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.wholes import is_whole, unbroken, with_mates
from maniple.placement.engine import Placement

ASKED = ("victim_tasks", "victims_allowed")
TOGETHER = "another pod of its group is evicted, and the group is evicted whole (disruptionMode)"


class Shuffle:
    name = "shuffle"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action shuffle")
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        running = _in_order(session, _running(session))
        if not len(running):
            return
        named = session.hooks.victim_tasks(running)
        together = with_mates(session, running[np.isin(running, named)])
        victims = session.hooks.victims_allowed(running[np.isin(running, together)])
        victims = unbroken(session, victims)
        if len(victims):
            _evict(session, victims)


def _evict(session: Session, victims: TaskRows) -> None:
    """Tasks that were selected for the same reason go together."""
    transaction, alike = Transaction(session), dict[str, list[int]]()
    for row in victims.tolist():
        why = session.hooks.victim_reason(row) or (
            TOGETHER if is_whole(session, int(session.tasks.job[row])) else ""
        )
        alike.setdefault(why, []).append(row)
    for detail, rows in alike.items():
        cause = EvictionCause(Shuffle.name, Shuffle.name, asked=ASKED, detail=detail)
        transaction.evict(np.array(rows), cause)
    transaction.commit()


def _running(session: Session) -> TaskRows:
    tasks = session.tasks
    movable = tasks.status == Status.RUNNING
    if session.rules.victims.shuffle_spares_non_preemptable:
        movable = movable & tasks.preemptable
    rows = np.flatnonzero(movable)
    return rows[np.isin(tasks.job[rows], session.jobs.rows)]


def _in_order(session: Session, rows: TaskRows) -> TaskRows:
    """The least important first, not in row order, so that a plugin with a limit selects those."""
    return rows[np.lexsort((session.tasks.rank[rows], session.tasks.priority[rows]))]
