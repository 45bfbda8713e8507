"""Cron expressions: the moment at which they last fell due."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from maniple.kube.cron import last_due, read_cron

NOON = datetime(2026, 3, 11, 12, 34, 56, tzinfo=UTC)  # a Wednesday


def last(text: str, moment: datetime = NOON) -> datetime:
    return last_due(read_cron(text), moment)


@pytest.mark.parametrize(
    ("text", "expected"),
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
        ("0 0 29 2 */7", "2004-02-29T00:00"),
        ("0 0 L * ?", "2026-02-28T00:00"),
    ],
)
def test_the_last_moment(text: str, expected: str) -> None:
    assert last(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_of_two_kinds_of_days_either_will_do() -> None:
    assert last("0 0 10 * mon") == datetime(2026, 3, 10, tzinfo=UTC)
    assert last("0 0 1 * mon") == datetime(2026, 3, 9, tzinfo=UTC)


def test_a_moment_that_is_named_is_its_own_last() -> None:
    assert last("0 12 * * *", NOON.replace(minute=0, second=0)) == datetime(2026, 3, 11, 12, tzinfo=UTC)


def test_fields_are_in_utc() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=14)))
    assert last("0 0 * * *", east) == datetime(2026, 3, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "number of fields"),
        ("* * * *", "number of fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day-of-month"),
        ("* * * foo *", "month"),
        ("* * * * 8", "day-of-week"),
        ("5-1 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1, * * * *", "minute"),
        ("0 0 30 2 *", "day-of-month"),  # never comes
    ],
)
def test_what_is_wrong_is_named(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read_cron(text)
