"""The conditions of jobs at the end of a session: scheduled, or unschedulable and why.

Called by gang. Jobs without tasks get none; neither does one that is short only because its tasks are still
terminating. Complete jobs are recognised by columns, so that they cost next to nothing.
"""

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import SCHEDULED, WAITING, Status
from maniple.framework.session import Session

SCHEDULED_CONDITION = {
    "type": "Scheduled",
    "status": "True",
    "reason": "tasks in gang are ready to be scheduled",
    "message": "",
}
NOT_ENOUGH_RESOURCES = "NotEnoughResources"

_WAITING = np.flatnonzero(WAITING)
_SHOWN = [status for status in Status if status is not Status.GATED]


def write_conditions(session: Session) -> None:
    jobs, rows = session.jobs, session.jobs.rows
    counts = jobs.counts[:, rows]
    complete = jobs.ready[rows] + jobs.pending_best_effort[rows] >= needed(session)[rows]
    exists = counts.any(axis=0)
    session.decisions.conditions.state_all(rows[complete & exists], SCHEDULED_CONDITION)
    lacking = rows[exists & ~complete & ~_leaving(session, counts)]
    if lacking.size:
        _write_lacking(session, lacking)


def _write_lacking(session: Session, lacking: NDArray[np.int64]) -> None:
    origins, jobs = _origins(session), session.jobs
    messages: dict[tuple[int, ...], str] = {}  # equal gangs share a message
    fitting = _fitting(session)[lacking]
    columns = np.vstack(
        [jobs.minimum[lacking], jobs.ready[lacking], fitting, jobs.counts[:, lacking]]
    ).T.tolist()
    for job, column in zip(lacking.tolist(), columns, strict=True):
        key, (minimum, ready, places, *counts) = tuple(column), column
        message = messages.get(key) or messages.setdefault(key, _message(minimum, ready, places, counts))
        if job in origins:
            message = f"{message}. {origins[job]}"
        session.decisions.conditions.own[job] = [
            {"type": "Unschedulable", "status": "True", "reason": NOT_ENOUGH_RESOURCES, "message": message}
        ]


def _leaving(session: Session, counts: Amounts) -> NDArray[np.bool_]:
    """By session job: nothing is pending, and with its terminating tasks the minimum is reached."""
    tasks, jobs = session.tasks, session.jobs
    on_its_way = (tasks.status == Status.RELEASING) & (session.cluster.tasks.node[: len(tasks)] >= 0)
    of_jobs = tasks.job[on_its_way & (tasks.job >= 0)]
    leaving = np.bincount(of_jobs, minlength=len(jobs.queue))[jobs.rows]
    waits = counts[_WAITING].any(axis=0) | (counts[Status.PIPELINED] > 0)
    enough = counts[SCHEDULED].sum(axis=0) + leaving >= jobs.minimum[jobs.rows]
    return np.asarray((leaving > 0) & ~waits & enough)


def _fitting(session: Session) -> Amounts:
    """By job: pending tasks that would have fitted, had the gang been complete."""
    tasks = session.tasks
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *session.refusals.not_whole()]))
    rows = rows[tasks.status[rows] == Status.PENDING]
    return np.bincount(tasks.job[rows], minlength=len(session.jobs.queue))


def _message(minimum: int, ready: int, fitting: int, counts: list[int]) -> str:
    """The state of a gang: what it lacks, and its tasks by status; a gated one counts as pending."""
    total = sum(counts)
    counts[Status.PENDING] += counts[Status.GATED]
    parts = [f"{counts[status]} {status.word}" for status in _SHOWN if counts[status]]
    message = (
        f"{max(minimum - ready - fitting, 0)}/{total} tasks in gang unschedulable: pod group is not ready, "
        f"{', '.join(sorted([*parts, f'{minimum} minAvailable']))}"
    )
    waiting = ((fitting, "Schedulable"), (counts[Status.PENDING] - fitting, "Unschedulable"))
    pending = ", ".join(f"{count} {word}" for count, word in waiting if count)
    return f"{message}; Pending: {pending}" if pending else message


def _origins(session: Session) -> dict[int, str]:
    """The first cause recorded for each job, of the job itself or of one of its tasks; later ones do not
    replace it."""
    refusals = session.refusals
    origins = {job: f"Origin reason is: {causes[0]}" for job, causes in refusals.jobs.items() if causes}
    for job, (row, cause) in refusals.origins(session.tasks.job).items():
        name = session.task_key(row).rpartition("/")[2]
        origins[job] = f"Origin reason is {name}: {cause}"
    return origins


def needed(session: Session) -> NDArray[np.int32]:
    """By job, how many tasks have to be placed; gated ones that request nothing need not be where they count."""
    tasks, minimum = session.tasks, session.jobs.minimum
    if not session.rules.gangs.gated_pods_count:
        return minimum
    rows = np.flatnonzero(tasks.gated & tasks.best_effort & (tasks.status == Status.PENDING))
    return minimum - np.bincount(tasks.job[rows], minlength=len(minimum)).astype(np.int32)
