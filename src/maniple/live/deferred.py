"""Changes that lead to no other decision, or to none yet.

Two kinds are known. A pod that starts on its node makes no room: unless something waits there is no cycle, and the last
plan is reported again; while pods are being bound their binds come first. And nothing can be bound for a gang of which
pods are missing: they arrive one by one, and a cycle for each of them would decide nothing.
"""

from dataclasses import dataclass

STARTS_SECONDS = 2.0  # between two reports of which pods run, while pods are being bound
MEMBERS_SECONDS = 0.03  # without another pod or group of a gang that is not complete
MOST_MEMBERS_SECONDS = 0.15  # after the first


@dataclass(slots=True)
class Deferred:
    """`starts`: how many pods have started so far; `members`: how many objects of incomplete gangs have arrived.

    Moments are those of the event loop's clock.
    """

    starts: int = 0
    members: int = 0
    _told: int = 0  # starts, when the last cycle began or its plan was reported again
    _known: int = 0  # members, when it was asked last
    _starts_due: float = 0.0
    _members_due: float | None = None
    _members_latest: float = 0.0

    def __bool__(self) -> bool:
        """Whether anything is deferred."""
        return self.starts != self._told or self._members_due is not None

    def members_are_due(self, now: float) -> bool:
        """Whether the gangs that are not complete lead to a cycle now; asked after every change."""
        if self.members != self._known:
            if self._members_due is None:
                self._members_latest = now + MOST_MEMBERS_SECONDS
            self._known, self._members_due = self.members, min(now + MEMBERS_SECONDS, self._members_latest)
        return self._members_due is not None and now >= self._members_due

    def starts_are_due(self, now: float, *, binds_come_first: bool) -> bool:
        """Whether it is to be reported now which pods run; with gangs that are not complete, the next cycle does."""
        waits = self._members_due is not None or (binds_come_first and now < self._starts_due)
        return self.starts != self._told and not waits

    def next_due(self) -> list[float]:
        """When to ask again."""
        if self._members_due is not None:
            return [self._members_due]
        return [self._starts_due] if self.starts != self._told else []

    def starts_told(self, now: float) -> None:
        self._told, self._starts_due = self.starts, now + STARTS_SECONDS

    def cycle_begins(self, now: float) -> None:
        """It tells all of it."""
        self.starts_told(now)
        self._members_due = None
