"""Why a job was not placed, in plain words.

The text says how many pods the job needs and how many can be placed, what they request and what nodes have. What
lasts (a taint, say) hides what passes (too little left). It replaces KAI's sentences where the dialect says so, and is
made by `actions/placing/job_placer.py`. A filter's reasons are kept as they are: users of Kubernetes know them.
"""

from collections.abc import Hashable

import numpy as np

from maniple.actions.placing.causes import Causes, Found
from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import ACTIVE_ALLOCATED
from maniple.framework.criteria import NodeRows
from maniple.framework.groups.tree import DEFAULT, PodSet
from maniple.framework.reasons import FITS
from maniple.framework.refusals import Refusals
from maniple.framework.sentences import GANG, NO_NODE, SINGLE, asked, left
from maniple.framework.session import Session
from maniple.placement.engine import Mask, Placement
from maniple.placement.lacking import PLAIN


class PlainCauses(Causes):
    def __init__(self, session: Session, placement: Placement) -> None:
        super().__init__(session, placement)
        self._told: dict[tuple[int, Hashable], str] = {}  # by nodes as they were, and what classes are alike

    def no_node(self, class_: TaskClass, mask: Mask | None, *, mates: bool = False) -> str:
        said = NO_NODE.format(asked=asked(self._session.resources, class_.request, class_.share))
        if self._detailed:
            by_node = self._placement.judging.by_node(class_, mask, mates=mates)
            return "".join([f"{said}.", *(f"\n<{node}>: {told}." for node, told in by_node.items())])
        if mask is not None:
            return said + self._by_reason(class_, np.flatnonzero(mask))
        key = (len(self._session.changes), self._placement.judging.likeness(class_))
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = self._by_reason(class_, np.arange(len(self._session.nodes)))
        return said + told

    def _by_reason(self, class_: TaskClass, rows: NodeRows) -> str:
        """These nodes, counted by their reasons."""
        if not len(rows):
            return ": there is no node"
        verdicts = self._placement.judging.verdicts(class_, lasting_first=True)
        counts = np.bincount(verdicts[rows], minlength=len(self._session.reasons.reasons))
        numbers = [number for number in np.flatnonzero(counts).tolist() if number != FITS]
        if not numbers:
            return ""
        parts = sorted(
            f"{counts[number]} {self._reason(class_, number, rows[verdicts[rows] == number])}"
            for number in numbers
        )
        nodes = "1 node" if len(rows) == 1 else f"{len(rows)} nodes"
        return f": of {nodes} {', '.join(parts)}"

    def note(self, refusals: Refusals, pod_set: PodSet, row: int, found: Found, placed: int) -> None:
        session, job = self._session, pod_set.job
        assert found.cause is not None
        have = session.groups.count(pod_set, ACTIVE_ALLOCATED) + found.counted
        short = pod_set.minimum - have
        if short <= 0 or pod_set.minimum == 1:
            text = SINGLE.format(pod=session.task_key(row), cause=found.cause)
        else:
            where = "" if pod_set.name == DEFAULT else f" of {pod_set.name}"
            text = GANG.format(minimum=pod_set.minimum, where=where, found=have, cause=found.cause)
        refusals.of_job(job, text)
        refusals.of_tasks(job, int(session.tasks.role[row]), np.array([row]), found.cause)

    def _reason(self, class_: TaskClass, number: int, rows: NodeRows) -> str:
        """A reason, and of a resource that is short how much of it there is where it is short."""
        session, text = self._session, self._session.reasons.reasons[number].text
        resources = session.resources
        for dimension in np.flatnonzero(class_.request).tolist():
            if text == PLAIN.format(resource=resources.names[dimension]):
                idle = self._placement.judging.free_later()[dimension, rows]
                offered = bool(session.nodes.allocatable[dimension].any())
                return f"{text} ({left(resources, dimension, idle, offered)})"
        return text


__all__ = ["PlainCauses"]
