"""Placing what a job needs next, all or nothing: the only way in which tasks get nodes in this profile.

allocate calls it on all nodes and for real; the solver calls it in dry runs, with `pipeline_only`, on the nodes
that it considers, and also to find places for tasks that it has evicted in the same transaction. A job is
placed group by group along its tree of sub-groups; plugins may split the nodes into sets that are tried one
after the other (`subset_nodes`), and each failed trial is undone. Inside a pod set, tasks of one class are
placed together.

The reasons for which a trial is refused count only if the job is refused in the end, and only for real
(`real`): otherwise the trial leaves no trace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

import numpy as np

from maniple.actions.placing.causes import UNTOLD, Causes, Found
from maniple.actions.placing.plain_causes import PlainCauses
from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import Status
from maniple.framework.criteria import NodeRows
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import TaskRows
from maniple.framework.reasons import POD
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.framework.traces.naming import domain_name
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.engine import Mask, Placement
from maniple.placement.tables import trace_forced, trace_proposal

_PENDING, _RELEASING = int(Status.PENDING), int(Status.RELEASING)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Nodes that may be used."""

    nodes: NodeRows
    mask: Mask | None  # None: all nodes


@dataclass(slots=True, eq=False)
class Attempt:
    """The job that is being placed, and how."""

    transaction: Transaction
    job: int
    pipeline_only: bool
    real: bool
    start: int  # operations of the transaction that were there before
    by_set: dict[int, TaskRows]  # the tasks by number of their pod set; empty when there is only one
    refusals: Refusals = field(default_factory=Refusals)  # which count only if the job is refused


class JobPlacer:
    """Places jobs in one session."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        rules = session.rules
        self._trials_pod_by_pod = rules.victims.trials_place_pod_by_pod
        self._put_back_moved = rules.victims.moved_pods_are_put_back
        self._causes = (PlainCauses if rules.words.plain else Causes)(session, placement)
        self._everywhere = Candidates(np.arange(len(session.nodes)), None)

    def allocate(
        self,
        transaction: Transaction,
        job: int,
        nodes: Mask | None,
        *,
        pipeline_only: bool,
        real: bool,
        rows: TaskRows | None = None,
    ) -> bool:
        """Place the job's next tasks, or the given ones, on the nodes.

        If that fails, the transaction is left as it was.
        """
        session = self._session
        session.hooks.pre_job_allocation(job)
        if rows is None:
            rows = session.groups.to_allocate(job, simulated=not real)
        capacity = session.hooks.is_job_over_capacity(job, rows)
        if (trace := session.traced(job, tasks=not real)) is not None:
            trace.task_order(job, rows)
            trace.asked(job, "is_job_over_capacity", capacity, job, rows)
        if not capacity.schedulable:
            if real:
                session.refusals.of_capacity(job, capacity)
            return False
        candidates = self._everywhere if nodes is None else Candidates(np.flatnonzero(nodes), nodes)
        attempt = Attempt(transaction, job, pipeline_only, real, len(transaction), self._by_set(job, rows))
        placed = self._group(attempt, session.groups.root(job), rows, candidates)
        if not placed:
            self._causes.undone()
            if real and trace is not None:
                trace.undone(job, 0, self._why(attempt))
            if real:
                session.refusals.take_over(attempt.refusals)
                for cause in attempt.refusals.jobs.get(job, ()):
                    session.refusals.of_job(job, cause)
        return placed

    def _why(self, attempt: Attempt) -> str:
        causes = attempt.refusals.jobs.get(attempt.job, ())
        return causes[0] if causes else "not all of these pods can be placed together"

    def finish(self, transaction: Transaction, job: int) -> None:
        """Commit what was placed. A gang of which a part has to wait claims all of its places; any other starts now."""
        session = self._session
        claims = session.groups.should_pipeline(job)
        if claims:
            transaction.to_pipelined(job)
        transaction.commit()
        if not claims:
            session.start(job)

    def place_on(self, transaction: Transaction, rows: TaskRows, node: int, leaving: Mask) -> bool:
        """Place tasks of one class and job on this node. False when they do not all fit.

        They get idle resources as far as these go, unless pods still leave nodes that the class's filters look at.
        """
        session = self._session
        mask = np.zeros(len(session.nodes), dtype=np.bool_)
        mask[node] = True
        class_ = session.classes[session.tasks.class_of[rows[0]]]
        far = bool(self._placement.column(class_).criteria.cluster_filters)
        waits = bool(leaving.any() if far else leaving[node])
        attempt = Attempt(transaction, int(session.tasks.job[rows[0]]), waits, False, len(transaction), {})
        return self._run(attempt, rows, Candidates(np.array([node]), mask)).cause is None

    def _by_set(self, job: int, rows: TaskRows) -> dict[int, TaskRows]:
        pod_sets = self._session.groups
        if len(pod_sets.of(job)) == 1:
            return {}
        return {one.number: rows[np.isin(rows, one.rows)] for one in pod_sets.of(job)}

    # -- groups and nodes -----------------------------------------------------------------------------------------

    def _node_sets(
        self, attempt: Attempt, group: Group | PodSet, rows: TaskRows, candidates: Candidates
    ) -> Iterator[Candidates]:
        for nodes in self._session.hooks.subset_nodes(group, rows, attempt.refusals, candidates.nodes):
            if nodes is candidates.nodes:
                yield candidates
                continue
            mask = np.zeros(len(self._session.nodes), dtype=np.bool_)
            mask[nodes] = True
            yield Candidates(nodes, mask)

    def _group(self, attempt: Attempt, group: Group, rows: TaskRows, candidates: Candidates) -> bool:
        transaction = attempt.transaction
        for some in self._node_sets(attempt, group, rows, candidates):
            checkpoint = transaction.checkpoint()
            placed = self._group_on(attempt, group, rows, some)
            if self._session.trace is not None:
                self._tell_domain(attempt, group, candidates, some, fits=placed)
            if placed:
                return True
            transaction.rollback(checkpoint)
        return False

    def _tell_domain(
        self, attempt: Attempt, part: Group | PodSet, candidates: Candidates, some: Candidates, *, fits: bool
    ) -> None:
        trace = self._session.trace
        if trace is not None and some is not candidates and trace.follows(attempt.job):
            trace.domain(
                attempt.job, part.name, domain_name(self._session, some.nodes), len(some.nodes), fits
            )

    def _group_on(self, attempt: Attempt, group: Group, rows: TaskRows, candidates: Candidates) -> bool:
        """The groups inside first, then the pods that belong to this one itself."""
        hooks = self._session.hooks
        sets = group.groups
        if len(sets) > 1:
            sets = sorted(sets, key=lambda one: (*hooks.sub_group_order(one), one.name))
        for inner in sets:
            own = [attempt.by_set.get(one.number, rows) for one in inner.all_pod_sets()]
            inside = rows[np.isin(rows, np.concatenate(own))]
            if not self._group(attempt, inner, inside, candidates):
                return False
        return all(
            self._pod_set(attempt, one, attempt.by_set.get(one.number, rows), candidates)
            for one in self._session.groups.in_order(group.pod_sets)
        )

    def _pod_set(self, attempt: Attempt, pod_set: PodSet, rows: TaskRows, candidates: Candidates) -> bool:
        transaction = attempt.transaction
        for some in self._node_sets(attempt, pod_set, rows, candidates):
            checkpoint = transaction.checkpoint()
            placed = self._tasks(attempt, pod_set, rows, some)
            if self._session.trace is not None:
                self._tell_domain(attempt, pod_set, candidates, some, fits=placed)
            if placed:
                return True
            transaction.rollback(checkpoint)
        return False

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _tasks(self, attempt: Attempt, pod_set: PodSet, rows: TaskRows, candidates: Candidates) -> bool:
        """Tasks in their order, all or nothing."""
        placed, turn, runs = 0, 0, self._runs(rows)
        while turn < len(runs):
            run = runs[turn]
            found = self._run(attempt, run, candidates)
            placed, turn = placed + found.count, turn + 1
            if found.cause is not None:
                if attempt.real:
                    self._causes.note(attempt.refusals, pod_set, int(run[found.count]), found, placed)
                return False
            # Once the first has a place: where there is none for a gang, one look shows it.
            if turn == 1:
                together = self._place_each(attempt, runs[1:], candidates)
                placed, turn = placed + together, turn + together
        return True

    def _place_each(self, attempt: Attempt, runs: list[TaskRows], candidates: Candidates) -> int:
        """Place tasks that all differ on nodes that are decided together; how many of the first.

        Not while the job is traced: the table of a task is made when its turn comes. The nodes are the same.
        """
        session = self._session
        if attempt.pipeline_only or candidates.mask is not None or len(runs) < 2 or max(map(len, runs)) > 1:
            return 0
        if session.traced(attempt.job, tasks=True) is not None:
            return 0
        rows = np.concatenate(runs)
        classes = [session.classes[number] for number in session.tasks.class_of[rows].tolist()]
        found = self._placement.fill_mixed(classes, refusals_last=False)
        if found is None:
            return 0
        admitted = takewhile(lambda class_: session.hooks.pre_predicate(class_) is None, classes)
        count = min(len(found.nodes), len(list(admitted)))
        if count:
            attempt.transaction.allocate_each(rows[:count], found.nodes[:count])
        return count

    def _runs(self, rows: TaskRows) -> list[TaskRows]:
        """Tasks that follow one another, are of one class, and all wait, or are all evicted."""
        classes: list[int] = self._session.tasks.class_of[rows].tolist()
        states: list[int] = self._session.tasks.status[rows].tolist()
        count = len(classes)
        if not count or (classes.count(classes[0]) == count and states.count(states[0]) == count):
            return [rows] if count else []
        kinds = list(zip(classes, states, strict=True))
        ends = [place for place in range(1, count) if kinds[place] != kinds[place - 1]]
        return [rows[start:stop] for start, stop in pairwise([0, *ends, count])]

    def _run(self, attempt: Attempt, rows: TaskRows, candidates: Candidates) -> Found:
        """Place a run. How many found a place, and why the next did not."""
        session, causes, real = self._session, self._causes, attempt.real
        class_ = session.classes[session.tasks.class_of[rows[0]]]
        refused = session.hooks.pre_predicate(class_)
        trace = session.traced(attempt.job, tasks=True)
        if refused is not None:
            if trace is not None:
                trace.asked(attempt.job, "pre_predicate", refused, class_)
            return Found(0, refused.text.replace(POD, session.task_key(int(rows[0]))))
        if candidates.mask is None and (known := causes.remembered(class_, len(rows), real=real)) is not None:
            if trace is not None:
                self._trace_run(rows, candidates)
            return known
        rows = rows.copy()  # they may change places
        untouched, done = len(attempt.transaction) == attempt.start, 0
        while done < len(rows):
            step = self._step(attempt, class_, rows[done:], candidates)
            if isinstance(step, Found):
                return Found(done + step.count, step.cause, step.counted)
            if not step:
                if trace is not None:
                    trace_proposal(session, self._placement, rows[done:], None, candidates.mask)
                cause = (
                    causes.no_node(class_, candidates.mask, mates=done > 0 or not untouched)
                    if real
                    else UNTOLD
                )
                if untouched and candidates.mask is None:
                    causes.remember(class_, done, cause)
                return Found(done, cause)
            done += step
        return Found(done)

    def _trace_run(self, rows: TaskRows, candidates: Candidates) -> None:
        """Too few places are known to be left: record the places that there are, and why there are no more."""
        session, placement = self._session, self._placement
        class_ = session.classes[session.tasks.class_of[rows[0]]]
        proposal = placement.fill(class_, len(rows), candidates.mask)
        trace_proposal(session, placement, rows, proposal, candidates.mask, short=True)

    def _step(
        self, attempt: Attempt, class_: TaskClass, rows: TaskRows, candidates: Candidates
    ) -> int | Found:
        """Place as many of the next tasks as can be decided at once: how many; or that they cannot all be placed."""
        if class_.share is not None:
            return self._share(attempt, class_, rows[:1], candidates)
        if self._forced(attempt, class_, rows, candidates):
            return len(rows)
        if attempt.pipeline_only and self._trials_pod_by_pod:
            # Claims leave what is idle idle, and scores see it; a step for several would take it for used.
            rows = rows[:1]
        proposal = self._placement.fill(class_, len(rows), candidates.mask)
        if proposal is None:
            return 0
        come_back = self._session.tasks.status[rows[0]] == _RELEASING
        if come_back and not self._trials_pod_by_pod:
            self._put_first(rows[: len(proposal)], int(proposal.nodes[0]))
        if self._session.traced(attempt.job, tasks=True) is not None:
            fewer = len(proposal) < len(rows)
            trace_proposal(self._session, self._placement, rows, proposal, candidates.mask, short=fewer)
        if len(proposal) < len(rows):
            short = self._causes.shortage(class_, len(rows), candidates.mask, real=attempt.real)
            if short is not None:
                return short
            rows = rows[: len(proposal)]
        if come_back:
            rows = self._of_first_node(rows, proposal.nodes)
            self._put_back(attempt, rows, proposal.nodes[: len(rows)])
        elif attempt.pipeline_only:
            attempt.transaction.pipeline(rows, proposal.nodes)
        else:
            self._placement.place(attempt.transaction, rows, proposal, attempt.refusals)
        return len(rows)

    def _put_first(self, rows: TaskRows, node: int) -> None:
        """Tasks that were on a node before come first: all of them are alike."""
        stays = self._session.tasks.node[rows] == node
        rows[:] = np.concatenate([rows[stays], rows[~stays]])

    def _of_first_node(self, rows: TaskRows, nodes: NodeRows) -> TaskRows:
        """The tasks that come back to the first of their nodes.

        What they leave idle stays idle, and scores see it: where the rest goes is decided anew.
        """
        if self._trials_pod_by_pod:
            return rows
        elsewhere = np.flatnonzero(nodes != nodes[0])
        return rows[: elsewhere[0]] if len(elsewhere) else rows

    def _forced(self, attempt: Attempt, class_: TaskClass, rows: TaskRows, candidates: Candidates) -> bool:
        """Take all places that are left, where a dry run needs exactly these: what they are worth does not matter."""
        if not attempt.pipeline_only or candidates.mask is not None or self._trials_pod_by_pod:
            return False
        waiting = self._session.tasks.status[rows[0]] == _PENDING
        if not waiting or not self._placement.take_last(attempt.transaction, class_, rows):
            return False
        if self._session.traced(attempt.job, tasks=True) is not None:
            trace_forced(self._session, rows)
        return True

    def _put_back(self, attempt: Attempt, rows: TaskRows, nodes: NodeRows) -> None:
        """Tasks that were evicted in this transaction: those that get the node they are on simply stay.

        With `victims.moved_pods_are_put_back` also one that gets a node which it has left before: what is being
        released there is taken for the task itself.
        """
        own = self._session.tasks.node[rows]
        if not self._put_back_moved:
            nodes = _at_home(own.tolist(), nodes)
        stay = own == nodes
        if self._put_back_moved and self._session.moved:
            stay |= self._left_before(rows, nodes)
        if stay.any():
            attempt.transaction.restore(rows[stay])
        if not stay.all():
            attempt.transaction.move(rows[~stay], nodes[~stay])

    def _left_before(self, rows: TaskRows, nodes: NodeRows) -> Mask:
        moved = self._session.moved
        places = zip(rows.tolist(), nodes.tolist(), strict=True)
        return np.array(
            [node in (left for left, _ in moved.get(row, ())) for row, node in places], dtype=np.bool_
        )

    def _share(self, attempt: Attempt, class_: TaskClass, row: TaskRows, candidates: Candidates) -> int:
        """Place a task that requests part of a GPU on the best node with suitable devices. 1 if there was one."""
        session, transaction, mask = self._session, attempt.transaction, candidates.mask
        while (proposal := self._placement.fill(class_, 1, mask)) is not None:
            node = int(proposal.nodes[0])
            if session.traced(attempt.job, tasks=True) is not None:
                trace_proposal(session, self._placement, row, proposal, mask)
            chosen = self._placement.shares(int(row[0]), class_, node, pipeline_only=attempt.pipeline_only)
            if chosen is None:
                mask = np.ones(len(session.nodes), dtype=np.bool_) if mask is None else mask.copy()
                mask[node] = False
                continue
            groups, waits = chosen
            if session.tasks.status[row[0]] == _RELEASING:
                here = int(session.tasks.node[row[0]]) == node
                if here and session.gpus.groups_of.get(int(row[0])) == groups:
                    transaction.restore(row)
                else:
                    transaction.move(row, proposal.nodes, [groups])
            elif waits or proposal.waits[0] or attempt.pipeline_only:
                transaction.pipeline(row, proposal.nodes, [groups])
            else:
                transaction.allocate(row, proposal.nodes, [groups])
            return 1
        return 0


def _at_home(own: list[int], nodes: NodeRows) -> NodeRows:
    """The same nodes for tasks that are alike, handed out so that as many as possible stay where they are."""
    free: dict[int, int] = {}
    for node in nodes.tolist():
        free[node] = free.get(node, 0) + 1
    given = np.full(len(nodes), -1, dtype=np.intp)
    for place, node in enumerate(own):
        if free.get(node, 0):
            given[place] = node
            free[node] -= 1
    rest = [node for node, count in free.items() for _ in range(count)]
    given[given < 0] = rest
    return given


__all__ = ["JobPlacer"]
