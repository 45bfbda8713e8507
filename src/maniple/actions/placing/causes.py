"""Why a job was not placed, in KAI's words, and what is known of classes that found no node.

Used by `job_placer.py`. A class that has fewer places than a gang needs is examined once; until a node changes,
every later gang of this class, or of a class that would be placed alike, gets the same answer.
"""

from dataclasses import dataclass

import numpy as np

from maniple.actions.signatures import Constraints
from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_USED
from maniple.framework.groups.tree import PodSet
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.placement.engine import Mask, Placement

NO_NODE = "no nodes with enough resources were found"
SINGLE = "Resources were not found for pod {pod} due to: {cause}"
GANG = (
    "Resources were found for {found} pods while {minimum} are required for gang scheduling. "
    "Additional pods cannot be scheduled due to: {cause}"
)
SUB_GROUP = (
    "Resources were found for {found} pods from all sub-groups while sub-group {name} requires {minimum} pods for gang "
    "scheduling. Additional pods cannot be scheduled in this sub-group due to: {cause}"
)
UNTOLD = ""  # the cause in a dry run, which is never shown


@dataclass(frozen=True, slots=True)
class Found:
    """How many tasks of a run have a place, and why the next has none.

    `counted`: how many of them were only counted, not placed.
    """

    count: int
    cause: str | None = None
    counted: int = 0


@dataclass(slots=True)
class _Shortage:
    """All the places that there are for a class on all nodes, as of a length of the change log."""

    places: int
    cause: str
    stamp: int


class Causes:
    """The causes of one session."""

    def __init__(self, session: Session, placement: Placement) -> None:
        self._session = session
        self._placement = placement
        self._constraints = Constraints.shared(session, placement)
        self._shortages: dict[int, _Shortage] = {}  # by `Constraints.alike`
        self._latest: _Shortage | None = None
        self._nowhere: dict[int, Amounts] = {}  # by constraints, requests that fit on no node, a row each
        self._nowhere_stamp = -1
        self._asked_about = 0  # the class as it was before its tasks were placed
        self._detailed = bool(session.options.get("detailedFitErrors", False))

    def remembered(self, class_: TaskClass, count: int, *, real: bool) -> Found | None:
        """What is known of the class already, if it has too few places for so many tasks."""
        self._asked_about = self._constraints.alike(class_)
        known, now = self._shortages.get(self._asked_about), len(self._session.changes)
        if (
            (known is None or known.stamp != now)
            and self._nowhere_stamp == now
            and self._fits_nowhere(class_)
        ):
            known = self._note_none(class_, self.no_node(class_, None) if real else UNTOLD)
        if known is None or known.stamp != now or count <= known.places:
            return None
        return None if real and known.cause == UNTOLD else Found(known.places, known.cause, known.places)

    def _fits_nowhere(self, class_: TaskClass) -> bool:
        """A class that requests no more, under the same constraints, was found to fit on no node as they are now."""
        constraints, amounts = self._constraints.asked(class_.number)
        failed = self._nowhere.get(constraints)
        return failed is not None and bool((failed <= amounts).all(axis=1).any())

    def _note_none(self, class_: TaskClass, cause: str) -> _Shortage:
        """There is no place for the class on any node."""
        known = _Shortage(0, cause, len(self._session.changes))
        self._shortages[self._constraints.alike(class_)] = known
        return known

    def shortage(self, class_: TaskClass, count: int, mask: Mask | None, *, real: bool) -> Found | None:
        """Too few places for so many tasks, as far as is known without placing any."""
        column = self._placement.column(class_)
        places = column.room if mask is None else int(column.later[mask].sum())
        if places >= count or (places and real):
            return None  # the cause for the next task is only known once the others are placed
        cause = self.no_node(class_, mask) if real else UNTOLD
        if mask is None and not places:
            self._note_none(class_, cause)
            self._note_nowhere(class_)
        return Found(places, cause, places)

    def _note_nowhere(self, class_: TaskClass) -> None:
        """Remember the request for classes that request more. Where other pods decide, they may be alike and differ."""
        if self._placement.criteria(class_).cluster_filters:
            return
        if self._nowhere_stamp != len(self._session.changes):
            self._nowhere, self._nowhere_stamp = {}, len(self._session.changes)
        constraints, amounts = self._constraints.asked(class_.number)
        row, known = np.array([amounts], dtype=np.int64), self._nowhere.get(constraints)
        self._nowhere[constraints] = row if known is None else np.concatenate([known, row])

    def no_node(self, class_: TaskClass, mask: Mask | None, *, mates: bool = False) -> str:
        """Why no node fits a task of the class now: nodes counted by reason, or each with its own.

        `mates`: other tasks of its gang have places.
        """
        if self._detailed:
            by_node = self._placement.judging.by_node(class_, mask, mates=mates)
            return "".join([f"{NO_NODE}.", *(f"\n<{node}>: {told}." for node, told in by_node.items())])
        counts = self._placement.judging.histogram(class_, mask).counts
        if not counts:
            return NO_NODE
        told = ". \n".join(sorted(f"{count} {text}" for text, count in counts))
        return f"{NO_NODE}: {told}."

    def remember(self, class_: TaskClass, places: int, cause: str) -> None:
        """Remember all places of the class last passed to `remembered`; they were found by placing tasks there.

        That will now be undone: see `undone`.
        """
        self._latest = self._shortages[self._asked_about] = _Shortage(places, cause, -1)
        if not places:
            self._note_nowhere(class_)

    def undone(self) -> None:
        """The nodes are again as they were before the last attempt."""
        if self._latest is not None:
            self._latest.stamp, self._latest = len(self._session.changes), None

    def note(self, refusals: Refusals, pod_set: PodSet, row: int, found: Found, placed: int) -> None:
        """A task of a pod set found no place, after so many of its mates did."""
        session, job = self._session, pod_set.job
        assert found.cause is not None
        used = session.groups.count(pod_set, ACTIVE_USED) + found.counted
        pod_sets = session.groups.of(job)
        if used >= pod_set.minimum or not any(one.minimum > 1 for one in pod_sets):
            text = SINGLE.format(pod=session.task_key(row), cause=found.cause)
        else:
            alone = len(pod_sets) == 1 and pod_set.name == "default"
            text = (GANG if alone else SUB_GROUP).format(
                found=placed, name=pod_set.name, minimum=pod_set.minimum, cause=found.cause
            )
        refusals.found[job] = used
        refusals.of_job(job, text)
        refusals.of_tasks(job, int(session.tasks.role[row]), np.array([row]), found.cause)
