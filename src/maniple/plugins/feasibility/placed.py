"""Counts of placed pods per node: "pods that a term selects", "pods with this anti-affinity", "pods on this
port".

A column is the sum, per node, of a weight that each class has (most often 1 or 0). It is built from the
session's tasks on first use and then follows placements and their undoing, so it always equals a fresh count.
Sums per domain (nodes with the same value of a label) are one `bincount`. Several plugins share one index per
session; the first to use it forwards the session's events to it.

As in kube-scheduler, pods count from the moment they are placed or pipelined until this session evicts them;
pods that were being deleted already count too, except in `living` columns.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ON_NODE, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session

Bins = NDArray[np.int32]
Weights = Mapping[int, int]  # class number -> weight


class Column:
    """One sum per node."""

    __slots__ = ("amounts",)

    def __init__(self, amounts: Amounts) -> None:
        self.amounts = amounts

    def by_domain(self, bins: Bins, size: int = 0) -> NDArray[np.float64]:
        """The sums per bin (whole numbers), of at least `size` bins."""
        return np.bincount(bins, weights=self.amounts, minlength=size).astype(np.float64, copy=False)


class Placements:
    """The columns of one session."""

    def __init__(self, session: Session, keeper: object) -> None:
        self._session = session
        self._keeper = keeper
        self._columns: dict[Hashable, Column] = {}
        self._followed: dict[int, list[tuple[Column, int]]] = {}
        self._selected_by: dict[int, list[int]] | None = None
        self._by_class: tuple[TaskRows, list[int]] | None = (
            None  # tasks by class, and where each class begins
        )
        self.homes: NodeRows | None = None  # by task, the node that it counts on until it is gone; -1: none
        self._further: set[tuple[int, int]] = (
            set()
        )  # tasks and nodes: more of the same, for tasks that were moved and evicted again

    def keep_evicted(self) -> None:
        """Pods continue to count on their nodes, even after this session evicts them."""
        if self.homes is None:
            self.homes = np.full(len(self._session.tasks), -1, dtype=np.intp)
            rows = present_rows(self._session)
            self.homes[rows] = self._session.tasks.node[rows]

    def keep(self, rows: TaskRows, nodes: NodeRows) -> None:
        """These continue to count on these nodes as well."""
        assert self.homes is not None
        first = self.homes[rows] < 0
        self.homes[rows[first]] = nodes[first]
        elsewhere = self.homes[rows] != nodes
        if elsewhere.any():
            self._further.update(zip(rows[elsewhere].tolist(), nodes[elsewhere].tolist(), strict=True))

    def away(self, rows: TaskRows, nodes: NodeRows) -> NDArray[np.bool_]:
        """Which of them do not count on these nodes anyway."""
        assert self.homes is not None
        away: NDArray[np.bool_] = self.homes[rows] != nodes
        if self._further:
            pairs = zip(rows.tolist(), nodes.tolist(), strict=True)
            away &= np.array([pair not in self._further for pair in pairs], dtype=np.bool_)
        return away

    @classmethod
    def shared(cls, session: Session, keeper: object) -> "Placements":
        """The session's index; `keeper` forwards events to it unless another plugin does already."""
        if cls not in session.shared:
            session.shared[cls] = cls(session, keeper)
        index: Placements = session.shared[cls]
        return index

    def follow(self, keeper: object, event: Event, sign: int) -> None:
        """Tasks were placed (+1) or removed (-1); only the keeper's events count, so that nothing counts
        twice."""
        followed = self._followed.get(event.class_.number)
        if followed is None or keeper is not self._keeper:
            return
        nodes = event.nodes[event.nodes >= 0]
        for column, weight in followed:
            np.add.at(column.amounts, nodes, weight * sign)

    def column(self, key: Hashable, weights: Callable[[], Weights], *, living: bool = False) -> Column:
        """The column of that key; `weights` is called only if it has to be built."""
        living = living and self._some_leave
        known = self._columns.get((key, living))
        if known is None:
            by_class = weights()
            known = self._columns[key, living] = Column(self._count(by_class, living))
            for number, weight in by_class.items():
                self._followed.setdefault(number, []).append((known, weight))
        return known

    @cached_property
    def _some_leave(self) -> bool:
        """Whether some pods were being deleted when the session opened; if not, `living` makes no difference."""
        return bool((self._session.cluster.tasks.status == Status.RELEASING).any())

    def selected(self, terms: tuple[int, ...], *, living: bool = False) -> Column:
        """Pods that all of these terms select."""
        return self.column(("selected", terms), lambda: self._classes_selected(terms), living=living)

    def selected_at_first(self, term: int) -> Column:
        """Pods that a term selects, where they were when the session opened."""
        known = self._columns.get(("at first", term))
        if known is None:
            table, counts = self._session.cluster.tasks, np.zeros(len(self._session.nodes), dtype=np.int64)
            rows = self._rows_of(self._classes_selected((term,)))
            nodes = self._nodes_at_first[table.node[rows[ON_NODE[table.status[rows]]]]]
            np.add.at(counts, nodes[nodes >= 0], 1)
            known = self._columns["at first", term] = Column(counts)
        return known

    @cached_property
    def _nodes_at_first(self) -> NodeRows:
        """By the cluster's row of a node, the session's; -1 for those that are not part of it."""
        facts = self._session.nodes.facts
        nodes = np.full(len(self._session.cluster.nodes) + 1, -1, dtype=np.intp)
        nodes[facts.rows] = np.arange(len(facts))
        return nodes

    def _classes_selected(self, terms: tuple[int, ...]) -> Weights:
        if self._selected_by is None:
            self._selected_by = {}
            for class_ in classes_in_use(self._session):
                for term in class_.terms:
                    self._selected_by.setdefault(term, []).append(class_.number)
        first, *more = terms
        classes = set(self._selected_by.get(first, ()))
        for term in more:
            classes.intersection_update(self._selected_by.get(term, ()))
        return dict.fromkeys(sorted(classes), 1)

    def only_own(self, class_: TaskClass, terms: Iterable[int]) -> bool:
        """Whether no pods but those of a class are selected by these terms, and none of those has a node yet."""
        own = class_.number
        others = (number for term in terms for number in self._classes_selected((term,)) if number != own)
        return next(others, None) is None and not (self._session.tasks.node[self._rows_of([own])] >= 0).any()

    def _count(self, weights: Weights, living: bool) -> Amounts:
        session = self._session
        counts = np.zeros(len(session.nodes), dtype=np.int64)
        rows, nodes = self._present(self._rows_of(weights), living)
        if len(rows):
            of_class = np.zeros(len(session.classes), dtype=np.int64)
            of_class[list(weights)] = list(weights.values())
            np.add.at(counts, nodes, of_class[session.tasks.class_of[rows]])
        return counts

    def _rows_of(self, classes: Iterable[int]) -> TaskRows:
        """The tasks of some classes, indexed by class once: after opening, tasks keep their classes."""
        if self._by_class is None:
            class_of = self._session.tasks.class_of
            order = np.argsort(class_of, kind="stable")
            starts = np.searchsorted(class_of[order], np.arange(len(self._session.classes) + 1))
            self._by_class = order, starts.tolist()
        order, bounds = self._by_class
        parts = [order[bounds[number] : bounds[number + 1]] for number in classes]
        return np.concatenate(parts) if parts else order[:0]

    def _present(self, among: TaskRows, living: bool) -> tuple[TaskRows, NodeRows]:
        """Some tasks and the nodes that they count on."""
        rows = present_rows(self._session, among, living=living)
        nodes = self._session.tasks.node[rows].astype(np.intp)
        if self.homes is None:
            return rows, nodes
        away = self.away(rows, nodes)
        at_home = among[self.homes[among] >= 0]
        more = np.array(sorted(self._further), dtype=np.intp).reshape(-1, 2)
        more = more[np.isin(more[:, 0], among)]
        return (
            np.concatenate([rows[away], at_home, more[:, 0]]),
            np.concatenate([nodes[away], self.homes[at_home], more[:, 1]]),
        )


def present_rows(session: Session, among: TaskRows | None = None, *, living: bool = False) -> TaskRows:
    """Tasks that count as being on their node, of all or of some."""
    tasks = session.tasks
    rows = np.arange(len(tasks)) if among is None else among
    rows = rows[tasks.node[rows] >= 0]
    status = tasks.status[rows]
    leaving = status == Status.RELEASING
    if not living:
        leaving &= session.cluster.tasks.status[rows] != Status.RELEASING
    found: TaskRows = rows[(ON_NODE[status] | (status == Status.PIPELINED)) & ~leaving]
    return found


def bins_of(facts: NodeFacts, key: str) -> Bins:
    """The domain of every node by a label: 1, 2, ... and 0 for nodes that do not have it."""
    memory = ("bins", key)
    if memory not in facts.memory:
        facts.memory[memory] = facts.label(key).codes + np.int32(1)
    return facts.memory[memory]  # type: ignore[return-value]  # what this function put there


def classes_in_use(session: Session) -> list[TaskClass]:
    """The classes of the session's tasks; a cluster also remembers those of deleted tasks."""
    numbers = np.unique(session.tasks.class_of)
    return [session.classes[number] for number in numbers[numbers >= 0].tolist()]
