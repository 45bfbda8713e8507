"""The shape of a job: the parts that are placed together, and what holds them together.

Made by `sub_jobs.py` when a session opens; read by actions and plugins. Rows of domains are those of the session's domain tree.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from maniple.cluster.domains import NONE
from maniple.cluster.resources import Amounts
from maniple.framework.points import TaskRows


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest tier that tasks may be spread over; None where nothing holds them together."""

    highest: int | None
    wished: bool = False  # a soft wish: as close as possible, and no further limit
    unknown: str = ""  # a tier name that no HyperNode has


class Counts(NamedTuple):
    """Of a sub-job's tasks, how many are in which state."""

    ready: int
    pipelined: int
    best_effort: int  # waiting, not gated, asking for nothing


@dataclass(slots=True, eq=False)
class SubJob:
    """A part of a job that is placed together."""

    row: int
    job: int
    group: str  # the policy that made it; empty for tasks that no policy took
    name: str  # unique in its job
    minimum: int
    index: int  # number in its first label value, 0 for none
    tasks: TaskRows
    priorities: Amounts  # of all tasks of the session
    limit: Limit | None
    domain: int = NONE  # around what is placed
    nominated: int = NONE  # cleared for it by eviction

    @property
    def priority(self) -> int:
        """That of the most important task, and never below 0."""
        return max(0, int(self.priorities[self.tasks].max(initial=0)))


@dataclass(slots=True, eq=False)
class JobShape:
    """A job as a tree of sub-jobs."""

    job: int
    limit: Limit | None
    split: bool  # by policies
    least: dict[str, int]  # policy -> sub-jobs that have to be ready
    sub_jobs: list[SubJob] = field(default_factory=list)
    domain: int = NONE

    @property
    def limits(self) -> list[Limit]:
        return [limit for limit in (self.limit, *(one.limit for one in self.sub_jobs)) if limit is not None]

    @property
    def hard(self) -> bool:
        """Some of its tasks must not be placed just anywhere: more than a wish holds them together."""
        return any(not limit.wished for limit in self.limits)

    @property
    def bounded(self) -> bool:
        """Something limits how far apart tasks may be."""
        return any(limit.highest is not None for limit in self.limits)


@dataclass(slots=True, eq=False)
class Progress:
    """The sub-job that is being placed: inside which domain, and around what it has so far."""

    sub_job: SubJob
    ground: int
    domain: int
