"""Where a pending job stands: why it cannot be served at all, and what its pod group's status says in KAI's form.

`queue_problem` is called when a session closes, the rest by the plan and by the writers of statuses.
Volcano's rules are in its plugin `gang`; the rules here are for jobs that need their pod sets to exist before
they are tried and their queue to be a leaf of the queue tree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maniple.framework.groups.tree import DEFAULT
from maniple.framework.plans.outcome import PodSetOutcome
from maniple.framework.session import Session
from maniple.objects.defaults import DEFAULT_SCHEDULER
from maniple.objects.kai import KaiPodGroup

UNSCHEDULABLE_ON_POOL = "UnschedulableOnNodePool"
QUEUE_MISSING, POD_ERRORS = "QueueDoesNotExist", "PodSchedulingErrors"
MISSING = "queue {queue!r} does not exist; create it, or name another queue"
NO_TURN = "not tried in this cycle"
REFUSED = "Refused"  # the reason, for programs, of jobs that are not served at all: no node would help

# The profiles whose pods name these schedulers, as the command line calls them
_PROFILE_OF = {"volcano": "volcano", "kai-scheduler": "kai", "maniple": "maniple"}
_TOLD = 5  # queues to name at most
_TRIED_ONCE = 1  # of a group's back-off


# -- why a turn cannot come ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueProblem:
    """What is wrong with a queue that jobs name; `others` are queues that not everybody may know of."""

    text: str
    others: tuple[str, ...] = ()

    @property
    def complete(self) -> str:
        listed = ", ".join(self.others[:_TOLD]) + (" ..." if len(self.others) > _TOLD else "")
        return f"{self.text}: {listed}" if listed else self.text


def queue_problem(session: Session, queue: int) -> QueueProblem | None:
    """What is wrong with a queue that jobs name; None if nothing is."""
    name = session.queue_name(queue)
    if queue not in session.queues.facts:
        return QueueProblem(MISSING.format(queue=name))
    if not session.rules.queues.only_leaves_take_jobs:
        return None
    tree = session.queue_tree
    if queue not in tree:
        return QueueProblem(_off_the_tree(session, queue))
    if not tree.leaf(queue):
        below = tuple(session.queue_name(one) for one in tree.children(queue))
        return QueueProblem(f"queue {name!r} has queues below it; only those take jobs", below)
    return None


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


def not_ready(pod_sets: Sequence[PodSetOutcome], *, plain_words: bool) -> str:
    """Which pods a job still needs before it can be tried; empty if there are enough."""
    short = [one for one in pod_sets if not one.ready]
    if not short:
        return ""
    if plain_words:
        return "waits for its pods: " + "; ".join(_there_are(one) for one in short)
    return "Job is not ready for scheduling: " + "; ".join(_too_few(one) for one in short)


def pods_of_others(theirs: Mapping[str, int], ours: Sequence[str]) -> str:
    """Which schedulers the pods of a job name (`theirs`, counted) instead of ours, and what to do about it."""
    ranked = sorted(theirs.items(), key=lambda one: (-one[1], one[0]))
    named = " and ".join(
        f"{'pod names' if number == 1 == len(theirs) else _pods_name(number)} scheduler {name!r}"
        for name, number in ranked
    )
    return (
        f"its {named}; this profile schedules {' and '.join(map(repr, ours))}; {_remedy(ranked[0][0], ours)}"
    )


def _pods_name(number: int) -> str:
    return "1 pod names" if number == 1 else f"{number} pods name"


def _remedy(named: str, ours: Sequence[str]) -> str:
    if named == DEFAULT_SCHEDULER:
        return f"set schedulerName: {ours[0]} in the pods" if ours else "set schedulerName in the pods"
    profile = _PROFILE_OF.get(named)
    return f"use {f'--profile {profile} or ' if profile else ''}--option schedulerName={named}"


def _there_are(one: PodSetOutcome) -> str:
    where = "" if one.name == DEFAULT else f" of {one.name}"
    behind = f", {one.gated} of them behind a scheduling gate" if one.gated else ""
    return f"it needs {one.minimum}{where} and {one.there or 'none'} {'is' if one.there == 1 else 'are'} there{behind}"


def _too_few(one: PodSetOutcome) -> str:
    where = "" if one.name == DEFAULT else f" of sub-group {one.name}"
    return f"needs {one.minimum} pods{where}, {one.there} exist, of which {one.gated} are gated"


# -- what a pod group is told ----------------------------------------------------------------------------------------


def scheduling_condition(message: str, reasons: list[dict[str, Any]], pool: str) -> dict[str, Any]:
    """KAI's condition of a pod group of which no pod has a place: the causes, for people and for programs."""
    return {
        "type": UNSCHEDULABLE_ON_POOL,
        "nodePool": pool,
        "status": "True",
        "reason": "Unschedulable",
        "message": message,
        "reasons": reasons,
    }


def pool_prefix(group: KaiPodGroup, pool: str) -> str:
    """A group that is tried once in each node pool says in which it was."""
    return f"Node-Pool '{pool}': " if group.spec.scheduling_backoff == _TRIED_ONCE else ""


def explained(over: Mapping[str, Any] | None, causes: Sequence[str], reason: str) -> list[dict[str, Any]]:
    """Causes for programs: that of a queue without room (`over`) with its details, any other with the reason."""
    return [
        dict(over)
        if over is not None and over["message"] == message
        else {"reason": reason, "message": message}
        for message in causes
    ]


__all__ = [
    "NO_TURN",
    "POD_ERRORS",
    "QUEUE_MISSING",
    "UNSCHEDULABLE_ON_POOL",
    "QueueProblem",
    "explained",
    "not_ready",
    "pods_of_others",
    "pool_prefix",
    "queue_problem",
    "scheduling_condition",
]
