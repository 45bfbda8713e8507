"""What an eviction tells programs, as annotations of its event: how many pods of the group go, by which action, and for which group. Called by `kai.py`."""

from collections import Counter

from maniple.framework.outcome import Plan
from maniple.framework.reasons import MadeRoom
from maniple.framework.session import Session

EVICTED_PODS = "num-evicted-pods"
ACTION = "evictor-action-type"
EVICTOR_NAME = "evictor-pod-group-name"
EVICTOR_NAMESPACE = "evictor-pod-group-namespace"


def eviction_annotations(plan: Plan, row: int, reason: str) -> dict[str, str]:
    session = plan.session
    counts = session.shared.get(_Counts)
    if counts is None:
        counts = session.shared[_Counts] = _Counts(session)
    told = {EVICTED_PODS: str(counts.of_job[int(session.tasks.job[row])])}
    if isinstance(reason, MadeRoom):
        namespace, _, name = session.job_key(reason.actor).rpartition("/")
        told |= {ACTION: reason.action, EVICTOR_NAME: name, EVICTOR_NAMESPACE: namespace}
    return told


class _Counts:
    """By job: how many of its tasks the cycle evicted."""

    def __init__(self, session: Session) -> None:
        self.of_job = Counter(int(session.tasks.job[row]) for row, _ in session.evicted)
