"""The order in which effects are carried out: the more urgent first, and namespaces in turn.

What others wait for always goes first. Of the rest, each urgency has its share of the turns, so that a burst of
binds delays statuses but does not stop them. Within an urgency, namespaces take turns: one with thousands of
writes costs another one turn for each of its own. `effects.py` asks for the next lane whenever it has room.
"""

from collections import deque
from collections.abc import Container
from enum import IntEnum
from typing import NamedTuple


class Urgency(IntEnum):
    """Awaited: others act only after it. Then decisions, what controllers read, and messages."""

    AWAITED = 0
    DECISION = 1
    STATUS = 2
    NOTE = 3


# Turns while all of them have something to write. A gang of eight has eight binds, a status or two and nine events:
# in a long burst of binds, statuses and events are written now and then, and the rest of them after it.
SHARES = {Urgency.DECISION: 32, Urgency.STATUS: 1, Urgency.NOTE: 1}


class Lane(NamedTuple):
    """Writes to one object, by its kind and key; they are carried out in order."""

    kind: str
    key: str

    @property
    def namespace(self) -> str:
        """Empty for an object of the cluster."""
        return self.key.partition("/")[0] if "/" in self.key else ""


class _Line:
    """Lanes of one urgency, by namespace; the namespace whose turn it is comes first."""

    def __init__(self) -> None:
        self._lanes: dict[str, deque[Lane]] = {}

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def push(self, lane: Lane) -> None:
        self._lanes.setdefault(lane.namespace, deque()).append(lane)

    def pop(self, barred: Container[str]) -> Lane | None:
        """The next lane that is not of a barred namespace."""
        namespace = next((one for one in self._lanes if one not in barred), None)
        if namespace is None:
            return None
        lanes = self._lanes.pop(namespace)
        lane = lanes.popleft()
        if lanes:
            self._lanes[namespace] = lanes  # behind the others
        return lane


class Turns:
    """Lanes with something to carry out.

    Each urgency has a time at which its next turn is due, and a turn puts it off by one part in its share. One that
    had nothing to do begins at the time of the last turn: it does not save turns up.
    """

    def __init__(self) -> None:
        self._lines = {urgency: _Line() for urgency in Urgency}
        self._due = dict.fromkeys(SHARES, 0.0)
        self._time = 0.0

    def push(self, lane: Lane, urgency: Urgency) -> None:
        line = self._lines[urgency]
        if not line and urgency in SHARES:
            self._due[urgency] = max(self._due[urgency], self._time + 1 / SHARES[urgency])
        line.push(lane)

    def pop(self, barred: Container[str] = ()) -> Lane | None:
        """The next lane; None if there is none but those of barred namespaces."""
        awaited = self._lines[Urgency.AWAITED].pop(barred)
        if awaited is not None:
            return awaited
        for urgency in sorted((one for one in SHARES if self._lines[one]), key=self._due.__getitem__):
            lane = self._lines[urgency].pop(barred)
            if lane is not None:
                self._time = self._due[urgency]
                self._due[urgency] += 1 / SHARES[urgency]
                return lane
        return None
