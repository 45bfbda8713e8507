"""InterPodAffinity: near the pods that a pod's affinity selects, away from those that anti-affinity selects.

Filter, in this order:
1. every required affinity term finds, in the node's domain, a pod that matches all of the pod's affinity
   terms; the node must have all topology labels. If no such pod is placed anywhere and the pod matches its
   own terms, it may be the first of its kind.
2. no required anti-affinity term of the pod finds a pod in the node's domain;
3. no pod in the node's domain has a required anti-affinity term that selects this pod.

A pod that is being deleted counts for anti-affinity until it is gone, but no other pod may rely on it: for
rule 1 it only prevents a pod from being the first of its kind. Nor may a pod placed in this cycle lose the
pods that it relies on to an eviction of the same cycle (`keeps_near`). With strict rules, as in Kubernetes,
pods being deleted count for everything.

Score: over all placed pods, the weights of the preferred terms that hold in the node's domain, the pod's own
and those of the placed pods that select it, anti-affinity negative; required affinity of placed pods counts
with `hard_weight`. The candidates are then scaled to 0..100, unless the caller needs the raw sums.

With `frozen`, as in Volcano, terms of placed pods are only read from nodes that had a pod with such terms
when the session opened: the terms of a pod that this session placed on another node are ignored. For a pod
with preferences of its own the score reads all nodes.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import NodeFacts
from maniple.cluster.statuses import Status
from maniple.cluster.terms import written
from maniple.eviction.chunks import ScenarioOutcome
from maniple.framework.criteria import EVERY_NODE, Cells, Dependence, Filter, NodeRows, Scorer, Scores
from maniple.framework.reasons import Code, Detail, Verdicts
from maniple.framework.session import Session
from maniple.plugins.feasibility.node_affinity import Mask
from maniple.plugins.feasibility.placed import (
    Bins,
    Column,
    Placements,
    Weights,
    bins_of,
    classes_in_use,
    present_rows,
)
from maniple.plugins.normalise import HIGHEST

NOT_NEAR = "node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
TOO_NEAR_OTHERS = f"{TOO_NEAR} for pods of other namespaces"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

Owners = dict[int, dict[int, int]]  # term -> class that owns it -> weight


class InterPod:
    """What filter and score share: which terms select a class, their owners, and where those are."""

    def __init__(self, session: Session, placements: Placements) -> None:
        self._session = session
        self._facts: NodeFacts = session.nodes.facts
        self._terms = session.cluster.terms.terms
        self._placements = placements
        self._seen: Mask | None = None  # nodes whose pods' terms are read; None for all

    def see_only(self, owning: Callable[[TaskClass], bool]) -> None:
        """From now on, read terms of placed pods only on nodes that have a pod of such a class now."""
        session = self._session
        rows = present_rows(session, living=False)
        owners = [class_.number for class_ in classes_in_use(session) if owning(class_)]
        self._seen = np.zeros(len(self._facts), dtype=np.bool_)
        self._seen[session.tasks.node[rows[np.isin(session.tasks.class_of[rows], owners)]]] = True

    def bins(self, term: int) -> Bins:
        return bins_of(self._facts, self._terms[term].topology_key)

    def owners(self, kind: str, owned: Owners, term: int, *, everywhere: bool = False) -> Column:
        """Per node, the weight of the placed pods that own a term."""
        weights: Weights = owned[term]
        column = self._placements.column((kind, term), lambda: weights)
        return column if everywhere or self._seen is None else Column(column.amounts * self._seen)

    def selected(self, terms: tuple[int, ...]) -> Column:
        return self._placements.selected(terms)

    def seen(self, rows: NodeRows) -> Mask | None:
        """On which of these nodes terms of placed pods are read; None for all."""
        return None if self._seen is None else self._seen[rows]

    def among_themselves(
        self, class_: TaskClass, own: Iterable[tuple[int, int]], owned: Owners
    ) -> Hashable | None:
        """For tasks that these terms concern only among themselves: the terms without the names that they select.

        `own`: terms of the class, with weights. None if the class, or one of its terms, has to do with other pods.
        """
        own = tuple(own)
        about = [(term, owned[term].get(class_.number, 0)) for term in class_.terms if term in owned]
        foreign = any(owned[term].keys() - {class_.number} for term, _ in about)
        if foreign or self._seen is not None:
            return None
        if not self._placements.only_own(class_, [term for term, _ in own]):
            return None
        terms = self._terms
        return (
            tuple((terms[term].topology_key, weight, term in class_.terms) for term, weight in own),
            tuple((terms[term].topology_key, weight) for term, weight in about),
        )


class InterPodFilter(InterPod):
    """The filter, for one session."""

    def __init__(self, session: Session, placements: Placements, *, frozen: bool = False) -> None:
        super().__init__(session, placements)
        if frozen:
            self.see_only(lambda class_: bool(class_.spec.own.anti_affinity))
        self._living = not session.rules.placing.leaving_pods_satisfy_affinity
        self._not_near = session.reasons.number(NOT_NEAR, Code.UNRESOLVABLE)
        self._too_near = session.reasons.number(TOO_NEAR)
        self._too_near_others = session.reasons.number(TOO_NEAR_OTHERS, Code.UNRESOLVABLE)
        self._unwelcome = session.reasons.number(UNWELCOME)
        # By length of the change log, term and whether its owners are meant: a pod of each domain, for `explain`
        self._examples: dict[tuple[int, int, bool], dict[int, int]] = {}

    def filter(self) -> Filter:
        return Filter(
            "InterPodAffinity",
            Dependence.CLUSTER,
            self._check,
            self._applies,
            prepared=True,
            asked_on_trial=True,
            steps=self.steps,
            alike=self._alike,
            detail=self._detail,
        )

    def _alike(self, class_: TaskClass) -> Hashable | None:
        own = class_.spec.own
        apart = (*own.anti_affinity, *own.anti_affinity_to_others)
        terms = (*((term, 1) for term in own.affinity), *((term, -1) for term in apart))
        return self.among_themselves(class_, terms, self._with_anti_affinity)

    @cached_property
    def _with_anti_affinity(self) -> Owners:
        """The classes with a required anti-affinity term, placed or yet to be placed."""
        return _owners(self._session, lambda class_: ((term, 1) for term in class_.spec.own.anti_affinity))

    def _applies(self, class_: TaskClass) -> bool:
        if not self._terms:
            return False
        own = class_.spec.own
        required = own.affinity or own.anti_affinity or own.anti_affinity_to_others
        return bool(required) or not self._with_anti_affinity.keys().isdisjoint(class_.terms)

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        own = class_.spec.own
        verdict = np.zeros(len(self._facts), dtype=np.int16)
        for term in class_.terms:
            if term in self._with_anti_affinity:
                verdict[self._domains_with(self.owners("avoids", self._with_anti_affinity, term), term)] = (
                    self._unwelcome
                )
        for term in own.anti_affinity:
            verdict[self._domains_with(self.selected((term,)), term)] = self._too_near
        for term in own.anti_affinity_to_others:
            verdict[self._near_others(term)] = self._too_near_others
        if own.affinity:
            verdict[~self._near(class_)] = self._not_near
        return verdict[cells.rows]

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """The term that a node fails, and a pod in its domain that makes it fail."""
        own = class_.spec.own
        if own.affinity and not self._near(class_)[node]:
            terms = " and ".join(written(self._terms[term]) for term in own.affinity)
            return Detail("Affinity", f"no pod that the affinity term {terms} selects is there", terms)
        for term in (*own.anti_affinity, *own.anti_affinity_to_others):
            near, text = self._near_pod(term, node, owners=False), written(self._terms[term])
            if near:
                phrase = f"the pod's anti-affinity ({text}) keeps it away from pods there"
                return Detail("AntiAffinity", phrase, text, near)
        for term in class_.terms:
            near = self._near_pod(term, node, owners=True) if term in self._with_anti_affinity else ""
            if near:
                text = written(self._terms[term])
                phrase = f"the anti-affinity ({text}) of pods there keeps it away"
                return Detail("AntiAffinityOfOthers", phrase, text, near)
        return Detail("AntiAffinity", "affinity rules between pods do not hold")

    def _near_pod(self, term: int, node: int, *, owners: bool) -> str:
        """A pod in the node's domain that a term selects, or that owns it; empty if there is none."""
        session, bins, key = self._session, self.bins(term), (len(self._session.changes), term, owners)
        known = self._examples.get(key)
        if known is None:
            selected = (one.number for one in classes_in_use(session) if term in one.terms)
            classes = list(self._with_anti_affinity[term] if owners else selected)
            rows = present_rows(session)
            rows = rows[np.isin(session.tasks.class_of[rows], classes)][::-1]
            known = self._examples[key] = dict(
                zip(bins[session.tasks.node[rows]].tolist(), rows.tolist(), strict=True)
            )
        domain = int(bins[node])
        return session.task_key(known[domain]) if domain and domain in known else ""

    def _near_others(self, term: int) -> Mask:
        """Nodes in a domain with pods of other namespaces that a term selects; no eviction makes them leave it."""
        before = self._domains_with(self._placements.selected_at_first(term), term)
        return before | self._domains_with(self.selected((term,)), term)

    def _domains_with(self, column: Column, term: int) -> Mask:
        """Nodes in a domain where the column is positive; never those without the label."""
        bins = self.bins(term)
        if not column.amounts.any():
            return np.zeros(len(bins), dtype=np.bool_)
        there = column.by_domain(bins) > 0
        there[:1] = False
        return there[bins]

    def _near(self, class_: TaskClass) -> Mask:
        """Nodes where the required affinity of a class holds."""
        return self._near_steps(class_, EVERY_NODE).fits()

    def _near_steps(self, class_: TaskClass, rows: NodeRows | slice) -> "_Near":
        own = class_.spec.own.affinity
        column, anywhere = self._placements.selected(own, living=self._living), self.selected(own).amounts
        domains = [self.bins(term) for term in own]
        return _Near(
            domains=[bins[rows] for bins in domains],
            held=[self._domains_with(column, term)[rows] for term in own],
            anybody=any(anywhere[bins > 0].any() for bins in domains),
            matches_itself=set(own) <= set(class_.terms),
        )

    def steps(self, class_: TaskClass, rows: NodeRows) -> "InterPodSteps":
        own = class_.spec.own
        avoided = np.zeros(len(rows), dtype=np.bool_)
        repelling: list[tuple[Bins, Mask | None]] = []
        for term in class_.terms:
            if term in self._with_anti_affinity:
                avoided |= self._domains_with(self.owners("avoids", self._with_anti_affinity, term), term)[
                    rows
                ]
                if class_.number in self._with_anti_affinity[term]:
                    repelling.append((self.bins(term)[rows], self.seen(rows)))
        for term in own.anti_affinity:
            avoided |= self._domains_with(self.selected((term,)), term)[rows]
            if term in class_.terms:
                repelling.append((self.bins(term)[rows], None))
        for term in own.anti_affinity_to_others:
            avoided |= self._near_others(term)[rows]
        return InterPodSteps(avoided, repelling, self._near_steps(class_, rows) if own.affinity else None)

    # -- evictions of the same cycle ------------------------------------------------------------------------------

    @cached_property
    def _relying(self) -> NDArray[np.bool_]:
        """By class: whether it has required affinity."""
        return np.array([bool(one.spec.own.affinity) for one in self._session.classes], dtype=np.bool_)

    def keeps_near(self, outcome: ScenarioOutcome) -> bool:
        """Whether pods placed in this cycle keep the pods that they rely on if the victims are evicted.

        A running pod may lose them: its affinity is ignored during execution.
        """
        tasks = self._session.tasks
        waited = self._session.cluster.tasks.status[: len(tasks)] == Status.PENDING
        placed = np.flatnonzero((tasks.node >= 0) & waited)
        placed = placed[self._relying[tasks.class_of[placed]]]
        if not len(placed):
            return True
        lost = np.unique(tasks.class_of[np.concatenate([placed[:0], *outcome.victims.values()])])
        terms = [set(self._session.classes[number].terms) for number in lost.tolist()]
        for number in np.unique(tasks.class_of[placed]).tolist():
            class_ = self._session.classes[number]
            if any(of_victim.issuperset(class_.spec.own.affinity) for of_victim in terms):
                nodes = tasks.node[placed[tasks.class_of[placed] == number]]
                if not self._near(class_)[nodes].all():
                    return False
        return True


class _Near:
    """Where the required affinity of a class holds among some nodes, while its tasks are placed one by one."""

    def __init__(self, domains: list[Bins], held: list[Mask], *, anybody: bool, matches_itself: bool) -> None:
        self._domains = domains  # by term, the domain of each node
        self._held = held  # by term, whether a pod that matches all terms is in that domain
        self._first = not anybody and matches_itself
        self._matches_itself = matches_itself

    def fits(self) -> Mask:
        found = [bins > 0 for bins in self._domains] if self._first else self._held
        return found[0].copy() if len(found) == 1 else np.logical_and.reduce(found)

    def take(self, place: int) -> None:
        if not self._matches_itself:
            return
        for bins, held in zip(self._domains, self._held, strict=True):
            if bins[place]:
                np.logical_or(held, bins == bins[place], out=held)
                self._first = False


class InterPodSteps:
    """The filter's result for some nodes, while tasks of a class are placed one by one."""

    def __init__(
        self, avoided: Mask, repelling: list[tuple[Bins, Mask | None]], near: "_Near | None"
    ) -> None:
        self._avoided = avoided
        # Domains that a placed task closes to the next; with a mask, only if it is on one of these nodes
        self._repelling = repelling
        self._near = near

    def fits(self) -> Mask:
        return ~self._avoided if self._near is None else ~self._avoided & self._near.fits()

    def take(self, place: int) -> None:
        for bins, seen in self._repelling:
            if bins[place] and (seen is None or seen[place]):
                self._avoided |= bins == bins[place]
        if self._near is not None:
            self._near.take(place)


def stretched(raw: Scores) -> Scores:
    """The lowest candidate gets 0, the highest 100; all 0 when they are equal."""
    if not len(raw):
        return raw
    least = raw.min()
    width = raw.max() - least
    return np.trunc(HIGHEST * ((raw - least) / width)) if width > 0 else np.zeros(len(raw))


class InterPodScore(InterPod):
    """The score, for one session."""

    def __init__(
        self, session: Session, placements: Placements, hard_weight: int, *, frozen: bool = False
    ) -> None:
        super().__init__(session, placements)
        if frozen:
            self.see_only(lambda class_: class_.spec.own.between_pods)
        self._hard_weight = hard_weight

    def scorer(self, weight: float, normalise: Callable[[Scores], Scores] | None = stretched) -> Scorer:
        return Scorer(
            "InterPodAffinity",
            weight,
            Dependence.CLUSTER,
            self._raw,
            normalise,
            self._applies,
            steps=self.steps,
            alike=self._alike,
        )

    def _alike(self, class_: TaskClass) -> Hashable | None:
        return self.among_themselves(class_, _preferences(class_), self._with_preference)

    @cached_property
    def _with_preference(self) -> Owners:
        """The classes with a preference for or against the pods that a term selects."""
        return _owners(self._session, self._preferences)

    def _preferences(self, class_: TaskClass) -> Iterable[tuple[int, int]]:
        yield from _preferences(class_)
        if self._hard_weight:
            yield from ((term, self._hard_weight) for term in class_.spec.own.affinity)

    def _applies(self, class_: TaskClass) -> bool:
        if not self._terms:
            return False
        own = class_.spec.own
        return bool(own.preferred or own.preferred_anti) or not self._with_preference.keys().isdisjoint(
            class_.terms
        )

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        own = class_.spec.own
        raw = np.zeros(len(self._facts))
        preferences = bool(own.preferred or own.preferred_anti)
        for term, weight in own.preferred:
            raw += weight * self._around(self.selected((term,)), term)
        for term, weight in own.preferred_anti:
            raw -= weight * self._around(self.selected((term,)), term)
        for term in class_.terms:
            if term in self._with_preference:
                column = self.owners("prefers", self._with_preference, term, everywhere=preferences)
                raw += self._around(column, term)
        return raw[cells.rows]

    def _around(self, column: Column, term: int) -> Scores:
        """The column's sum over each node's domain; zero for nodes without the label."""
        bins = self.bins(term)
        if not column.amounts.any():
            return np.zeros(len(bins))
        sums = column.by_domain(bins)
        sums[:1] = 0
        return sums[bins]

    def steps(self, class_: TaskClass, rows: NodeRows) -> "InterPodScoreSteps":
        preferences, moves = tuple(_preferences(class_)), list[tuple[Bins, int, Mask | None]]()
        for term, weight in preferences:
            if term in class_.terms:
                moves.append((self.bins(term)[rows], weight, None))
        for term in class_.terms:
            if class_.number in self._with_preference.get(term, ()):
                seen = None if preferences else self.seen(rows)
                moves.append((self.bins(term)[rows], self._with_preference[term][class_.number], seen))
        return InterPodScoreSteps(self._raw(class_, Cells(self._session.nodes, class_, rows)), moves)


class InterPodScoreSteps:
    """The sums of some nodes, while tasks of a class are placed one by one."""

    def __init__(self, raw: Scores, moves: list[tuple[Bins, int, Mask | None]]) -> None:
        self._raw = raw
        # What a placed task adds in its domain; with a mask, only if it is on one of these nodes
        self._moves = moves

    def shift(self, _: Mask) -> Scores:
        return self._raw

    def take(self, place: int) -> None:
        for bins, weight, seen in self._moves:
            if bins[place] and (seen is None or seen[place]):
                self._raw[bins == bins[place]] += weight


def _preferences(class_: TaskClass) -> Iterable[tuple[int, int]]:
    """What a class would rather be near to, and far from, with negative weights."""
    own = class_.spec.own
    yield from own.preferred
    yield from ((term, -weight) for term, weight in own.preferred_anti)


def _owners(session: Session, owned: Callable[[TaskClass], Iterable[tuple[int, int]]]) -> Owners:
    owners: Owners = {}
    for class_ in classes_in_use(session):
        if class_.spec.own:
            for term, weight in owned(class_):
                by_class = owners.setdefault(term, {})
                by_class[class_.number] = by_class.get(class_.number, 0) + weight
    return owners
