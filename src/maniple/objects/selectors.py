"""Label selectors, node requirements and tolerations: whether they match, and whether they are valid.

`load` calls the `..._problem` functions, so that later code can match without checking. A selector that is
None matches nothing, an empty one everything. The rules are those of the Kubernetes API.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from maniple.objects.affinity import NodeSelector, NodeSelectorTerm, Taint, Toleration
from maniple.objects.meta import LabelSelector, Requirement
from maniple.objects.remembering import remembered

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")
TOLERATION_OPERATORS = ("", "Equal", "Exists", "Lt", "Gt")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_LABEL_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_FIELD_KEY = "metadata.name"


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return all(requirement_matches(requirement, labels) for requirement in selector.match_expressions)


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy one expression; a missing key satisfies only NotIn and DoesNotExist."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            bound = requirement.values[0] if len(requirement.values) == 1 else None
            return _compares(requirement.operator, value, bound)
    return False


def term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether a node satisfies all of one term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {_FIELD_KEY: node_name}
    return all(requirement_matches(requirement, labels) for requirement in term.match_expressions) and all(
        requirement_matches(requirement, fields) for requirement in term.match_fields
    )


def node_selector_matches(selector: NodeSelector, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether a node satisfies any term."""
    return any(term_matches(term, labels, node_name) for term in selector.node_selector_terms)


def _integer(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compares(operator: str, value: str | None, bound: str | None) -> bool:
    """Whether the value is greater (Gt) or less (Lt) than the bound; false if either is not a 64-bit integer."""
    left, right = _integer(value), _integer(bound)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(_accepts(toleration, taint) for toleration in tolerations)


def _accepts(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration.operator, taint.value, toleration.value)
    return False


def untolerated(
    tolerations: Collection[Toleration], taints: Iterable[Taint], effects: Collection[str]
) -> Taint | None:
    """The first taint with one of these effects that is not tolerated."""
    for taint in taints:
        if taint.effect in effects and not tolerates(tolerations, taint):
            return taint
    return None


@remembered(16384)
def key_problem(key: str) -> str | None:
    """What is wrong with a label key: an optional DNS prefix and a slash, then at most 63 characters."""
    prefix, slash, word = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _PREFIX.fullmatch(prefix)):
        return f"not a label key: {key!r}"
    return None if _LABEL_WORD.fullmatch(word) else f"not a label key: {key!r}"


@remembered(16384)
def value_problem(value: str) -> str | None:
    """What is wrong with a label value: empty, or at most 63 characters."""
    return None if not value or _LABEL_WORD.fullmatch(value) else f"not a label value: {value!r}"


def selector_problem(selector: LabelSelector | None) -> str | None:
    """What is wrong with a label selector, or None."""
    if selector is None:
        return None
    for key, value in selector.match_labels.items():
        problem = key_problem(key) or value_problem(value)
        if problem:
            return f"matchLabels: {problem}"
    for index, requirement in enumerate(selector.match_expressions):
        problem = requirement_problem(requirement, LABEL_OPERATORS)
        if problem is None:
            problem = next(filter(None, map(value_problem, requirement.values)), None)
        if problem:
            return f"matchExpressions[{index}]: {problem}"
    return None


def requirement_problem(requirement: Requirement, operators: Collection[str]) -> str | None:
    """What is wrong with one expression: its key, its operator, the number of values."""
    problem = key_problem(requirement.key)
    if problem:
        return problem
    operator, count = requirement.operator, len(requirement.values)
    if operator not in operators:
        return f"unknown operator {operator!r}, expected one of {', '.join(operators)}"
    if operator in ("In", "NotIn") and count == 0:
        return f"operator {operator} needs at least one value"
    if operator in ("Exists", "DoesNotExist") and count:
        return f"operator {operator} takes no values"
    if operator in ("Gt", "Lt") and (count != 1 or _integer(requirement.values[0]) is None):
        return f"operator {operator} needs exactly one integer"
    return None


def term_problem(term: NodeSelectorTerm) -> str | None:
    """What is wrong with one term of a node selector."""
    for index, requirement in enumerate(term.match_expressions):
        problem = requirement_problem(requirement, NODE_OPERATORS)
        if problem:
            return f"matchExpressions[{index}]: {problem}"
    for index, requirement in enumerate(term.match_fields):
        problem = requirement_problem(requirement, FIELD_OPERATORS)
        if problem is None and requirement.key != _FIELD_KEY:
            problem = f"unknown field {requirement.key!r}, only {_FIELD_KEY} can be selected"
        if problem is None and len(requirement.values) != 1:
            problem = "needs exactly one value"
        if problem:
            return f"matchFields[{index}]: {problem}"
    return None


def node_selector_problem(selector: NodeSelector | None) -> str | None:
    """What is wrong with a node selector."""
    if selector is None:
        return None
    if not selector.node_selector_terms:
        return "nodeSelectorTerms: needs at least one term"
    for index, term in enumerate(selector.node_selector_terms):
        problem = term_problem(term)
        if problem:
            return f"nodeSelectorTerms[{index}].{problem}"
    return None


def toleration_problem(toleration: Toleration) -> str | None:
    """What is wrong with a toleration."""
    operator = toleration.operator
    if operator not in TOLERATION_OPERATORS:
        return f"operator: unknown operator {operator!r}, expected Equal, Exists, Lt or Gt"
    if not toleration.key and operator != "Exists":
        return "operator: must be Exists when key is empty"
    if operator == "Exists" and toleration.value:
        return "value: must be empty when operator is Exists"
    if operator in ("Lt", "Gt") and _integer(toleration.value) is None:
        return f"value: operator {operator} needs an integer"
    if toleration.effect and toleration.effect not in TAINT_EFFECTS:
        return f"effect: unknown effect {toleration.effect!r}"
    return None
