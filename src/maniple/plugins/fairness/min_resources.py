"""The minimums of jobs (minResources), and how much of them is still to be kept free.

Shared by the plugins that decide on admission: one `MinResources` per session, on columns that are kept
across sessions and refreshed only for jobs whose facts are new. A task behind another controller's scheduling
gate is not waited for, so its request is subtracted.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.facts import JobFacts
from maniple.cluster.resources import PODS, Amounts
from maniple.cluster.statuses import ALLOCATED_LIKE
from maniple.framework.session import Session
from maniple.objects.meta import Quantity
from maniple.plugins.fairness.amounts import stated

Wanted = tuple[tuple[int, int], ...]


class _Columns:
    """By job row: the stated minimum, and whether the job was admitted or runs; outlives sessions."""

    def __init__(self, height: int) -> None:
        self._edition: Amounts = np.zeros(0, dtype=np.int64)  # of the pod groups that were read
        self._numbers: dict[tuple[tuple[str, Quantity], ...], int] = {}
        self._lists: list[tuple[Amounts, tuple[str, ...]]] = []
        self.amounts: Amounts = np.zeros((height, 0), dtype=np.int64)
        self.stated = np.zeros(0, dtype=np.bool_)
        self.inqueue = np.zeros(0, dtype=np.bool_)
        self.running = np.zeros(0, dtype=np.bool_)
        self.unoffered: dict[int, tuple[str, ...]] = {}

    @classmethod
    def of(cls, session: Session) -> "_Columns":
        height = len(session.total)
        memory = session.nodes.facts.memory
        known = memory.get(cls)
        if not isinstance(known, cls) or len(known.amounts) != height:
            known = memory[cls] = cls(height)
        known.refresh(session)
        return known

    def refresh(self, session: Session) -> None:
        size = len(session.jobs.queue)
        self._grow(size)
        facts, edition = session.cluster.jobs.facts, session.cluster.jobs.edition[:size]
        changed = [row for row in np.flatnonzero(self._edition[:size] != edition).tolist() if row in facts]
        if changed:
            self._set(session, changed, [facts[row] for row in changed])

    def _grow(self, size: int) -> None:
        added = size - len(self.stated)
        if added > 0:
            self.amounts = np.concatenate(
                [self.amounts, np.zeros((len(self.amounts), added), np.int64)], axis=1
            )
            self._edition = np.concatenate([self._edition, np.zeros(added, np.int64)])
            for name in ("stated", "inqueue", "running"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(added, np.bool_)]))

    def _set(self, session: Session, rows: list[int], facts: list[JobFacts]) -> None:
        self._edition[rows] = session.cluster.jobs.edition[rows]
        self.stated[rows] = [item.min_resources is not None for item in facts]
        self.inqueue[rows] = [item.phase == "Inqueue" for item in facts]
        self.running[rows] = [item.phase == "Running" for item in facts]
        numbers = [self._number(session, item.min_resources or {}) for item in facts]
        self.amounts[:, rows] = np.array([amounts for amounts, _ in self._lists])[numbers].T
        if self.unoffered or any(unknown for _, unknown in self._lists):
            for row, number in zip(rows, numbers, strict=True):
                self.unoffered.pop(row, None)
                if unknown := self._lists[number][1]:
                    self.unoffered[row] = unknown

    def _number(self, session: Session, resources: Mapping[str, Quantity]) -> int:
        """The number of a resource list, with its amounts and the resources that no node offers.

        Most jobs have one of few lists.
        """
        key = tuple(resources.items())
        known = self._numbers.get(key)
        if known is None:
            vector, _, unknown = stated(session, resources)
            known = self._numbers[key] = len(self._lists)
            self._lists.append((vector, tuple(unknown)))
        return known


class MinResources:
    """The claims of one session's jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._columns = _Columns.of(session)
        self._gated = _gated(session)
        self._wanted: dict[int, Wanted] = {}

    @classmethod
    def of(cls, session: Session) -> "MinResources":
        known = session.shared.get(cls)
        if not isinstance(known, cls):
            known = session.shared[cls] = cls(session)
        return known

    def states(self, job: int) -> bool:
        """Whether the job states a minimum; one without is admitted without a check."""
        return bool(self._columns.stated[job])

    def wanted(self, job: int) -> Wanted:
        """Dimension and amount of each resource in the job's minimum; `pods` is never short."""
        known = self._wanted.get(job)
        if known is None:
            amounts = self._columns.amounts[:, job].tolist()
            pairs = ((d, amount) for d, amount in enumerate(amounts) if amount > 0 and d != PODS)
            known = self._wanted[job] = tuple(pairs)
        return known

    def unoffered(self, job: int) -> tuple[str, ...]:
        """Resources of the job's minimum that no node has."""
        return self._columns.unoffered.get(job, ())

    def on_entry(self, job: int) -> list[int]:
        """What to keep free for a job that is admitted now."""
        amounts = self._columns.amounts[:, job]
        gated = self._gated.get(job)
        kept: list[int] = (amounts if gated is None else np.maximum(amounts - gated, 0)).tolist()
        return kept

    def minimums(self, rows: NDArray[np.int64]) -> Amounts:
        """The stated minimums, a column per job; zero if none is stated."""
        return self._columns.amounts[:, rows]

    def of_admitted(self, *, less_allocated: bool) -> tuple[NDArray[np.int64], Amounts]:
        """Jobs that were admitted and do not run yet, with what is kept for them: the rest of their minimum."""
        rows = self._claiming()
        rows = rows[(self._columns.inqueue & self._columns.stated)[rows]]
        amounts = self._left(rows) if less_allocated else self.minimums(rows)
        return rows, self._without_gated(rows, amounts)

    def of_running(self) -> tuple[NDArray[np.int64], Amounts]:
        """Running jobs that still have their minimum of tasks, with what they lack of their stated minimum.

        A job with fewer is finishing: it will not request the rest.
        """
        jobs, rows = self._session.jobs, self._claiming()
        rows = rows[(self._columns.running & self._columns.stated)[rows]]
        placed = jobs.counts[:, rows][ALLOCATED_LIKE].sum(axis=0)
        rows = rows[placed >= jobs.minimum[rows]]
        return rows, self._without_gated(rows, self._left(rows))

    def _claiming(self) -> NDArray[np.int64]:
        """Jobs that may get more than they have."""
        rows, held = self._session.jobs.rows, self._session.held_back
        return rows[~np.isin(rows, list(held))] if held else rows

    def _left(self, rows: NDArray[np.int64]) -> Amounts:
        return np.asarray(np.maximum(self.minimums(rows) - self._session.jobs.allocated[:, rows], 0))

    def _without_gated(self, rows: NDArray[np.int64], amounts: Amounts) -> Amounts:
        for place, job in enumerate(rows.tolist() if self._gated else ()):
            if job in self._gated:
                amounts[:, place] = np.maximum(amounts[:, place] - self._gated[job], 0)
        return amounts


def _gated(session: Session) -> dict[int, Amounts]:
    """By job, what its tasks request that are behind a gate of another controller."""
    tasks = session.tasks
    sums: dict[int, Amounts] = {}
    for row in np.flatnonzero(tasks.gated & ~tasks.admissible & (tasks.job >= 0)).tolist():
        request = session.classes[tasks.class_of[row]].request
        job = int(tasks.job[row])
        sums[job] = sums[job] + request if job in sums else request
    # `pods` alone is nothing to wait for or to return.
    return {job: amount for job, amount in sums.items() if np.delete(amount, PODS).any()}
