"""PodTopologySpread: pods that a selector matches are spread evenly over the values of a node label.

A constraint counts, per domain, the placed pods of the pod's namespace that its selector matches (pods being
deleted do not count, and an empty selector matches none). Only nodes that have the labels of all constraints
count, and of those the ones that the pod's node selector and affinity allow (unless `nodeAffinityPolicy:
Ignore`) and, with `nodeTaintsPolicy: Honor`, whose taints it tolerates.

DoNotSchedule: pods in the node's domain + 1 if the pod matches its own selector - pods in the emptiest domain
<= maxSkew; the emptiest counts as empty while there are fewer domains than `minDomains`.

ScheduleAnyway: sum over constraints of pods in the node's domain x log(domains among the candidates + 2) +
maxSkew - 1, rounded; then 100 x (highest + lowest - own) / highest. Candidates without all the labels get 0.

A pod without constraints is spread by kubernetes.io/hostname (3) and topology.kubernetes.io/zone (5),
ScheduleAnyway, over the pods of the services and controllers that select it; then nodes without the labels
are included.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.terms import Spread
from maniple.framework.criteria import Cells, Dependence, Filter, NodeRows, Scorer, Scores
from maniple.framework.reasons import FITS, Code, Detail, Verdicts
from maniple.framework.session import Session
from maniple.plugins.feasibility.node_affinity import Mask, required_mask
from maniple.plugins.feasibility.placed import Bins, Column, Placements, bins_of
from maniple.plugins.feasibility.taints import Taints
from maniple.plugins.normalise import HIGHEST

SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{SKEWED} (missing required label)"

_HOSTNAME = "kubernetes.io/hostname"
_DEFAULTS = ((_HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
_IGNORED = np.nan  # the raw score of a candidate that lacks a label


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a class, with what does not change during a session."""

    key: str
    max_skew: int
    min_domains: int
    counted: tuple[int, ...]  # a pod counts if all of these terms select it; none: no pod counts
    counts_itself: bool
    bins: Bins  # the domain of every node, 0 without the label
    counting: Bins  # the same, but 0 also for nodes on which pods do not count

    domains: NDArray[np.int32]  # those that have a node on which pods count
    size: int  # one more than the highest domain

    def skew(self, sums: Scores, bins: Bins) -> Scores:
        """The skew with one more pod in each of some domains; `sums`: the pods by domain."""
        enough = len(self.domains) >= max(self.min_domains, 1)
        emptiest = sums[self.domains].min() if enough else 0
        skew: Scores = sums[bins] + self.counts_itself - emptiest
        return skew

    def counts(self, class_: TaskClass) -> bool:
        """Whether pods of a class count, where they are placed on a node on which pods count."""
        return bool(self.counted) and set(self.counted) <= set(class_.terms)

    def column(self, placements: Placements) -> Column:
        if not self.counted:
            return Column(np.zeros(len(self.bins), dtype=np.int64))
        return placements.selected(self.counted, living=True)


class Spreading:
    """Filter and score, for one session."""

    def __init__(self, session: Session, placements: Placements, taints: Taints) -> None:
        self._session = session
        self._facts: NodeFacts = session.nodes.facts
        self._placements = placements
        self._taints = taints
        self._hard: dict[int, list[Constraint]] = {}
        self._soft: dict[int, list[Constraint]] = {}
        self._groups = session.cluster.workloads.groups()
        self._skewed = session.reasons.number(SKEWED)
        self._unlabelled = session.reasons.number(UNLABELLED, Code.UNRESOLVABLE)

    def filter(self) -> Filter:
        return Filter(
            "PodTopologySpread",
            Dependence.CLUSTER,
            self._check,
            _has_hard,
            prepared=True,
            steps=self.hard_steps,
            alike=lambda class_: self._alike(class_, self._hard_constraints(class_)),
            detail=self._detail,
        )

    def scorer(self, weight: int) -> Scorer:
        return Scorer(
            "PodTopologySpread",
            weight,
            Dependence.CLUSTER,
            self._raw,
            evened,
            self._has_soft,
            steps=self.soft_steps,
            alike=lambda class_: self._alike(class_, self._soft_constraints(class_)),
        )

    def _alike(self, class_: TaskClass, constraints: list[Constraint]) -> Hashable | None:
        """The constraints without the names of the pods that they count, if those are of the class alone."""
        counted = [term for one in constraints for term in one.counted]
        if not self._placements.only_own(class_, counted):
            return None
        return tuple(
            (
                one.key,
                one.max_skew,
                one.min_domains,
                len(one.counted),
                one.counts_itself,
                one.counting.tobytes(),
            )
            for one in constraints
        )

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """The first constraint that a node fails."""
        for one in self._hard_constraints(class_):
            if not one.bins[node]:
                return Detail(
                    "TopologySpread", f"lacks the label {one.key} of a topology spread constraint", one.key
                )
            sums = one.column(self._placements).by_domain(one.counting, one.size)
            skew = int(one.skew(sums, one.bins)[node])
            if skew > one.max_skew:
                phrase = f"topology spread over {one.key} would have skew {skew}, allowed is {one.max_skew}"
                return Detail("TopologySpread", phrase, one.key)
        return Detail("TopologySpread", SKEWED.removeprefix("node(s) "))

    # -- constraints ----------------------------------------------------------------------------------------------

    def _has_soft(self, class_: TaskClass) -> bool:
        spread = class_.spec.own.spread
        if spread:
            return any(one.constraint.when_unsatisfiable == "ScheduleAnyway" for one in spread)
        return not self._groups.isdisjoint(class_.terms)

    def _hard_constraints(self, class_: TaskClass) -> list[Constraint]:
        if class_.number not in self._hard:
            self._hard[class_.number] = self._stated(class_, "DoNotSchedule")
        return self._hard[class_.number]

    def _soft_constraints(self, class_: TaskClass) -> list[Constraint]:
        if class_.number not in self._soft:
            stated = bool(class_.spec.own.spread)
            found = self._stated(class_, "ScheduleAnyway") if stated else self._default(class_)
            self._soft[class_.number] = found
        return self._soft[class_.number]

    def _stated(self, class_: TaskClass, kind: str) -> list[Constraint]:
        spread = [one for one in class_.spec.own.spread if one.constraint.when_unsatisfiable == kind]
        labelled = np.ones(len(self._facts), dtype=np.bool_)
        for one in spread:
            labelled &= bins_of(self._facts, one.constraint.topology_key) > 0
        return [self._constraint(class_, one, labelled) for one in spread]

    def _constraint(self, class_: TaskClass, one: Spread, labelled: Mask) -> Constraint:
        stated = one.constraint
        counts = labelled
        if stated.node_affinity_policy != "Ignore":
            counts = counts & required_mask(self._facts, class_.spec.pod)
        if stated.node_taints_policy == "Honor":
            counts = counts & self._taints.tolerated_mask(class_.spec.pod.spec.tolerations)
        bins = bins_of(self._facts, stated.topology_key)
        counting = np.where(counts, bins, 0).astype(np.int32)
        return Constraint(
            key=stated.topology_key,
            max_skew=stated.max_skew,
            min_domains=stated.min_domains if stated.min_domains is not None else 1,
            counted=(one.term,) if self._means_somebody(one.term) else (),
            counts_itself=one.term in class_.terms,
            bins=bins,
            counting=counting,
            domains=np.unique(counting[counting > 0]),
            size=int(bins.max(initial=0)) + 1,
        )

    def _means_somebody(self, term: int) -> bool:
        selector = self._session.cluster.terms.terms[term].selector
        return selector is not None and bool(selector.match_labels or selector.match_expressions)

    def _default(self, class_: TaskClass) -> list[Constraint]:
        """What kube-scheduler assumes for pods of services and controllers."""
        counted = tuple(term for term in class_.terms if term in self._groups)
        allowed = required_mask(self._facts, class_.spec.pod)
        found = []
        for key, max_skew in _DEFAULTS:
            bins = bins_of(self._facts, key)
            # Nodes without the label share one domain here, that of the empty value.
            counting = np.where(allowed, self._with_empty(key, bins), 0).astype(np.int32)
            size = int(bins.max(initial=0)) + 1
            found.append(Constraint(key, max_skew, 1, counted, True, bins, counting, bins[:0], size))
        return found

    def _with_empty(self, key: str, bins: Bins) -> Bins:
        return np.where(bins > 0, bins, self._facts.label(key).code("") + 1).astype(np.int32)

    # -- the filter -----------------------------------------------------------------------------------------------

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        for one in self._hard_constraints(class_):
            sums = one.column(self._placements).by_domain(one.counting, one.size)
            found = np.where(one.skew(sums, one.bins) > one.max_skew, self._skewed, FITS)
            found[one.bins == 0] = self._unlabelled
            verdict = np.where(verdict == FITS, found, verdict).astype(np.int16)
        return verdict[cells.rows]

    def hard_steps(self, class_: TaskClass, rows: NodeRows) -> "HardSteps":
        constraints = self._hard_constraints(class_)
        sums = [one.column(self._placements).by_domain(one.counting, one.size) for one in constraints]
        return HardSteps(class_, constraints, sums, rows)

    # -- the score ------------------------------------------------------------------------------------------------

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        constraints = self._soft_constraints(class_)
        return self.points(class_, constraints, [self._tally(one) for one in constraints], cells.node_rows())

    def soft_steps(self, class_: TaskClass, rows: NodeRows) -> "SoftSteps":
        constraints = self._soft_constraints(class_)
        return SoftSteps(self, class_, constraints, [self._tally(one) for one in constraints], rows)

    def _tally(self, one: Constraint) -> Scores:
        """The pods that count: by node where every node is a domain of its own, otherwise by domain."""
        column = one.column(self._placements)
        if one.key == _HOSTNAME:
            return column.amounts.astype(np.float64)
        return column.by_domain(one.counting, one.size)

    def points(
        self, class_: TaskClass, constraints: list[Constraint], tallies: list[Scores], rows: NodeRows
    ) -> Scores:
        """The raw scores of candidates, with the counted pods for each constraint beside it."""
        scored = np.ones(len(rows), dtype=np.bool_)
        if class_.spec.own.spread:
            for one in constraints:
                scored &= one.bins[rows] > 0
        total = np.zeros(len(rows))
        for one, tally in zip(constraints, tallies, strict=True):
            total += self._credit(one, tally, rows, scored)
        rounded = np.floor(total)
        rounded += total - rounded >= 0.5
        return np.where(scored, rounded, _IGNORED)

    def _credit(self, one: Constraint, tally: Scores, rows: NodeRows, scored: Mask) -> Scores:
        bins = one.bins[rows]
        if one.key == _HOSTNAME:
            counts = tally[rows]
            domains = int(np.count_nonzero(scored))
        else:
            counts = tally[bins]
            domains = int(np.count_nonzero(np.bincount(self._with_empty(one.key, bins)[scored])))
        credit = counts * math.log(domains + 2) + (one.max_skew - 1)
        return np.where(bins > 0, credit, 0.0)


class HardSteps:
    """The filter's result for some nodes, while tasks of a class are placed one by one."""

    def __init__(
        self, class_: TaskClass, constraints: list[Constraint], sums: list[Scores], rows: NodeRows
    ) -> None:
        self._parts = [(one, sums, one.bins[rows]) for one, sums in zip(constraints, sums, strict=True)]
        self._counting = [(sums, one.counting[rows]) for one, sums, _ in self._parts if one.counts(class_)]

    def fits(self) -> Mask:
        masks = [(bins > 0) & (one.skew(sums, bins) <= one.max_skew) for one, sums, bins in self._parts]
        fits: Mask = np.logical_and.reduce(masks)
        return fits

    def take(self, place: int) -> None:
        for sums, counting in self._counting:
            sums[counting[place]] += 1


class SoftSteps:
    """The raw scores of some nodes, while tasks of a class are placed one by one."""

    def __init__(
        self,
        spreading: Spreading,
        class_: TaskClass,
        constraints: list[Constraint],
        tallies: list[Scores],
        rows: NodeRows,
    ) -> None:
        self._spreading = spreading
        self._class = class_
        self._constraints = constraints
        self._tallies = tallies
        self._rows = rows

    def shift(self, candidates: Mask) -> Scores:
        points = np.zeros(len(self._rows))
        rows = self._rows[candidates]
        points[candidates] = self._spreading.points(self._class, self._constraints, self._tallies, rows)
        return points

    def take(self, place: int) -> None:
        row = self._rows[place]
        for one, tally in zip(self._constraints, self._tallies, strict=True):
            if one.counts(self._class):
                tally[row if one.key == _HOSTNAME else one.counting[row]] += 1


def _has_hard(class_: TaskClass) -> bool:
    return any(one.constraint.when_unsatisfiable == "DoNotSchedule" for one in class_.spec.own.spread)


def evened(raw: Scores) -> Scores:
    """The fewer the better, scaled to 0..100; ignored candidates get 0."""
    scored = ~np.isnan(raw)
    result = np.zeros(len(raw))
    if not scored.any():
        return result
    highest, lowest = raw[scored].max(), raw[scored].min()
    if highest == 0:
        result[scored] = HIGHEST
    else:
        result[scored] = np.floor_divide(HIGHEST * (highest + lowest - raw[scored]), highest)
    return result
