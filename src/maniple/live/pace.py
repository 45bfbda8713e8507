"""How often the same thing may be written: at once when it matters, less often when only words change, seldom when only numbers do.

While a gang waits, the reason is worded anew with every change of the cluster ("3 nodes", "4 nodes"). Writing each wording would cost
more than scheduling. A write that was refused for good is not tried again at once either.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

WORDS_SECONDS = 1.0
NUMBERS_SECONDS = 5.0
FIRST_REST = 1.0
LONGEST_REST = 60.0


@dataclass(slots=True)
class _Pace:
    last: float = float("-inf")
    rest: float = 0.0  # after refusals, doubled by each
    resume: float = float("-inf")


_NUMBER = re.compile(r"[0-9]+")


def apart(before: str, after: str) -> float:
    """Seconds that should lie between two wordings of the same."""
    same = _NUMBER.sub("", before) == _NUMBER.sub("", after)
    return NUMBERS_SECONDS if same else WORDS_SECONDS


class Pace:
    """Writes by key. Times are the event loop's, in seconds."""

    def __init__(self) -> None:
        self._paces: dict[Hashable, _Pace] = {}
        self._waiting: dict[Hashable, tuple[float, Callable[[], bool]]] = {}

    def ask(self, key: Hashable, now: float, *, apart: float, write: Callable[[], bool]) -> bool:
        """Write now, or when the last write was `apart` seconds ago. What `write` says, or False if it has to wait.

        A later request takes the place of one that waits.
        """
        pace = self._paces.setdefault(key, _Pace())
        due = max(pace.resume, pace.last + apart if apart else now)
        if due > now:
            self._waiting[key] = (due, write)
            return False
        self._waiting.pop(key, None)
        pace.last = now
        return write()

    def drop(self, key: Hashable) -> None:
        """There is nothing to write any more."""
        self._waiting.pop(key, None)

    def refused(self, key: Hashable, now: float) -> None:
        pace = self._paces.setdefault(key, _Pace())
        pace.rest = min(LONGEST_REST, pace.rest * 2 or FIRST_REST)
        pace.resume = now + pace.rest

    def taken(self, key: Hashable) -> None:
        pace = self._paces.get(key)
        if pace is not None:
            pace.rest = 0.0

    def forget(self, key: Hashable) -> None:
        self._paces.pop(key, None)
        self._waiting.pop(key, None)

    def next_due(self) -> float | None:
        return min((due for due, _ in self._waiting.values()), default=None)

    def flush(self, now: float) -> bool:
        """Write what has waited long enough; whether any of it says True."""
        due = {key: write for key, (moment, write) in self._waiting.items() if moment <= now}
        for key in due:
            del self._waiting[key]
            self._paces[key].last = now
        said = [write() for write in due.values()]  # every one of them, whatever the first says
        return any(said)
