"""When to try again, and how long to wait before it.

`Client` asks for single requests, the watch and the informer for what they repeat for ever. Pauses grow by doubling, up to a
longest one, and are spread at random so that many clients do not come back at the same moment.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from maniple.kube.errors import ApiError, UnreachableError

# What an overloaded or restarting server, or the balancer before it, answers.
PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds; `attempt` counts from 0. A pause lies between half of the step and the whole of it."""

    first: float = 0.1
    longest: float = 10.0
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, retry_after: float | None = None) -> float:
        """Never shorter than what the server asked for."""
        step = min(self.longest, self.first * 2.0 ** min(attempt, 32))
        pause = step * (0.5 + self.chance() / 2)
        return pause if retry_after is None else retry_after + min(pause, 1.0)


def may_retry(error: ApiError, *, idempotent: bool) -> bool:
    """Is it right to send the same request again, and can it help?"""
    if isinstance(error, UnreachableError):
        return not error.permanent and (idempotent or not error.sent)
    if error.status == 429:
        # Refused before anything was done. A disruption budget, however, says no for longer than we should wait.
        return "DisruptionBudget" not in error.causes
    return idempotent and error.status in PASSING


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """The header, which holds seconds or a date."""
    if not text:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
