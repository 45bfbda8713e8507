"""Patterns of HyperNode members and of device selectors: the meaning is Go's, or the pattern is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^gpu-[[:digit:]]+\z", "gpu-12", "gpu-1a"),
        (r"\Qa.b\E[0-9]", "a.b1", "axb1"),
        (r"\Qa.b", "a.b", "axb"),
        (r"(?i)NODE", "node-1", "nod"),
        (r"(?P<rack>r\d)-x", "r1-x", "rx-x"),
        (r"(?<rack>r\d)-x", "r1-x", "rx-x"),
        (r"(?:a|b){2}$", "xab", "abx"),
        (r"a{,2}", "a{,2}", "aa"),
        (r"^[a\-z]+$", "a-z", "b"),
        (r"^[+--]$", ",", "a"),
        (r"^[--a]$", "A", "b"),
        (r"^[]x]$", "]", "y"),
        (r"^[^]x]$", "y", "]"),
        (r"^[[&&|~]+$", "&&", "a"),
        (r"\x61\x{62}", "ab", "xab"[:2]),
        (r"a+?b??", "a", "b"),
        (r"^\w+$", "node", "nöde"),
        (r"^\pL+$", "nöde", "node-1"),
        (r"a(?i)b", "aB", "Ab"),
        (r"^[[:^alpha:]]+$", "12", "a"),
        (r"^a$", "a", "a\n"),
    ],
)
def test_what_both_mean(pattern: str, yes: str, no: str) -> None:
    matches = compile_pattern(pattern)
    assert matches(yes)
    assert not matches(no)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[a",
        "[",
        "[a-",
        "a**",
        "a*+",
        "a++",
        "a{2}{3}",
        "a{1001}",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        r"(a)\1",
        r"\Z",
        r"\x{110000}",
        "[[:nothing:]]",
        "a\\",
        "*",
        "[z-a]",
        "(" * 5000,
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not a valid regular expression: "):
        compile_pattern(pattern)


def test_no_pattern_takes_long() -> None:
    """A matcher that backtracks would not finish any of these; the last is too large to be compiled."""
    assert not compile_pattern("(a+)+$")("a" * 200 + "!")
    assert not compile_pattern("(a|a)*b")("a" * 200)
    assert not compile_pattern("(a?){140}b")("a" * 140)
    assert compile_pattern("a?" * 100 + "a" * 100)("a" * 100)
    with pytest.raises(ValueError, match="too large"):
        compile_pattern("(a?){1000}b" * 50)


@given(st.text(alphabet="ab[](){}?*+|^$\\.-:<>PiQEdxz&~,019", max_size=12))
def test_any_text_is_compiled_or_refused_without_a_warning(pattern: str) -> None:
    with suppress(ValueError):
        compile_pattern(pattern)("ab-ab.0")
