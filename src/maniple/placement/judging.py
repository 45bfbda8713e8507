"""What nodes say of the next task of a class: why they refuse it, counted or one by one.

`Placement.judging` of the engine, which has the columns. Much of it is remembered until a node changes: a backlog asks
again and again.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import CPU, MEMORY, PODS, Amounts
from maniple.framework.criteria import Cells, Filter
from maniple.framework.reasons import FITS, Histogram, Verdicts, histogram
from maniple.framework.session import Session
from maniple.placement.alike import AlikeClasses, by_amounts
from maniple.placement.column import ClassColumn
from maniple.placement.criteria import Criteria, CriteriaTable
from maniple.placement.lacking import PLAIN, Lacking

Mask = NDArray[np.bool_]


class Columns(Protocol):
    """What the engine knows of classes."""

    @property
    def criteria_table(self) -> CriteriaTable: ...

    def criteria(self, class_: TaskClass) -> Criteria: ...

    def column(self, class_: TaskClass) -> ClassColumn: ...

    def has_column(self, class_: TaskClass) -> bool: ...


class Judging:
    """The verdicts of one session."""

    def __init__(self, session: Session, columns: Columns) -> None:
        self._session = session
        self._columns = columns
        self._stamp = -1  # the length of the change log of which the next three are
        self._free: Amounts = np.zeros((0, 0), dtype=np.int64)
        self._alike = AlikeClasses(self._free, None)
        self._histograms: dict[Hashable, Histogram] = {}

    # -- of every node --------------------------------------------------------------------------------------------

    def verdicts(
        self,
        class_: TaskClass,
        *,
        resources: bool = True,
        prepared: Verdicts | None = None,
        lasting_first: bool = False,
    ) -> Verdicts:
        """Why each node rejects the next task of a class; 0 where it does not.

        `prepared` stands for what filters that count pods beforehand would say now. Too little room hides what filters
        say; with `lasting_first`, only what passes.
        """
        lacking = self._lacking(class_).verdicts() if resources and self.counts(class_) else None
        if lacking is not None and lacking.all() and not lasting_first:
            return lacking
        criteria, reasons = self._columns.criteria(class_), self._session.reasons
        verdict, cells = criteria.verdict, Cells(self._session.nodes, class_)
        for one in (*criteria.node_filters, *criteria.cluster_filters):
            if prepared is None or not one.prepared:
                verdict = reasons.merge(verdict, one.check(class_, cells))
        if prepared is not None:
            verdict = reasons.merge(verdict, prepared)
        if lacking is not None:
            hidden = lacking != FITS
            if lasting_first:
                # Devices of claims may be counted as resources as well: what the claims' filter says is more exact.
                claims = bool(class_.spec.pod.spec.resource_claims)
                hidden &= (verdict == FITS) if claims else ~reasons.lasting()[verdict]
            verdict = np.where(hidden, lacking, verdict)
        elif resources and self._session.rules.placing.pods_without_requests_need_places:
            verdict = reasons.merge(verdict, self._full())
        return verdict

    def each_verdict(self, class_: TaskClass) -> Iterator[tuple[Filter, Verdicts]]:
        """What every filter says of every node for the next task of a class, one after the other."""
        cells = Cells(self._session.nodes, class_)
        for one in self._columns.criteria_table.filters(class_):
            yield one, one.check(class_, cells)

    def refusing(self, class_: TaskClass) -> Mask:
        """Nodes that do not take the next task of a class, not even later."""
        column = self._columns.column(class_)
        plain = class_.share is None and self.counts(class_) and not column.criteria.cluster_filters
        refusing: Mask = column.later == 0 if plain else self.verdicts(class_) != FITS
        return refusing

    def counts(self, class_: TaskClass) -> bool:
        """Whether a task of the class waits for resources at all."""
        return not class_.best_effort or self._session.rules.placing.owed_gpus_count

    def free_later(self) -> Amounts:
        """What nodes will have left (`NodeState.future_idle`), kept until one changes."""
        if self._stamp != len(self._session.changes):
            self._stamp, self._free = len(self._session.changes), self._session.nodes.future_idle()
            self._alike = AlikeClasses(self._free, self._session.gpus.dimension)
            self._histograms = {}
        return self._free

    def likeness(self, class_: TaskClass) -> Hashable:
        """Equal for classes of which every node says the same, until one changes."""
        self.free_later()
        return self._alike.key(class_, self._columns.criteria_table)

    def _lacking(self, class_: TaskClass) -> Lacking:
        """What nodes have too little of for a class."""
        return Lacking(self._session, class_, self.free_later())

    def _full(self) -> Verdicts:
        """For tasks that ask for nothing: nodes without a place for one more pod."""
        session = self._session
        number = session.reasons.number(PLAIN.format(resource=session.resources.names[PODS]))
        return np.where(self.free_later()[PODS] < 1, number, FITS).astype(np.int16)

    def judged(self, class_: TaskClass, by: Callable[[Filter], bool]) -> Verdicts:
        """What some of the filters over the whole cluster say of each node."""
        column = self._columns.column(class_)
        verdict, cells = np.zeros(len(column.nodes), dtype=np.int16), Cells(column.nodes, class_)
        for one in column.criteria.cluster_filters:
            if by(one):
                verdict = self._session.reasons.merge(verdict, one.check(class_, cells))
        return verdict

    def shut(self, class_: TaskClass) -> Mask:
        """Nodes rejected for a lasting reason."""
        verdicts = self.verdicts(class_, resources=False)  # first: it may name new reasons
        shut: Mask = self._session.reasons.lasting()[verdicts]
        return shut

    # -- counted --------------------------------------------------------------------------------------------------

    def hopeless(self, class_: TaskClass) -> Histogram | None:
        """Why all nodes refuse the next task of a class; None while one would take it."""
        likeness, plain = self.likeness(class_), self.counts(class_) and class_.share is None
        if plain and likeness not in self._histograms and self._has_room(class_):
            return None
        found = self._counted(class_, likeness)
        return found if found.hopeless else None

    def _has_room(self, class_: TaskClass) -> bool:
        """Whether a node is known to take the next task. A column that is there is asked: that costs less."""
        if self._columns.has_column(class_):
            column = self._columns.column(class_)
            return bool(column.room) and not column.criteria.cluster_filters
        fits = self._lacking(class_).nothing()
        if not fits.any():
            return False
        criteria, cells = self._columns.criteria_table.of(class_), Cells(self._session.nodes, class_)
        fits &= criteria.open
        for one in criteria.node_filters:
            fits &= one.check(class_, cells) == FITS
        return bool(fits.any()) and not criteria.cluster_filters

    def nodes_for_any(self, classes: Sequence[TaskClass]) -> int:
        """How many nodes take a task of any of some classes, now and later; 0 where more than amounts decides."""
        table, session = self._columns.criteria_table, self._session
        free, needed = self.free_later(), session.class_requests[[one.number for one in classes]].max(axis=0)
        fits = np.ones(free.shape[1], dtype=np.bool_)
        each = [(table.of(one), one) for one in classes]
        if not all(by_amounts(one, criteria) and not one.best_effort for criteria, one in each):
            return 0
        for criteria, class_ in {id(criteria): (criteria, one) for criteria, one in each}.values():
            cells = Cells(session.nodes, class_)
            fits &= criteria.open
            for one in criteria.node_filters:
                fits &= one.check(class_, cells) == FITS
        idle = session.nodes.idle() if session.flowing else free
        for dimension, amount in enumerate(needed.tolist()):
            if amount > 0 or dimension in (CPU, MEMORY, session.gpus.dimension):
                fits &= np.minimum(free[dimension], idle[dimension]) >= amount
        return int(np.count_nonzero(fits))

    def histogram(self, class_: TaskClass, within: Mask | None = None) -> Histogram:
        """The verdicts counted, of all nodes (remembered until a node changes) or of some."""
        if within is not None:
            return histogram(self._session.reasons, self.verdicts(class_)[within])
        return self._counted(class_, self.likeness(class_))

    def _counted(self, class_: TaskClass, likeness: Hashable) -> Histogram:
        found = self._histograms.get(likeness)
        if found is None:
            found = histogram(self._session.reasons, self.verdicts(class_))
            self._histograms[likeness] = found
        return found

    def by_node(
        self, class_: TaskClass, within: Mask | None = None, *, mates: bool = False
    ) -> dict[str, str]:
        """Why each node rejects the next task of a class, with amounts.

        `mates`: other tasks of its gang are placed already.
        """
        session, verdicts, lacking = self._session, self.verdicts(class_), self._lacking(class_)
        told = {}
        for node in np.flatnonzero(verdicts if within is None else verdicts * within).tolist():
            details = lacking.details(node, mates=mates) or [session.reasons.reasons[verdicts[node]].text]
            told[session.node_name(node)] = ", ".join(details)
        return told
