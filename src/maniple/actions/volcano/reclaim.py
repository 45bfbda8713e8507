"""reclaim: a queue that has less than it deserves gets it back from queues that have more.

Starving jobs of queues in queue order; victims are running, preemptable tasks of jobs in other queues that
allow it. A job gets room for all that it lacks or evicts nothing; what it takes are tasks that their jobs can
do without, or whole jobs. Jobs with a hard network topology are left to `gangreclaim`, which clears a domain:
room here and there would not help them. With `victims.sought_pod_by_pod` Volcano's rule: task by task, node
by node in order of names, the tasks that the plugins give up there, and a topology is not looked at.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maniple.actions import words
from maniple.actions.volcano.room import RoomMaker, RoomTerms
from maniple.actions.volcano.telling import tell_absent
from maniple.actions.volcano.turns import JobTurns
from maniple.cluster.statuses import Status
from maniple.eviction.asking import Asking, Demand, starving_jobs
from maniple.eviction.volcano.per_node import NodeSearch, make_room
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.volcano import VolcanoQueue
from maniple.placement.engine import Placement

ASKED = ("reclaimable",)
HELD_TOGETHER = "reclaim: a job with a hard network topology gets room by gangreclaim only"


class Reclaim:
    name = "reclaim"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, "action reclaim")
        # Verdicts are worked out once per class here, so that there is nothing to remember; the key is accepted.
        self.arguments.bool("predicateErrorCacheEnable", True)
        self.arguments.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        starving = starving_jobs(session)
        tell_absent(session, starving)
        if not starving:
            return
        asking = Asking(session, starving)
        way = _Original if session.rules.victims.sought_pod_by_pod else _Reclaim
        serve = way(session, placement, asking, starving).serve
        turns = JobTurns(session, starving)
        while (queue := turns.next_queue()) is not None:
            if session.hooks.overused(queue):
                if session.trace is not None:
                    session.trace.passed_over(queue, "overused", "the queue is overused", turns.left(queue))
                continue
            while (job := turns.next_job(queue)) is not None:
                serve(job, queue)


def _cause(job: int) -> EvictionCause:
    return EvictionCause(Reclaim.name, Reclaim.name, job, ASKED, words.TAKES_BACK)


def _candidates(session: Session) -> TaskRows:
    """Tasks of any queue that lets go of them."""
    tasks = session.tasks
    rows = np.flatnonzero((tasks.status == Status.RUNNING) & tasks.preemptable & (tasks.node >= 0))
    rows = rows[np.isin(tasks.job[rows], session.jobs.rows)]
    return rows[np.isin(session.jobs.queue[tasks.job[rows]], _reclaimable_queues(session))]


def _reclaimable_queues(session: Session) -> list[int]:
    return [queue for queue, item in session.queues.objects.items() if _reclaimable(item)]


def _with_jobs(session: Session, queues: list[int]) -> list[int]:
    there = set(session.jobs.queue[session.jobs.rows].tolist())
    return [queue for queue in queues if queue in there]


def _reclaimable(item: object) -> bool:
    return not isinstance(item, VolcanoQueue) or item.spec.reclaimable is not False


class _Reclaim:
    """Whole jobs at a time."""

    def __init__(self, session: Session, placement: Placement, asking: Asking, jobs: Sequence[int]) -> None:
        self._session = session
        self._queues = _with_jobs(session, _reclaimable_queues(session))
        self._room = RoomMaker(session, placement, asking, _candidates(session), jobs)

    def serve(self, job: int, queue: int) -> None:
        session, hooks = self._session, self._session.hooks
        shape = session.groups.shaped.get(job)
        if shape is not None and shape.hard:
            session.refusals.of_job(job, HELD_TOGETHER)
            if (trace := session.traced(job)) is not None:
                trace.left_out(job, HELD_TOGETHER)
            return
        terms = RoomTerms(
            queue=queue,
            queues=[other for other in self._queues if other != queue],
            approve=hooks.reclaimable,
            within_limits=lambda demands: hooks.preemptive(queue, _all_rows(demands)),
            accept=lambda: hooks.job_pipelined(job),
            reason=_cause(job),
        )
        self._room.serve(job, terms)


def _all_rows(demands: list[Demand]) -> TaskRows:
    return demands[0].rows if len(demands) == 1 else np.concatenate([demand.rows for demand in demands])


class _Original:
    """Task by task."""

    def __init__(self, session: Session, placement: Placement, asking: Asking, jobs: Sequence[int]) -> None:
        self._session = session
        self._placement = placement
        self._asking = asking

    def serve(self, job: int, queue: int) -> None:
        session, hooks = self._session, self._session.hooks
        transaction, cause = Transaction(session), _cause(job)
        for task in self._asking.tasks(job).tolist():
            if not hooks.job_starving(job):
                break
            class_ = session.classes[session.tasks.class_of[task]]
            if not hooks.preemptive(queue, np.array([task])) or hooks.pre_predicate(class_) is not None:
                continue
            candidates = _candidates(session)
            foreign = session.jobs.queue[session.tasks.job[candidates]] != queue
            others = candidates[foreign]
            search = NodeSearch(others, hooks.reclaimable, lambda *_: True, cause, needs_victims=False)
            nodes = self._placement.evictable_nodes(class_, task)
            make_room(session, transaction, task, nodes.tolist(), search)
        if hooks.job_pipelined(job):
            transaction.commit()
        else:
            transaction.discard()
