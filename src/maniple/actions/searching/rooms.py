"""Which classes have room for one more task, found with as few looks at nodes as possible.

Used by the solver, which checks all classes that have a place each time something has changed. Under the same
constraints (`signatures.py`), room for a task is room for all that request no more, and where there is none,
there is none for those that request more.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.actions.signatures import Constraints
from maniple.cluster.resources import Amounts
from maniple.framework.session import Session
from maniple.placement.engine import Placement


class Rooms:
    """What is known holds as long as nothing changes: `forget`."""

    def __init__(self, session: Session, placement: Placement, constraints: Constraints) -> None:
        self._session = session
        self._placement = placement
        self._constraints = constraints
        self._known: dict[int, bool] = {}  # by class
        self._seen: dict[int, tuple[int, int]] = {}  # by class, a node with room and when that was looked at
        # Requests by constraints and answer, a row each
        self._looked_at: dict[tuple[int, bool], Amounts] = {}

    def forget(self) -> None:
        self._known, self._looked_at = {}, {}

    def are_full(self, numbers: list[int]) -> NDArray[np.bool_]:
        """By class: whether it is one of these and has no room."""
        full = np.zeros(len(self._session.classes), dtype=np.bool_)
        for number in numbers:
            full[number] = not self._has_room(number)
        return full

    def _has_room(self, number: int) -> bool:
        known = self._known.get(number)
        if known is None:
            known = self._still(number) or self._follows(number)
            known = self._known[number] = self._look(number) if known is None else known
        return known

    def _still(self, number: int) -> bool | None:
        """The node that had room when it was last looked at has not changed."""
        node, stamp = self._seen.get(number, (-1, -1))
        return True if node >= 0 and self._session.changes.spared(np.array([node]), stamp)[0] else None

    def _follows(self, number: int) -> bool | None:
        """What follows from what is known of others; None if nothing does."""
        constraints, amounts = self._constraints.asked(number)
        roomy, full = self._looked_at.get((constraints, True)), self._looked_at.get((constraints, False))
        if roomy is not None and (roomy >= amounts).all(axis=1).any():
            return True
        if full is not None and (full <= amounts).all(axis=1).any():
            return False
        return None

    def _look(self, number: int) -> bool:
        constraints, amounts = self._constraints.asked(number)
        column = self._placement.column(self._session.classes[number])
        node = int(column.later.argmax())
        has_room = bool(column.later[node] > 0)
        if has_room:
            self._seen[number] = node, len(self._session.changes)
        key, row = (constraints, has_room), np.array([amounts], dtype=np.int64)
        known = self._looked_at.get(key)
        self._looked_at[key] = row if known is None else np.concatenate([known, row])
        return has_room


__all__ = ["Rooms"]
