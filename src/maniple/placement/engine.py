"""Placement: the interface that actions use.

`fill` proposes nodes for up to k tasks of a class, `place` carries a proposal out in a transaction. A
proposal covers as many tasks as can be decided at once and exactly; callers ask again for the rest. Node
shards split the nodes into four buckets that are tried in order: idle and own, idle and another's, idle later
and own, idle later and another's.
"""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, NodeRows, Scorer, Scores
from maniple.framework.devices.gpus import Groups
from maniple.framework.groups.tree import Progress
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import FITS
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.placement.column import ClassColumn
from maniple.placement.criteria import Criteria, CriteriaTable
from maniple.placement.fill import Filled, fill
from maniple.placement.judging import Judging
from maniple.placement.lookahead import Foreseen, Lookahead, Proposal
from maniple.placement.mixed import MixedFill, fill_mixed
from maniple.placement.shards import shard_of
from maniple.placement.shares import WHOLE, devices_in_order
from maniple.placement.stepwise import fill_stepwise

Mask = NDArray[np.bool_]
_PASSING = 256  # columns to keep of classes that were made for one session
_FARTHEST = 4096  # tasks to look ahead at most


class Placement:
    """Where tasks can go in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns: dict[int, ClassColumn] = {}
        self._passing: deque[int] = deque()
        self._ahead: dict[int, Lookahead] = {}
        self._own, barred = shard_of(session)
        self._criteria = CriteriaTable(session, barred)
        self.judging = Judging(session, self)

    @property
    def criteria_table(self) -> CriteriaTable:
        return self._criteria

    @property
    def own(self) -> Mask | None:
        """Nodes of our own shard where those of others are second choice; None where all are alike."""
        return self._own

    def column(self, class_: TaskClass) -> ClassColumn:
        """The class's column, up to date."""
        column = self._column(class_)
        column.refresh()
        return column

    def has_column(self, class_: TaskClass) -> bool:
        return class_.number in self._columns

    def criteria(self, class_: TaskClass) -> Criteria:
        """What is asked of nodes for a class."""
        shared = class_.number not in self._columns and self._criteria.shares(class_)
        return self._criteria.of(class_) if shared else self._column(class_).criteria

    def _column(self, class_: TaskClass) -> ClassColumn:
        """The class's column as of the last look."""
        column = self._columns.get(class_.number)
        if column is None:
            criteria = self._criteria.of(class_)
            column = self._columns[class_.number] = ClassColumn(self._session, class_, criteria)
            if class_.marks:
                self._forget_old(class_)
        return column

    def _forget_old(self, newest: TaskClass) -> None:
        """Drop the columns of the oldest classes made for this session only.

        There may be as many such classes as tasks; a column is needed only while tasks of its class are being
        placed.
        """
        self._passing.append(newest.number)
        if len(self._passing) > _PASSING:
            oldest = self._passing.popleft()
            for kept in (self._columns, self._ahead):
                kept.pop(oldest, None)

    # -- proposing ------------------------------------------------------------------------------------------------

    def fill(
        self,
        class_: TaskClass,
        count: int,
        within: Mask | None = None,
        beside: Progress | None = None,
    ) -> Proposal | None:
        """Nodes for as many of the next `count` tasks as can be decided now; None when there is no place for one.

        `beside`: where the pod set is so far, for scorers that look at it.
        """
        ahead = self._ahead.get(class_.number) if within is None else None
        if ahead is None or not len(ahead) or not self._holds(ahead):
            ahead = self._look_ahead(class_, count, within, beside)
            if ahead is None:
                return None
        piece = slice(ahead.taken, ahead.taken + count)
        return Proposal(ahead, ahead.nodes[piece], ahead.waits[piece])

    def _holds(self, ahead: Lookahead) -> bool:
        """Whether some of what was foreseen is still right; the rest is dropped."""
        session = self._session
        if ahead.stamp == len(session.changes):
            return True
        if ahead.turns is None or ahead.column is None:
            return False
        ahead.column.refresh()
        idle_first = session.rules.placing.idle_before_releasing
        slots = ahead.column.slots if idle_first else ahead.column.later
        return ahead.catch_up(session.changes, slots)

    def _look_ahead(
        self, class_: TaskClass, count: int, within: Mask | None, beside: Progress | None
    ) -> Lookahead | None:
        """Decide the next tasks. More than asked for, once it shows that gangs of this class follow one another."""
        column = self.column(class_)
        spent = self._ahead.pop(class_.number, None)
        wanted = count
        scorers = outspoken(column.criteria, class_, beside)
        own = any(one.by_domain for one in scorers)  # tasks of others would not go the same way
        if within is None and not own and spent is not None and not len(spent):
            wanted = max(count, min(2 * len(spent.nodes), _FARTHEST))
        for place, (later, slots, shard) in enumerate(self.buckets(column)):
            if place and column.criteria.cluster_filters:
                wanted = 1  # the next task may find that a filter has opened a node of the first choice
            mask = shard if within is None else within if shard is None else within & shard
            nodes, turns, _ = self._fill_bucket(column, wanted, slots, mask, scorers)
            if len(nodes):
                waits = _waiting(column, nodes) if later is None else np.full(len(nodes), later)
                # Where other nodes come first, what becomes of those decides too.
                turns = turns if mask is None and not later else None
                ahead = Lookahead(column, nodes, waits, len(self._session.changes), turns)
                if within is None:
                    self._ahead[class_.number] = ahead
                return ahead
        return None

    def foresee(self, rows: TaskRows, *, refusals_last: bool) -> Foreseen | None:
        """Nodes for consecutive tasks, each of another class, decided together; None where they cannot be."""
        if len(rows) < 2:
            return None
        session = self._session
        classes = [session.classes[number] for number in session.tasks.class_of[rows].tolist()]
        found = self.fill_mixed(classes, refusals_last=refusals_last)
        if found is None:
            return None
        waits = np.zeros(len(found.nodes), dtype=np.bool_)
        ahead = Lookahead(None, found.nodes, waits, len(session.changes), None)
        return Foreseen(rows, ahead, found.left)

    def fill_mixed(self, classes: list[TaskClass], *, refusals_last: bool) -> MixedFill | None:
        """Nodes for consecutive tasks, one of each class, as `mixed.fill_mixed` has it; None where that cannot be.

        It can for tasks on idle resources that differ in amounts only, if no plugin has a say about each task and
        nothing but single nodes decides.
        """
        session, first = self._session, classes[0]
        if session.flowing or self._own is not None or {"best_node", "reserve"} & session.hooks.answered:
            return None
        criteria = self._criteria.of(first)
        if not all(_differs_in_amounts(one, first) and self._criteria.of(one) is criteria for one in classes):
            return None
        if not criteria.all_compiled or any(outspoken(criteria, one, None) for one in classes):
            return None
        return fill_mixed(session, classes, criteria, refusals_last=refusals_last)

    def buckets(self, column: ClassColumn) -> Iterator[tuple[bool | None, Amounts, Mask | None]]:
        """In the order of trial: whether tasks wait there (None: some may), how many fit, and on which nodes."""
        if not self._session.rules.placing.idle_before_releasing:
            yield None, column.later, None
            return
        shards: tuple[Mask | None, ...] = (None,) if self._own is None else (self._own, ~self._own)
        for shard in shards:
            yield False, column.slots, shard
        if self._session.flowing:
            for shard in shards:
                yield True, column.later, shard

    def _fill_bucket(
        self,
        column: ClassColumn,
        count: int,
        slots: Amounts,
        mask: Mask | None,
        scorers: list[Scorer],
    ) -> Filled:
        """`scorers`: those over the whole cluster that see a difference between nodes."""
        candidates = (slots > 0 if mask is None else (slots > 0) & mask).nonzero()[0]
        choices = len(candidates)
        if not choices:
            return Filled(candidates)
        # With one node to choose from, what it is worth does not matter.
        scores = column.worth(candidates) if choices > 1 else np.zeros(1)
        coupled = bool(column.criteria.cluster_filters or scorers)
        if coupled and self.in_steps(column, scorers):
            return Filled(fill_stepwise(column, candidates, scores, slots, count, scorers))
        if not coupled and not column.criteria.relative:
            found = self._choose(column, candidates, scores, slots, count, None)
            alone = choices > 1 and "best_node" not in self._session.hooks.answered
            return found if alone else Filled(found.nodes)
        if coupled:
            count = 1
            admitted = self._admitted(column, candidates)
            if len(admitted) < choices:
                scores = scores[np.searchsorted(candidates, admitted)]
                candidates = admitted
        if not len(candidates):
            return Filled(candidates)
        shift = self.relative(column, candidates, scorers)
        found = self._choose(column, candidates, scores + shift, slots, count, shift)
        return Filled(_trimmed(column, found, candidates))

    def in_steps(self, column: ClassColumn, scorers: list[Scorer]) -> bool:
        """Whether all filters and scorers that couple tasks can tell how."""
        told = all(one.steps is not None for one in column.criteria.cluster_filters)
        told = told and all(one.steps is not None for one in scorers)
        return told and "best_node" not in self._session.hooks.answered

    def _choose(
        self,
        column: ClassColumn,
        rows: NodeRows,
        scores: Scores,
        slots: Amounts,
        count: int,
        shift: Scores | None,
    ) -> Filled:
        """Nodes out of some rows, given with their scores."""
        if "best_node" in self._session.hooks.answered:
            picked = self._session.hooks.best_node(column.class_, rows, scores)
            if picked is not None:
                return Filled(np.array([picked], dtype=np.intp))
            count = 1  # a plugin that chooses nodes is asked for every task
        return fill(column, rows, scores, slots, count, shift)

    def _admitted(self, column: ClassColumn, candidates: NodeRows) -> NodeRows:
        """Candidates that the filters over the whole cluster let through."""
        for one in column.criteria.cluster_filters:
            if len(candidates):
                cells = Cells(column.nodes, column.class_, candidates)
                candidates = candidates[one.check(column.class_, cells) == FITS]
        return candidates

    def relative(self, column: ClassColumn, candidates: NodeRows, scorers: list[Scorer]) -> Scores:
        """Scores that hold only among these candidates."""
        sums = np.zeros(len(candidates))
        for static in column.criteria.relative:
            assert static.scorer.normalise is not None  # that is what makes it relative
            sums += static.scorer.weight * static.scorer.normalise(static.raw[candidates])
        for scorer in scorers:
            raw = scorer.raw(column.class_, Cells(column.nodes, column.class_, candidates))
            sums += scorer.weight * (raw if scorer.normalise is None else scorer.normalise(raw))
        return sums

    def take_last(self, transaction: Transaction, class_: TaskClass, rows: TaskRows) -> bool:
        """Pipeline tasks onto all places that there will be for their class, if there are exactly as many as tasks.

        There is no choice to make then. The first tasks get the places that are idle now, as they would if
        each could choose. Not for tasks that share devices: where one of them went there may be room for
        another.
        """
        column = self.column(class_)
        if column.room != len(rows) or column.criteria.cluster_filters:
            return False
        where = column.later.nonzero()[0]
        room = column.later[where]
        nodes = where.repeat(room)
        extra = np.arange(len(rows)) - (room.cumsum() - room).repeat(room)
        if not column.fits_all(Cells(column.nodes, class_, nodes, extra)):
            return False
        idle = column.slots[where]
        transaction.pipeline(rows, np.concatenate([where.repeat(idle), where.repeat(room - idle)]))
        column.exhausted(where)
        return True

    # -- carrying out ---------------------------------------------------------------------------------------------

    def place(self, transaction: Transaction, rows: TaskRows, proposal: Proposal, refusals: Refusals) -> None:
        """Put the i-th task of the proposal's class onto the proposal's i-th node, unless a plugin objects."""
        if "reserve" in self._session.hooks.answered and self._objected(rows, proposal, refusals):
            return
        source, changes = proposal.source, self._session.changes
        current, waits = source.stamp == len(changes), proposal.waits
        if not waits.any():
            transaction.allocate(rows, proposal.nodes)
            steps = 1
        elif waits.all():
            transaction.pipeline(rows, proposal.nodes)
            steps = 1
        else:
            transaction.allocate(rows[~waits], proposal.nodes[~waits])
            transaction.pipeline(rows[waits], proposal.nodes[waits])
            steps = 2
        if current and len(changes) == source.stamp + steps:
            # The only changes are the ones that were foreseen, so what else was foreseen still holds.
            source.stamp += steps
            source.taken += len(rows)

    def shares(
        self, row: int, class_: TaskClass, node: int, *, pipeline_only: bool
    ) -> tuple[Groups, bool] | None:
        """Devices of a node for a task that asks for parts of some, and whether it has to wait for them."""
        gpus, devices = self._session.gpus, devices_in_order(self._session, class_, node)
        if devices is None:
            return None
        column = self.column(class_)
        idle_now = bool(column.slots[node]) and not pipeline_only
        chosen: list[str] = []
        waits = False
        for device in devices:
            if device == WHOLE:
                waits |= not idle_now
                chosen.append(gpus.new_name(row, node, chosen))
            else:
                waits |= not (bool(column.slots[node]) and gpus.fits_now(class_, node, device))
                chosen.append(device)
        return tuple(chosen), waits

    def _objected(self, rows: TaskRows, proposal: Proposal, refusals: Refusals) -> bool:
        session, row = self._session, rows[0]
        job = int(session.tasks.job[row])
        class_ = session.classes[session.tasks.class_of[row]]
        cause = session.hooks.reserve(Event(class_, job, rows, proposal.nodes))
        if cause is not None:
            refusals.of_tasks(job, int(session.tasks.role[row]), rows, cause, failed=False)
        return cause is not None

    # -- looking for nodes ----------------------------------------------------------------------------------------

    def evictable_nodes(self, class_: TaskClass, task: int) -> NodeRows:
        """Nodes where evictions could help: not rejected, now or before, for a lasting reason.

        Nodes of our own shard come first.
        """
        shut = self.judging.shut(class_)
        before = self._session.refusals.ruled_out.get(task)
        nodes = np.flatnonzero(~(shut if before is None else shut | before))
        return nodes if self._own is None else nodes[np.argsort(~self._own[nodes], kind="stable")]

    def by_shard(self, nodes: NodeRows) -> list[NodeRows]:
        """Nodes of our own shard, then those of others; all together where there are no shards."""
        parts = [nodes] if self._own is None else [nodes[self._own[nodes]], nodes[~self._own[nodes]]]
        return [part for part in parts if len(part)]

    def by_score(self, class_: TaskClass, nodes: NodeRows) -> NodeRows:
        """Nodes by what they are worth for the next task, the best first; each shard for itself."""
        column = self.column(class_)
        worth = (
            column.worth(nodes) + self.relative(column, nodes, outspoken(column.criteria, class_, None))
            if len(nodes)
            else np.zeros(0)
        )
        shard = np.zeros(len(nodes)) if self._own is None else ~self._own[nodes]
        return nodes[np.lexsort((nodes, -worth, shard))]


def _waiting(column: ClassColumn, nodes: NodeRows) -> Mask:
    """Which tasks come after a node has given away what is idle there, or wait for what a filter knows of."""
    waits = np.zeros(len(nodes), dtype=np.bool_)
    for one in column.criteria.cluster_filters:
        if one.waits is not None:
            waits |= one.waits(column.class_, Cells(column.nodes, column.class_, nodes))
    if column.later is column.slots:
        return waits
    order = np.argsort(nodes, kind="stable")
    placed = nodes[order]
    first = np.searchsorted(placed, placed)
    waits[order] |= np.arange(len(nodes)) - first >= column.slots[placed]
    return waits


def _differs_in_amounts(one: TaskClass, other: TaskClass) -> bool:
    """Whether two classes request the same resources, and none of them parts of devices or next to nothing."""
    if one.share is not None or one.best_effort:
        return False
    return one.spec.kind == other.spec.kind or bool(((one.request > 0) == (other.request > 0)).all())


def outspoken(criteria: Criteria, class_: TaskClass, beside: Progress | None) -> list[Scorer]:
    """The scorers over the whole cluster that see a difference between nodes."""
    scorers: Iterable[Scorer] = criteria.cluster_scorers
    if beside is None:
        scorers = (one for one in scorers if one.beside is None)
    else:
        scorers = (one if one.beside is None else one.beside(beside) for one in scorers)
    return [one for one in scorers if not one.silent(class_)]


def _trimmed(column: ClassColumn, found: Filled, candidates: NodeRows) -> NodeRows:
    """The sequence up to where a candidate drops out that others are measured against."""
    nodes, exhausted = found.nodes, found.exhausted
    if exhausted is None:
        return nodes
    extreme = np.zeros(len(column.nodes), dtype=np.bool_)
    for static in column.criteria.relative:
        raw = static.raw[candidates]
        extreme[candidates[(raw == raw.max()) | (raw == raw.min())]] = True
    leaving = np.flatnonzero(exhausted & extreme[nodes])
    return nodes[: leaving[0] + 1] if len(leaving) else nodes
