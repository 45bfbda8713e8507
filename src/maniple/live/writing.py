"""One status write: counted at once, carried out beside the cycles, reverted if the cluster refuses it.

`status.py`, `waiting.py` and `queues.py` decide what to write; this writes it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from maniple.live.assumptions import Assumption
from maniple.live.cache import Cache
from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.pace import Pace
from maniple.live.port import NOT_FOUND, Port, status_of
from maniple.live.refs import Ref, kind_of

log = logging.getLogger(__name__)

Later = Callable[[Callable[[], bool]], None]
Call = Callable[[], Awaitable[object]]


class Writing:
    """`later` takes what has to be done between cycles; that returns whether a new cycle is needed."""

    def __init__(self, cache: Cache, effects: Effects, port: Port, later: Later) -> None:
        self.cache = cache
        self.port = port
        self._effects = effects
        self._later = later
        self._refusals: dict[int, int] = {}

    def submit(
        self,
        ref: Ref,
        aspect: str,
        assumption: Assumption,
        call: Call,
        pace: Pace[Ref, Any],
        *,
        awaited: bool = False,
    ) -> bool:
        """Have it written; returns whether a decision may depend on what is believed from now on.

        `awaited`: others do nothing before they see it.
        """
        matters = self.cache.assume(ref, aspect, assumption)
        self._effects.submit(
            Effect(
                lane=lane(ref),
                aspect=aspect,
                urgency=Urgency.AWAITED if awaited else Urgency.STATUS,
                call=call,
                done=lambda error: self._later(lambda: self._settle(ref, aspect, assumption, error, pace)),
            ),
            replaces=(aspect,),  # an older pending write of the same is obsolete
        )
        return matters

    def _settle(
        self, ref: Ref, aspect: str, assumption: Assumption, error: BaseException | None, pace: Pace[Ref, Any]
    ) -> bool:
        if error is None:
            pace.taken(ref)
        elif status_of(error) != NOT_FOUND:
            pace.refused(ref, now())
            self._report_refusal(ref, error)
        return self.cache.settle(ref, aspect, assumption, failed=error is not None)

    def _report_refusal(self, ref: Ref, error: BaseException) -> None:
        """A cluster that refuses one refuses many: report only powers of two."""
        status = status_of(error) or 0
        count = self._refusals[status] = self._refusals.get(status, 0) + 1
        if count & (count - 1) == 0:
            log.warning("%s %s: status not written (refusal %d): %s", ref[0].kind, ref[1], count, error)


def lane(ref: Ref) -> Lane:
    """Writes to one object are carried out in order."""
    return Lane(kind_of(ref[0]), ref[1])


def now() -> float:
    """The event loop's time, in seconds."""
    return asyncio.get_running_loop().time()
