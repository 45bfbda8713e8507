"""When to try again, and how long to wait before it.

Used by `Client` for single requests, by the watch and the informer for what they repeat forever. Pauses
double up to a maximum and are randomised, so that many clients do not return at the same moment.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from maniple.kube.errors import ApiError, UnreachableError

# The status codes of an overloaded or restarting server, or of the load balancer in front of it.
PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds; `attempt` counts from 0.

    A pause lies between half of the step and the whole of it.
    """

    first: float = 0.1
    longest: float = 10.0
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, retry_after: float | None = None) -> float:
        """Never shorter than what the server asked for."""
        step = min(self.longest, self.first * 2.0 ** min(attempt, 32))
        pause = step * (0.5 + self.chance() / 2)
        return pause if retry_after is None else retry_after + min(pause, 1.0)


def may_retry(error: ApiError, *, idempotent: bool) -> bool:
    """Whether sending the same request again is safe and can help."""
    if isinstance(error, UnreachableError):
        return not error.permanent and (idempotent or not error.sent)
    if error.status == 429:
        # Refused before anything was done. A disruption budget, however, refuses for longer than we should
        # wait.
        return "DisruptionBudget" not in error.causes
    return idempotent and error.status in PASSING


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """The header, which contains seconds or a date."""
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
