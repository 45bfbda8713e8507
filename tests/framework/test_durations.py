"""Durations in Go's form."""

import pytest

from maniple.framework.configuration.durations import long_nanoseconds, nanoseconds

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("300ms", 300 * 10**6),
        ("1h30m", 5400 * SECOND),
        ("1h2m3s4ms5us6ns", 3723 * SECOND + 4_005_006),
        ("1.5s", 3 * SECOND // 2),
        (".5m", 30 * SECOND),
        ("1.s", SECOND),
        ("-1m", -60 * SECOND),
        ("+2s", 2 * SECOND),
        ("5µs", 5_000),
        ("5μs", 5_000),
        ("1.9ns", 1),
        ("9223372036854775807ns", 2**63 - 1),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1d",
        "s",
        ".s",
        "1h s",
        " 1s",
        "1s ",
        "--1s",
        "1e3s",
        "1hs",
        "٣s",
        "9223372036854775808ns",
        "1" * 5000 + "s",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        nanoseconds(text)


def test_days_and_weeks_are_units_only_where_they_are_asked_for() -> None:
    assert long_nanoseconds("1w1d1h") == (8 * 24 + 1) * 3600 * SECOND
    with pytest.raises(ValueError, match="1d"):
        nanoseconds("1d")
