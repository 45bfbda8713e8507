"""Rate limits per object: at once if it matters, less often for messages, seldom for numbers.

While a gang is pending, its message changes with every change of the cluster ("3 nodes", "4 nodes"). Writing
every wording on every object would cost more than scheduling, so an object's messages are written some time
apart, and all messages at a bounded rate. A write that was refused for good is not retried at once either.
Pending writes are kept as plain values until they are due, because most are superseded by newer messages.
"""

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

WORDS_SECONDS = 1.0
NUMBERS_SECONDS = 15.0
WORDS_A_SECOND = 100
FIRST_REST = 1.0
LONGEST_REST = 60.0

_NUMBER = re.compile(r"[0-9]+")


@lru_cache(maxsize=4096)
def without_numbers(text: str) -> str:
    return _NUMBER.sub("", text)


def apart(before: str, after: str) -> float:
    """Seconds between two messages about the same."""
    same = without_numbers(before) == without_numbers(after)
    return NUMBERS_SECONDS if same else WORDS_SECONDS


@dataclass(slots=True)
class _Past:
    """The history of writes of one key."""

    last: float = -math.inf
    rest: float = 0.0  # after refusals, doubled by each
    resume: float = -math.inf


class Pace(Generic[Key, Value]):
    """Values to be written by key.

    `write` is called when a value is due; it returns whether a decision may depend on it. Times are the event
    loop's, in seconds.
    """

    def __init__(self, write: Callable[[Key, Value], bool], words_a_second: int = WORDS_A_SECOND) -> None:
        self._write = write
        self._most = words_a_second
        self._left = words_a_second
        self._refill = -math.inf
        self._past: dict[Key, _Past] = {}
        self._asked: list[tuple[Key, Value, float]] = []
        self._waiting: dict[Key, tuple[float, Value]] = {}
        self._earliest = math.inf  # no pending value is due before

    def submit(self, key: Key, value: Value, apart: float = 0.0) -> None:
        """Have it written, so many seconds after the last time; 0 means at once."""
        self._asked.append((key, value, apart))

    def drop(self, key: Key) -> None:
        """Discard the pending value."""
        if self._waiting:
            self._waiting.pop(key, None)

    def recent(self, key: Key, now: float, seconds: float) -> bool:
        """Whether the last write was less than so many seconds ago."""
        past = self._past.get(key)
        return past is not None and past.last + seconds > now

    def carry_out(self, now: float) -> bool:
        """Write what was asked for and is due; returns whether a decision may depend on any of it."""
        asked, self._asked = self._asked, []
        matters = False
        for key, value, seconds in asked:
            self._waiting.pop(key, None)  # a newer message replaces an older one
            past = self._past.get(key) or self._past.setdefault(key, _Past())
            due = max(past.resume, past.last + seconds) if seconds else past.resume
            if due <= now and (not seconds or self._may_spend(now)):
                past.last = now
                matters |= self._write(key, value)
            else:
                self._waiting[key] = due, value
                self._earliest = min(self._earliest, due)
        return self._flush(now) | matters if self._earliest <= now else matters

    def next_due(self) -> float | None:
        """When to call `carry_out` again; None if nothing is pending."""
        if not self._waiting:
            return None
        return max(self._earliest, self._refill if not self._left else -math.inf)

    def refused(self, key: Key, now: float) -> None:
        past = self._past.setdefault(key, _Past())
        past.rest = min(LONGEST_REST, past.rest * 2 or FIRST_REST)
        past.resume = now + past.rest

    def taken(self, key: Key) -> None:
        past = self._past.get(key)
        if past is not None:
            past.rest = 0.0

    def forget(self, key: Key) -> None:
        self._past.pop(key, None)
        self._waiting.pop(key, None)

    def _flush(self, now: float) -> bool:
        matters = False
        for key, (due, value) in [*self._waiting.items()]:
            if due <= now and self._may_spend(now):
                del self._waiting[key]
                self._past[key].last = now
                matters |= self._write(key, value)
        self._earliest = min((due for due, _ in self._waiting.values()), default=math.inf)
        return matters

    def _may_spend(self, now: float) -> bool:
        """Take one of this second's writes, if there is one left."""
        if now >= self._refill:
            self._refill, self._left = now + 1.0, self._most
        if not self._left:
            return False
        self._left -= 1
        return True
