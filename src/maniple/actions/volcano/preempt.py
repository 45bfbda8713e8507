"""preempt: inside a queue, more important jobs get room from less important ones.

Between jobs: starving jobs of each queue, in order; victims are bound or running, preemptable tasks of other
jobs of the queue, as the plugins allow. A job gets room for all that it lacks or evicts nothing; it evicts
tasks that their jobs can spare, or whole jobs. Within a job: a task may take the place of another task of its
own job. Jobs with a network topology are left to `gangpreempt`.

With `victims.sought_pod_by_pod` Volcano's rule applies: task by task, nodes by score, with the victims that the
plugins allow there. With `enableTopologyAwarePreemption` the nodes are tried one by one and the one with the
lowest cost is taken (`eviction/volcano/least_cost.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maniple.actions.volcano.room import RoomMaker, RoomTerms
from maniple.actions.volcano.telling import tell_absent
from maniple.actions.volcano.turns import JobTurns
from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import PREEMPTABLE
from maniple.eviction.asking import Asking, Demand, starving_jobs
from maniple.eviction.volcano.least_cost import (
    CandidateLimits,
    CheapSearch,
    LenientTrial,
    Trial,
    make_room_cheaply,
)
from maniple.eviction.volcano.per_node import NodeSearch, make_room
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.points import TaskRows
from maniple.framework.reasons import FITS, EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.framework.wholes import is_whole
from maniple.placement.engine import Placement

ASKED = ("preemptable",)
HELD_TOGETHER = "preempt: a job with a network topology gets room by gangpreempt only"
RULE = "which comes before it in the same queue"


class Preempt:
    name = "preempt"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        given = self.arguments = Arguments(arguments, "action preempt")
        given.bool(
            "predicateErrorCacheEnable", True
        )  # verdicts are worked out once per class: nothing to remember
        given.int("topologyAwarePreemptWorkerNum", 16)  # one thread looks at all nodes at once
        self._least_cost = given.bool("enableTopologyAwarePreemption", False)
        self._limits = CandidateLimits(
            percentage=given.int("minCandidateNodesPercentage", 10),
            least=given.int("minCandidateNodesAbsolute", 1),
            most=given.int("maxCandidateNodesAbsolute", 100),
        )
        given.unknown(())

    def run(self, session: Session, placement: Placement) -> None:
        starving = [job for job in starving_jobs(session) if not _has_topology(session, job)]
        tell_absent(session, starving, HELD_TOGETHER)
        if not starving:
            return
        asking = Asking(session, starving)
        one_by_one = _TaskByTask(session, placement, asking, self._limits if self._least_cost else None)
        pod_by_pod = session.rules.victims.sought_pod_by_pod or self._least_cost
        whole = None if pod_by_pod else _JobByJob(session, placement, asking, starving)
        turns = JobTurns(session, starving)
        by_queue: dict[int, list[int]] = {}
        while (queue := turns.next_queue()) is not None:
            while (job := turns.next_job(queue)) is not None:
                by_queue.setdefault(queue, []).append(job)
                (whole or one_by_one).between_jobs(job, queue)
            for job in by_queue.get(queue, ()):
                one_by_one.within_job(job, queue)


def _has_topology(session: Session, job: int) -> bool:
    """Of its own, or of one of its sub-groups."""
    shape = session.groups.shaped.get(job)
    return shape is not None and bool(shape.limits)


def _cause(job: int) -> EvictionCause:
    return EvictionCause(Preempt.name, Preempt.name, job, ASKED, RULE)


def _candidates(session: Session) -> TaskRows:
    tasks = session.tasks
    rows = np.flatnonzero(
        (tasks.status >= 0) & PREEMPTABLE[tasks.status] & tasks.preemptable & (tasks.node >= 0)
    )
    return rows[np.isin(tasks.job[rows], session.jobs.rows)]


class _JobByJob:
    """Room for a whole job."""

    def __init__(self, session: Session, placement: Placement, asking: Asking, jobs: Sequence[int]) -> None:
        self._session = session
        self._room = RoomMaker(session, placement, asking, _candidates(session), jobs)

    def between_jobs(self, job: int, queue: int) -> None:
        session, hooks = self._session, self._session.hooks

        def lower_only(asker: int, rows: TaskRows) -> TaskRows:
            others = rows[session.tasks.job[rows] != job]
            if session.tasks.best_effort[asker]:
                others = others[session.tasks.best_effort[others]]
            return hooks.preemptable(asker, others)

        def within_limits(demands: list[Demand]) -> bool:
            return all(hooks.allocatable(queue, d.class_, len(d.rows)) >= len(d.rows) for d in demands)

        cause = _cause(job)
        terms = RoomTerms(queue, (queue,), lower_only, within_limits, lambda: hooks.job_pipelined(job), cause)
        self._room.serve(job, terms)


class _TaskByTask:
    """Room for one task after the other, as the original does it."""

    def __init__(
        self, session: Session, placement: Placement, asking: Asking, limits: CandidateLimits | None
    ) -> None:
        self._session = session
        self._placement = placement
        self._asking = asking
        self._limits = limits

    def between_jobs(self, job: int, queue: int) -> None:
        session = self._session
        transaction = Transaction(session)
        for task in self._asking.tasks(job).tolist():
            if not session.hooks.job_starving(job):
                break
            rows = _candidates(session)
            theirs = session.tasks.job[rows]
            self._preempt(
                transaction, task, queue, rows[(session.jobs.queue[theirs] == queue) & (theirs != job)]
            )
        if session.hooks.job_pipelined(job):
            transaction.commit()
        else:
            transaction.discard()

    def within_job(self, job: int, queue: int) -> None:
        session, rules, asking = self._session, self._session.rules.victims, self._asking
        if is_whole(session, job):
            return
        # A task that must not preempt finds nothing in its turn, and ends the job's preemption.
        waiting = asking.with_meek(job) if rules.never_preempting_pods_ask else asking.tasks(job)
        for task in waiting.tolist():
            if rules.served_jobs_stop and not session.hooks.job_starving(job):
                break
            rows = _candidates(session)
            transaction = Transaction(session)
            if not self._preempt(transaction, task, queue, rows[session.tasks.job[rows] == job]):
                transaction.discard()
                break
            transaction.commit()

    def _preempt(self, transaction: Transaction, task: int, queue: int, candidates: TaskRows) -> bool:
        session, placement, rules = self._session, self._placement, self._session.rules.victims
        class_ = session.classes[session.tasks.class_of[task]]
        if session.tasks.best_effort[task]:
            candidates = candidates[session.tasks.best_effort[candidates]]
        evicts = not rules.free_nodes_are_taken
        if evicts and not len(candidates):
            return False
        if not self._eligible(task, class_) or session.hooks.pre_predicate(class_) is not None:
            return False
        if self._limits is not None:
            return self._preempt_cheaply(transaction, task, queue, candidates, self._limits)

        # Pods counted once, before any of them goes, keep a task away that avoids them, although they leave.
        counted_before = rules.neighbours_counted_before
        prepared = placement.judging.judged(class_, lambda one: one.prepared) if counted_before else None

        def fits(class_: TaskClass, node: int) -> bool:
            if session.hooks.allocatable(queue, class_, 1) == 0:
                return False
            return int(placement.judging.verdicts(class_, resources=False, prepared=prepared)[node]) == FITS

        cause = _cause(int(session.tasks.job[task]))
        search = NodeSearch(candidates, session.hooks.preemptable, fits, cause, evicts, evicts)
        nodes = placement.by_score(class_, placement.evictable_nodes(class_, task))
        return make_room(session, transaction, task, nodes.tolist(), search)

    def _preempt_cheaply(
        self,
        transaction: Transaction,
        task: int,
        queue: int,
        candidates: TaskRows,
        limits: CandidateLimits,
    ) -> bool:
        session, placement = self._session, self._placement
        class_ = session.classes[session.tasks.class_of[task]]
        lenient = session.rules.victims.trials_are_lenient
        trial = (LenientTrial if lenient else Trial)(session, placement, queue, class_)
        cause = _cause(int(session.tasks.job[task]))
        search = CheapSearch(candidates, session.hooks.preemptable, trial, cause, limits)
        shards = placement.by_shard(placement.evictable_nodes(class_, task))
        return any(make_room_cheaply(session, transaction, task, nodes.tolist(), search) for nodes in shards)

    def _eligible(self, task: int, class_: TaskClass) -> bool:
        """A task that was promised a node waits for it, unless the node can no longer take it."""
        session = self._session
        if self._asking.is_meek(task):
            return False
        promised = session.cluster.tasks.nominated.get(task)
        node = session.nodes.facts.index.get(promised or "")
        if promised is None:
            return True
        if node is None:
            return False
        verdict = int(self._placement.judging.verdicts(class_)[node])
        if verdict == FITS:
            return False
        if session.reasons.lasting()[verdict]:
            return True
        return not self._leaving_for(task, node)

    def _leaving_for(self, task: int, node: int) -> bool:
        """A less important pod on the node is already terminating because of a preemption."""
        session = self._session
        tasks, pods = session.tasks, session.cluster.tasks.pods
        rows = np.flatnonzero((tasks.node == node) & (tasks.priority < tasks.priority[task])).tolist()
        return any(
            pods[row].metadata.deletion_timestamp is not None
            and any(
                c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler"
                for c in pods[row].status.conditions
            )
            for row in rows
        )
