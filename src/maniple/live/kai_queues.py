"""What an eviction says of the two queues that it is about: what each used before the cycle, its quota, its fair share and its priority. Called by `kai.py`.

The books of queues stand as of the end of the cycle; what the cycle placed is taken off again, and what it evicted put back.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import CPU, MEMORY
from maniple.cluster.statuses import Status
from maniple.framework.gpu_facts import UNIT
from maniple.framework.outcome import Plan
from maniple.framework.reasons import MadeRoom
from maniple.framework.session import Session
from maniple.objects.kai import KaiQueue
from maniple.plugins.kai.queue_accounts import readable

RECLAIM = "reclaim"


def queue_lines(plan: Plan, row: int, reason: str) -> str:
    """Lines about the queue that got room and the one that lost it: the leaves if they are side by side, otherwise those above."""
    session = plan.session
    if not isinstance(reason, MadeRoom) or reason.action != RECLAIM:
        return ""
    taker, loser = (int(session.jobs.queue[job]) for job in (reason.actor, int(session.tasks.job[row])))
    tree = session.queue_tree
    if taker not in tree or loser not in tree:
        return ""
    if tree.parent(taker) != tree.parent(loser):
        taker, loser = (tree.parent(one) if tree.parent(one) >= 0 else one for one in (taker, loser))
    books = session.shared.get(_Books)
    if books is None:
        books = session.shared[_Books] = _Books(session)
    return "".join(f"\n{line}" for line in (books.line(taker), books.line(loser)) if line)


class _Books:
    """Queues in words, each once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, str] = {}
        self._since = _since_the_opening(session)

    def line(self, queue: int) -> str:
        if queue not in self._known:
            self._known[queue] = self._line(queue)
        return self._known[queue]

    def _line(self, queue: int) -> str:
        session = self._session
        report = _report(session, queue)
        if not report or "quota" not in report:
            return ""
        item = session.queues.stated(queue, KaiQueue)
        name = item.spec.display_name if item is not None else ""
        used = _three(session, report["allocated"]) - self._since.get(queue, np.zeros(3))
        quota, fair = _three(session, report["quota"]), _three(session, report["deserved"])
        return (
            f"{name or session.queue_name(queue)} uses {_words(used)} with a quota of {_words(quota)}, "
            f"fair-share of {_words(fair)} and queue priority of {session.queues.facts[queue].priority}."
        )


def _report(session: Session, queue: int) -> Mapping[str, Any]:
    reports = [plugin.queue_report for _, plugin in session.plugins if hasattr(plugin, "queue_report")]
    found: Mapping[str, Any] = reports[0](queue) if reports else {}
    return found


def _since_the_opening(session: Session) -> dict[int, NDArray[np.float64]]:
    """By queue, with those above: what the cycle placed there less what it evicted."""
    placed = [rows for rows, _ in (*session.bound, *session.held)]
    claimed = np.flatnonzero(session.tasks.status == Status.PIPELINED)
    evicted = np.array([row for row, _ in session.evicted], dtype=np.int64)
    changed: dict[int, NDArray[np.float64]] = {}
    for rows, sign in ((np.concatenate([*placed, claimed]).astype(np.int64), 1.0), (evicted, -1.0)):
        amounts = session.gpus.of_tasks(rows) * sign
        for place, job in enumerate(session.tasks.job[rows].tolist()):
            queue = int(session.jobs.queue[job]) if job >= 0 else -1
            for one in session.queue_tree.path(queue) if queue in session.queue_tree else ():
                changed[one] = changed.get(one, np.zeros(3)) + amounts[:, place]
    return changed


def _three(session: Session, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cpu in milli, memory in bytes, GPUs."""
    gpu = session.gpus.reported_as
    return np.array([vector[CPU], vector[MEMORY], vector[gpu] / UNIT if gpu is not None else 0.0])


def _words(amount: NDArray[np.float64]) -> str:
    cpu, memory, gpu = amount.tolist()
    return f"GPU: {readable(gpu)}, CPU: {readable(cpu, 1000)} (cores), memory: {readable(memory, 10**9)} (GB)"
