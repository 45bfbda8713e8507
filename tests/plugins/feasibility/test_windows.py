"""Times of the day: what is read, and when a window is open."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.plugins.feasibility.windows import Window

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    parts = [int(part) for part in text.split(":")]
    return MIDNIGHT + timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2] if len(parts) > 2 else 0)


@pytest.mark.parametrize(
    "text", ["", "8-20", "08:00", "08:0-20:00", "24:00-25:00", "08:60-09:00", "08:00 - 20:00", "a:b-c:d"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time of the day"):
        Window.read(text)


def test_hours_may_have_one_digit_and_blanks_may_stand_around() -> None:
    assert Window.read(" 8:00-9:30 ") == Window(8 * 3600, 9 * 3600 + 1800)


@pytest.mark.parametrize(
    ("window", "time", "default", "strict"),
    [
        ("08:00-20:00", "07:59:59", False, False),
        ("08:00-20:00", "08:00", True, True),
        ("08:00-20:00", "20:00", True, True),
        ("08:00-20:00", "20:00:01", False, False),
        ("22:00-06:00", "21:59:59", False, False),
        ("22:00-06:00", "23:00", True, True),
        ("22:00-06:00", "03:00", True, False),  # opened yesterday
        ("22:00-06:00", "06:00", True, False),
        ("22:00-06:00", "06:00:01", False, False),
        ("12:00-12:00", "11:00", True, False),
        ("12:00-12:00", "13:00", True, True),
    ],
)
def test_both_ends_belong_to_it_and_the_night_too_unless_strict(
    window: str, time: str, default: bool, strict: bool
) -> None:
    assert Window.read(window).holds(at(time), since_yesterday=True) is default
    assert Window.read(window).holds(at(time), since_yesterday=False) is strict


def test_hours_are_those_of_the_zone_that_the_time_carries() -> None:
    morning = datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=8)))
    assert Window.read("08:00-10:00").holds(morning, since_yesterday=True)
    assert not Window.read("08:00-10:00").holds(morning.astimezone(UTC), since_yesterday=True)


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 86399))
def test_it_is_open_when_some_day_s_window_contains_the_moment(begin: int, end: int, second: int) -> None:
    now = MIDNIGHT + timedelta(seconds=second)
    window = Window(60 * begin, 60 * end)

    def contains(day: int) -> bool:
        opens = MIDNIGHT + timedelta(days=day, minutes=begin)
        closes = MIDNIGHT + timedelta(days=day + (end <= begin), minutes=end)
        return opens <= now <= closes

    assert window.holds(now, since_yesterday=False) is contains(0)
    assert window.holds(now, since_yesterday=True) is (contains(0) or contains(-1))
