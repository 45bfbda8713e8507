"""Room made for a job belongs to it: jobs with nominated pods have the first turn on their nodes.

While a terminating pod still makes a filter reject the job's pods (by its ports, the pod count or its
anti-affinity), nothing can be placed yet. The job then holds the resources of its nodes as a claim, so that no
other job takes them in the meantime. A job is no victim in the cycle in which it gets what it was promised:
pods were evicted for it.
"""

import numpy as np

from maniple.actions.order import JobsByQueue
from maniple.actions.placing.job_placer import JobPlacer
from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.eviction.leaving import kept_away
from maniple.framework.criteria import NodeRows
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.framework.transactions.operations import expect
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Placement
from maniple.placement.tables import trace_promise


class Promises:
    """The jobs of one session that were promised room."""

    def __init__(self, session: Session, placement: Placement, placer: JobPlacer) -> None:
        self._session = session
        self._placement = placement
        self._placer = placer

    def keep(self, waiting: list[int]) -> None:
        """Serve the waiting jobs that are nominated, as far as there is room on their own nodes."""
        session = self._session
        self._expect()
        rows = [row for row in session.cluster.tasks.nominated if session.tasks.status[row] == Status.PENDING]
        jobs = {int(session.tasks.job[row]) for row in rows}
        line = JobsByQueue(session, [job for job in waiting if job in jobs], traced=True)
        while (job := line.pop()) is not None:
            if self._serve(job):
                line.push(job)

    def _expect(self) -> None:
        """The place that a pod was evicted for is kept until the pod is gone and another comes for it."""
        session = self._session
        leaving = [
            row for row in session.cluster.tasks.nominated if session.tasks.status[row] == Status.RELEASING
        ]
        nodes = self._nodes(np.array(leaving, dtype=np.int64))
        for row, node in zip(leaving, nodes.tolist(), strict=True):
            class_ = session.classes[session.tasks.class_of[row]]
            if node >= 0 and node != session.tasks.node[row] and self._has_room(class_, node):
                expect(session, row, node)
                session.decisions.promised.add(int(session.tasks.job[row]))

    def _serve(self, job: int) -> bool:
        """One turn. True when something was placed or claimed."""
        session, transaction = self._session, Transaction(self._session)
        rows = session.groups.to_allocate(job)
        nodes = self._nodes(rows)
        mask = np.zeros(len(session.nodes), dtype=np.bool_)
        mask[nodes[nodes >= 0]] = True
        if not mask.any():
            return False
        placed = self._placer.allocate(transaction, job, mask, pipeline_only=False, real=False, rows=rows)
        if not placed and not self._hold(transaction, job, rows, nodes):
            return False
        self._placer.finish(transaction, job)
        session.decisions.promised.add(job)
        return True

    def _nodes(self, rows: TaskRows) -> NodeRows:
        """The node that each task is nominated to; -1 for none that is there."""
        index, nominated = self._session.nodes.facts.index, self._session.cluster.tasks.nominated
        found = [index.get(nominated.get(row, ""), -1) for row in rows.tolist()]
        return np.array(found, dtype=np.intp)

    def _hold(self, transaction: Transaction, job: int, rows: TaskRows, nodes: NodeRows) -> bool:
        """Claim the nominated nodes while pods leave them or keep the job away, if there will be the resources."""
        session = self._session
        if (nodes < 0).any() or not self._waits(rows, nodes):
            return False
        if not session.hooks.is_job_over_capacity(job, rows).schedulable:
            return False
        if not all(self._claim(transaction, rows[place], nodes[place]) for place in range(len(rows))):
            transaction.discard()
            return False
        return True

    def _waits(self, rows: TaskRows, nodes: NodeRows) -> bool:
        if self._session.nodes.releasing[:, nodes].any():
            return True
        pairs = zip(rows.tolist(), nodes.tolist(), strict=True)
        return any(kept_away(self._session, self._placement, row, node) for row, node in pairs)

    def _claim(self, transaction: Transaction, row: int, node: int) -> bool:
        class_ = self._session.classes[self._session.tasks.class_of[row]]
        if not self._has_room(class_, node):
            return False
        groups = None
        if class_.share is not None:
            chosen = self._placement.shares(int(row), class_, int(node), pipeline_only=True)
            if chosen is None:
                return False
            groups = [chosen[0]]
        transaction.pipeline(np.array([row]), np.array([node], dtype=np.intp), groups)
        trace_promise(self._session, int(row), int(node))
        return True

    def _has_room(self, class_: TaskClass, node: int) -> bool:
        """Whether the node has what a task requests once everything being released is free."""
        books, asked = self._session.nodes, class_.request
        future = books.allocatable[:, node] - books.used[:, node]
        future += books.releasing[:, node] - books.pipelined[:, node]
        return bool((future >= asked)[asked > 0].all())


__all__ = ["Promises"]
