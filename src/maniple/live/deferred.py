"""Changes that lead to no other decision, or to none yet, and when they lead to a cycle all the same.

Two kinds are known. A pod that starts on its node makes no room: unless something waits, a cycle would only tell that
it runs, and while pods are being bound their binds come first. And nothing can be bound for a gang of which pods are
missing: they arrive one by one, and a cycle for each of them would decide nothing.
"""

from dataclasses import dataclass

STARTS_SECONDS = 2.0  # between two cycles that only tell which pods run, while pods are being bound
MEMBERS_SECONDS = 0.03  # without another pod or group of a gang that is not complete
MOST_MEMBERS_SECONDS = 0.15  # after the first


@dataclass(slots=True)
class Deferred:
    """`starts`: how many pods have started so far; `members`: how many objects of incomplete gangs have arrived.

    Moments are those of the event loop's clock.
    """

    starts: int = 0
    members: int = 0
    _told: int = 0  # starts, when the last cycle began
    _known: int = 0  # members, when it was asked last
    _starts_due: float = 0.0
    _members_due: float | None = None
    _members_latest: float = 0.0

    def __bool__(self) -> bool:
        """Whether anything is deferred."""
        return self.starts != self._told or self._members_due is not None

    def is_due(self, now: float, *, starts_wait: bool) -> bool:
        """Whether it leads to a cycle now; asked after every change. `starts_wait`: there are binds to come first."""
        if self.members != self._known:
            if self._members_due is None:
                self._members_latest = now + MOST_MEMBERS_SECONDS
            self._known, self._members_due = self.members, min(now + MEMBERS_SECONDS, self._members_latest)
        if self._members_due is not None and now >= self._members_due:
            return True
        return self.starts != self._told and (not starts_wait or now >= self._starts_due)

    def next_due(self) -> list[float]:
        """When to ask again."""
        starts = [self._starts_due] if self.starts != self._told else []
        return starts if self._members_due is None else [*starts, self._members_due]

    def cycle_begins(self, now: float) -> None:
        """It tells all of it."""
        self._told, self._starts_due = self.starts, now + STARTS_SECONDS
        self._members_due = None
