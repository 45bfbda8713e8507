"""Affinity and spread terms, and which pods they select.

A term is (namespaces, label selector, topology key) with match label keys already folded in. Pods that own
terms add them through `TermTable.own`; `signature` says which of all known terms a pod's labels match.
Placement classes carry their signature, so that counting "pods that match" never looks at labels again.

Terms are indexed by a namespace and a label that every pod they select has. So a pod is compared only with
the terms under its own namespace and labels, and a term that is added or removed concerns only the pods that
have its label.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from maniple.objects.core import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from maniple.objects.meta import LabelSelector, Requirement
from maniple.objects.printable import printable
from maniple.objects.selectors import matches

Labels = Mapping[str, str]
_Label = tuple[str, str]
_Place = tuple[
    str | None, _Label | None
]  # a namespace and a label; None where a term asks for no certain one
_ANY: _Place = (None, None)
DEFAULT_NAMESPACE = "default"  # that of a pod which names none
_encoder = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Pods in some namespaces with some labels, counted per value of a node label."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None
    topology_key: str
    within: str = ""  # the only namespace that counts, whatever the others say
    outside: str = ""  # a namespace that does not count

    @property
    def identity(self) -> bytes:
        """Equal for terms that select the same and count it by the same label."""
        places = sorted(self.namespaces), self.namespace_selector, self.within, self.outside
        return _encoder.encode((places, self.selector, self.topology_key))

    def selects(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        if namespace == self.outside or self.within not in ("", namespace):
            return False
        inside = namespace in self.namespaces or (
            self.namespace_selector is not None and matches(self.namespace_selector, namespace_labels)
        )
        return inside and matches(self.selector, labels)


@dataclass(frozen=True, slots=True)
class Spread:
    term: int
    constraint: TopologySpreadConstraint


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """The terms that a pod brings with it, as numbers of a `TermTable`; preferred ones with their weight."""

    affinity: tuple[int, ...] = ()
    anti_affinity: tuple[int, ...] = ()
    # Required as well, but only of this pod: it stays away from these pods of other namespaces, and they may come
    anti_affinity_to_others: tuple[int, ...] = ()
    preferred: tuple[tuple[int, int], ...] = ()
    preferred_anti: tuple[tuple[int, int], ...] = ()
    spread: tuple[Spread, ...] = ()

    def __bool__(self) -> bool:
        return self.between_pods or bool(self.spread)

    @property
    def between_pods(self) -> bool:
        """Whether it says which pods to be near or far from."""
        required = self.affinity or self.anti_affinity or self.anti_affinity_to_others
        return bool(required or self.preferred or self.preferred_anti)


def written(term: Term) -> str:
    """A term as people say it: the labels of the pods, and the label of nodes by which they are counted."""
    selector = term.selector if term.selector is not None else LabelSelector()
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()]
    labels += [f"{one.key} {one.operator} ({', '.join(one.values)})" for one in selector.match_expressions]
    return printable(f"{', '.join(labels) or 'any pod'} per {term.topology_key}")


class TermTable:
    """All terms of the cluster's pods, numbered in the order in which they came.

    `keeps_others_out`: a pod's anti-affinity to pods of other namespaces keeps these away from it, too.
    """

    def __init__(self, *, keeps_others_out: bool = True) -> None:
        self.keeps_others_out = keeps_others_out
        self.terms: list[Term] = []
        # Places of terms that came or went since the owner of the table last looked, and cleared this
        self.changed: set[_Place] = set()
        self._numbers: dict[bytes, int] = {}
        self._owned: set[int] = set()  # terms that pods own
        self._groups: set[int] = set()  # see workloads.py
        self._kept: dict[_Place, list[int]] = {}
        self._places: dict[int, list[_Place]] = {}  # of a term in use, where it is kept

    def __len__(self) -> int:
        return len(self.terms)

    def own(self, pod: Pod) -> OwnTerms:
        """The terms of a pod, entered into the table."""
        affinity = pod.spec.affinity or Affinity()
        near = affinity.pod_affinity or PodAffinity()
        far = affinity.pod_anti_affinity or PodAntiAffinity()
        apart = [_term(pod, one) for one in far.required_during_scheduling_ignored_during_execution]
        own, others = (apart, []) if self.keeps_others_out else _divided(pod, apart)
        return OwnTerms(
            affinity=self._required(pod, near.required_during_scheduling_ignored_during_execution),
            anti_affinity=tuple(map(self._number, own)),
            anti_affinity_to_others=tuple(map(self._number, others)),
            preferred=self._preferred(pod, near.preferred_during_scheduling_ignored_during_execution),
            preferred_anti=self._preferred(pod, far.preferred_during_scheduling_ignored_during_execution),
            spread=tuple(self.spread(pod, c) for c in pod.spec.topology_spread_constraints),
        )

    def _required(self, pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[int, ...]:
        return tuple(self._number(_term(pod, term)) for term in terms)

    def _preferred(self, pod: Pod, terms: Iterable[WeightedPodAffinityTerm]) -> tuple[tuple[int, int], ...]:
        return tuple((self._number(_term(pod, term.pod_affinity_term)), term.weight) for term in terms)

    def spread(self, pod: Pod, constraint: TopologySpreadConstraint) -> Spread:
        selector = _narrowed(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys, ())
        namespaces = frozenset([pod.metadata.namespace or DEFAULT_NAMESPACE])
        return Spread(self._number(Term(namespaces, None, selector, constraint.topology_key)), constraint)

    def signature(self, namespace: str, labels: Labels, namespace_labels: Labels) -> tuple[int, ...]:
        """The numbers of the terms that select a pod with these labels."""
        tried: list[int] = []
        for place in _places_of_pod(namespace, labels):
            tried += self._kept.get(place, ())
        selecting = [one for one in tried if self.terms[one].selects(namespace, labels, namespace_labels)]
        selecting.sort()
        return tuple(selecting)

    def concerned(self, namespace: str, labels: Labels) -> bool:
        """Whether a change may have given a pod another signature."""
        return not self.changed.isdisjoint(_places_of_pod(namespace, labels))

    def namespaces_changed(self) -> None:
        """Namespaces have other labels: any pod may have another signature."""
        self.changed.add(_ANY)

    def enter_group(self, namespace: str, selector: LabelSelector) -> int:
        """The number of the group of a namespace's pods that a selector matches."""
        number = self._enter_term(Term(frozenset([namespace or DEFAULT_NAMESPACE]), None, selector, ""))
        self._groups.add(number)
        self._use(number)
        return number

    def drop_group(self, number: int) -> None:
        """No pod belongs to this group any more."""
        self._groups.discard(number)
        if number in self._owned:
            return
        for place in self._places.pop(number):
            self._kept[place].remove(number)
            self.changed.add(place)

    def _use(self, number: int) -> None:
        """Keep a term where the pods that it selects find it."""
        if number in self._places:
            return
        self._places[number] = self._places_for(self.terms[number])
        for place in self._places[number]:
            self._kept.setdefault(place, []).append(number)
            self.changed.add(place)

    def _places_for(self, term: Term) -> list[_Place]:
        """One for each namespace and each value of a label, of those that a selected pod must have the least used."""
        if term.selector is None:
            return []
        namespaces: list[str | None] = [None] if term.namespace_selector is not None else [*term.namespaces]
        namespaces = [term.within] if term.within else namespaces
        choices: list[list[_Label]] = [[label] for label in term.selector.match_labels.items()]
        choices += [
            [(asked.key, value) for value in dict.fromkeys(asked.values)]
            for asked in term.selector.match_expressions
            if asked.operator == "In"
        ]
        ways: list[list[_Place]] = [
            [(space, label) for space in namespaces for label in labels] for labels in choices
        ]
        anywhere: list[_Place] = [(space, None) for space in namespaces]
        return min(ways, key=lambda way: sum(len(self._kept.get(one, ())) for one in way), default=anywhere)

    def _number(self, term: Term) -> int:
        """The number of a term that a pod owns."""
        number = self._enter_term(term)
        self._owned.add(number)
        self._use(number)
        return number

    def _enter_term(self, term: Term) -> int:
        key = term.identity
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.terms)
            self.terms.append(term)
        return number


def _term(pod: Pod, term: PodAffinityTerm) -> Term:
    own = (
        [pod.metadata.namespace or DEFAULT_NAMESPACE]
        if not term.namespaces and term.namespace_selector is None
        else []
    )
    selector = _narrowed(
        term.label_selector, pod.metadata.labels, term.match_label_keys, term.mismatch_label_keys
    )
    namespaces = frozenset([*term.namespaces, *own])
    return Term(namespaces, term.namespace_selector, selector, term.topology_key)


def _divided(pod: Pod, terms: Iterable[Term]) -> tuple[list[Term], list[Term]]:
    """The terms as far as they are about pods of the owner's namespace, and as far as about others."""
    own, others, home = [], [], pod.metadata.namespace or DEFAULT_NAMESPACE
    for term in terms:
        anywhere = term.namespace_selector is not None
        if anywhere or home in term.namespaces:
            own.append(
                replace(term, within=home) if anywhere else replace(term, namespaces=frozenset([home]))
            )
        if anywhere or term.namespaces - {home}:
            others.append(replace(term, outside=home))
    return own, others


def _places_of_pod(namespace: str, labels: Labels) -> list[_Place]:
    """All places under which terms that select such a pod may be kept."""
    return [
        *((namespace, label) for label in labels.items()),
        *((None, label) for label in labels.items()),
        (namespace, None),
        _ANY,
    ]


def label_keys(pod: Pod) -> tuple[str, ...]:
    """The labels of a pod that its own terms read: values to match, or to differ from."""
    affinity = pod.spec.affinity or Affinity()
    keys: set[str] = set()
    for wishes in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if wishes is None:
            continue
        preferred = (
            one.pod_affinity_term for one in wishes.preferred_during_scheduling_ignored_during_execution
        )
        for term in (*wishes.required_during_scheduling_ignored_during_execution, *preferred):
            keys.update(term.match_label_keys, term.mismatch_label_keys)
    for constraint in pod.spec.topology_spread_constraints:
        keys.update(constraint.match_label_keys)
    return tuple(sorted(keys))


def _narrowed(
    selector: LabelSelector | None, labels: Labels, same: tuple[str, ...], other: tuple[str, ...]
) -> LabelSelector | None:
    """The selector with the owner's own label values required (or excluded) for the given keys."""
    if selector is None:
        return None
    added = [Requirement(key=k, operator="In", values=(labels[k],)) for k in same if k in labels]
    added += [Requirement(key=k, operator="NotIn", values=(labels[k],)) for k in other if k in labels]
    if not added:
        return selector
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *added)
    )
