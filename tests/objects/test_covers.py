"""When an object contains everything that another states."""

import pytest

from maniple.objects.covers import covers


@pytest.mark.parametrize(
    ("there", "wanted", "answer"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [2, 1]}, {"a": [1, 2]}, False),
        ({"a": "[1]"}, {"a": [1]}, False),
        (None, {"a": 1}, False),
        (None, {}, False),
    ],
)
def test_what_is_wanted_must_be_there_and_more_may_be(there: object, wanted: object, answer: bool) -> None:
    assert covers(there, wanted) is answer
