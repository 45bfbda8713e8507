"""Where a waiting job stands: why its turn cannot come at all, and what its pod group is told in KAI's form.

Read by the plan, and by whoever writes statuses. Volcano's rules are in its plugin `gang`; here are those of jobs whose pod sets have to be there before they are
tried, and whose queue has to be a leaf of the queue tree.
"""

from collections.abc import Sequence
from typing import Any

from maniple.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, Status, status_set
from maniple.framework.pod_sets import DEFAULT, PodSet
from maniple.framework.reasons import joined
from maniple.framework.session import Session
from maniple.objects.kai import KaiPodGroup

UNSCHEDULABLE_ON_POOL = "UnschedulableOnNodePool"
QUEUE_MISSING, POD_ERRORS = "QueueDoesNotExist", "PodSchedulingErrors"
NO_TURN = "its turn did not come in this cycle"

_GATED = status_set(Status.GATED)
_TOLD = 5  # queues to name at most
_TRIED_ONCE = 1  # of a group's back-off


# -- why a turn cannot come ------------------------------------------------------------------------------------------


def queue_problem(session: Session, job: int) -> str:
    """What is wrong with the queue that a job names; empty if nothing is."""
    name = session.job_facts(job).queue
    queue = session.queues.index_of(name)
    if queue is None or queue not in session.queues.facts:
        return f"queue {name!r} does not exist"
    if not session.rules.queues.only_leaves_take_jobs:
        return ""
    tree = session.queue_tree
    if queue not in tree:
        return _off_the_tree(session, queue)
    if not tree.leaf(queue):
        below = [session.queue_name(one) for one in tree.children(queue)]
        listed = ", ".join(below[:_TOLD]) + (" ..." if len(below) > _TOLD else "")
        return f"queue {name!r} has queues below it; only those take jobs: {listed}"
    return ""


def _off_the_tree(session: Session, queue: int) -> str:
    """Why a queue has no way up to a top-level queue."""
    name, facts, seen = session.queue_name(queue), session.queues.facts, [queue]
    while parent := facts[seen[-1]].parent:
        above = session.queues.index_of(parent)
        if above is None or above not in facts:
            child = session.queue_name(seen[-1])
            return f"a queue above {name!r} does not exist: {parent!r}, the parent of {child!r}"
        if above in seen:
            return f"the queues above {name!r} form a circle"
        seen.append(above)
    return (
        f"queue {name!r} is a top-level queue; with fullHierarchyFairness off, only those below one take jobs"
    )


def not_ready(session: Session, job: int) -> str:
    """Which pods a job still needs before it can be tried; empty if there are enough."""
    if session.pod_sets.ready(job):
        return ""
    ready = ALIVE & ~_GATED
    short = [one for one in session.pod_sets.of(job) if session.pod_sets.count(one, ready) < one.minimum]
    if session.rules.words.plain:
        return "waits for its pods: " + "; ".join(_there_are(session, one) for one in short)
    return "Job is not ready for scheduling: " + "; ".join(_too_few(session, one) for one in short)


def _there_are(session: Session, pod_set: PodSet) -> str:
    there, gated = session.pod_sets.count(pod_set, ALIVE), session.pod_sets.count(pod_set, _GATED)
    where = "" if pod_set.name == DEFAULT else f" of {pod_set.name}"
    behind = f", {gated} of them behind a scheduling gate" if gated else ""
    return f"it needs {pod_set.minimum}{where} and {there or 'none'} {'is' if there == 1 else 'are'} there{behind}"


def _too_few(session: Session, pod_set: PodSet) -> str:
    there, gated = session.pod_sets.count(pod_set, ALIVE), session.pod_sets.count(pod_set, _GATED)
    where = "" if pod_set.name == DEFAULT else f" of sub-group {pod_set.name}"
    return f"needs {pod_set.minimum} pods{where}, {there} exist, of which {gated} are gated"


# -- what a pod group is told ----------------------------------------------------------------------------------------


def scheduling_condition(session: Session, job: int, told: Sequence[str]) -> dict[str, Any] | None:
    """KAI's condition of a pod group of which nothing has a place: what it was refused for, for people and for programs.

    None while the job has no pods that wait or too few of them, and as soon as any of it has a place.
    """
    group = session.cluster.jobs.objects[job]
    if not isinstance(group, KaiPodGroup) or not told:
        return None
    counts = session.jobs.counts[:, job]
    if not counts[Status.PENDING] or counts[ACTIVE_ALLOCATED].any():
        return None
    missing = queue_problem(session, job)
    if not missing and not session.pod_sets.ready(job):
        return None
    reasons = explained(session, job, told, QUEUE_MISSING if missing else POD_ERRORS)
    pool = str(session.options.get("nodePoolLabelValue") or "default")
    return {
        "type": UNSCHEDULABLE_ON_POOL,
        "nodePool": pool,
        "status": "True",
        "reason": "Unschedulable",
        "message": pool_prefix(group, pool) + joined(told),
        "reasons": reasons,
    }


def pool_prefix(group: KaiPodGroup, pool: str) -> str:
    """A group that is tried once in each node pool says in which it was."""
    return f"Node-Pool '{pool}': " if group.spec.scheduling_backoff == _TRIED_ONCE else ""


def explained(session: Session, job: int, told: Sequence[str], reason: str) -> list[dict[str, Any]]:
    """Causes for programs: those of a queue that is in the way with its books, any other with the given reason."""
    over, found = session.refusals.over.get(job), []
    for message in told:
        if over is not None and over.message == message:
            found.append({"reason": over.reason, "message": message, "details": dict(over.details or {})})
        else:
            found.append({"reason": reason, "message": message})
    return found


__all__ = [
    "NO_TURN",
    "POD_ERRORS",
    "QUEUE_MISSING",
    "UNSCHEDULABLE_ON_POOL",
    "explained",
    "not_ready",
    "pool_prefix",
    "queue_problem",
    "scheduling_condition",
]
