"""Whether a scheduler is alive and ready, in words.

Alive: its event loop and its cycles make progress. Ready: every kind has been listed, as far as that is allowed, and
planning does not fail as a whole; a standby that waits for its lease is ready too, so that a rollout of two replicas
can end.
"""

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler

BEAT_SECONDS = 1.0
LATE_SECONDS = 15.0
# A cycle over a large backlog may take long; one that takes longer than this is not going to end.
STUCK_SECONDS = 300.0


class Health:
    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._beat = time.monotonic()
        self.lag = 0.0

    async def run(self) -> None:
        """Beat, until cancelled: how late a beat is says how busy the loop is."""
        while True:
            begin = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)
            self._beat = time.monotonic()
            self.lag = max(0.0, self._beat - begin - BEAT_SECONDS)

    @property
    def leads(self) -> bool:
        leadership = self._scheduler.leadership
        return leadership is None or leadership.leads

    def role(self) -> str:
        leadership = self._scheduler.leadership
        if leadership is None:
            return "no leader election"
        if leadership.leads:
            return f"leader of lease {leadership.election.key}"
        return f"standby: lease {leadership.election.key} is held by {leadership.holder or 'no one yet'}"

    def not_alive(self) -> list[str]:
        """What does not make progress; empty if everything does."""
        now, found = time.monotonic(), []
        if now - self._beat > BEAT_SECONDS + LATE_SECONDS:
            found.append(f"the event loop did not run for {now - self._beat:.0f} s")
        since = self._scheduler.cycle_began
        if since is not None and now - since > STUCK_SECONDS:
            found.append(f"cycle {self._scheduler.cycles} has been running for {now - since:.0f} s")
        return found

    def not_ready(self) -> list[str]:
        """What scheduling waits for; empty if nothing."""
        if blocked := self._scheduler.guard.blocked:
            return [f"nothing can be planned: {blocked}"]
        if self._scheduler.synced:
            return []
        kinds = ", ".join(sorted(self._scheduler.unlisted()))
        return [f"kinds not listed yet: {kinds}" if kinds else "kinds not listed yet"]

    def remarks(self) -> list[str]:
        """What to know although it is ready."""
        forbidden = sorted(self._scheduler.forbidden)
        may_not = (
            [f"may not be listed, what depends on them waits: {', '.join(forbidden)}"] if forbidden else []
        )
        aside = len(self._scheduler.cache.aside)
        failed = [f"objects set aside because planning failed on them: {aside}"] if aside else []
        return [self.role(), *may_not, *failed]
