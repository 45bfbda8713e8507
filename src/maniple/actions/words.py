"""Why a pod is evicted, in plain words: for which job, of which queue, and by which rule.

Replaces KAI's sentences where the dialect says so.
"""

from maniple.framework.reasons import POD
from maniple.framework.session import Session


def reclaimed(session: Session, job: int) -> str:
    queue = session.queue_name(int(session.jobs.queue[job]))
    return (
        f"Pod {POD} makes room for job {session.job_key(job)} of queue {queue}, which stays within its share, "
        "while the pod's queue has more than its own"
    )


def preempted(session: Session, job: int) -> str:
    return f"Pod {POD} makes room for job {session.job_key(job)}, which matters more in the same queue"


def moved(session: Session, job: int) -> str:
    return f"Pod {POD} moves to another node, so that job {session.job_key(job)} finds its room in one place"


def ran_out(action: str) -> str:
    return (
        f"The search for room by {action} used up its budget for this cycle and was stopped: whether room can be made "
        "for this job is not known yet. It is tried again in the next cycles"
    )


__all__ = ["moved", "preempted", "ran_out", "reclaimed"]
