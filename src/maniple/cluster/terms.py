"""Affinity and spread terms: which pods a selector means, decided once per distinct set of labels.

A term is (namespaces, label selector, topology key) with match label keys already folded in. Pods that own terms bring them
in through `TermTable.own`; `signature` says which of all known terms a pod's labels match. Placement classes carry their
signature, so that counting "pods that match" never looks at labels again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
from maniple.objects.selectors import matches

Labels = Mapping[str, str]
_GroupKey = tuple[str, tuple[str, str] | None]
DEFAULT_NAMESPACE = "default"  # that of a pod which names none
_encoder = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Pods in some namespaces with some labels, counted per value of a node label."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None
    topology_key: str

    def selects(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
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
    preferred: tuple[tuple[int, int], ...] = ()
    preferred_anti: tuple[tuple[int, int], ...] = ()
    spread: tuple[Spread, ...] = ()

    def __bool__(self) -> bool:
        return bool(
            self.affinity or self.anti_affinity or self.preferred or self.preferred_anti or self.spread
        )

    @property
    def between_pods(self) -> bool:
        """Whether it says which pods to be near or far from."""
        return bool(self.affinity or self.anti_affinity or self.preferred or self.preferred_anti)


class TermTable:
    """All terms of the cluster's pods, numbered in the order in which they came."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.version = 0  # counts the changes after which a signature may be another
        self._numbers: dict[bytes, int] = {}
        self._signatures: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, ...]] = {}
        self._owned: list[int] = []  # terms that pods own, tried one by one
        self._groups: dict[_GroupKey, list[int]] = {}  # see workloads.py; by a label they ask for

    def __len__(self) -> int:
        return len(self.terms)

    def own(self, pod: Pod) -> OwnTerms:
        """The terms of a pod, entered into the table."""
        affinity = pod.spec.affinity or Affinity()
        near = affinity.pod_affinity or PodAffinity()
        far = affinity.pod_anti_affinity or PodAntiAffinity()
        return OwnTerms(
            affinity=self._required(pod, near.required_during_scheduling_ignored_during_execution),
            anti_affinity=self._required(pod, far.required_during_scheduling_ignored_during_execution),
            preferred=self._preferred(pod, near.preferred_during_scheduling_ignored_during_execution),
            preferred_anti=self._preferred(pod, far.preferred_during_scheduling_ignored_during_execution),
            spread=tuple(self.spread(pod, c) for c in pod.spec.topology_spread_constraints),
        )

    def _required(self, pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[int, ...]:
        return tuple(self._enter(pod, term) for term in terms)

    def _preferred(self, pod: Pod, terms: Iterable[WeightedPodAffinityTerm]) -> tuple[tuple[int, int], ...]:
        return tuple((self._enter(pod, term.pod_affinity_term), term.weight) for term in terms)

    def spread(self, pod: Pod, constraint: TopologySpreadConstraint) -> Spread:
        selector = _narrowed(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys, ())
        namespaces = frozenset([pod.metadata.namespace or DEFAULT_NAMESPACE])
        return Spread(self._number(Term(namespaces, None, selector, constraint.topology_key)), constraint)

    def signature(self, namespace: str, labels: Labels, namespace_labels: Labels) -> tuple[int, ...]:
        """The numbers of the terms that select a pod with these labels."""
        key = (namespace, tuple(sorted(labels.items())))
        known = self._signatures.get(key)
        if known is None:
            tried = [*self._owned, *self._groups.get((namespace, None), ())]
            for label in labels.items():
                tried += self._groups.get((namespace, label), ())
            known = self._signatures[key] = tuple(
                number
                for number in sorted(tried)
                if self.terms[number].selects(namespace, labels, namespace_labels)
            )
        return known

    def enter_group(self, namespace: str, selector: LabelSelector) -> int:
        """The number of the group of a namespace's pods that a selector matches."""
        term = Term(frozenset([namespace or DEFAULT_NAMESPACE]), None, selector, "")
        number = self._enter_term(term)
        among = self._groups.setdefault(_group_key(term), [])
        if number not in among:
            among.append(number)
            self.forget_signatures()
        return number

    def drop_group(self, number: int) -> None:
        """Nobody belongs to this group any more."""
        self._groups[_group_key(self.terms[number])].remove(number)
        self.forget_signatures()

    def forget_signatures(self) -> None:
        """New terms, or namespaces with other labels: whom a term means has to be asked again."""
        self._signatures.clear()
        self.version += 1

    def _enter(self, pod: Pod, term: PodAffinityTerm) -> int:
        own = (
            [pod.metadata.namespace or DEFAULT_NAMESPACE]
            if not term.namespaces and term.namespace_selector is None
            else []
        )
        selector = _narrowed(
            term.label_selector, pod.metadata.labels, term.match_label_keys, term.mismatch_label_keys
        )
        namespaces = frozenset([*term.namespaces, *own])
        return self._number(Term(namespaces, term.namespace_selector, selector, term.topology_key))

    def _number(self, term: Term) -> int:
        """The number of a term that a pod owns."""
        known = len(self.terms)
        number = self._enter_term(term)
        if number == known:
            self._owned.append(number)
            self.forget_signatures()
        return number

    def _enter_term(self, term: Term) -> int:
        key = _encoder.encode(
            (sorted(term.namespaces), term.namespace_selector, term.selector, term.topology_key)
        )
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.terms)
            self.terms.append(term)
        return number


def _group_key(term: Term) -> _GroupKey:
    """A namespace and a label that every pod of the group has; None where its selector names no single label."""
    (namespace,) = term.namespaces
    asked = term.selector.match_labels if term.selector is not None else {}
    return namespace, min(asked.items(), default=None)


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
