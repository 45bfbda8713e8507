"""The five fields of cron, as far as it takes to find the last moment that an expression names.

Called by `usage_query` for windows that begin at such moments. Pure. Fields: minute, hour, day of the month, month, day of the week (0 and 7 are
Sunday); `*`, `?`, numbers, names of months and days, ranges, steps and lists of these, and the short forms such as `@daily`. If both kinds of day are
restricted, either will do, as everywhere in cron.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(_DAY_NAMES)}),
)
# February the 29th on a given day of the week comes back after 28 years, or 40 around a century.
_LONGEST = timedelta(days=366 * 41)
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool  # both kinds of day are restricted

    def last(self, moment: datetime) -> datetime | None:
        """The latest named minute that is not after the moment, in UTC; None if there has been none for decades."""
        moment = moment.astimezone(UTC)
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        latest = (moment.hour, moment.minute)
        for back in range(_LONGEST.days):
            that = day - timedelta(days=back)
            if self._names(that):
                found = max((time for time in self._times() if time <= latest), default=None)
                if found is not None:
                    return that.replace(hour=found[0], minute=found[1])
            latest = (23, 59)
        return None

    def _names(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week

    def _times(self) -> list[tuple[int, int]]:
        return [(hour, minute) for hour in self.hours for minute in self.minutes]


def parse_cron(text: str) -> Cron:
    """Raises ValueError saying which field is wrong."""
    written = text.strip().lower()
    fields = _SHORT.get(written, written).split()
    if len(text) > _LONGEST_TEXT or len(fields) != len(_FIELDS):
        raise ValueError(f"a cron expression has five fields: {text[:60]!r}")
    minutes, hours, days, months, weekdays = (
        _field(part, *field) for part, field in zip(fields, _FIELDS, strict=True)
    )
    restricted = [part[0] not in "*?" for part in (fields[2], fields[4])]
    return Cron(minutes, hours, days, months, frozenset(day % 7 for day in weekdays), all(restricted))


def _field(text: str, what: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = least, most
        else:
            start = _number(first, what, names)
            end = _number(last, what, names) if dash else (most if slash else start)
        every = _number(step, what, {}) if slash else 1
        if not (least <= start <= end <= most and every > 0):
            raise ValueError(f"{what}: {part[:20]!r} is not within {least} to {most}")
        found.update(range(start, end + 1, every))
    return frozenset(found)


def _number(text: str, what: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise ValueError(f"{what}: {text[:20]!r} is no number")
    return int(text)


__all__ = ["Cron", "parse_cron"]
