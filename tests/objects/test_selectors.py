"""Selectors, node terms and tolerations match as Kubernetes says; what is invalid is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.objects import selectors
from maniple.objects.core import NodeSelector, NodeSelectorTerm, Taint, Toleration
from maniple.objects.meta import LabelSelector, Requirement

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)


def expression(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


@given(LABELS)
def test_no_selector_matches_nothing_and_an_empty_one_everything(labels: dict[str, str]) -> None:
    assert not selectors.matches(None, labels)
    assert selectors.matches(LabelSelector(), labels)


@given(LABELS, LABELS)
def test_match_labels_are_a_subset(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert selectors.matches(LabelSelector(match_labels=wanted), labels) == (wanted.items() <= labels.items())


@given(st.sampled_from("abc"), st.sets(st.sampled_from("xyz"), min_size=1), LABELS)
def test_operators_come_in_opposite_pairs(key: str, values: set[str], labels: dict[str, str]) -> None:
    for operator, opposite, arguments in (("In", "NotIn", values), ("Exists", "DoesNotExist", ())):
        held = selectors.requirement_matches(expression(key, operator, *arguments), labels)
        assert held != selectors.requirement_matches(expression(key, opposite, *arguments), labels)
        assert held == (key in labels and (not arguments or labels[key] in values))


@given(LABELS, LABELS)
def test_match_labels_and_in_expressions_say_the_same(wanted: dict[str, str], labels: dict[str, str]) -> None:
    expressions = tuple(expression(key, "In", value) for key, value in wanted.items())
    assert selectors.matches(LabelSelector(match_labels=wanted), labels) == selectors.matches(
        LabelSelector(match_expressions=expressions), labels
    )


@pytest.mark.parametrize(
    ("operator", "bound", "label", "held"),
    [
        ("Gt", "4", "5", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Gt", "-2", "-1", True),
        ("Gt", "4", "05", True),
        ("Gt", "4", "5.0", False),
        ("Gt", "4", "many", False),
        ("Gt", "4", "9223372036854775808", False),
        ("Gt", "4", None, False),
        ("Lt", "4", None, False),
    ],
)
def test_numbers_compare_as_integers(operator: str, bound: str, label: str | None, held: bool) -> None:
    labels = {} if label is None else {"a": label}
    assert selectors.requirement_matches(expression("a", operator, bound), labels) is held


def test_an_unknown_operator_matches_nothing() -> None:
    assert not selectors.requirement_matches(expression("a", "Near", "x"), {"a": "x"})


def test_a_term_wants_all_and_a_selector_any() -> None:
    both = NodeSelectorTerm(match_expressions=(expression("a", "Exists"), expression("b", "Exists")))
    by_name = NodeSelectorTerm(match_fields=(expression("metadata.name", "In", "n1"),))
    selector = NodeSelector(node_selector_terms=(both, by_name))
    assert selectors.node_selector_matches(selector, {"a": "", "b": ""}, "n2")
    assert selectors.node_selector_matches(selector, {}, "n1")
    assert not selectors.node_selector_matches(selector, {"a": ""}, "n2")


def test_a_label_called_like_the_field_is_not_the_field() -> None:
    term = NodeSelectorTerm(match_fields=(expression("metadata.name", "In", "n1"),))
    assert not selectors.term_matches(term, {"metadata.name": "n1"}, "n2")


def test_an_empty_term_matches_no_node() -> None:
    assert not selectors.term_matches(NodeSelectorTerm(), {"a": "x"}, "n1")
    assert not selectors.node_selector_matches(NodeSelector(), {"a": "x"}, "n1")


TAINT = Taint(key="gpu", value="5", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "held"),
    [
        (Toleration(key="gpu", value="5"), True),
        (Toleration(key="gpu", operator="Equal", value="5", effect="NoSchedule"), True),
        (Toleration(key="gpu", operator="Equal", value="6"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="gpu", operator="Gt", value="4"), True),
        (Toleration(key="gpu", operator="Gt", value="5"), False),
        (Toleration(key="gpu", operator="Lt", value="6"), True),
        (Toleration(key="gpu", operator="Lt", value="5"), False),
        (Toleration(key="gpu", operator="Lt", value="x"), False),
        (Toleration(key="gpu", operator="Near", value="5"), False),
    ],
)
def test_tolerations(toleration: Toleration, held: bool) -> None:
    assert selectors.tolerates((toleration,), TAINT) is held


def test_no_toleration_tolerates_nothing_and_one_of_many_is_enough() -> None:
    assert not selectors.tolerates((), TAINT)
    assert selectors.tolerates(
        (Toleration(key="x", operator="Exists"), Toleration(key="gpu", operator="Exists")), TAINT
    )


def test_untolerated_names_the_first_taint_of_these_effects() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    other = Taint(key="other", effect="NoExecute")
    taints = (soft, TAINT, other)
    effects = ("NoSchedule", "NoExecute")
    assert selectors.untolerated((), taints, effects) == TAINT
    assert selectors.untolerated((Toleration(key="gpu", operator="Exists"),), taints, effects) == other
    assert selectors.untolerated((Toleration(operator="Exists"),), taints, effects) is None
    assert selectors.untolerated((), (soft,), effects) is None


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        (expression("a", "In", "x"), None),
        (expression("example.com/a", "DoesNotExist"), None),
        (expression("a", "In"), "needs at least one value"),
        (expression("a", "NotIn"), "needs at least one value"),
        (expression("a", "Exists", "x"), "takes no values"),
        (expression("a", "Gt", "1"), "unknown operator 'Gt'"),
        (expression("a", "in", "x"), "unknown operator 'in'"),
        (expression("", "Exists"), "not a label key"),
        (expression("a b", "Exists"), "not a label key"),
        (expression("/a", "Exists"), "not a label key"),
        (expression("Example.com/a", "Exists"), "not a label key"),
        (expression("a" * 64, "Exists"), "not a label key"),
        (expression("a", "In", "x y"), "not a label value"),
    ],
)
def test_selector_problems(requirement: Requirement, problem: str | None) -> None:
    found = selectors.selector_problem(
        LabelSelector(match_expressions=(expression("ok", "Exists"), requirement))
    )
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith("matchExpressions[1]: ")
        assert problem in found


def test_no_selector_is_no_problem_and_match_labels_are_looked_at() -> None:
    assert selectors.selector_problem(None) is None
    assert selectors.selector_problem(LabelSelector(match_labels={"a": ""})) is None
    assert (
        selectors.selector_problem(LabelSelector(match_labels={"a": "-"}))
        == "matchLabels: not a label value: '-'"
    )


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        (NodeSelectorTerm(match_expressions=(expression("a", "Gt", "1"),)), None),
        (NodeSelectorTerm(match_expressions=(expression("a", "Gt", "x"),)), "exactly one integer"),
        (NodeSelectorTerm(match_expressions=(expression("a", "Lt", "1", "2"),)), "exactly one integer"),
        (NodeSelectorTerm(match_fields=(expression("metadata.name", "In", "n"),)), None),
        (NodeSelectorTerm(match_fields=(expression("metadata.name", "In", "n", "m"),)), "exactly one value"),
        (NodeSelectorTerm(match_fields=(expression("metadata.uid", "In", "n"),)), "unknown field"),
        (NodeSelectorTerm(match_fields=(expression("metadata.name", "Exists"),)), "unknown operator"),
    ],
)
def test_node_selector_problems(term: NodeSelectorTerm, problem: str | None) -> None:
    found = selectors.node_selector_problem(NodeSelector(node_selector_terms=(term,)))
    assert found is None if problem is None else found is not None and problem in found


def test_a_node_selector_needs_a_term() -> None:
    assert selectors.node_selector_problem(NodeSelector()) == "nodeSelectorTerms: needs at least one term"
    assert selectors.node_selector_problem(None) is None


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        (Toleration(key="a", operator="Exists"), None),
        (Toleration(operator="Exists"), None),
        (Toleration(key="a", operator="Gt", value="1"), None),
        (Toleration(key="a", operator="Near"), "operator"),
        (Toleration(value="x"), "operator"),
        (Toleration(key="a", operator="Exists", value="x"), "value"),
        (Toleration(key="a", operator="Lt", value="x"), "value"),
        (Toleration(key="a", effect="NoRun"), "effect"),
    ],
)
def test_toleration_problems(toleration: Toleration, field: str | None) -> None:
    found = selectors.toleration_problem(toleration)
    assert found is None if field is None else found is not None and found.startswith(f"{field}: ")
