"""How often the same thing may be written: at once when it matters, less often when only words change, seldom when only numbers do.

While a gang waits, the reason is worded anew with every change of the cluster ("3 nodes", "4 nodes"). Writing each wording of each
object would cost more than scheduling, so an object's words are written some time apart, and words altogether so many a second.
A write that was refused for good is not tried again at once either.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache

WORDS_SECONDS = 1.0
NUMBERS_SECONDS = 15.0
WORDS_A_SECOND = 100.0
FIRST_REST = 1.0
LONGEST_REST = 60.0

_NUMBER = re.compile(r"[0-9]+")


@lru_cache(maxsize=4096)
def _without_numbers(text: str) -> str:
    return _NUMBER.sub("", text)


def apart(before: str, after: str) -> float:
    """Seconds that should lie between two wordings of the same."""
    same = _without_numbers(before) == _without_numbers(after)
    return NUMBERS_SECONDS if same else WORDS_SECONDS


@dataclass(slots=True)
class _Pace:
    last: float = float("-inf")
    rest: float = 0.0  # after refusals, doubled by each
    resume: float = float("-inf")


class Pace:
    """Writes by key. Times are the event loop's, in seconds."""

    def __init__(self, words_a_second: float = WORDS_A_SECOND) -> None:
        self._rate = words_a_second
        self._free = float("-inf")  # from then on words may be written
        self._paces: dict[Hashable, _Pace] = {}
        self._waiting: dict[Hashable, tuple[float, Callable[[], bool]]] = {}

    def ask(self, key: Hashable, now: float, *, apart: float, write: Callable[[], bool]) -> bool:
        """Write now, or when the last write was `apart` seconds ago. What `write` says, or False if it has to wait.

        A later request takes the place of one that waits.
        """
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = _Pace()
        due = max(pace.resume, max(pace.last + apart, self._free) if apart else now)
        if due > now:
            self._waiting[key] = (max(pace.resume, pace.last + apart), write)
            return False
        self._waiting.pop(key, None)
        pace.last = now
        if apart:
            self._spend(now)
        return write()

    def recent(self, key: Hashable, now: float, apart: float) -> bool:
        """Whether a write that is to be so far apart from the last one would have to wait."""
        pace = self._paces.get(key)
        return pace is not None and pace.last + apart > now

    def drop(self, key: Hashable) -> None:
        """There is nothing to write any more."""
        if self._waiting:
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
        due = min((due for due, _ in self._waiting.values()), default=None)
        return None if due is None else max(due, self._free)

    def flush(self, now: float) -> bool:
        """Write what has waited long enough; whether any of it says True."""
        due = sorted((due, place) for place, (due, _) in enumerate(self._waiting.values()) if due <= now)
        keys = list(self._waiting)
        said = False
        for _, place in due:
            if self._free > now:
                break
            _, write = self._waiting.pop(keys[place])
            self._paces[keys[place]].last = now
            self._spend(now)
            said |= write()
        return said

    def _spend(self, now: float) -> None:
        """A second's worth of words may be written at once; then there is a pause."""
        self._free = max(self._free, now - 1.0) + 1.0 / self._rate
