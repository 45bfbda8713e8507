"""Reasons: why a node, a task or a job was refused, as numbers in columns and as words for people.

A verdict column holds 0 for "yes" or the number of a reason. A reason also says whether evicting pods could change it
(`Code.UNSCHEDULABLE`) or not (`Code.UNRESOLVABLE`): allocation refuses on both, eviction only on the latter.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Verdicts = NDArray[np.int16]
FITS = 0
MOST_REASONS = 32_000  # different ones: reasons that name an object are as many as users want
OTHER = "another reason; it is not named because a cycle has too many different ones"
FULL = MOST_REASONS // 2  # of a table that is used from cycle to cycle: a new one is begun
POD = "<pod>"  # placeholder, in a reason shared by equal pods, for the pod in the message
QUEUE = "<queue>"  # the same for the queue of that pod
JOB = "<job>"  # the same for the job for which the pod is evicted


class Code(Enum):
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class Detail:
    """What a refusal is about, for `explain`: made when it is asked for, not while deciding.

    `kind` is for programs; `phrase` completes "2 nodes: ..."; `subject` names the taint, label, claim or port;
    `example` is a pod in the way, where each node may have another.
    """

    kind: str
    phrase: str
    subject: str = ""
    example: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Reason:
    text: str
    code: Code = Code.UNSCHEDULABLE
    detail: Detail | None = field(default=None, compare=False)


class ReasonTable:
    """Reasons by number. Number 0 is "fits".

    Objects can have any number of names in them, and reasons name names: beyond a limit, all of a code share one.
    """

    def __init__(self) -> None:
        self.reasons: list[Reason] = [Reason("fits")]
        self._numbers: dict[Reason, int] = {}

    @classmethod
    def of(cls, memory: dict[object, object]) -> "ReasonTable":
        """The table by which verdicts are remembered; when it is full, all of that is forgotten."""
        known = memory.get(cls)
        if not isinstance(known, ReasonTable) or len(known.reasons) > FULL:
            memory.clear()
            known = memory[cls] = cls()
        return known

    def number(self, text: str, code: Code = Code.UNSCHEDULABLE) -> int:
        reason = Reason(text, code)
        number = self._numbers.get(reason)
        if number is None and len(self.reasons) > MOST_REASONS:
            reason = Reason(OTHER, code)  # columns have no higher numbers
            number = self._numbers.get(reason)
        if number is None:
            number = self._numbers[reason] = len(self.reasons)
            self.reasons.append(reason)
        return number

    def lasting(self) -> NDArray[np.bool_]:
        """By number: true where no eviction can help."""
        return np.array([False, *(r.code is not Code.UNSCHEDULABLE for r in self.reasons[1:])])

    def merge(self, earlier: Verdicts, later: Verdicts) -> Verdicts:
        """The verdicts of two filters: the first refusal stays, but a lasting one outweighs a passing one."""
        if not later.any():
            return earlier
        if not earlier.any():
            return later.astype(np.int16, copy=False)
        merged = np.where(earlier == FITS, later, earlier)
        lasting = self.lasting()
        outweighed = lasting[later] & ~lasting[merged]
        return np.where(outweighed, later, merged).astype(np.int16)


class NotWhole(str):
    """The cause of a task for which there was a place, which it does not get because its gang lacks others."""

    __slots__ = ()


class Refused(str):
    """Why a job is refused, in the words of its profile, with what it is about."""

    __slots__ = ("detail",)
    detail: Detail

    def __new__(cls, text: str, detail: Detail) -> "Refused":
        made = super().__new__(cls, text)
        made.detail = detail
        return made


class QueueRefusal(str):
    """The cause of a job or task that its queue has no room for, in the words of a plugin."""

    __slots__ = ()


class SearchRanOut(str):
    """The cause of a job for which no room was found, and the search for victims did not come to its end."""

    __slots__ = ()


NO_JOB = -1


class EvictionCause(str):
    """The cause of an eviction, as the original system words it; POD stands in it for the evicted pod, JOB for the
    actor.

    Empty where the plan's own sentence is the message: that is made when it is read (`plans/evictions.py`).
    """

    __slots__ = ("action", "actor", "asked", "detail")
    action: str
    actor: int  # the job that gets the room, or NO_JOB
    asked: tuple[str, ...]  # the points at which plugins could have protected the pod
    detail: str  # the rule, in plain words: about the actor if there is one, else about the pod

    def __new__(
        cls, text: str, action: str, actor: int = NO_JOB, asked: tuple[str, ...] = (), detail: str = ""
    ) -> "EvictionCause":
        made = super().__new__(cls, text)
        made.action, made.actor, made.asked, made.detail = action, actor, asked, detail
        return made


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many nodes refused for each reason."""

    nodes: int
    counts: tuple[tuple[str, int], ...]

    @property
    def hopeless(self) -> bool:
        """No node is left that would take the task."""
        return sum(count for _, count in self.counts) >= self.nodes

    def __str__(self) -> str:
        if not self.counts:
            return f"0/{self.nodes} nodes are available"
        parts = sorted(f"{count} {text}" for text, count in self.counts)
        return f"0/{self.nodes} nodes are unavailable: {', '.join(parts)}"


def histogram(table: ReasonTable, verdicts: Verdicts) -> Histogram:
    numbers = np.bincount(verdicts, minlength=len(table.reasons))
    counts = ((table.reasons[n].text, int(numbers[n])) for n in np.flatnonzero(numbers).tolist() if n != FITS)
    return Histogram(len(verdicts), tuple(counts))


def joined(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))
