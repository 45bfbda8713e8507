"""Which plugin spares a pod: each is asked by itself, by whatever says why nothing more is evicted.

Traces of searches and explanations use this. Decisions ask all plugins at once (`Session.hooks`); the answers are those
of the same functions. What plugins record or report meanwhile does not count.
"""

from collections.abc import Iterable

import numpy as np

from maniple.framework.points import TaskRows
from maniple.framework.session import Session


def protectors(session: Session, points: Iterable[str], asker: int, rows: TaskRows) -> dict[int, str]:
    """Of tasks that a task would like to be evicted, those that a plugin spares, with the first that does.

    `points`: those whose plugins vote on tasks. A plugin without an opinion spares none.
    """
    with session.aside():
        said = [one for point in points for one in session.answers(point, asker, rows)] if len(rows) else []
    given = [(name, set(np.asarray(allowed).tolist())) for name, allowed in said if allowed is not None]
    found: dict[int, str] = {}
    for row in rows.tolist():
        by = next((name for name, allowed in given if row not in allowed), "")
        if by:
            found[row] = by
    return found


class JobProtectors:
    """The plugins that are asked about whole jobs at a point. The caller sets aside what they record."""

    def __init__(self, session: Session, point: str) -> None:
        self._asked = session.asking(point)

    def first(self, job: int, victim: int) -> str:
        """The first plugin that does not let a job lose pods for another; empty if all do."""
        return next((name for name, allows in self._asked if not allows(job, victim)), "")


__all__ = ["JobProtectors", "protectors"]
