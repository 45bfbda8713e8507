"""Scenarios of the `kai` profile: which victims a job would be served with, and in which chunks jobs lose tasks.

A job loses its tasks in *chunks*: first the tasks that it can spare, one by one, then all the rest together.
`Pieces` cuts jobs by the default rule of this profile; the stepwise solver cuts as KAI does
(`PodSets.to_evict`). Validators accept or refuse a scenario given a `ScenarioOutcome`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.points import JobRows, TaskRows
from maniple.framework.session import Session
from maniple.framework.wholes import is_whole

Places = NDArray[np.int64]
LaidOut = tuple[TaskRows, Places]  # the tasks of chunks one after the other, and where those of each end


@dataclass(slots=True, eq=False)
class ScenarioOutcome:
    """What validators judge, while the session is as the scenario would leave it."""

    actor: int  # the job that is served
    tasks: TaskRows  # of the actor: those that were placed
    victims: Mapping[int, TaskRows]  # job -> its tasks that had to go; some may have found another place


@dataclass(slots=True, eq=False)
class Chunk:
    """Tasks of one job that go together."""

    job: int
    rows: TaskRows
    core: bool  # the job cannot run without them: evicting them evicts all that is left of it


def laid_out(chunks: list[Chunk]) -> LaidOut:
    """The tasks of chunks one after the other, and where those of each end."""
    rows = [chunk.rows for chunk in chunks]
    ends = np.cumsum([len(some) for some in rows], dtype=np.int64)
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows]), ends


class Victims(Protocol):
    """The chunks that come into question for one job, in the order in which they go."""

    allowed: NDArray[np.bool_]  # by job: whether anything of it may go

    @property
    def queues(self) -> int:
        """Of how many queues they are."""

    def first(self, count: int) -> list[Chunk]:
        """The first chunks, as many as there are up to a count."""

    def laid_out(self, count: int) -> LaidOut:
        """The tasks of the first chunks, one chunk after the other, and where those of each end."""

    def bar(self, chunk: Chunk) -> None:
        """Not this one, nor what cannot go without it."""

    def close(self, chunk: Chunk) -> None:
        """Of the chunk's queue, nothing from this chunk on."""

    def reopen(self) -> None:
        """All come into question again."""


class Pieces:
    """In what pieces jobs give way: for each, what it can spare, the first to go first, and the others.

    A job spares one task at a time. An optional pod set that is a gang of its own goes as a whole. A job that is
    evicted whole or not at all spares nothing.

    Most jobs are one pod set. For them it is worked out in columns, as of when this is made.
    """

    def __init__(self, session: Session, jobs: JobRows) -> None:
        self._session = session
        tasks, simple = session.tasks, np.zeros(len(session.jobs.queue) + 1, dtype=np.bool_)
        simple[jobs[session.groups.undivided[jobs]]] = True
        there = np.flatnonzero((tasks.status >= 0) & simple[tasks.job] & ACTIVE_ALLOCATED[tasks.status])
        self._rows = session.in_task_order(there)[::-1]
        owners = tasks.job[self._rows]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        stops = np.append(starts[1:], len(owners))[: len(starts)]  # no tasks: no piece either
        found = owners[starts]
        cores = np.maximum(stops - session.jobs.minimum[found], starts)
        cores = np.where(session.cluster.jobs.evicted_whole[found], starts, cores)
        bounds = zip(starts.tolist(), cores.tolist(), stops.tolist(), strict=True)
        self._simple = dict(zip(found.tolist(), bounds, strict=True))

    def of(self, job: int) -> tuple[list[TaskRows], TaskRows]:
        known = self._simple.get(job)
        if known is None:
            return self._of_groups(job)
        start, core, stop = known
        return _singles(self._rows[start:core]), self._rows[core:stop]

    def _of_groups(self, job: int) -> tuple[list[TaskRows], TaskRows]:
        session, pod_sets = self._session, self._session.groups
        spare: list[TaskRows] = []
        core: list[TaskRows] = []
        for one in reversed(pod_sets.in_order(pod_sets.of(job))):
            rows = one.rows[ACTIVE_ALLOCATED[session.tasks.status[one.rows]]]
            rows = session.in_task_order(rows)[::-1]
            if is_whole(session, job):
                core.append(rows)
                continue
            if one.optional and one.unit > 1 and len(rows):
                spare.append(rows)
                continue
            surplus = max(len(rows) - one.minimum, 0)
            spare += _singles(rows[:surplus])
            core.append(rows[surplus:])
        return spare, np.concatenate(core) if core else np.zeros(0, dtype=np.int64)


def _singles(rows: TaskRows) -> list[TaskRows]:
    return [rows[place : place + 1] for place in range(len(rows))]


__all__ = ["Chunk", "Pieces", "ScenarioOutcome"]
