"""Cron expressions: the last moment that they name."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.kube.cron import Cron, parse_cron

NOON = datetime(2026, 3, 11, 12, 34, 56, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("* * * * *", "2026-03-11T12:34"),
        ("0 * * * *", "2026-03-11T12:00"),
        ("@hourly", "2026-03-11T12:00"),
        ("35 12 * * *", "2026-03-10T12:35"),
        ("0 0 * * *", "2026-03-11T00:00"),
        ("@daily", "2026-03-11T00:00"),
        ("*/15 8-10 * * *", "2026-03-11T10:45"),
        ("10/20 * * * *", "2026-03-11T12:30"),
        ("0 0 1 * *", "2026-03-01T00:00"),
        ("0 0 * * 0", "2026-03-08T00:00"),
        ("0 0 * * 7", "2026-03-08T00:00"),
        ("0 0 ? * MON", "2026-03-09T00:00"),
        ("0 0 * feb fri", "2026-02-27T00:00"),
        ("0 0 31 * *", "2026-01-31T00:00"),
        ("0 6,18 1,15 * *", "2026-03-01T18:00"),
        ("0 0 29 2 *", "2024-02-29T00:00"),
    ],
)
def test_the_last_moment(text: str, last: str) -> None:
    assert parse_cron(text).last(NOON) == datetime.fromisoformat(last).replace(tzinfo=UTC)


def test_of_two_kinds_of_days_either_will_do() -> None:
    assert parse_cron("0 0 10 * mon").last(NOON) == datetime(2026, 3, 10, tzinfo=UTC)
    assert parse_cron("0 0 1 * mon").last(NOON) == datetime(2026, 3, 9, tzinfo=UTC)


def test_a_moment_that_is_named_is_its_own_last() -> None:
    assert parse_cron("0 12 * * *").last(NOON.replace(minute=0, second=0)) == datetime(
        2026, 3, 11, 12, tzinfo=UTC
    )


def test_fields_are_in_utc() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=14)))
    assert parse_cron("0 0 * * *").last(east) == datetime(2026, 3, 11, tzinfo=UTC)


def test_a_day_that_never_is_has_no_last_moment() -> None:
    assert parse_cron("0 0 30 2 *").last(NOON) is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * foo *", "month"),
        ("* * * * 8", "day of the week"),
        ("5-1 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1, * * * *", "minute"),
    ],
)
def test_what_is_wrong_is_named(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parse_cron(text)


some = st.frozensets(st.integers(1, 28), min_size=1, max_size=4)


@settings(max_examples=50)
@given(
    st.frozensets(st.integers(0, 59), min_size=1, max_size=3),
    st.frozensets(st.integers(0, 23), min_size=1, max_size=3),
    some,
    st.frozensets(st.integers(0, 6), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 10 * 365 * 24 * 3600).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)
def test_it_is_found_by_going_back_minute_by_minute(
    minutes: frozenset[int],
    hours: frozenset[int],
    days: frozenset[int],
    weekdays: frozenset[int],
    either: bool,
    moment: datetime,
) -> None:
    cron = Cron(minutes, hours, days, frozenset(range(1, 13)), weekdays, either)
    slowly = moment.replace(second=0, microsecond=0)
    for _ in range(60 * 24 * 40):
        in_month, in_week = slowly.day in days, slowly.isoweekday() % 7 in weekdays
        named = (in_month or in_week) if either else (in_month and in_week)
        if named and slowly.minute in minutes and slowly.hour in hours:
            break
        slowly -= timedelta(minutes=1)
    else:
        return
    assert cron.last(moment) == slowly
