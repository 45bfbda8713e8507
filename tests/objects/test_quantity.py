"""Quantities are exact, and are what Kubernetes says they are."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.objects import quantity

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 1000**3),
    "u": Fraction(1, 1000**2),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(1000**2),
    "G": Fraction(1000**3),
    "T": Fraction(1000**4),
    "P": Fraction(1000**5),
    "E": Fraction(1000**6),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
}
DIGITS = st.text("0123456789", min_size=1, max_size=12)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A quantity as text, and its value worked out in another way."""
    number = draw(
        st.one_of(
            DIGITS,
            st.builds("{}.{}".format, DIGITS, DIGITS),
            DIGITS.map(".{}".format),
            DIGITS.map("{}.".format),
        )
    )
    whole, _, part = number.partition(".")
    value = Fraction(int(whole or "0")) + Fraction(int(part or "0"), 10 ** len(part))
    sign = draw(st.sampled_from(["", "+", "-"]))
    if draw(st.booleans()):
        ending = draw(st.sampled_from(sorted(SUFFIXES)))
        value *= SUFFIXES[ending]
    else:
        exponent = draw(st.integers(-30, 30))
        ending = (
            draw(st.sampled_from("eE"))
            + draw(st.sampled_from(["", "+"] if exponent >= 0 else [""]))
            + str(exponent)
        )
        value *= Fraction(10) ** exponent
    value = min(Fraction(math.ceil(value * 10**9), 10**9), Fraction(2**63 - 1))
    return f"{sign}{number}{ending}", -value if sign == "-" else value


@given(texts())
def test_parse_agrees_with_plain_fractions(case: tuple[str, Fraction]) -> None:
    text, value = case
    assert quantity.parse(text) == value


@given(texts())
def test_whole_values_are_ints(case: tuple[str, Fraction]) -> None:
    parsed = quantity.parse(case[0])
    assert isinstance(parsed, int) == (case[1].denominator == 1)


@given(texts(), texts())
def test_integers_keep_the_order_of_values(left: tuple[str, Fraction], right: tuple[str, Fraction]) -> None:
    low, high = sorted((left, right), key=lambda case: case[1])
    assert quantity.milli(low[0]) <= quantity.milli(high[0])
    assert quantity.units(low[0]) <= quantity.units(high[0])


@given(texts())
def test_integers_are_rounded_away_from_zero(case: tuple[str, Fraction]) -> None:
    text, value = case
    for scale, integer in ((1, quantity.units(text)), (1000, quantity.milli(text))):
        if abs(value * scale) <= quantity.LARGEST:
            assert 0 <= abs(integer) - abs(value * scale) < 1
            assert integer * value >= 0
        else:
            assert abs(integer) == quantity.LARGEST


@given(texts(), st.booleans())
def test_formatting_parses_back_to_the_same_value(case: tuple[str, Fraction], binary: bool) -> None:
    exact = quantity.parse(case[0])
    assert quantity.parse(quantity.format_quantity(exact, binary=binary)) == exact


@given(st.text("0123456789.+-eEinumkMGTPKi ", max_size=8))
def test_text_is_refused_exactly_when_the_grammar_does_not_know_it(text: str) -> None:
    suffix = "|".join((*filter(None, SUFFIXES), r"[eE][+-]?\d+"))
    if re.fullmatch(rf"[+-]?(\d+\.?\d*|\.\d+)({suffix})?", text):
        assert -quantity.LARGEST <= quantity.parse(text) <= quantity.LARGEST
    else:
        with pytest.raises(ValueError, match="not a quantity"):
            quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0", 0),
        ("-0", 0),
        ("100m", Fraction(1, 10)),
        ("1.5Gi", 3 * 2**29),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("5.Gi", 5 * 2**30),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e-3", Fraction(1, 1000)),
        ("1E+3", 1000),
        ("-1500m", Fraction(-3, 2)),
        ("007", 7),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("8Ei", 2**63 - 1),
        ("-100E", -(2**63) + 1),
    ],
)
def test_spelling(text: str, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            " ",
            "1 Gi",
            " 1",
            "1 ",
            "1\n",
            "1KiB",
            "1K",
            "1ki",
            "1i",
            "1mi",
            "1gi",
            "0x10",
            "nan",
            "inf",
            "-inf",
        ],
        *[
            "1_000",
            "1e",
            "1e+",
            "1e1.5",
            "1eM",
            "1.1.1",
            "1,5",
            "--1",
            "+-1",
            "+",
            "-",
            ".",
            "Ki",
            "m",
            "e3",
            "1Gim",
        ],
        *["١", "１", "1²", "½", "1\u00a0", "1\x00", "1m1"],
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (3, 3),
        (-3, -3),
        (0.1, Fraction(1, 10)),
        (1.5, Fraction(3, 2)),
        (1e22, 2**63 - 1),
        (1e-7, Fraction(1, 10**7)),
        (10**40, 2**63 - 1),
    ],
)
def test_json_numbers_count_as_their_text(number: float, value: Fraction | int) -> None:
    assert quantity.parse(number) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), True])
def test_what_is_no_number_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity.parse(number)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e999999999", 2**63 - 1),
        ("-1e999999999", -(2**63) + 1),
        ("0e999999999", 0),
        ("1e-999999999", Fraction(1, 10**9)),
        ("0e-999999999", 0),
        ("1e" + "9" * 200, 2**63 - 1),
        ("9" * 240 + "e-999999999", Fraction(1, 10**9)),
    ],
)
def test_huge_exponents_are_clamped(text: str, value: Fraction | int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("64GB", "did you mean 64G or 64Gi?"),
        ("64gb", "did you mean 64G or 64Gi?"),
        ("64 GiB", "did you mean 64Gi?"),
        ("2kb", "did you mean 2k or 2Ki?"),
        ("1,5", "did you mean 1.5?"),
        ("4 cores", "did you mean 4?"),
        ("500 m", "did you mean 500m?"),
        ("lots", "expected a number, with a unit such as m, G or Gi"),
    ],
)
def test_a_wrong_unit_is_told_the_right_one(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match="not a quantity") as caught:
        quantity.parse(text)
    assert str(caught.value).endswith(f"; {meant}")


def test_overlong_text_is_refused_with_a_short_message() -> None:
    with pytest.raises(ValueError, match="longer than 256 characters") as caught:
        quantity.parse("1" * 100_000)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    ("amount", "milli", "units"),
    [
        ("1", 1000, 1),
        ("1500m", 1500, 2),
        ("0.1m", 1, 1),
        ("-0.1m", -1, -1),
        ("-1500m", -1500, -2),
        (Fraction(1, 3), 334, 1),
        ("9E", 2**63 - 1, 9 * 10**18),
        (2, 2000, 2),
        (0.25, 250, 1),
    ],
)
def test_milli_and_units(amount: str | Fraction | float, milli: int, units: int) -> None:
    assert quantity.milli(amount) == milli
    assert quantity.units(amount) == units


@pytest.mark.parametrize(
    ("value", "binary", "text"),
    [
        (0, False, "0"),
        (1500, False, "1500"),
        (2_000_000, False, "2M"),
        (3 * 2**29, True, "1536Mi"),
        (2**60, True, "1Ei"),
        (1000, True, "1000"),
        (-2048, True, "-2Ki"),
        (Fraction(3, 2), False, "1500m"),
        (Fraction(1, 10**6), False, "1u"),
        (Fraction(7, 10**9), True, "7n"),
        (Fraction(4, 1), False, "4"),
    ],
)
def test_format_quantity(value: int | Fraction, binary: bool, text: str) -> None:
    assert quantity.format_quantity(value, binary=binary) == text


@pytest.mark.parametrize(
    ("milli", "text"),
    [(0, "0"), (250, "250m"), (1000, "1"), (1500, "1.5"), (-500, "-500m"), (64_000, "64"), (12_345, "12.35")],
)
def test_human_cpu(milli: int, text: str) -> None:
    assert quantity.human_cpu(milli) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (512, "512"),
        (1024, "1Ki"),
        (3 * 2**29, "1.5Gi"),
        (2**30 - 1, "1Gi"),
        (-(2**20), "-1Mi"),
        (2**63 - 1, "8Ei"),
    ],
)
def test_human_bytes(count: int, text: str) -> None:
    assert quantity.human_bytes(count) == text
