"""What was found out about the pod sets of a job, kept from cycle to cycle while nothing of the job changes.

Most jobs of a large cluster run and go on running. To grow the tree of a job with several pod sets takes a fraction of
a millisecond: too much for each of thousands, in every cycle. Read by the action `stalegangeviction` and by
`plans/freezing.py`. An answer holds while the job's pod group and tasks are those of then (`JobTable.moved`) and the
session has moved none of them; jobs with tasks that wait are always looked at, since sessions may set these aside.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from maniple.cluster.statuses import Status

if TYPE_CHECKING:
    from maniple.framework.session import Session

Found = TypeVar("Found")
REMEMBERED = "what was found out about pod sets"  # its place in the cluster's memory
_WAITING = [int(Status.PENDING), int(Status.GATED)]


def remembered(
    session: "Session", question: str, jobs: list[int], find: Callable[[int], Found]
) -> dict[int, Found]:
    """The answers to a question for these jobs; `find` is asked where none is known."""
    answers: Any = session.cluster.memory.setdefault(REMEMBERED, {})
    known: dict[int, tuple[int, Found]] = answers.setdefault(question, {})
    columns = session.jobs
    moved = session.cluster.jobs.moved[jobs].tolist()
    still = ((columns.version[jobs] == 0) & ~columns.counts[_WAITING][:, jobs].any(axis=0)).tolist()
    found = {}
    for job, number, keeps in zip(jobs, moved, still, strict=True):
        before = known.get(job) if keeps else None
        if before is not None and before[0] == number:
            found[job] = before[1]
            continue
        answer = found[job] = find(job)
        if keeps:
            known[job] = number, answer
    return found
