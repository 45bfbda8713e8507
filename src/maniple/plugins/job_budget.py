"""A job's own disruption budget: how many of its running tasks may be evicted at this moment.

Called by tdm. The pod group states volcano.sh/jdb-min-available or, if that is absent,
volcano.sh/jdb-max-unavailable: a number or a percentage of the job's tasks, rounded up. A job may lose
running - min available, or max unavailable - (unfinished - running); 1 if it states neither.

The rules `budgets` can restore Volcano's behaviour: a job that runs fewer tasks than its minimum may lose one
more, and an invalid number counts as 0; here such jobs lose nothing. And a job without a budget may lose 1 on
each call, here 1 in a session.
"""

import re

from maniple.cluster.statuses import COMPLETED, Status
from maniple.framework.session import Session

LEAST_AVAILABLE = "volcano.sh/jdb-min-available"
MOST_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
WITHOUT_BUDGET = 1

_AMOUNT = re.compile(r"([+-]?[0-9]{1,18})(%?)")


def may_lose(session: Session, job: int) -> int:
    rules, annotations = session.rules.budgets, session.cluster.jobs.objects[job].metadata.annotations
    counts = session.jobs.counts[:, job]
    running, total = int(counts[Status.RUNNING]), int(counts.sum())
    key = LEAST_AVAILABLE if LEAST_AVAILABLE in annotations else MOST_UNAVAILABLE
    text = annotations.get(key, "")
    if not text:
        lost = 0 if rules.unstated_spares_one_per_question else _lost(session, job)
        return max(0, WITHOUT_BUDGET - lost)
    amount = _read(text, total)
    if amount is None:
        session.report(
            f"job {session.job_key(job)}: annotation {key}: {text[:60]!r} is neither a number nor a percentage"
        )
        if not rules.unreadable_is_zero:
            return 0
        amount = 0
    if key == MOST_UNAVAILABLE:
        unavailable = total - int(counts[COMPLETED].sum()) - running
        return max(0, amount - unavailable)
    if running < amount:
        return WITHOUT_BUDGET if rules.short_jobs_lose_one else 0
    return running - amount


def _lost(session: Session, job: int) -> int:
    """Tasks that this session has evicted."""
    rows = session.tasks_of(job)
    leaving = session.tasks.status[rows] == Status.RELEASING
    return int((leaving & (session.cluster.tasks.status[rows] != Status.RELEASING)).sum())


def _read(text: str, total: int) -> int | None:
    found = _AMOUNT.fullmatch(text)
    if not found:
        return None
    number = int(found[1])
    return -(-number * total // 100) if found[2] else number
