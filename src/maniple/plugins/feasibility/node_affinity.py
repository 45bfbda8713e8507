"""NodeAffinity: the node selector and the required terms of a pod hold; preferred terms add their weights.

A node fits if it has all labels of `nodeSelector` and any of the required terms holds; a term holds if all
its expressions (labels) and fields (the node's name) do, and an empty term never does. Score: sum of the
weights of the preferred terms that hold, in proportion to the best candidate. Work is per distinct label
value, never per node.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import MISSING, NodeFacts
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.reasons import FITS, Code, Detail, Reason, Verdicts
from maniple.framework.session import Session
from maniple.objects.core import NodeAffinity as Wishes
from maniple.objects.core import NodeSelector, NodeSelectorTerm, Pod, PreferredSchedulingTerm
from maniple.objects.meta import LabelSelector, Requirement
from maniple.objects.selectors import requirement_matches
from maniple.plugins.normalise import by_maximum

Mask = NDArray[np.bool_]

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = Reason("plugin NodeAffinity pre-predicates failed pod affinity terms conflict", Code.UNRESOLVABLE)
_LISTED = 4  # values of a label to name


class NodeAffinity:
    """The filter and the score, for one session."""

    def __init__(self, session: Session) -> None:
        self._facts = session.nodes.facts
        self._no_match = session.reasons.number(NO_MATCH, Code.UNRESOLVABLE)
        self._mismatches: dict[tuple[str, str], Detail] = {}

    def filter(self) -> Filter:
        return Filter("NodeAffinity", Dependence.STATIC, self._check, _asks, detail=self._detail)

    def scorer(self, weight: int) -> Scorer:
        return Scorer("NodeAffinity", weight, Dependence.STATIC, self._raw, by_maximum, _prefers)

    def conflict(self, class_: TaskClass) -> Reason | None:
        """A pod whose every term names two nodes at once fits nowhere."""
        preferences = _wishes(class_.spec.pod)
        required = (
            preferences.required_during_scheduling_ignored_during_execution
            if preferences is not None
            else None
        )
        terms = required.node_selector_terms if required is not None else ()
        return CONFLICT if terms and all(_names_two_nodes(term) for term in terms) else None

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        fits = required_mask(self._facts, class_.spec.pod)
        return np.where(fits, FITS, self._no_match).astype(np.int16)[cells.rows]

    def _detail(self, class_: TaskClass, node: int) -> Detail:
        """What of the selector does not hold on a node; of several terms the first says why."""
        spec = class_.spec.pod.spec
        for key, value in spec.node_selector.items():
            if not has_value(self._facts, key, (value,))[node]:
                return self._mismatch("node selector", f"{key}={value}", key, (value,))
        wishes = _wishes(class_.spec.pod)
        required = wishes.required_during_scheduling_ignored_during_execution if wishes is not None else None
        for term in required.node_selector_terms if required is not None else ():
            for one in term.match_expressions:
                if not _requirement_mask(self._facts, one)[node]:
                    return self._mismatch("node affinity", written(one), one.key, one.values)
        return Detail("NodeAffinity", "does not match the node affinity of the pod")

    def _mismatch(self, what: str, term: str, key: str, values: Sequence[str]) -> Detail:
        """With the nearest that there is: a value of the label or, if no node has the label, another key."""
        known = self._mismatches.get((what, term))
        if known is None:
            known = self._mismatches[what, term] = self._compared(what, term, key, values)
        return known

    def _compared(self, what: str, term: str, key: str, values: Sequence[str]) -> Detail:
        there = self._facts.label(key).values
        if there:
            close = [near for value in values for near in get_close_matches(value, there, n=1, cutoff=0.5)]
            listed = close or sorted(there)[:_LISTED]
            more = " ..." if not close and len(there) > _LISTED else ""
            hint = f"nodes have {key}={' or '.join(listed)}{more}"
        else:
            near = get_close_matches(key, self._facts.label_keys(), n=1, cutoff=0.7)
            hint = f"no node has the label {key}" + (f"; nodes have {near[0]}" if near else "")
        return Detail("NodeAffinity", f"{what} {term} does not match ({hint})", term)

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        raw = np.zeros(len(self._facts))
        for term in _preferred(class_.spec.pod):
            raw += term.weight * term_mask(self._facts, term.preference)
        return raw[cells.rows]


def written(requirement: Requirement) -> str:
    """A requirement as `kubectl -l` writes it."""
    key, values = requirement.key, ", ".join(requirement.values)
    match requirement.operator:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
    return f"{key} {'>' if requirement.operator == 'Gt' else '<'} {values}"


def _wishes(pod: Pod) -> Wishes | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None


def _preferred(pod: Pod) -> Sequence[PreferredSchedulingTerm]:
    preferences = _wishes(pod)
    return preferences.preferred_during_scheduling_ignored_during_execution if preferences is not None else ()


def _prefers(class_: TaskClass) -> bool:
    return bool(_preferred(class_.spec.pod))


def _asks(class_: TaskClass) -> bool:
    pod = class_.spec.pod
    preferences = _wishes(pod)
    required = (
        preferences is not None
        and preferences.required_during_scheduling_ignored_during_execution is not None
    )
    return bool(pod.spec.node_selector) or required


def _names_two_nodes(term: NodeSelectorTerm) -> bool:
    named = [set(field.values) for field in term.match_fields if field.operator == "In"]
    return bool(named) and not set.intersection(*named)


# -- masks over all nodes, which the other rules use as well -------------------------------------------------------


def required_mask(facts: NodeFacts, pod: Pod) -> Mask:
    """Nodes that a pod's node selector and required terms allow."""
    mask = np.ones(len(facts), dtype=np.bool_)
    for key, value in pod.spec.node_selector.items():
        mask &= has_value(facts, key, (value,))
    preferences = _wishes(pod)
    required = (
        preferences.required_during_scheduling_ignored_during_execution if preferences is not None else None
    )
    if required is not None:
        mask &= selector_mask(facts, required)
    return mask


def selector_mask(facts: NodeFacts, selector: NodeSelector) -> Mask:
    """Nodes for which any term holds."""
    mask = np.zeros(len(facts), dtype=np.bool_)
    for term in selector.node_selector_terms:
        mask |= term_mask(facts, term)
    return mask


def term_mask(facts: NodeFacts, term: NodeSelectorTerm) -> Mask:
    """Nodes for which all of a term holds."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(facts), dtype=np.bool_)
    mask = requirements_mask(facts, term.match_expressions)
    for field in term.match_fields:
        named = np.zeros(len(facts), dtype=np.bool_)
        named[[facts.index[name] for name in field.values if name in facts.index]] = True
        mask &= named if field.operator == "In" else ~named
    return mask


def label_selector_mask(facts: NodeFacts, selector: LabelSelector) -> Mask:
    """Nodes whose labels a plain label selector matches; an empty one matches all."""
    mask = requirements_mask(facts, selector.match_expressions)
    for key, value in selector.match_labels.items():
        mask &= has_value(facts, key, (value,))
    return mask


def requirements_mask(facts: NodeFacts, requirements: Iterable[Requirement]) -> Mask:
    mask = np.ones(len(facts), dtype=np.bool_)
    for requirement in requirements:
        mask &= _requirement_mask(facts, requirement)
    return mask


def _requirement_mask(facts: NodeFacts, requirement: Requirement) -> Mask:
    key = requirement.key
    column = facts.label(key)
    labelled: Mask = column.codes != MISSING
    match requirement.operator:
        case "In":
            return has_value(facts, key, requirement.values)
        case "NotIn":
            return ~has_value(facts, key, requirement.values)
        case "Exists":
            return labelled
        case "DoesNotExist":
            return ~labelled
    holds = [requirement_matches(requirement, {key: value}) for value in column.values]
    return np.array([*holds, False])[column.codes]  # MISSING reads the last entry


def has_value(facts: NodeFacts, key: str, values: Iterable[str]) -> Mask:
    """Nodes whose label has one of the values."""
    codes = facts.label(key).codes
    known = _codes_by_value(facts, key)
    found = [known[value] for value in values if value in known]
    mask: Mask = codes == found[0] if len(found) == 1 else np.isin(codes, found)
    return mask


def _codes_by_value(facts: NodeFacts, key: str) -> dict[str, int]:
    """The codes of a label's values, for keys with as many values as there are nodes."""
    memory = ("codes of values", key)
    if memory not in facts.memory:
        facts.memory[memory] = {value: code for code, value in enumerate(facts.label(key).values)}
    return facts.memory[memory]  # type: ignore[return-value]  # what this function put there
