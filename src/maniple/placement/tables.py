"""What every filter and scorer says of every node for one task: the table of a trace.

Called by the places that carry a proposal of `engine.py` out, only for jobs that are traced. A proposal covers several
tasks of a class; the table of each of them has those before it imagined on their nodes, as gang fill has them. The
sums are worked out by the engine's own functions, so that the best node of a table is the one that was proposed.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.framework.criteria import Cells, Filter, Gate, NodeRows, Scorer, Scores, Stepper
from maniple.framework.groups.tree import Progress
from maniple.framework.points import TaskRows
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session
from maniple.framework.traces.events import Bucket, NodeScore, Refused, ScorePart, TaskTried
from maniple.framework.traces.recorder import Depth, Recorder
from maniple.placement.engine import Mask, Placement, outspoken
from maniple.placement.lacking import Lacking
from maniple.placement.lookahead import Proposal

RESOURCES = "resources"
SHARDS = "shards"
NOT_CONSIDERED = "not among the nodes that are considered here"
CLOSED_BY_MATES = "not beside the pods of its own job that were placed just before"
NO_ROOM = "no room for one more pod of this kind"
LATER = "fits only once other pods have left"
OTHER_CHOICE = "second choice: a node of a better bucket fits"
_BEST = 10  # nodes with their scores
_EXAMPLES = 3  # nodes of a refusal
_TABLES = 16  # tasks of a run that get one
_IDLE, _SOON, _OTHERS = "idle now", "idle once other pods have left", " in other shards"


class Tables:
    """The tables of consecutive tasks of one class; `take` imagines one on a node."""

    def __init__(
        self,
        session: Session,
        placement: Placement,
        class_: TaskClass,
        within: Mask | None,
        beside: Progress | None,
    ) -> None:
        self._session = session
        self._placement = placement
        self._class = class_
        self._within = within
        self._column = placement.column(class_)
        self._scorers = outspoken(self._column.criteria, self._column.class_, beside)
        self._extra: Amounts = np.zeros(len(session.nodes), dtype=np.int64)
        self._taken = 0
        self._all: NodeRows = np.arange(len(session.nodes))
        self._static = placement.criteria_table.static_verdicts(class_)
        self._gates: dict[str, Gate] = {}
        self._steppers: dict[str, Stepper] = {}
        self._base = self._possible(placement.column(class_).later)  # rows that gates and steppers know
        self._places = self._base.nonzero()[0]
        if placement.in_steps(self._column, self._scorers) and len(self._places):
            self._start_steps()

    def _start_steps(self) -> None:
        rows = self._places
        for one in self._column.criteria.cluster_filters:
            if one.steps is not None:
                self._gates[one.name] = one.steps(self._class, rows)
        for scorer in self._scorers:
            if scorer.steps is not None:
                self._steppers[scorer.name] = scorer.steps(self._class, rows)

    def take(self, node: int) -> None:
        """The last task went there."""
        self._extra[node] += 1
        self._taken += 1
        place = int(np.searchsorted(self._places, node))
        if place < len(self._places) and self._places[place] == node:
            for gate in self._gates.values():
                gate.take(place)
            for stepper in self._steppers.values():
                stepper.take(place)

    # -- filters ------------------------------------------------------------------------------------------------------

    def _cells(self, rows: NodeRows) -> Cells:
        return Cells(self._session.nodes, self._class, rows, self._extra[rows])

    def _possible(self, slots: Amounts) -> Mask:
        """Nodes with room for one more, as far as nodes are looked at one by one."""
        possible: Mask = slots > self._extra
        if self._within is not None:
            possible = possible & self._within
        self._column.rule_out(self._cells(self._all), possible)
        return possible

    def _of_filters(self) -> Iterator[tuple[Filter, Verdicts]]:
        yield from self._static
        for one in self._column.criteria.node_filters:
            yield one, one.check(self._class, self._cells(self._all))
        for one in self._column.criteria.cluster_filters:
            verdicts = np.asarray(one.check(self._class, self._cells(self._all)))
            gate = self._gates.get(one.name)
            if gate is not None and self._taken:
                verdicts = verdicts.copy()
                shut = self._places[~gate.fits()]
                verdicts[self._places] = FITS
                closed = self._session.reasons.number(CLOSED_BY_MATES)
                before = np.asarray(one.check(self._class, Cells(self._session.nodes, self._class)))
                verdicts[shut] = np.where(before[shut] == FITS, closed, before[shut])
            yield one, verdicts

    def _admitted(self, possible: Mask, verdicts: list[tuple[Filter, Verdicts]]) -> Mask:
        coupled = {one.name for one in self._column.criteria.cluster_filters}
        for one, verdict in verdicts:
            if one.name in coupled:
                possible = possible & (verdict == FITS)
        return possible

    def _bucketed(self, verdicts: list[tuple[Filter, Verdicts]]) -> tuple[list[Bucket], Mask]:
        """The buckets up to the first that has a candidate, and the candidates."""
        buckets, chosen = [], np.zeros(len(self._all), dtype=np.bool_)
        for later, slots, shard in self._placement.buckets(self._column):
            possible = self._possible(slots)
            if shard is not None:
                possible = possible & shard
            chosen = self._admitted(possible, verdicts)
            others = shard is not None and self._placement.own is not shard
            name = (_SOON if later is not False else _IDLE) + (_OTHERS if others else "")
            buckets.append(Bucket(name, int(chosen.sum())))
            if chosen.any():
                break
        return buckets, chosen

    # -- the table ----------------------------------------------------------------------------------------------------

    def of(
        self, trace: Recorder, row: int, node: int, *, waits: bool = False, looked: bool = False
    ) -> TaskTried:
        """The table of the next task, which got this node, or none (-1)."""
        session, class_ = self._session, self._class
        verdicts = list(self._of_filters())
        buckets, chosen = self._bucketed(verdicts)
        candidates = chosen.nonzero()[0]
        totals = self._totals(candidates, chosen) if len(candidates) else np.zeros(0)
        deep = trace.depth >= Depth.NODES
        resources = session.resources
        return TaskTried(
            job=session.job_key(int(session.tasks.job[row])),
            pod=session.task_key(row),
            request={
                name: resources.written(place, int(class_.request[place]))
                for place, name in enumerate(resources.names)
                if class_.request[place]
            },
            nodes=len(self._all),
            within=len(self._all) if self._within is None else int(self._within.sum()),
            candidates=len(candidates),
            buckets=tuple(buckets),
            refused=tuple(self._refused(trace, verdicts, chosen)),
            scores=tuple(self._scored(trace, candidates, totals, chosen)) if deep else (),
            best=session.node_name(int(candidates[totals.argmax()])) if len(candidates) else "",
            node=session.node_name(node) if node >= 0 else "",
            waits=waits,
            looked=looked,
        )

    def _refused(
        self, trace: Recorder, verdicts: list[tuple[Filter, Verdicts]], chosen: Mask
    ) -> Iterator[Refused]:
        """Every refusal of every filter; each node that is no candidate has at least one."""
        session, table = self._session, self._placement.criteria_table
        open_ = chosen.copy()
        inside = self._within if self._within is not None else np.ones(len(self._all), dtype=np.bool_)
        if not inside.all():
            outside = self._refusal(trace, "", "nodes", NOT_CONSIDERED, ~inside)
            yield msgspec.structs.replace(outside, outside=True)
            open_ |= ~inside
        if table.barred is not None and (barred := (table.barred != FITS) & inside).any():
            yield from self._by_reason(trace, SHARDS, SHARDS, np.where(barred, table.barred, FITS))
            open_ |= barred
        free = session.nodes.future_idle() - self._extra * self._class.request[:, None]
        lacking = Lacking(session, self._class, free)
        for resource, mask in (
            lacking.by_resource().items() if self._placement.judging.counts(self._class) else ()
        ):
            if (short := mask & inside).any():
                yield self._refusal(
                    trace, "", RESOURCES, f"Insufficient {resource}", short, lacking, resource
                )
                open_ |= short
        for one, verdict in verdicts:
            within = np.where(inside, verdict, FITS)
            yield from self._by_reason(trace, table.owner(one), one.name, within)
            open_ |= within != FITS
        fits = (self._column.later > self._extra) & chosen.any()
        next_choice = LATER if self._placement.own is None else OTHER_CHOICE
        for mask, why in ((~open_ & fits, next_choice), (~open_ & ~fits, NO_ROOM)):
            if mask.any():
                yield self._refusal(trace, "", RESOURCES, why, mask)

    def _by_reason(self, trace: Recorder, plugin: str, name: str, verdict: Verdicts) -> Iterator[Refused]:
        for number in np.unique(verdict).tolist():
            if number != FITS:
                reason = self._session.reasons.reasons[number]
                yield self._refusal(trace, plugin, name, reason.text, verdict == number, number=number)

    def _refusal(
        self,
        trace: Recorder,
        plugin: str,
        name: str,
        reason: str,
        mask: Mask,
        lacking: Lacking | None = None,
        resource: str = "",
        number: int = FITS,
    ) -> Refused:
        session, rows = self._session, mask.nonzero()[0]
        shown = rows if trace.everything else rows[:_EXAMPLES]
        if trace.nodes and not trace.everything:
            known = session.nodes.facts.index
            named = [known[one] for one in sorted(trace.nodes) if one in known and mask[known[one]]]
            shown = np.unique([*shown.tolist(), *named]).astype(np.intp)
        amounts = lacking.amounts if lacking is not None else None
        nodes = {
            session.node_name(row): amounts(resource, row) if amounts is not None else ""
            for row in shown.tolist()
        }
        return Refused(plugin, name, reason, len(rows), nodes, bool(session.reasons.lasting()[number]))

    # -- scores -------------------------------------------------------------------------------------------------------

    def _totals(self, candidates: NodeRows, chosen: Mask) -> Scores:
        """What the engine compares."""
        worth = self._column.value(self._cells(candidates))
        if self._steppers and self._taken:
            sums = np.zeros(len(candidates))
            for static in self._column.criteria.relative:
                sums += static.scorer.weight * _normalised(static.scorer, static.raw[candidates])
            for scorer in self._scorers:
                sums += scorer.weight * _normalised(scorer, self._raw(scorer, candidates, chosen))
            return worth + sums
        return worth + self._placement.relative(self._column, candidates, self._scorers)

    def _raw(self, scorer: Scorer, candidates: NodeRows, chosen: Mask) -> Scores:
        stepper = self._steppers.get(scorer.name)
        if stepper is None or not self._taken:
            return np.asarray(scorer.raw(self._class, self._cells(candidates)), dtype=np.float64)
        shift = stepper.shift(chosen[self._places])
        return shift[np.searchsorted(self._places, candidates)]

    def _scored(
        self, trace: Recorder, candidates: NodeRows, totals: Scores, chosen: Mask
    ) -> Iterator[NodeScore]:
        """The best candidates, and those that are asked for, with the points of every scorer."""
        if not len(candidates):
            return
        session = self._session
        order = np.lexsort((candidates, -totals))
        if not trace.everything:
            named = [place for place in order[_BEST:].tolist() if self._is_named(trace, candidates[place])]
            order = np.concatenate([order[:_BEST], np.array(named, dtype=np.intp)])
        parts = [(scorer, raw, _normalised(scorer, raw)) for scorer, raw in self._parts(candidates, chosen)]
        owner = self._placement.criteria_table.owner
        for place in order.tolist():
            points = tuple(
                ScorePart(
                    owner(scorer),
                    scorer.name,
                    scorer.weight,
                    float(raw[place]),
                    float(scorer.weight * value[place]),
                    None if scorer.normalise is None else float(value[place]),
                )
                for scorer, raw, value in parts
            )
            yield NodeScore(session.node_name(int(candidates[place])), float(totals[place]), points)

    def _is_named(self, trace: Recorder, row: int) -> bool:
        return self._session.node_name(int(row)) in trace.nodes

    def _parts(self, candidates: NodeRows, chosen: Mask) -> Iterator[tuple[Scorer, Scores]]:
        shape = candidates.shape
        for scorer, raw in self._placement.criteria_table.static_scores(self._class):
            yield scorer, np.broadcast_to(raw, self._all.shape)[candidates]
        for scorer in self._column.criteria.node_scorers:
            raw = np.asarray(scorer.raw(self._class, self._cells(candidates)), dtype=np.float64)
            yield scorer, np.broadcast_to(raw, shape)
        for scorer in self._scorers:
            yield scorer, np.broadcast_to(self._raw(scorer, candidates, chosen), shape)


def _normalised(scorer: Scorer, raw: Scores) -> Scores:
    return raw if scorer.normalise is None else scorer.normalise(raw)


def trace_proposal(
    session: Session,
    placement: Placement,
    rows: TaskRows,
    proposal: Proposal | None,
    within: Mask | None = None,
    beside: Progress | None = None,
    *,
    short: bool = False,
) -> None:
    """Record the tables of tasks of one class that are about to be placed, and of the first that finds no node.

    `short`: the proposal has fewer nodes than there are tasks.
    """
    trace = session.trace
    assert trace is not None  # callers test it
    class_ = session.classes[session.tasks.class_of[rows[0]]]
    tables = Tables(session, placement, class_, within, beside)
    count = 0 if proposal is None else min(len(proposal), len(rows))
    for place in range(count):
        assert proposal is not None
        row, node = int(rows[place]), int(proposal.nodes[place])
        if place < _TABLES or trace.everything:
            with trace.session.aside():
                trace.add(tables.of(trace, row, node, waits=bool(proposal.waits[place])))
            tables.take(node)
        else:
            trace.add(_brief(session, row, node, waits=bool(proposal.waits[place])))
    if (proposal is None or short) and count < _TABLES:
        with trace.session.aside():
            last = tables.of(trace, int(rows[count]), -1)
        if proposal is None or not last.candidates:  # otherwise the next proposal has its table
            trace.add(last)


def trace_look(session: Session, placement: Placement, row: int, within: Mask) -> None:
    """Record what nodes say to a task that is not going to be placed there now."""
    trace = session.trace
    assert trace is not None
    class_ = session.classes[session.tasks.class_of[row]]
    with trace.session.aside():
        trace.add(Tables(session, placement, class_, within, None).of(trace, row, -1, looked=True))


def trace_forced(session: Session, rows: TaskRows) -> None:
    """Tasks have got all the places that there are for their class."""
    assert session.trace is not None
    for row in rows.tolist():
        node = int(session.tasks.node[row])
        session.trace.add(msgspec.structs.replace(_brief(session, row, node), forced=True))


def trace_promise(session: Session, row: int, node: int) -> None:
    """A task keeps a node that it was promised."""
    if session.trace is not None:
        session.trace.add(msgspec.structs.replace(_brief(session, row, node), promised=True))


def trace_choice(session: Session, row: int, node: int) -> None:
    """A task got the best node of a search of its own."""
    assert session.trace is not None
    session.trace.add(_brief(session, row, node))


def _brief(session: Session, row: int, node: int, *, waits: bool = True) -> TaskTried:
    size, name = len(session.nodes), session.node_name(node)
    job = session.job_key(int(session.tasks.job[row]))
    return TaskTried(job, session.task_key(row), {}, size, size, 0, best=name, node=name, waits=waits)


__all__ = ["Tables", "trace_choice", "trace_forced", "trace_look", "trace_promise", "trace_proposal"]
