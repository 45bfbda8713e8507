"""YAML reading: Go's meaning of plain words, lines, bounds on what a text can expand to."""

import math

import pytest
import yaml

from maniple.framework.configuration import compose as composing
from maniple.framework.configuration.compose import ComposeError, compose

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the C parser and with the one that stands in where it is not built."""
    monkeypatch.setattr(composing, "_LOADER", request.param)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("", None), ("~", None), ("null", None), ("NULL", None), ("nUll", "nUll"),
        ("y", True), ("Yes", True), ("on", True), ("TRUE", True), ("tRue", "tRue"),
        ("n", False), ("no", False), ("OFF", False), ("False", False),
        ("0", 0), ("12", 12), ("-7", -7), ("+7", 7), ("1_000", 1000), ("0x1F", 31), ("0b101", 5), ("0o17", 15),
        ("017", 15), ("08", 8.0), ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("-1.5E-2", -0.015), (".inf", math.inf),
        ("-.INF", -math.inf), ("1e999", "1e999"), ("9" * 5000, "9" * 5000), ("nan", "nan"), ("inf", "inf"),
        ("10:00", "10:00"), ("1:30:00", "1:30:00"), ("2026-01-01", "2026-01-01"), ("5m", "5m"), ("1.2.3", "1.2.3"),
        ('"5"', "5"), ("'yes'", "yes"), ("!!str 5", "5"), ("! 5", "5"), ("!!int 5", 5), ("!!float 5", 5.0),
        ("!!bool yes", True), ("!!null ~", None), ("=", "="), ("\uff11", "\uff11"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("loader")
def test_plain_words_mean_what_go_makes_of_them(word: str, value: object) -> None:
    result = compose(f"a: {word}").value["a"]
    assert result == value
    assert type(result) is type(value)


@pytest.mark.usefixtures("loader")
def test_not_a_number_is_read() -> None:
    assert math.isnan(compose("a: .nan").value["a"])


@pytest.mark.parametrize(
    "word", ["!!int yes", "!!int 1.5", "!!bool 3", "!!binary aGk=", "!!set {a}", "!own x", "!!int a"]
)
def test_other_tags_are_refused(word: str) -> None:
    with pytest.raises(ComposeError, match="is not read here"):
        compose(f"a: {word}")


@pytest.mark.usefixtures("loader")
def test_lines_belong_to_the_key_and_to_the_item() -> None:
    lines = compose("# top\na:\n  b:\n  - 1\n  -\n    c: 2\nd: |\n  text\ne: 3\n").lines
    assert lines == {
        (): 2,
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "b", 0): 4,
        ("a", "b", 1): 6,
        ("a", "b", 1, "c"): 6,
        ("d",): 7,
        ("e",): 9,
    }


@pytest.mark.usefixtures("loader")
def test_aliases_and_merges() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 5\nd: *a\ne: {<<: *b}\n"
    value = compose(text).value
    assert value["c"] == {"x": 5, "y": 2, "z": 4}
    assert value["d"] == {"x": 1, "y": 2}
    assert value["e"] == {"y": 3, "z": 4}


def test_keys_are_text_as_written() -> None:
    assert compose("{1: a, yes: b, 0x10: c, ~: d}").value == {"1": "a", "yes": "b", "0x10": "c", "~": "d"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: &a [*a]", 1, "stands inside its own anchor"),
        ("a: 1\nb: *c", 2, "has no anchor"),
        ("a: &a 3\nb:\n  <<: [*a]", 3, "only mappings can be merged"),
        ("a:\n" + "- " * 500 + "x", 2, "levels deep"),
        ("[" * 100_000, 1, "levels deep"),
        ("{a: " * 100_000, 1, "levels deep"),
        ("a:\n" + "".join(f"{' ' * depth}b:\n" for depth in range(1, 60)), 33, "levels deep"),
        ("a: 1\nb: \ud800", 2, "U+D800"),
        ("a: 1\n\nb: \x00", 3, "U+0000"),
        ("- 1\n" * 30_000, 20_001, "more than 20000 values"),
        ("x" * 2_000_000, None, "longer than"),
        ("%YAML 3.0\n---\na: 1", 1, "not valid YAML"),
        ("".join(f"%TAG !{n}! a:{n}\n" for n in range(101)) + "--- a", None, "more than 100 directives %TAG"),
    ],
)
@pytest.mark.usefixtures("loader")
def test_hostile_texts_are_refused(text: str, line: int | None, message: str) -> None:
    with pytest.raises(ComposeError) as caught:
        compose(text)
    assert caught.value.line == line
    assert message in caught.value.message


@pytest.mark.parametrize("levels", [6, 40])
@pytest.mark.usefixtures("loader")
def test_alias_bomb_is_refused_before_it_expands(levels: int) -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, levels):
        text += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    with pytest.raises(ComposeError, match="aliases counted"):
        compose(text)


def test_alias_chain_cannot_go_deeper_than_brackets() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100))
    with pytest.raises(ComposeError, match="levels deep"):
        compose(text)
