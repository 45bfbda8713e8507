"""The argument getters take what Volcano's take, keep the default otherwise, and say so."""

import math

import pytest

from maniple.framework.configuration.arguments import Arguments, TextArguments


def test_integer_takes_only_integers() -> None:
    arguments = Arguments({"a": 5, "b": "5", "c": 5.0, "d": True, "e": None, "f": 2**63}, "binpack")
    assert arguments.int("a", 1) == 5
    assert arguments.int("missing", 7) == 7
    assert arguments.warnings == []
    assert [arguments.int(key, 1) for key in "bcdef"] == [1] * 5
    assert arguments.warnings[0] == (
        'binpack: argument "b" must be an integer, found the text "5", keeping the number 1'
    )
    assert len(arguments.warnings) == 5


def test_float_takes_integers_too() -> None:
    arguments = Arguments({"a": 5, "b": 0.5, "c": "0.5", "d": False, "e": math.nan, "f": math.inf}, "x")
    assert arguments.float("a", 0.0) == 5.0
    assert isinstance(arguments.float("a", 0.0), float)
    assert arguments.float("b", 0.0) == 0.5
    assert [arguments.float(key, 1.5) for key in "cdef"] == [1.5] * 4
    assert len(arguments.warnings) == 4


@pytest.mark.parametrize("word", ["1", "t", "T", "TRUE", "true", "True"])
def test_boolean_takes_text_that_go_parses(word: str) -> None:
    assert Arguments({"a": word}, "x").bool("a", False) is True


@pytest.mark.parametrize("word", ["0", "f", "F", "FALSE", "false", "False"])
def test_boolean_takes_false_text_that_go_parses(word: str) -> None:
    assert Arguments({"a": word}, "x").bool("a", True) is False


@pytest.mark.parametrize("value", ["yes", "tRUE", "", 1, 0, None, []])
def test_boolean_refuses_the_rest(value: object) -> None:
    arguments = Arguments({"a": value}, "x")
    assert arguments.bool("a", True) is True
    assert len(arguments.warnings) == 1


def test_string_takes_only_text() -> None:
    arguments = Arguments({"a": "5m", "b": 5}, "sla")
    assert arguments.string("a", "") == "5m"
    assert arguments.string("b", "1m") == "1m"
    assert arguments.string("c", None) is None
    assert arguments.warnings == ['sla: argument "b" must be text, found the number 5, keeping the text "1m"']


def test_nested_values_are_copies() -> None:
    values = {"resources": {"cpu": 1}, "zones": ["a"]}
    arguments = Arguments(values, "x")
    arguments.mapping("resources")["cpu"] = 2
    arguments.list("zones").append("b")
    assert values == {"resources": {"cpu": 1}, "zones": ["a"]}
    assert (arguments.mapping("zones"), arguments.list("resources")) == ({}, [])
    assert (arguments.mapping("missing"), arguments.list("missing")) == ({}, [])
    assert arguments.warnings == [
        'x: argument "zones" must be a mapping, found a list',
        'x: argument "resources" must be a list, found a mapping',
    ]


def test_the_same_complaint_is_made_once() -> None:
    arguments = Arguments({"a": "x"}, "x")
    assert arguments.int("a", 1) + arguments.int("a", 1) == 2
    assert len(arguments.warnings) == 1


def test_unknown_keys_name_the_owner_and_the_nearest_key() -> None:
    values = {
        "binpack.wieght": 1,
        "binpack.resources.nvidia.com/gpu": 2,
        "asked": 3,
        "zzz": 4,
        "binpack.cpu": 5,
    }
    arguments = Arguments(values, "plugin binpack")
    arguments.int("asked", 0)
    arguments.unknown(["binpack.weight", "binpack.cpu"], prefixes=["binpack.resources."])
    assert arguments.warnings == [
        'plugin binpack: unknown argument "binpack.wieght", ignored; did you mean "binpack.weight"?',
        'plugin binpack: unknown argument "zzz", ignored',
    ]


def test_warnings_have_an_end() -> None:
    arguments = Arguments({f"key{number}": 1 for number in range(5000)}, "x")
    arguments.unknown([])
    assert len(arguments.warnings) == 100


@pytest.mark.parametrize(
    ("text", "expected"), [("1", 1.0), ("-2.5", -2.5), ("1e3", 1000.0), (".5", 0.5), ("7.", 7.0)]
)
def test_numbers_that_are_text_are_read(text: str, expected: float) -> None:
    arguments = TextArguments({"a": text}, "plugin x")
    assert arguments.float("a", 0.0) == expected
    arguments.unknown(())
    assert arguments.warnings == []


@pytest.mark.parametrize("text", ["", "one", " 1", "1_0", "nan", "inf", "1e999", "0x10", "9" * 100])
def test_text_that_is_no_number_keeps_the_default_and_is_reported(text: str) -> None:
    arguments = TextArguments({"a": text, "b": text}, "plugin x")
    assert (arguments.float("a", 0.5), arguments.int("b", 3)) == (0.5, 3)
    assert len(arguments.warnings) == 2


def test_integers_and_booleans_that_are_text_are_read() -> None:
    arguments = TextArguments({"a": "-12", "b": "true", "c": "1.5", "d": "9223372036854775808"}, "plugin x")
    assert arguments.int("a", 0) == -12
    assert arguments.bool("b", False)
    assert (arguments.int("c", 7), arguments.int("d", 8)) == (7, 8)
    assert len(arguments.warnings) == 2


def test_durations_take_days_and_weeks() -> None:
    arguments = TextArguments({"a": "1w2d", "b": "90s", "c": "soon"}, "plugin x")
    assert arguments.duration("a", 0) == 9 * 24 * 3600 * 10**9
    assert arguments.duration("b", 0) == 90 * 10**9
    assert arguments.duration("c", 5) == 5
    assert arguments.duration("d", 6) == 6
    assert arguments.warnings == [
        'plugin x: argument "c" must be a duration such as "1h30m", found the text "soon", keeping the number 5'
    ]
