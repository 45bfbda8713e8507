"""Why a job was not placed, in plain words.

The text says how many of the job's tasks have a place and how many are missing, what they request, what nodes
have, and what would be enough. It replaces KAI's sentences where the dialect says so, and is made by
`actions/placing/job_placer.py`. A filter's reasons are kept as they are: users of Kubernetes know them.
"""

import numpy as np

from maniple.actions.placing.causes import Causes, Found
from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS
from maniple.cluster.statuses import ACTIVE_ALLOCATED, Status
from maniple.framework.criteria import NodeRows
from maniple.framework.groups.tree import DEFAULT, PodSet
from maniple.framework.reasons import FITS
from maniple.framework.refusals import Refusals
from maniple.placement.engine import Mask
from maniple.placement.lacking import PLAIN

NO_NODE = "no node takes a task that asks for {asked}"
SINGLE = "{pod} has no place: {cause}"
GANG = "needs places for {minimum} tasks{where} at once and there are {found}, {short} too few: {cause}"
WOULD_DO = "; {short} more such place{s} would do"
_NOTHING = "nothing"


class PlainCauses(Causes):
    def no_node(self, class_: TaskClass, mask: Mask | None, *, mates: bool = False) -> str:
        said = NO_NODE.format(asked=self._asked(class_))
        if self._detailed:
            by_node = self._placement.by_node(class_, mask, mates=mates)
            return "".join([f"{said}.", *(f"\n<{node}>: {told}." for node, told in by_node.items())])
        verdicts = self._placement.verdicts(class_)
        rows = np.arange(len(verdicts)) if mask is None else np.flatnonzero(mask)
        if not len(rows):
            return f"{said}: there is no node"
        counts = np.bincount(verdicts[rows], minlength=len(self._session.reasons.reasons))
        numbers = [number for number in np.flatnonzero(counts).tolist() if number != FITS]
        if not numbers:
            return said
        parts = sorted(
            f"{counts[number]} {self._reason(class_, number, rows[verdicts[rows] == number])}"
            for number in numbers
        )
        nodes = "1 node" if len(rows) == 1 else f"{len(rows)} nodes"
        return f"{said}: of {nodes} {', '.join(parts)}"

    def note(self, refusals: Refusals, pod_set: PodSet, row: int, found: Found, placed: int) -> None:
        session, job = self._session, pod_set.job
        assert found.cause is not None
        have = session.groups.count(pod_set, ACTIVE_ALLOCATED) + found.counted
        short = pod_set.minimum - have
        if short <= 0 or pod_set.minimum == 1:
            text = SINGLE.format(pod=session.task_key(row), cause=found.cause)
        else:
            where = "" if pod_set.name == DEFAULT else f" of {pod_set.name}"
            text = GANG.format(
                minimum=pod_set.minimum, where=where, found=have, short=short, cause=found.cause
            )
            if self._alike(pod_set, row):
                text += WOULD_DO.format(short=short, s="" if short == 1 else "s")
        refusals.of_job(job, text)
        refusals.of_tasks(job, int(session.tasks.role[row]), np.array([row]), found.cause)

    def _alike(self, pod_set: PodSet, row: int) -> bool:
        """Whether all that wait of it are like this one, so that it is enough to speak of one."""
        tasks = self._session.tasks
        waiting = pod_set.rows[tasks.status[pod_set.rows] == Status.PENDING]
        return bool((tasks.class_of[waiting] == tasks.class_of[row]).all())

    def _reason(self, class_: TaskClass, number: int, rows: NodeRows) -> str:
        """A reason, and of a resource that is short how much of it there is where it is short."""
        session, text = self._session, self._session.reasons.reasons[number].text
        resources = session.resources
        for dimension in np.flatnonzero(class_.request).tolist():
            if text == PLAIN.format(resource=resources.names[dimension]):
                left = np.maximum(session.nodes.future_idle(rows)[dimension], 0)
                most = int(left.argmax())
                if not left[most]:
                    return f"{text} (none is left)"
                together = resources.written(dimension, int(left.sum()))
                on_one = resources.written(dimension, int(left[most]))
                return f"{text} ({together} left together, at most {on_one} on one)"
        return text

    def _asked(self, class_: TaskClass) -> str:
        """What a task requests, in the words of its pod."""
        resources, share = self._session.resources, class_.share
        asked = [
            f"{resources.names[dimension]} {resources.written(dimension, int(class_.request[dimension]))}"
            for dimension in np.flatnonzero(class_.request).tolist()
            if dimension != PODS
        ]
        if share is not None:
            part = f"{share.portion / 100:g}" if share.portion else f"{share.memory} MiB"
            asked.append(f"{part} of {'a GPU' if share.devices == 1 else f'each of {share.devices} GPUs'}")
        return ", ".join(asked) or _NOTHING


__all__ = ["PlainCauses"]
