"""Minimums per role: how many tasks of each role a gang needs, and how many it lacks.

Called by gang only. Role minimums that add up to more than the job's own minimum are ignored. Tasks without a
role have the number -1 and may be named in a minimum as "". Nothing is built for jobs without role minimums.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.statuses import READY, VALID, Status
from maniple.framework.points import TaskRows
from maniple.framework.session import Session

_NO_ROLE = -1
_UNUSED = -2  # a role that no task in the cluster has


@dataclass(frozen=True, slots=True, eq=False)
class _Needs:
    """One job: its tasks that have a role with a minimum, the index of that role in `roles`, and the
    minimums."""

    rows: TaskRows
    slots: NDArray[np.intp]
    roles: tuple[int, ...]
    names: tuple[str, ...]
    least: tuple[int, ...]


class RoleMinimums:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._needs: dict[int, _Needs | None] = {}

    def matter_to(self, job: int) -> bool:
        """Whether the job has any."""
        return bool(self._session.job_facts(job).role_minimums)

    def missing(self, job: int, *, pipelined: bool = False) -> dict[int, int]:
        """Roles that have fewer tasks placed than they need, and how many; best-effort tasks count while
        pending."""
        needs = self._of(job)
        if needs is None:
            return {}
        tasks = self._session.tasks
        status = tasks.status[needs.rows]
        counted = READY[status]
        idle = (status == Status.PENDING) & tasks.best_effort[needs.rows]
        counted |= idle if self._session.rules.gangs.gated_pods_count else idle & ~tasks.gated[needs.rows]
        if pipelined:
            counted |= status == Status.PIPELINED
        return {
            role: least - have
            for role, least, have in zip(needs.roles, needs.least, _count(needs, counted), strict=True)
            if have < least
        }

    def lacking_for_good(self, job: int) -> str | None:
        """A role that has too few tasks wherever they are placed, as text."""
        needs = self._of(job)
        if needs is None:
            return None
        counts = _count(needs, VALID[self._session.tasks.status[needs.rows]])
        for name, least, have in zip(needs.names, needs.least, counts, strict=True):
            if have < least:
                return f"role {name!r} has {have} usable tasks and needs {least}"
        return None

    def losable(self, job: int, rows: TaskRows) -> TaskRows:
        """Of tasks in order, those that their roles can spare; the last of a role go first."""
        needs = self._of(job)
        if needs is None:
            return rows
        counts = _count(needs, READY[self._session.tasks.status[needs.rows]])
        spare = {
            role: have - least for role, least, have in zip(needs.roles, needs.least, counts, strict=True)
        }
        kept = []
        for row in reversed(rows.tolist()):
            role = int(self._session.tasks.role[row])
            if spare.get(role, 1) > 0:
                kept.append(row)
                if role in spare:
                    spare[role] -= 1
        return np.array(kept[::-1], dtype=np.int64)

    def _of(self, job: int) -> _Needs | None:
        if job not in self._needs:
            self._needs[job] = self._read(job)
        return self._needs[job]

    def _read(self, job: int) -> _Needs | None:
        facts = self._session.job_facts(job)
        minimums = {name: least for name, least in facts.role_minimums.items() if least > 0}
        if not minimums or facts.minimum < sum(minimums.values()):
            return None
        roles = tuple(self._numbers.get(name, _UNUSED) for name in minimums)
        rows = self._session.tasks_of(job)
        slot_of = {role: slot for slot, role in enumerate(roles)}
        slots = np.array(
            [slot_of.get(role, -1) for role in self._session.tasks.role[rows].tolist()], dtype=np.intp
        )
        named = slots >= 0
        return _Needs(rows[named], slots[named], roles, tuple(minimums), tuple(minimums.values()))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        names = self._session.cluster.tasks.roles
        return {"": _NO_ROLE, **{name: number for number, name in enumerate(names)}}


def _count(needs: _Needs, counted: NDArray[np.bool_]) -> list[int]:
    counts: list[int] = np.bincount(needs.slots[counted], minlength=len(needs.roles)).tolist()
    return counts
