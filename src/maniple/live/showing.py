"""When to show people the state: after a cycle, and when binds have ended; while many do, only now and then."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from maniple.live.writing import now

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler

SECONDS = 0.5  # between two views while pods are being bound


class Showing:
    """`observer` is called with the scheduler whenever there is something new to see."""

    def __init__(self, observer: "Callable[[Scheduler], None] | None") -> None:
        self._observer = observer
        self._shown = (0, 0)  # how many plans, made or reported again, and how many binds that ended
        self._next = 0.0

    def show(self, scheduler: "Scheduler") -> None:
        state = (scheduler.cycles + scheduler.retold, scheduler.binding.ended)
        if self._observer is None or state == self._shown:
            return
        planned = state[0] != self._shown[0]
        if planned or not scheduler.binding.pods or now() >= self._next:
            self._shown, self._next = state, now() + SECONDS
            self._observer(scheduler)
