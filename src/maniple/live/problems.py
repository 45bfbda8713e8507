"""The problems that a running scheduler has found: each is logged once, and a bounded number is kept.

Problems name objects, and whoever may create objects can make as many as they like. So the oldest are forgotten, in
the order in which they were last reported: one that persists is not logged again. Lines in the log have a rate, too.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator

from maniple.live.rate import WriteRate

log = logging.getLogger(__name__)

MOST = 20_000
LONGEST = 1_000  # characters of one
LINES_A_SECOND, BURST = 10, 1_000


class Problems:
    """Iterates over those that are kept; the one that was reported last is the last. Times are the event loop's."""

    def __init__(self) -> None:
        self.found = 0  # so far; one that was forgotten and is found again counts again
        self._kept: OrderedDict[str, None] = OrderedDict()
        self._rate = WriteRate(LINES_A_SECOND, BURST)
        self._unlogged = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def report(self, problem: str, now: float) -> None:
        text = problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}..."
        if text in self._kept:
            self._kept.move_to_end(text)
            return
        self.found += 1
        self._kept[text] = None
        if len(self._kept) > MOST:
            self._kept.popitem(last=False)
        self._log(text, now)

    def _log(self, text: str, now: float) -> None:
        if self._rate.pause(now):
            self._unlogged += 1
            return
        self._rate.take(now)
        if self._unlogged:
            log.warning("too many problems at once: %d more were not logged", self._unlogged)
            self._unlogged = 0
        log.warning("%s", text)
