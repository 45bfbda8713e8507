"""Times of the day at which something holds: "08:00-20:00", or overnight "22:00-06:00".

Called by tdm. Both ends are included, to the second; a window that ends when it begins, or earlier, ends on
the next day. Hours are in the time zone of the session's time.
"""

import re
from dataclasses import dataclass
from datetime import datetime

_WINDOW = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")


@dataclass(frozen=True, slots=True)
class Window:
    """Begin and end in seconds after midnight."""

    begin: int
    end: int

    @classmethod
    def read(cls, text: str) -> "Window":
        found = _WINDOW.fullmatch(text.strip())
        if not found:
            raise ValueError(f'not a time of the day such as "08:00-20:00": {text[:60]!r}')
        hours, minutes, last_hours, last_minutes = (int(part) for part in found.groups())
        if max(hours, last_hours) > 23 or max(minutes, last_minutes) > 59:
            raise ValueError(f"no such time of the day: {text[:60]!r}")
        return cls(60 * (60 * hours + minutes), 60 * (60 * last_hours + last_minutes))

    def holds(self, now: datetime, *, since_yesterday: bool) -> bool:
        """Whether it is open now; `since_yesterday`: also if it was opened before midnight."""
        second = 3600 * now.hour + 60 * now.minute + now.second
        if self.begin < self.end:
            return self.begin <= second <= self.end
        return second >= self.begin or (since_yesterday and second <= self.end)
