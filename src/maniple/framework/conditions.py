"""Conditions that plugins state about jobs when a session closes.

Of thousands of jobs that simply run there is one thing to say: it is kept once, with a mark for each of them, so that
cycles can be compared at the cost of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maniple.framework.groups.tree import TaskRows

Condition = dict[str, str]


@dataclass(slots=True)
class Conditions:
    """`own`: by job; `common`: what is said of every job that is marked. No condition is changed once it is stated."""

    own: dict[int, list[Condition]] = field(default_factory=dict)
    common: list[Condition] = field(default_factory=list)
    _marked: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def state_all(self, jobs: TaskRows, condition: Condition) -> None:
        """State the same of all of these, in place of what was said of others in this way."""
        self.common = [condition]
        self._marked = np.zeros(int(jobs.max(initial=-1)) + 1, dtype=np.bool_)
        self._marked[jobs] = True

    def of(self, job: int) -> Sequence[Condition]:
        if job in self.own:
            return self.own[job]
        return self.common if job < len(self._marked) and self._marked[job] else ()

    def marked(self, size: int) -> NDArray[np.bool_]:
        """By job."""
        found = np.zeros(size, dtype=np.bool_)
        known = min(size, len(self._marked))
        found[:known] = self._marked[:known]
        return found
