"""The filters and scorers that concern one class, sorted by what they depend on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session


@dataclass(frozen=True, slots=True)
class Normalised:
    """A static score that still has to be put in proportion to the other candidates."""

    scorer: Scorer
    raw: Scores


@dataclass(frozen=True, slots=True)
class Criteria:
    """What is asked of nodes for one class."""

    verdict: Verdicts  # of the static filters
    fixed: Scores  # static scores that do not depend on who else is a candidate
    relative: tuple[Normalised, ...]
    node_filters: tuple[Filter, ...]
    node_scorers: tuple[Scorer, ...]
    cluster_filters: tuple[Filter, ...]
    cluster_scorers: tuple[Scorer, ...]

    @property
    def coupled(self) -> bool:
        """Placing one task may change what another node is worth."""
        return bool(self.cluster_filters or self.cluster_scorers)


def criteria_of(
    session: Session, class_: TaskClass, filters: list[Filter], scorers: list[Scorer]
) -> Criteria:
    filters = [f for f in filters if f.applies(class_)]
    scorers = [s for s in scorers if s.applies(class_)]
    verdict = np.zeros(len(session.nodes), dtype=np.int16)
    for one in filters:
        if one.depends is Dependence.STATIC:
            verdict = session.reasons.merge(verdict, _static_verdict(session, class_, one))
    fixed, relative = _static_scores(session, class_, scorers, verdict == FITS)
    return Criteria(
        verdict=verdict,
        fixed=fixed,
        relative=tuple(relative),
        node_filters=tuple(f for f in filters if f.depends is Dependence.NODE),
        node_scorers=tuple(s for s in scorers if s.depends is Dependence.NODE),
        cluster_filters=tuple(f for f in filters if f.depends is Dependence.CLUSTER),
        cluster_scorers=tuple(s for s in scorers if s.depends is Dependence.CLUSTER),
    )


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
    for scorer in scorers:
        if scorer.depends is not Dependence.STATIC:
            continue
        raw = np.asarray(scorer.raw(class_, Cells(session.nodes, class_)), dtype=np.float64)
        if scorer.normalise is None:
            fixed += scorer.weight * raw
        elif np.ptp(raw[open_]) == 0 if open_.any() else True:
            # Equal everywhere it matters: in proportion to the others it stays equal, whoever they are.
            fixed[open_] += scorer.weight * scorer.normalise(raw[open_])
        else:
            relative.append(Normalised(scorer, raw))
    return fixed, relative
