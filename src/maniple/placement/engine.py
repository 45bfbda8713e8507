"""Placement: the face that actions see.

`fill` proposes nodes for up to k tasks of a class, `place` carries a proposal out in a transaction. A proposal covers as many
tasks as can be decided at once and exactly; callers ask again for the rest. Node shards split the nodes into four buckets that
are tried in order: idle and own, idle and another's, idle later and own, idle later and another's.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS, Amounts
from maniple.framework.criteria import Cells, Filter, NodeRows, Scorer, Scores
from maniple.framework.gpus import Groups
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import FITS, Code, Histogram, Verdicts, histogram
from maniple.framework.session import Session
from maniple.framework.transaction import Transaction
from maniple.objects.volcano import NodeShard
from maniple.placement.column import NOWHERE, ClassColumn
from maniple.placement.criteria import criteria_of
from maniple.placement.fill import fill
from maniple.placement.lacking import PLAIN, Lacking
from maniple.placement.shares import WHOLE, devices_in_order
from maniple.placement.stepwise import fill_stepwise

Mask = NDArray[np.bool_]
_PASSING = 256  # columns to keep of classes that were made for one session
_FARTHEST = 4096  # tasks to look ahead at most
OUTSIDE_SHARD = "node isn't in scheduler node shard"


@dataclass(slots=True, eq=False)
class Lookahead:
    """Nodes for the next tasks of a class, good for as long as nobody else touches a node."""

    column: ClassColumn
    nodes: NodeRows
    waits: Mask  # beside each node: on resources that are being released
    stamp: int  # length of the change log when this was true
    taken: int = 0

    def __len__(self) -> int:
        return len(self.nodes) - self.taken


@dataclass(slots=True, eq=False)
class Proposal:
    """Nodes for the next tasks of a class, and which of them are to wait there for resources that are being released."""

    source: Lookahead
    nodes: NodeRows
    waits: Mask

    def __len__(self) -> int:
        return len(self.nodes)


class Placement:
    """Where tasks can go in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._filters = session.hooks.filters()
        self._scorers = session.hooks.scorers()
        self._columns: dict[int, ClassColumn] = {}
        self._passing: deque[int] = deque()
        self._ahead: dict[int, Lookahead] = {}
        self._histograms: dict[int, tuple[int, Histogram]] = {}
        self._own, self._barred = _shard(session)

    @property
    def own(self) -> Mask | None:
        """Nodes of our own shard where those of others are second choice; None where all are alike."""
        return self._own

    def column(self, class_: TaskClass) -> ClassColumn:
        """The class's column, up to date."""
        column = self._columns.get(class_.number)
        if column is None:
            criteria = criteria_of(self._session, class_, self._filters, self._scorers)
            if self._barred is not None:
                np.copyto(criteria.verdict, self._barred, where=self._barred != FITS)
            column = self._columns[class_.number] = ClassColumn(self._session, class_, criteria)
            if class_.marks:
                self._forget_old(class_)
        column.refresh()
        return column

    def _forget_old(self, newest: TaskClass) -> None:
        """Classes that hold for one session only may be as many as tasks; a column is wanted while theirs are being placed."""
        self._passing.append(newest.number)
        if len(self._passing) > _PASSING:
            oldest = self._passing.popleft()
            for kept in (self._columns, self._ahead, self._histograms):
                kept.pop(oldest, None)

    # -- proposing ------------------------------------------------------------------------------------------------

    def fill(self, class_: TaskClass, count: int, within: Mask | None = None) -> Proposal | None:
        """Nodes for as many of the next `count` tasks as can be decided now; None when there is no place for one."""
        ahead = self._ahead.get(class_.number) if within is None else None
        if ahead is None or not len(ahead) or ahead.stamp != len(self._session.changes):
            ahead = self._look_ahead(class_, count, within)
            if ahead is None:
                return None
        piece = slice(ahead.taken, ahead.taken + count)
        return Proposal(ahead, ahead.nodes[piece], ahead.waits[piece])

    def _look_ahead(self, class_: TaskClass, count: int, within: Mask | None) -> Lookahead | None:
        """Decide the next tasks. More than asked for, once it shows that gangs of this class follow one another."""
        column = self.column(class_)
        spent = self._ahead.pop(class_.number, None)
        wanted = count
        own = any(one.by_domain for one in _outspoken(column))  # nobody else's tasks would go the same way
        if within is None and not own and spent is not None and not len(spent):
            wanted = max(count, min(2 * len(spent.nodes), _FARTHEST))
        for place, (later, slots, shard) in enumerate(self._buckets(column)):
            if place and column.criteria.cluster_filters:
                wanted = 1  # the next task may find that a filter has opened a node of the first choice
            mask = shard if within is None else within if shard is None else within & shard
            nodes = self._fill_bucket(column, wanted, slots, mask)
            if len(nodes):
                waits = _waiting(column, nodes) if later is None else np.full(len(nodes), later)
                ahead = Lookahead(column, nodes, waits, len(self._session.changes))
                if within is None:
                    self._ahead[class_.number] = ahead
                return ahead
        return None

    def _buckets(self, column: ClassColumn) -> Iterator[tuple[bool | None, Amounts, Mask | None]]:
        """Whether tasks wait there (None: some may), how many fit, and on which nodes; in the order in which they are tried."""
        if not self._session.idle_first:
            yield None, column.later, None
            return
        shards: tuple[Mask | None, ...] = (None,) if self._own is None else (self._own, ~self._own)
        for shard in shards:
            yield False, column.slots, shard
        if self._session.flowing:
            for shard in shards:
                yield True, column.later, shard

    def _fill_bucket(self, column: ClassColumn, count: int, slots: Amounts, mask: Mask | None) -> NodeRows:
        possible = slots > 0 if mask is None else (slots > 0) & mask
        choices = int(np.count_nonzero(possible))
        if not choices:
            return np.zeros(0, dtype=np.intp)
        # With one node to choose from, what it is worth does not matter.
        scores = np.where(possible, column.worth if choices > 1 else 0.0, NOWHERE)
        coupled = column.criteria.coupled and _is_coupled(column)
        if coupled and self._in_steps(column):
            return fill_stepwise(column, scores, slots, count, _outspoken(column))
        if not coupled and not column.criteria.relative:
            return self._choose(column, scores, slots, count, None)[0]
        candidates = np.flatnonzero(scores > NOWHERE)
        if coupled:
            count = 1
            candidates = self._admitted(column, candidates)
        if not len(candidates):
            return candidates
        shift = self._relative(column, candidates)
        total = np.full(len(scores), NOWHERE)
        total[candidates] = scores[candidates] + shift[candidates]
        nodes, exhausted = self._choose(column, total, slots, count, shift)
        return _trimmed(column, nodes, exhausted, candidates)

    def _in_steps(self, column: ClassColumn) -> bool:
        """Whether everybody who couples tasks can tell how."""
        told = all(one.steps is not None for one in column.criteria.cluster_filters)
        told = told and all(one.steps is not None for one in _outspoken(column))
        return told and "best_node" not in self._session.hooks.answered

    def _choose(
        self, column: ClassColumn, scores: Scores, slots: Amounts, count: int, shift: Scores | None
    ) -> tuple[NodeRows, Mask]:
        if "best_node" in self._session.hooks.answered:
            rows = np.flatnonzero(scores > NOWHERE)
            picked = self._session.hooks.best_node(column.class_, rows, scores[rows]) if len(rows) else None
            if picked is not None:
                only = np.full(len(scores), NOWHERE)
                only[picked] = scores[picked]
                return fill(column, only, slots, 1, shift)
            count = 1  # whoever chooses nodes is asked for every task
        return fill(column, scores, slots, count, shift)

    def _admitted(self, column: ClassColumn, candidates: NodeRows) -> NodeRows:
        """Candidates that the filters over the whole cluster let through."""
        for one in column.criteria.cluster_filters:
            if len(candidates):
                cells = Cells(column.nodes, column.class_, candidates)
                candidates = candidates[one.check(column.class_, cells) == FITS]
        return candidates

    def _relative(self, column: ClassColumn, candidates: NodeRows) -> Scores:
        """Scores that hold only among these candidates, over all nodes (zero elsewhere)."""
        sums = np.zeros(len(candidates))
        for static in column.criteria.relative:
            assert static.scorer.normalise is not None  # that is what makes it relative
            sums += static.scorer.weight * static.scorer.normalise(static.raw[candidates])
        for scorer in _outspoken(column):
            raw = scorer.raw(column.class_, Cells(column.nodes, column.class_, candidates))
            sums += scorer.weight * (raw if scorer.normalise is None else scorer.normalise(raw))
        spread = np.zeros(len(column.nodes))
        spread[candidates] = sums
        return spread

    def take_last(self, transaction: Transaction, class_: TaskClass, rows: TaskRows) -> bool:
        """Pipeline tasks onto all places that there will be for their class, if that is as many as they are: nothing is to be chosen.

        The first get the places that are idle now, as they would if each could choose.
        Not for tasks that share devices: where one of them went there may be room for another.
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

    def place(self, transaction: Transaction, rows: TaskRows, proposal: Proposal) -> None:
        """Put tasks of the proposal's class onto its nodes, the i-th task onto the i-th node, unless a plugin objects."""
        if "reserve" in self._session.hooks.answered and self._objected(rows, proposal):
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

    def _objected(self, rows: TaskRows, proposal: Proposal) -> bool:
        session, row = self._session, rows[0]
        job = int(session.tasks.job[row])
        cause = session.hooks.reserve(Event(proposal.source.column.class_, job, rows, proposal.nodes))
        if cause is not None:
            session.refusals.of_tasks(job, int(session.tasks.role[row]), rows, cause, failed=False)
        return cause is not None

    # -- explaining -----------------------------------------------------------------------------------------------

    def verdicts(
        self, class_: TaskClass, *, resources: bool = True, prepared: Verdicts | None = None
    ) -> Verdicts:
        """Why each node refuses the next task of a class; 0 where none does. `prepared` stands for what filters that count pods beforehand would say now."""
        column = self.column(class_)
        criteria, reasons = column.criteria, self._session.reasons
        verdict = criteria.verdict
        cells = Cells(column.nodes, class_)
        for one in (*criteria.node_filters, *criteria.cluster_filters):
            if prepared is None or not one.prepared:
                verdict = reasons.merge(verdict, one.check(class_, cells))
        if prepared is not None:
            verdict = reasons.merge(verdict, prepared)
        if resources and not (class_.best_effort and self._session.idle_first):
            lacking = Lacking(self._session, class_).verdicts()
            verdict = np.where(lacking != FITS, lacking, verdict)
        elif resources and not self._session.strict:
            verdict = reasons.merge(verdict, self._full())
        return verdict

    def _full(self) -> Verdicts:
        """For tasks that ask for nothing: nodes without a place for one more pod."""
        session = self._session
        number = session.reasons.number(PLAIN.format(resource=session.resources.names[PODS]))
        return np.where(session.nodes.future_idle()[PODS] < 1, number, FITS).astype(np.int16)

    def judged(self, class_: TaskClass, by: Callable[[Filter], bool]) -> Verdicts:
        """What some of the filters over the whole cluster say of each node."""
        column = self.column(class_)
        verdict, cells = np.zeros(len(column.nodes), dtype=np.int16), Cells(column.nodes, class_)
        for one in column.criteria.cluster_filters:
            if by(one):
                verdict = self._session.reasons.merge(verdict, one.check(class_, cells))
        return verdict

    def shut(self, class_: TaskClass) -> Mask:
        """Nodes that something lasting speaks against."""
        verdicts = self.verdicts(class_, resources=False)  # first: it may name new reasons
        shut: Mask = self._session.reasons.lasting()[verdicts]
        return shut

    def evictable_nodes(self, class_: TaskClass, task: int) -> NodeRows:
        """Nodes where evicting somebody could help: nothing lasting speaks, or spoke, against them. Our own shard's come first."""
        shut = self.shut(class_)
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
        worth = column.worth[nodes] + self._relative(column, nodes)[nodes] if len(nodes) else np.zeros(0)
        shard = np.zeros(len(nodes)) if self._own is None else ~self._own[nodes]
        return nodes[np.lexsort((nodes, -worth, shard))]

    def histogram(self, class_: TaskClass, within: Mask | None = None) -> Histogram:
        """The verdicts counted, of all nodes (remembered until a node changes) or of some."""
        if within is not None:
            return histogram(self._session.reasons, self.verdicts(class_)[within])
        stamp = len(self._session.changes)
        known = self._histograms.get(class_.number)
        if known is None or known[0] != stamp:
            known = (stamp, histogram(self._session.reasons, self.verdicts(class_)))
            self._histograms[class_.number] = known
        return known[1]

    def by_node(
        self, class_: TaskClass, within: Mask | None = None, *, mates: bool = False
    ) -> dict[str, str]:
        """Why each node refuses the next task of a class, with amounts. `mates`: others of its own gang are there already."""
        session, verdicts, lacking = self._session, self.verdicts(class_), Lacking(self._session, class_)
        told = {}
        for node in np.flatnonzero(verdicts if within is None else verdicts * within).tolist():
            details = lacking.details(node, mates=mates) or [session.reasons.reasons[verdicts[node]].text]
            told[session.node_name(node)] = ", ".join(details)
        return told


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


def _shard(session: Session) -> tuple[Mask | None, Verdicts | None]:
    """Our own nodes when another shard's are second choice (soft), and the verdicts when they are none (hard)."""
    shard = session.options.get("shard")
    if not shard or shard.get("mode", "none") == "none":
        return None, None
    index = session.nodes.facts.index
    named = shard["nodes"] if "nodes" in shard else _usable_nodes(session, shard.get("name", ""))
    own = np.zeros(len(session.nodes), dtype=np.bool_)
    own[[index[name] for name in named if name in index]] = True
    if shard["mode"] == "soft":
        return own, None
    number = session.reasons.number(OUTSIDE_SHARD, Code.ERROR)
    return None, np.where(own, FITS, number).astype(np.int16)


def _usable_nodes(session: Session, name: str) -> set[str]:
    """What a shard wants, without what other shards still use."""
    shards = session.cluster.all(NodeShard)
    wanted = set(shards[name].spec.nodes_desired) if name in shards else set()
    return wanted.difference(*(one.status.nodes_in_use for key, one in shards.items() if key != name))


def _is_coupled(column: ClassColumn) -> bool:
    """Whether placing one task may now change what another node is worth."""
    return bool(column.criteria.cluster_filters) or bool(_outspoken(column))


def _outspoken(column: ClassColumn) -> list[Scorer]:
    """The scorers over the whole cluster that see a difference between nodes."""
    return [one for one in column.criteria.cluster_scorers if not one.silent(column.class_)]


def _trimmed(column: ClassColumn, nodes: NodeRows, exhausted: Mask, candidates: NodeRows) -> NodeRows:
    """The sequence up to where a candidate drops out that others are measured against."""
    extreme = np.zeros(len(column.nodes), dtype=np.bool_)
    for static in column.criteria.relative:
        raw = static.raw[candidates]
        extreme[candidates[(raw == raw.max()) | (raw == raw.min())]] = True
    leaving = np.flatnonzero(exhausted & extreme[nodes])
    return nodes[: leaving[0] + 1] if len(leaving) else nodes
