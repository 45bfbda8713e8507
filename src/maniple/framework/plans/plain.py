"""Plain sentences about waiting jobs, for plans of the profiles that keep their original's words.

Made from a closed session when the reasons of a job are read, with the sentences of the default profile. Amounts are
those at the end of the cycle. A sentence is left out if they do not bear it out: the filters' own reasons are enough.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS, Amounts
from maniple.cluster.statuses import Status
from maniple.framework.plans.freezing import Closed
from maniple.framework.reasons import NotWhole, QueueRefusal
from maniple.framework.sentences import CEILING, DESERVED, GANG, LIMIT, NO_NODE, QUOTA, asked, left
from maniple.objects.quantity import parse

if TYPE_CHECKING:
    from maniple.framework.plans.causes import Causes

_UNLIMITED = "-1"
# By the reason of a capacity answer: the sentence, and which of the queue's amounts it compares
_OVER = {
    "OverLimit": (LIMIT, "queueResourceLimits", "queueAllocatedResources"),
    "NonPreemptibleOverQuota": (QUOTA, "queueDeservedResources", "queueAllocatedNonPreemptibleResources"),
}


class PlainSentences:
    def __init__(self, closed: Closed, causes: "Causes") -> None:
        self._closed = closed
        self._causes = causes
        self._known: dict[int, tuple[str, bool]] = {}  # by class, see `_request`

    def of_job(self, job: int) -> list[str]:
        """What stands in the way of a waiting job: its queue, or the room on nodes."""
        if self._causes.queue_problem(job):
            return []
        return [*self._of_capacity(job), *self._of_queue(job), *self._of_nodes(job)]

    # -- queues -------------------------------------------------------------------------------------------------------

    def _of_capacity(self, job: int) -> Iterator[str]:
        """From the answer of a queue that states its amounts."""
        answer = self._closed.refused.over.get(job)
        if answer is None or answer.reason not in _OVER:
            return
        sentence, bound, held = _OVER[answer.reason]
        amounts: Mapping[str, Any] = (answer.details or {}).get("queueDetails", {})
        for resource, limit in amounts.get(bound, {}).items():
            has, more = amounts[held][resource], amounts["podGroupRequestedResources"][resource]
            if limit != _UNLIMITED and parse(more) and parse(has) + parse(more) > parse(limit):
                yield sentence.format(
                    queue=amounts["name"], resource=resource, limit=limit, has=has, asked=more
                )
                return

    def _of_queue(self, job: int) -> Iterator[str]:
        """From the amounts of a queue that refused the job, or a task of it."""
        own, refused = self._causes.own, self._closed.refused.jobs.get(job, ())
        rows = self._waiting(job)
        if not any(isinstance(one, QueueRefusal) for one in (*refused, *(own.get(row) for row in rows))):
            return
        queue = int(self._closed.jobs.queue[job])
        report = self._closed.queues.reports.get(queue, {})
        if "allocated" not in report:
            return
        request, names = self._needed(job, rows), self._closed.resources
        for sentence, bound in ((CEILING, "capability"), (DESERVED, "deserved")):
            limits = report[bound]
            for dimension in np.flatnonzero(request).tolist():
                limit, has = float(limits[dimension]), int(report["allocated"][dimension])
                if dimension != PODS and has + int(request[dimension]) > limit:
                    yield sentence.format(
                        queue=self._closed.names.queues[queue],
                        resource=names.names[dimension],
                        limit=names.written(dimension, int(limit)),
                        has=names.written(dimension, has),
                        asked=names.written(dimension, int(request[dimension])),
                    )
                    return

    def _needed(self, job: int, rows: list[int]) -> Amounts:
        """What the job requests next: the pods that it lacks, or one more."""
        columns, lacks = (
            self._closed.tasks,
            int(self._closed.jobs.minimum[job] - self._closed.jobs.ready[job]),
        )
        numbers = [int(columns.class_of[row]) for row in rows[: max(lacks, 1)]]
        together: Amounts = sum(
            (
                self._closed.resources.padded(columns.wanted[number].request)
                for number in numbers
                if number in columns.wanted
            ),
            start=np.zeros(len(self._closed.resources), dtype=np.int64),
        )
        return together

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _of_nodes(self, job: int) -> Iterator[str]:
        """How many pods of a gang can be placed, and what no node has enough of for the first that found none."""
        own, columns = self._causes.own, self._closed.tasks
        rows = self._waiting(job)
        stuck = [row for row in rows if row in own and not isinstance(own[row], NotWhole | QueueRefusal)]
        if not stuck or int(columns.class_of[stuck[0]]) not in columns.wanted:
            return
        class_ = columns.wanted[int(columns.class_of[stuck[0]])]
        (cause, short), minimum = self._request(class_), int(self._closed.jobs.minimum[job])
        fits = sum(isinstance(own.get(row), NotWhole) for row in rows)
        found = max(self._closed.refused.found.get(job, 0), int(self._closed.jobs.ready[job]) + fits)
        if minimum > 1 and found < minimum and (short or found):
            yield GANG.format(minimum=minimum, where="", found=found, cause=cause)
        elif short:
            yield cause

    def _request(self, class_: TaskClass) -> tuple[str, bool]:
        """What a pod requests, and what no node has enough of; and whether there is such a resource."""
        known = self._known.get(class_.number)
        if known is None:
            requested = asked(self._closed.resources, class_.request, class_.share)
            short = ", ".join(self._short(class_.request))
            text = f"{NO_NODE.format(asked=requested)}: {short}" if short else f"each requests {requested}"
            known = self._known[class_.number] = text, bool(short)
        return known

    def _short(self, request: Amounts) -> list[str]:
        """The resources of which no node has enough left, and how much there is."""
        idle, resources = self._idle, self._closed.resources
        return [
            f"Insufficient {resources.names[dimension]} "
            f"({left(resources, dimension, idle[dimension], bool(self._closed.nodes.allocatable[dimension].any()))})"
            for dimension in np.flatnonzero(request[: len(idle)]).tolist()
            if not (idle[dimension] >= request[dimension]).any()
        ]

    @cached_property
    def _idle(self) -> Amounts:
        """What nodes have left once all that leaves has left, and all that claims room has it."""
        nodes = self._closed.nodes
        idle: Amounts = nodes.allocatable - nodes.used + nodes.releasing - nodes.pipelined
        return idle

    def _waiting(self, job: int) -> list[int]:
        """The pending tasks of a job, in task order."""
        columns, rows = self._closed.tasks, self._causes.tasks_of(job)
        rows = rows[columns.status[rows] == Status.PENDING]
        waiting: list[int] = rows[np.argsort(columns.rank[rows])].tolist()
        return waiting


__all__ = ["PlainSentences"]
