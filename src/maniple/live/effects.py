"""Effects: writes to the cluster, carried out beside the cycles, a bounded number at a time.

The scheduler submits. Effects on one object are done in order (its *lane*), those on different objects in the
order of `turns.py`. Retries happen here and nowhere else: a write that the cluster refuses temporarily (409, 429,
5xx, no response) is retried after a pause that doubles, and neither the pause nor a slow response keeps other
effects from being carried out. In the end the effect's `done` is called exactly once, unless it was replaced
before it began. No effect waits for a cycle, and no cycle waits for an effect.

A write without a response after `SLOW_SECONDS` gives its place to others and counts as slow instead: behind a
failing webhook all of them would otherwise be held by pods that cannot be bound. Slow writes have bounds of their
own, in all and per namespace, and those that failed before a lower one.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from maniple.live.port import CONFLICT, TOO_MANY, pause_asked_by, status_of
from maniple.live.rate import WriteRate
from maniple.live.turns import Lane, Turns, Urgency

Done = Callable[[BaseException | None], None]

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
SLOW_SECONDS = 0.25
MOST_SLOW = 128
MOST_SLOW_OF_NAMESPACE = 64
MOST_SUSPECTS = 8  # retries, in a namespace, of writes that were slow and failed


@dataclass(eq=False, slots=True)
class Effect:
    """One write; `aspect` is the part of the object that it is about.

    A later effect may make an earlier one unnecessary.
    """

    lane: Lane
    aspect: str
    urgency: Urgency
    call: Callable[[], Awaitable[object]]
    done: Done
    refused: Callable[[Exception], None] | None = None  # called after an attempt that is going to be repeated
    attempts: int = 6
    tried: int = 0
    suspect: bool = False  # its last attempt was slow, and failed


class Effects:
    """A bounded number of writes in flight, over lanes."""

    def __init__(self, concurrency: int = 32, most_notes: int = 5_000, rate: WriteRate | None = None) -> None:
        self._concurrency = self._free = concurrency
        self.most_notes = most_notes
        self._rate = rate
        self._next_token: asyncio.TimerHandle | None = None
        self._lanes: dict[Lane, deque[Effect]] = {}
        self._turns = Turns()
        self._busy: set[Lane] = set()  # lanes with a head in flight, or pausing before a retry
        self._timers: dict[Effect, asyncio.TimerHandle] = {}  # of pauses, and of what may become slow
        self._slow: set[Effect] = set()
        self._slow_in: Counter[str] = Counter()  # by namespace
        self._suspects_in: Counter[str] = Counter()  # in flight, by namespace
        self._set_aside: dict[str, deque[Effect]] = {}  # suspects until there is room for one, by namespace
        self._group: asyncio.TaskGroup | None = None  # while running
        self._notes = 0
        self._pending: Counter[Urgency] = Counter()
        self.dropped = 0  # events that were not accepted because too many were waiting
        self.carried_out = 0
        self.refused = 0

    # -- interface of the scheduler ----------------------------------------------------------------------------------

    def submit(self, effect: Effect, replaces: tuple[str, ...] = ()) -> bool:
        """Have it carried out; queued effects of the replaced aspects in the same lane are dropped.

        False if it is an event and too many are waiting: it is not carried out then.
        """
        if effect.urgency is Urgency.NOTE:
            if self._notes >= self.most_notes:
                self.dropped += 1
                return False
            self._notes += 1
        self._pending[effect.urgency] += 1
        lane = self._lanes.get(effect.lane)
        if lane is None:
            lane = self._lanes[effect.lane] = deque()
        elif replaces:
            self._withdraw(effect.lane, lane, replaces)
        lane.append(effect)
        if effect.lane not in self._busy and len(lane) == 1:
            self._offer(effect.lane)
        return True

    @property
    def takes_notes(self) -> bool:
        """Whether fewer than half as many events are waiting as may."""
        return self._notes <= self.most_notes // 2

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing is queued."""
        return not self._lanes

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    @property
    def pending(self) -> Counter[Urgency]:
        """What is submitted and not finished."""
        return Counter(self._pending)

    @property
    def deciding(self) -> bool:
        """Whether decisions are being written; those that take long do not count."""
        urgent = self._pending[Urgency.AWAITED] + self._pending[Urgency.DECISION]
        return urgent > len(self._slow)

    @property
    def in_flight(self) -> int:
        return self._concurrency - self._free + len(self._slow)

    @property
    def slow(self) -> int:
        """Those in flight that have given their place to others."""
        return len(self._slow)

    def heads(self) -> list[Effect]:
        """The next write of every lane, for people who look at what is stuck."""
        return [lane[0] for lane in self._lanes.values()]

    async def run(self) -> None:
        """Carry out what is submitted, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    self._begin_next()
                    await asyncio.Event().wait()
                finally:
                    self._group = None
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None  # a bug here, which must not go unnoticed
        finally:
            for timer in (*self._timers.values(), *filter(None, [self._next_token])):
                timer.cancel()

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is carried out, at most this long; false if something was left."""
        end = asyncio.get_running_loop().time() + seconds
        while not self.idle and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        return self.idle

    # -- what comes next ---------------------------------------------------------------------------------------------

    def _offer(self, lane: Lane) -> None:
        self._turns.push(lane, self._lanes[lane][0].urgency)
        self._begin_next()

    def _withdraw(self, name: Lane, lane: deque[Effect], aspects: tuple[str, ...]) -> None:
        """Withdraw what has not begun; the head of a lane that is in flight stays."""
        kept = [e for i, e in enumerate(lane) if (i == 0 and name in self._busy) or e.aspect not in aspects]
        self._notes -= sum(e.urgency is Urgency.NOTE for e in lane) - sum(
            e.urgency is Urgency.NOTE for e in kept
        )
        self._pending.subtract(effect.urgency for effect in lane)
        self._pending.update(effect.urgency for effect in kept)
        lane.clear()
        lane.extend(kept)

    def _begin_next(self) -> None:
        """Begin as many as there are places for."""
        while self._group is not None and self._free and self._within_rate():
            barred = [one for one, slow in self._slow_in.items() if slow >= MOST_SLOW_OF_NAMESPACE]
            lane = self._turns.pop(barred)
            if lane is None:
                return
            if lane not in self._busy and self._lanes.get(lane):  # not withdrawn since, nor queued twice
                self._begin(self._lanes[lane][0])

    def _within_rate(self) -> bool:
        """Whether another write may begin now; if not, look again when it may."""
        if self._rate is None:
            return True
        loop = asyncio.get_running_loop()
        pause = self._rate.pause(loop.time())
        if pause > 0 and self._next_token is None and self._lanes:
            self._next_token = loop.call_later(pause, self._token_came)
        return pause <= 0

    def _token_came(self) -> None:
        self._next_token = None
        self._begin_next()

    def _begin(self, effect: Effect) -> None:
        assert self._group is not None  # only called while running
        self._busy.add(effect.lane)
        if effect.suspect:
            namespace = effect.lane.namespace
            if self._suspects_in[namespace] >= MOST_SUSPECTS:
                self._set_aside.setdefault(namespace, deque()).append(effect)
                return
            self._suspects_in[namespace] += 1
        self._free -= 1
        if self._rate is not None:
            self._rate.take(asyncio.get_running_loop().time())
        self._group.create_task(self._carry_out(effect))

    # -- in flight ---------------------------------------------------------------------------------------------------

    async def _carry_out(self, effect: Effect) -> None:
        effect.tried += 1
        self._watch(effect)
        error: Exception | None = None
        try:
            await effect.call()
        except Exception as raised:
            error = raised
        was_suspect, effect.suspect = effect.suspect, self._returned(effect) and error is not None
        if error is None:
            self._finish(effect, None)
        else:
            self._refused(effect, error)
        if was_suspect:
            self._next_suspect(effect.lane.namespace)
        self._begin_next()

    def _watch(self, effect: Effect) -> None:
        """Notice when it becomes slow."""
        loop = asyncio.get_running_loop()
        self._timers[effect] = loop.call_later(SLOW_SECONDS, self._is_slow, effect)

    def _is_slow(self, effect: Effect) -> None:
        """It gives its place to others, unless too many have done so."""
        if len(self._slow) >= MOST_SLOW:
            self._watch(effect)
            return
        self._slow.add(effect)
        self._slow_in[effect.lane.namespace] += 1
        self._free += 1
        self._begin_next()

    def _returned(self, effect: Effect) -> bool:
        """A response has come, and the place is free; whether it was slow."""
        self._timers.pop(effect).cancel()
        if effect not in self._slow:
            self._free += 1
            return False
        self._slow.discard(effect)
        self._slow_in[effect.lane.namespace] -= 1
        return True

    def _next_suspect(self, namespace: str) -> None:
        self._suspects_in[namespace] -= 1
        waiting = self._set_aside.get(namespace)
        if waiting:
            lane = waiting.popleft().lane
            self._busy.discard(lane)
            self._offer(lane)
        else:
            self._set_aside.pop(namespace, None)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _refused(self, effect: Effect, error: Exception) -> None:
        if status_of(error) is None:
            self._finish(effect, error)
            raise error  # not a refusal: a bug here, which must not go unnoticed
        self.refused += 1
        if not _passes(effect, error):
            self._finish(effect, error)
            return
        if effect.refused is not None:
            effect.refused(error)
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (effect.tried - 1))
        asked = pause_asked_by(error)

        def again() -> None:
            del self._timers[effect]
            self._busy.discard(effect.lane)
            self._offer(effect.lane)

        loop = asyncio.get_running_loop()
        self._timers[effect] = loop.call_later(max(pause, asked or 0.0), again)

    def _finish(self, effect: Effect, error: BaseException | None) -> None:
        lane = self._lanes[effect.lane]
        lane.popleft()
        self._busy.discard(effect.lane)
        self._notes -= effect.urgency is Urgency.NOTE
        self._pending[effect.urgency] -= 1
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


__all__ = ["Effect", "Effects", "Lane", "Urgency"]
