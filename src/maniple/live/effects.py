"""Effects: writes to the cluster, carried out beside the cycles, a bounded number at a time.

The scheduler submits; workers carry out. Effects on one object are done in order (its *lane*), those on
different objects in no order, the more urgent first. A write that the cluster refuses temporarily (409, 429,
5xx, no response) is retried after a pause that doubles; its worker serves other effects meanwhile. In the end
the effect's `done` is called exactly once, unless it was replaced before it began. No effect waits for a
cycle, and no cycle waits for an effect.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum

from maniple.live.port import CONFLICT, TOO_MANY, pause_asked_by, status_of

Done = Callable[[BaseException | None], None]

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


class Urgency(IntEnum):
    """Decisions first, then what controllers act on, then messages."""

    DECISION = 0
    STATUS = 1
    NOTE = 2


@dataclass(eq=False, slots=True)
class Effect:
    """One write; `aspect` is the part of the object that it is about.

    A later effect may make an earlier one unnecessary.
    """

    lane: str
    aspect: str
    urgency: Urgency
    call: Callable[[], Awaitable[object]]
    done: Done
    attempts: int = 6
    tried: int = 0


class Effects:
    """A bounded number of workers over lanes."""

    def __init__(self, concurrency: int = 32, most_notes: int = 5_000) -> None:
        self._concurrency = concurrency
        self._most_notes = most_notes
        self._lanes: dict[str, deque[Effect]] = {}
        self._ready: tuple[deque[str], ...] = tuple(deque() for _ in Urgency)
        self._busy: set[str] = set()  # lanes with a head in flight, or pausing before a retry
        self._resting: set[asyncio.TimerHandle] = set()
        self._available = asyncio.Semaphore(0)
        self._notes = 0
        self.dropped = 0  # events dropped under load
        self.carried_out = 0
        self.refused = 0

    # -- interface of the scheduler ----------------------------------------------------------------------------------

    def submit(self, effect: Effect, replaces: tuple[str, ...] = ()) -> None:
        """Have it carried out; queued effects of the replaced aspects in the same lane are dropped."""
        if effect.urgency is Urgency.NOTE:
            if self._notes >= self._most_notes:
                self.dropped += 1
                return
            self._notes += 1
        lane = self._lanes.get(effect.lane)
        if lane is None:
            lane = self._lanes[effect.lane] = deque()
        elif replaces:
            self._withdraw(effect.lane, lane, replaces)
        lane.append(effect)
        if effect.lane not in self._busy and len(lane) == 1:
            self._offer(effect.lane)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing is queued."""
        return not self._lanes

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    async def run(self) -> None:
        """Carry out what is submitted, until cancelled."""
        workers = [asyncio.create_task(self._work(), name="effects") for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for timer in self._resting:
                timer.cancel()

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is carried out, at most this long; false if something was left."""
        end = asyncio.get_running_loop().time() + seconds
        while not self.idle and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        return self.idle

    # -- workers -----------------------------------------------------------------------------------------------------

    def _offer(self, lane: str) -> None:
        self._ready[self._lanes[lane][0].urgency].append(lane)
        self._available.release()

    def _withdraw(self, name: str, lane: deque[Effect], aspects: tuple[str, ...]) -> None:
        """Withdraw what has not begun; the head of a lane that is in flight stays."""
        kept = [e for i, e in enumerate(lane) if (i == 0 and name in self._busy) or e.aspect not in aspects]
        self._notes -= sum(e.urgency is Urgency.NOTE for e in lane) - sum(
            e.urgency is Urgency.NOTE for e in kept
        )
        lane.clear()
        lane.extend(kept)

    async def _work(self) -> None:
        while True:
            await self._available.acquire()
            lane = next(ready for ready in self._ready if ready).popleft()
            if lane in self._busy or not self._lanes.get(lane):
                continue  # withdrawn since, or queued twice
            self._busy.add(lane)
            effect = self._lanes[lane][0]
            effect.tried += 1
            try:
                await effect.call()
            except Exception as error:
                self._refused(effect, error)
            else:
                self._finish(effect, None)

    def _refused(self, effect: Effect, error: Exception) -> None:
        if status_of(error) is None:
            self._finish(effect, error)
            raise error  # not a refusal: a bug here, which must not go unnoticed
        self.refused += 1
        if not _passes(effect, error):
            self._finish(effect, error)
            return
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (effect.tried - 1))
        asked = pause_asked_by(error)
        loop = asyncio.get_running_loop()

        def again() -> None:
            self._resting.discard(timer)
            self._busy.discard(effect.lane)
            self._offer(effect.lane)

        timer = loop.call_later(max(pause, asked or 0.0), again)
        self._resting.add(timer)

    def _finish(self, effect: Effect, error: BaseException | None) -> None:
        lane = self._lanes[effect.lane]
        lane.popleft()
        self._busy.discard(effect.lane)
        self._notes -= effect.urgency is Urgency.NOTE
        self.carried_out += error is None
        if lane:
            self._offer(effect.lane)
        else:
            del self._lanes[effect.lane]
        effect.done(error)


def _passes(effect: Effect, error: Exception) -> bool:
    """Whether the same write may succeed a little later."""
    status = status_of(error)
    if effect.tried >= effect.attempts:
        return False
    if status == CONFLICT:
        return effect.tried < 2  # once more: either it was a race, or it is permanent
    return status in (0, TOO_MANY) or (status is not None and status >= 500)
