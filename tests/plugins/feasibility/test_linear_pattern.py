"""Patterns matched in linear time, against Python's own matcher where the two speak the same language."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.plugins.feasibility.linear_pattern import search

atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "c", "\\.", "^", "$", "\\b"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0}", "{0,2}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda one: f"({one})"),
    ),
    max_leaves=6,
)


@given(patterns, st.text("abc1. ", max_size=8))
def test_finds_what_python_finds(pattern: str, text: str) -> None:
    assert search(pattern, text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("(?i)h100", "NVIDIA H100", True),
        ("h(?i:1a)", "h1A", True),
        ("^a$", "a\n", False),
        ("[[:digit:]]{3}", "A100", True),
        ("x{,2}", "x{,2}", True),
        ("[]a]b", "]b", True),
        ("(?P<model>a)b", "ab", True),
        ("", "", True),
    ],
)
def test_spelling(pattern: str, text: str, found: bool) -> None:
    assert search(pattern, text) is found


@pytest.mark.parametrize(
    "pattern", ["(", ")", "a**", "(?=a)", "a{1001}", "((a{100}){100}){100}", "(" * 60 + ")" * 60, "\\Qa\\E"]
)
def test_what_is_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        search(pattern, "a")


def test_no_pattern_takes_long() -> None:
    """Each of these would keep a matcher that goes back and forth busy for longer than anybody waits."""
    assert not search("(a+)+$", "a" * 200 + "!")
    assert not search("(a|a)*b", "a" * 200)
    assert search("a?" * 100 + "a" * 100, "a" * 100)


@given(st.text("ab()[]{}*+?|^$\\.1,:-P<>i", max_size=20), st.text("ab1", max_size=6))
def test_any_pattern_is_matched_or_refused(pattern: str, text: str) -> None:
    with contextlib.suppress(ValueError):
        assert search(pattern, text) in (True, False)
