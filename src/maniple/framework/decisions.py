"""Decisions: what a cycle has decided so far, which is what its plan will say.

Written by transactions when they are committed, by the actions that admit jobs or judge broken gangs, and by
plugins that state conditions or annotations; read when the session closes.
"""

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from maniple.framework.conditions import Conditions
from maniple.framework.groups.tree import TaskRows

Placed = tuple[TaskRows, NDArray[np.intp]]  # tasks, and a node for each


@dataclass(slots=True)
class Decisions:
    """Rows of tasks, jobs and nodes are those of the session."""

    bound: list[Placed] = field(default_factory=list)
    held: list[Placed] = field(default_factory=list)  # as good as bound, once `pre_bind` is done
    nominated: dict[int, int] = field(default_factory=dict)  # task -> node that was cleared for it
    evicted: list[tuple[int, str]] = field(default_factory=list)  # task, and why
    admitted: list[TaskRows] = field(default_factory=list)  # their scheduling gate may be removed
    # What the binding of a task has to carry. What a plugin adds in `on_allocate` it removes in `on_deallocate`.
    annotations: dict[int, dict[str, str]] = field(default_factory=dict)
    promised: set[int] = field(default_factory=set)  # jobs that got room which an earlier cycle made for them
    phases: dict[int, str] = field(default_factory=dict)  # of jobs, where they change
    conditions: Conditions = field(default_factory=Conditions)  # of jobs
    started: dict[int, datetime] = field(default_factory=dict)  # jobs that got their first place
    stale_since: dict[int, datetime | None] = field(default_factory=dict)  # jobs whose gang broke, or healed
    half_gangs: bool = False  # some gang is bound in part and is taken back when its time is over
    goes_on_later: bool = False  # nodes were left out of a search that begins elsewhere at another time
