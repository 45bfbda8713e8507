"""The part of JSONPath that a configuration may use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.workloads.jsonpath import JsonPathError, parse
from maniple.workloads.model import FieldError

OWNER: dict[str, Any] = {
    "kind": "Run",
    "metadata": {"name": "mine", "namespace": "ml"},
    "spec": {
        "count": 3,
        "queue": "vision",
        "worker-count": 4,
        "a.b": 5,
        "nothing": None,
        "groups": [{"size": 2}, {"size": 3}, {}],
        "roles": {"ps": {"replicas": 1}, "worker": {"replicas": 6}},
    },
}


@pytest.mark.parametrize(
    ("path", "total"),
    [
        ("$.spec.count", 3),
        (".spec.count", 3),
        ("spec.count", 3),
        ("$['spec']['count']", 3),
        ("$.spec.worker-count", 4),
        ('$.spec["a.b"]', 5),
        ("$.spec.groups[1].size", 3),
        ("$.spec.groups[*].size", 5),
        ("$.spec.roles[*].replicas", 7),
        ("$.spec.groups[7].size", None),
        ("$.spec.nothing", None),
        ("$.spec.nothing.at.all", None),
        ("$.status.count", None),
    ],
)
def test_numbers_are_found_and_added_up(path: str, total: int | None) -> None:
    assert parse(path).total(OWNER) == total


def test_a_text_is_found_or_nothing() -> None:
    assert parse("$.spec.queue").said(OWNER) == "vision"
    assert parse("$.spec.other").said(OWNER) == ""


def test_a_path_finds_one_unless_it_asks_for_every_one() -> None:
    assert parse("$.spec.groups[0].size").place == ("spec", "groups", 0, "size")
    assert parse("$.spec.groups[0].size").finds_one
    assert not parse("$.spec.groups[*].size").finds_one


@pytest.mark.parametrize(
    ("path", "position", "message"),
    [
        ("", 1, "names no field"),
        ("$", 1, "names no field"),
        ("$..size", 2, "descendants"),
        ("$.spec..size", 7, "descendants"),
        ("$.spec.*", 7, "write [*] for every entry"),
        ("$.spec.groups[?(@.size > 1)]", 14, "filters"),
        ("$.spec.groups[-1]", 14, "counted from the start"),
        ("$.spec.groups[0:2]", 14, "slices"),
        ("$.spec.groups[0,1]", 14, "several names"),
        ("$.spec.groups[]", 14, "expected .field"),
        ("$.spec.groups[0", 14, "expected .field"),
        ("$.spec.groups[01]", 14, "expected .field"),
        ("{.spec.count}", 1, "without braces"),
        ("$.spec.count()", 13, "functions"),
        ("$spec", 2, "expected .field"),
        ("$.spec count", 7, "expected .field"),
        ("spec count", 5, "expected .field"),
        ("$.spec.", 7, "expected .field"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_position(path: str, position: int, message: str) -> None:
    with pytest.raises(JsonPathError) as error:
        parse(path)
    assert error.value.position == position
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$.spec.queue", 'spec.queue: must be a whole number from 0 to 1,000,000, not "vision"'),
        ("$.spec.count.more", "spec.count: must be an object, not 3"),
        ("$.spec.roles[0]", "spec.roles: must be a list, not an object"),
        ("$.spec.groups.size", "spec.groups: must be an object, not a list"),
        ("$.spec.count[*]", "spec.count: must be an object, not 3"),
    ],
)
def test_a_field_of_another_type_is_named(path: str, message: str) -> None:
    with pytest.raises(FieldError) as error:
        parse(path).total(OWNER)
    assert str(error.value) == f"Run ml/mine: {message}"


@given(st.text("$.[]*'\"ab0-9:,?(){}\\ é\n", max_size=12))
def test_every_text_is_a_path_or_wrong_at_a_position_in_it(text: str) -> None:
    try:
        steps = parse(text).steps
    except JsonPathError as error:
        position = error.position
    else:
        position = len(steps)
    assert 1 <= position <= len(text) + 1
