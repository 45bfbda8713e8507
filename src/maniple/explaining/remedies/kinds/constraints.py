"""Looser constraints of pods: selectors, tolerations, affinity to pods, topology spread."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import KEEPING_OUT, PodKind, Subject, merged, setting_pods
from maniple.explaining.remedies.values import Change, KindName, Step
from maniple.objects.core import NodeSelector, NodeSelectorTerm, Pod, Taint, Toleration
from maniple.objects.meta import Requirement
from maniple.objects.selectors import tolerates

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY: tuple[Step, ...] = ("spec", "affinity", "nodeAffinity", REQUIRED)
_BOTH_SIDES = {"podAffinity": "affinity", "podAntiAffinity": "anti-affinity"}
_OF_THE_SYSTEM = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_MANY = 16  # different taints of nodes that are looked at

Loosen = Callable[[PodKind, list[int]], Iterator[Change]]  # the chosen knobs, by number


def _choice(kind: KindName, subject: Subject, names: Sequence[str], start: str, loosen: Loosen) -> Choice:
    """A knob with one level for everything that can be given up."""

    def chosen(levels: Levels) -> list[int]:
        return [number for number, level in enumerate(levels) if level]

    def build(levels: Levels) -> tuple[Change, ...]:
        return merged(change for one in subject.kinds for change in loosen(one, chosen(levels)))

    def words(levels: Levels) -> tuple[str, str]:
        found = [names[number] for number in chosen(levels)]
        return listed(found), f"{start} {listed(found)}"

    return Choice(kind, (1,) * len(names), build, words)


# -- which nodes ------------------------------------------------------------------------------------------------------


def selectors(subject: Subject) -> Iterator[Choice]:
    """Without labels that are selected, and requirements of node affinity."""
    pairs = sorted({pair for kind in subject.kinds for pair in kind.sample.spec.node_selector.items()})
    needs = list(dict.fromkeys(one for kind in subject.kinds for one in _requirements(kind.sample)))
    if not pairs and not needs:
        return
    names = [f"nodeSelector {key}={value}" for key, value in pairs]
    names += [f"node affinity {_said(one)}" for one in needs]

    def loosen(kind: PodKind, chosen: list[int]) -> Iterator[Change]:
        spec = kind.sample.spec
        for number in chosen:
            if number < len(pairs) and spec.node_selector.get(pairs[number][0]) == pairs[number][1]:
                yield setting_pods(
                    kind.keys, ("spec", "nodeSelector", pairs[number][0]), pairs[number][1], None
                )
        dropped = [needs[number - len(pairs)] for number in chosen if number >= len(pairs)]
        required = _required(kind.sample)
        if required is not None and any(one in dropped for one in _requirements(kind.sample)):
            after = msgspec.to_builtins(_without(required, dropped))
            yield setting_pods(kind.keys, _NODE_AFFINITY, msgspec.to_builtins(required), after)

    yield _choice("selector", subject, names, "Without", loosen)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None


def _mark(one: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return one.key, one.operator, one.values


def _requirements(pod: Pod) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    required = _required(pod)
    for term in required.node_selector_terms if required is not None else ():
        yield from map(_mark, (*term.match_expressions, *term.match_fields))


def _without(required: NodeSelector, dropped: list[tuple[str, str, tuple[str, ...]]]) -> NodeSelector | None:
    """Without some requirements; a term without any is open to all nodes."""
    terms = []
    for term in required.node_selector_terms:
        expressions = tuple(one for one in term.match_expressions if _mark(one) not in dropped)
        fields = tuple(one for one in term.match_fields if _mark(one) not in dropped)
        if not expressions and not fields:
            return None
        terms.append(NodeSelectorTerm(match_expressions=expressions, match_fields=fields))
    return NodeSelector(node_selector_terms=tuple(terms))


def _said(one: tuple[str, str, tuple[str, ...]]) -> str:
    key, operator, values = one
    return f"{key} {operator}{f' ({chr(44).join(values)})' if values else ''}"


def tolerations(subject: Subject) -> Iterator[Choice]:
    """Tolerate taints that nodes have. Those that say that a node is in a bad state are not to be tolerated."""
    taints = _untolerated(subject)
    if not taints:
        return
    names = [f"{one.key}{f'={one.value}' if one.value else ''}:{one.effect}" for one in taints]

    def loosen(kind: PodKind, chosen: list[int]) -> Iterator[Change]:
        stated = kind.sample.spec.tolerations
        added = [_tolerating(taints[number]) for number in chosen]
        if added:
            before, after = msgspec.to_builtins(stated), msgspec.to_builtins((*stated, *added))
            yield setting_pods(kind.keys, ("spec", "tolerations"), before, after)

    yield _choice("toleration", subject, names, "With a toleration for", loosen)


def _untolerated(subject: Subject) -> list[Taint]:
    seen: dict[tuple[str, str, str], Taint] = {}
    for node in subject.cluster.nodes.objects.values():
        for taint in node.spec.taints:
            seen.setdefault((taint.key, taint.value, taint.effect), taint)
    found = [
        seen[key]
        for key in sorted(seen)
        if seen[key].effect in KEEPING_OUT
        and not seen[key].key.startswith(_OF_THE_SYSTEM)
        and not all(tolerates(kind.sample.spec.tolerations, seen[key]) for kind in subject.kinds)
    ]
    return found[:_MANY]


def _tolerating(taint: Taint) -> Toleration:
    if not taint.value:
        return Toleration(key=taint.key, operator="Exists", effect=taint.effect)
    return Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


# -- beside which pods ------------------------------------------------------------------------------------------------


def affinity(subject: Subject) -> Iterator[Choice]:
    """Without required terms of affinity and anti-affinity to pods."""
    terms = [
        (side, number, kind)
        for kind in subject.kinds
        for side in _BOTH_SIDES
        for number in range(len(_terms(kind.sample, side)))
    ]
    if not terms:
        return
    names = [
        f"{_BOTH_SIDES[side]} to pods over {_terms(kind.sample, side)[number]['topologyKey']}"
        for side, number, kind in terms
    ]

    def loosen(kind: PodKind, chosen: list[int]) -> Iterator[Change]:
        for side in _BOTH_SIDES:
            stated = _terms(kind.sample, side)
            gone = {terms[one][1] for one in chosen if terms[one][0] == side and terms[one][2] is kind}
            if gone:
                left = [term for number, term in enumerate(stated) if number not in gone]
                yield setting_pods(kind.keys, ("spec", "affinity", side, REQUIRED), stated, left or None)

    yield _choice("affinity", subject, names, "Without the required", loosen)


def _terms(pod: Pod, side: str) -> list[dict[str, object]]:
    stated = msgspec.to_builtins(pod.spec.affinity) if pod.spec.affinity is not None else {}
    found: list[dict[str, object]] = list(stated.get(side, {}).get(REQUIRED, ()))
    return found


def spread(subject: Subject) -> Iterator[Choice]:
    """Spread as far as possible instead of strictly."""
    places = [
        (kind, number)
        for kind in subject.kinds
        for number, one in enumerate(kind.sample.spec.topology_spread_constraints)
        if one.when_unsatisfiable == "DoNotSchedule"
    ]
    if not places:
        return
    names = [kind.sample.spec.topology_spread_constraints[number].topology_key for kind, number in places]

    def loosen(kind: PodKind, chosen: list[int]) -> Iterator[Change]:
        for one in chosen:
            owner, number = places[one]
            if owner is kind:
                path = ("spec", "topologySpreadConstraints", number, "whenUnsatisfiable")
                yield setting_pods(kind.keys, path, "DoNotSchedule", "ScheduleAnyway")

    yield _choice(
        "spread", subject, names, "With whenUnsatisfiable: ScheduleAnyway for the spread over", loosen
    )
