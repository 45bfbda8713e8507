"""The filters and scorers that concern one class, sorted by what they depend on."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter, Limit, OfNode, Scorer, Scores, always
from maniple.framework.node_scores import NodeScore, NodeWorth
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session

_STATIC, _NODE, _CLUSTER = Dependence


@dataclass(frozen=True, slots=True)
class Normalised:
    """A static score that still has to be put in proportion to the other candidates."""

    scorer: Scorer
    raw: Scores


@dataclass(frozen=True, slots=True)
class Criteria:
    """What is asked of nodes for one class."""

    verdict: Verdicts  # of the static filters
    open: NDArray[np.bool_]  # nodes that none of them refuses
    all_open: bool
    fixed: Scores  # static scores that do not depend on the other candidates
    relative: tuple[Normalised, ...]
    node_filters: tuple[Filter, ...]
    limits: tuple[Limit, ...]  # of those that say no more than how many tasks a node takes
    checks: tuple[Filter, ...]  # the other ones
    node_scorers: tuple[Scorer, ...]
    cluster_filters: tuple[Filter, ...]
    cluster_scorers: tuple[Scorer, ...]
    compiled: tuple[OfNode, ...] | None  # what `node_scorers` ask, if all of them are compiled
    weights: tuple[float, ...]  # beside `node_scorers`
    worths: dict[tuple[NodeScore, ...], NodeWorth] = field(
        default_factory=dict
    )  # their sums, as they were asked for

    @property
    def all_compiled(self) -> bool:
        """Whether nothing else decides, beside scorers over the whole cluster, than what is compiled."""
        alone = not self.cluster_filters and not self.relative and not self.checks
        return alone and self.compiled is not None

    @property
    def coupled(self) -> bool:
        """Placing one task may change what another node is worth."""
        return bool(self.cluster_filters or self.cluster_scorers)


class CriteriaTable:
    """The criteria of every class of one session.

    `barred`: verdicts on nodes that hold for every class, if there are any.
    """

    def __init__(self, session: Session, barred: Verdicts | None) -> None:
        self._session = session
        self._barred = barred
        # As `session.hooks` collects them, with the plugin of each.
        filters, scorers = session.answers("filters"), session.answers("scorers")
        self._filters: list[Filter] = [one for _, some in filters for one in some]
        self._scorers: list[Scorer] = [one for _, some in scorers for one in some]
        self._owners = {(type(one), one.name): name for name, some in (*filters, *scorers) for one in some}
        self._no_verdict = np.zeros(len(session.nodes), dtype=np.int16)
        # By what applies and what static filters say, where no score is fixed: many classes share these.
        self._shared: dict[tuple[Hashable, ...], Criteria] = {}
        # By kind of spec and terms: classes that differ in amounts only share these.
        self._of_kind: dict[tuple[int, tuple[int, ...]], Criteria] = {}
        self._amounts_decide = any(one.amounts_decide for one in self._filters)
        self._amounts_decide |= any(one.amounts_decide for one in self._scorers)

    def owner(self, one: Filter | Scorer) -> str:
        """The plugin that a filter or scorer is from."""
        return self._owners[type(one), one.name]

    @property
    def barred(self) -> Verdicts | None:
        return self._barred

    def static_verdicts(self, class_: TaskClass) -> list[tuple[Filter, Verdicts]]:
        """What each of the static filters says."""
        return self._verdicts(class_, self.filters(class_))

    def static_scores(self, class_: TaskClass) -> list[tuple[Scorer, Scores]]:
        """The raw scores of each of the static scorers."""
        return _raw_scores(self._session, class_, self._scorers_of(class_))

    def _scorers_of(self, class_: TaskClass) -> list[Scorer]:
        return [s for s in self._scorers if s.applies is always or s.applies(class_)]

    def shares(self, class_: TaskClass) -> bool:
        """Whether classes that differ from this one in amounts only have the same criteria, throughout the session."""
        return not class_.marks and not self._amounts_decide

    def of(self, class_: TaskClass) -> Criteria:
        if not self.shares(class_):
            return self._for_class(class_)
        key = (class_.spec.kind, class_.terms)
        known = self._of_kind.get(key)
        if known is None:
            known = self._of_kind[key] = self._for_class(class_)
        return known

    def _for_class(self, class_: TaskClass) -> Criteria:
        filters, scorers = self.filters(class_), self._scorers_of(class_)
        verdict = self._verdict(class_, filters)
        if any(s.depends is _STATIC for s in scorers):
            return self._made(class_, filters, scorers, verdict)
        said = b"" if verdict is self._no_verdict else verdict.tobytes()
        key = (said, *map(id, filters), *map(id, scorers))
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = self._made(class_, filters, scorers, verdict)
        return known

    def filters(self, class_: TaskClass) -> list[Filter]:
        """The filters that concern a class, in their order."""
        return [one for one in self._filters if one.applies is always or one.applies(class_)]

    def _made(
        self, class_: TaskClass, filters: list[Filter], scorers: list[Scorer], verdict: Verdicts
    ) -> Criteria:
        open_: NDArray[np.bool_] = verdict == FITS
        fixed, relative = _static_scores(self._session, class_, scorers, open_)
        of_nodes = tuple(s for s in scorers if s.depends is _NODE)
        compiled = tuple(s.of_node for s in of_nodes if s.of_node is not None)
        node_filters = tuple(f for f in filters if f.depends is _NODE)
        return Criteria(
            verdict=verdict,
            open=open_,
            all_open=bool(open_.all()),
            fixed=fixed,
            relative=tuple(relative),
            node_filters=node_filters,
            limits=tuple(f.limit for f in node_filters if f.limit is not None),
            checks=tuple(f for f in node_filters if f.limit is None),
            node_scorers=of_nodes,
            cluster_filters=tuple(f for f in filters if f.depends is _CLUSTER),
            cluster_scorers=tuple(s for s in scorers if s.depends is _CLUSTER),
            compiled=compiled if len(compiled) == len(of_nodes) else None,
            weights=tuple(s.weight for s in of_nodes),
        )

    def _verdict(self, class_: TaskClass, filters: list[Filter]) -> Verdicts:
        verdict: Verdicts = self._no_verdict
        for _, one in self._verdicts(class_, filters):
            verdict = self._session.reasons.merge(verdict, one)
        if self._barred is not None:
            verdict = np.where(self._barred != FITS, self._barred, verdict)
        return verdict

    def _verdicts(self, class_: TaskClass, filters: list[Filter]) -> list[tuple[Filter, Verdicts]]:
        static = (one for one in filters if one.depends is _STATIC)
        return [(one, _static_verdict(self._session, class_, one)) for one in static]


def _static_verdict(session: Session, class_: TaskClass, one: Filter) -> Verdicts:
    """Remembered with the node facts, except where volumes are involved: those change by themselves."""
    cells = Cells(session.nodes, class_)
    if class_.spec.pod.spec.volumes:
        return one.check(class_, cells)
    memory, key = session.nodes.facts.memory, ("verdict", one.name, class_.spec.number)
    if key not in memory:
        memory[key] = one.check(class_, cells)
    return memory[key]  # type: ignore[return-value]  # what this function put there


def _static_scores(
    session: Session, class_: TaskClass, scorers: list[Scorer], open_: NDArray[np.bool_]
) -> tuple[Scores, list[Normalised]]:
    fixed = np.zeros(len(session.nodes))
    relative: list[Normalised] = []
    for scorer, raw in _raw_scores(session, class_, scorers):
        if scorer.normalise is None:
            fixed += scorer.weight * raw
        elif np.ptp(raw[open_]) == 0 if open_.any() else True:
            # Equal everywhere it matters: in proportion to the others it stays equal, whichever they are.
            fixed[open_] += scorer.weight * scorer.normalise(raw[open_])
        else:
            relative.append(Normalised(scorer, raw))
    return fixed, relative


def _raw_scores(session: Session, class_: TaskClass, scorers: list[Scorer]) -> list[tuple[Scorer, Scores]]:
    cells = Cells(session.nodes, class_)
    static = (scorer for scorer in scorers if scorer.depends is _STATIC)
    return [(scorer, np.asarray(scorer.raw(class_, cells), dtype=np.float64)) for scorer in static]
