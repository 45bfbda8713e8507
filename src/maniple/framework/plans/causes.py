"""Why tasks and jobs wait, in words, from a closed session. Made by a plan when it is asked for reasons."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from maniple.cluster.resources import Amounts
from maniple.cluster.statuses import ACTIVE_ALLOCATED, WAITING, Status
from maniple.framework.groups.tree import DEFAULT
from maniple.framework.plans.freezing import COUNTED, Closed
from maniple.framework.plans.outcome import PodSetOutcome
from maniple.framework.plans.plain import PlainSentences
from maniple.framework.plans.standing import (
    NO_TURN,
    POD_ERRORS,
    QUEUE_MISSING,
    explained,
    not_ready,
    pods_of_others,
    pool_prefix,
    scheduling_condition,
)
from maniple.framework.reasons import Histogram, joined
from maniple.framework.sentences import CLOSED
from maniple.objects.kai import KaiPodGroup
from maniple.objects.printable import printable

# Of pods that are not pending; any other is on a node.
_STATES = {
    int(Status.RUNNING): "running",
    int(Status.RELEASING): "terminating",
    int(Status.SUCCEEDED): "succeeded",
    int(Status.FAILED): "failed",
    int(Status.UNKNOWN): "in phase Unknown",
}
_WAITING, _PENDING = np.flatnonzero(WAITING), int(Status.PENDING)


def counted(reasons: Iterable[str]) -> list[str]:
    """Distinct reasons, the most frequent first, with the number of pods if there are several."""
    counts = Counter(reason for reason in reasons if reason)
    if len(counts) == 1:
        return list(counts)
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [f"{count} pod{'' if count == 1 else 's'}: {reason}" for reason, count in ranked]


class Causes:
    def __init__(
        self, closed: Closed, invalid: Mapping[str, str] | None = None, *, discreet: bool = False
    ) -> None:
        """`invalid`: why objects were refused, by kind and name. `discreet`: queues of others are not named."""
        self._closed = closed
        self._discreet = discreet
        self._invalid = invalid or {}
        self._of_job: dict[int, list[str]] = {}
        self._pod_sets: dict[int, tuple[PodSetOutcome, ...]] = dict(closed.jobs.parts)

    @cached_property
    def own(self) -> Mapping[int, Histogram | str]:
        """By task: why it found no place itself."""
        return self._closed.refused.by_task()

    def of_task(self, row: int, job: int, *, gated: bool) -> str:
        """The cause of a waiting task: its own, or its job's. `gated`: it waits behind a scheduling gate."""
        closed, own = self._closed, self.own.get(row)
        if own is not None:
            return str(own)
        if job < 0:
            return "belongs to no pod group"
        if job not in closed.jobs.facts:
            name = closed.names.job(job)
            return self._refusal("PodGroup", name) or f"pod group {printable(name)} does not exist"
        if gated:
            return "waits for its scheduling gates to be removed"
        return joined(self.of_job(job)) or NO_TURN

    def of_job(self, job: int) -> list[str]:
        """What a job as a whole waits for."""
        known = self._of_job.get(job)
        if known is None:
            held = self._closed.jobs.held_back.get(job)
            problem = held or self.queue_problem(job) or self._of_others(job)
            found = [problem] if problem else [*self._closed_queue(job), *filter(None, [self.not_ready(job)])]
            known = found or [str(one) for one in self._closed.refused.jobs.get(job, ())]
            self._of_job[job] = known
        return known

    def queue_problem(self, job: int) -> str:
        """What is wrong with the queue that a job names; empty if nothing is."""
        problems, queue = self._closed.queues.problems, int(self._closed.jobs.queue[job])
        if queue not in problems:
            return ""
        problem = problems[queue].text if self._discreet else problems[queue].complete
        return self._refusal("Queue", self._closed.names.queues[queue]) or problem

    def _closed_queue(self, job: int) -> list[str]:
        """That no pod would help, since a queue on the way up takes no new jobs."""
        queues, counts = self._closed.queues, self._closed.jobs.counts[:, job]
        if not self._closed.plain_words or counts[ACTIVE_ALLOCATED].any():
            return []
        path = queues.paths.get(int(self._closed.jobs.queue[job]), ())
        shut = (self._closed.names.queues[one] for one in path if not queues.facts[one].open)
        return [CLOSED.format(queue=name) for name in shut][:1]

    def _refusal(self, kind: str, name: str) -> str:
        """Why an object that is in the input does not exist for the scheduler; empty if it was not refused."""
        why = self._invalid.get(f"{kind} {name}")
        return f"{kind} {name} was refused: {why}" if why else ""

    def pod_sets(self, job: int) -> tuple[PodSetOutcome, ...]:
        """The parts of a job; none where jobs are not served by them."""
        known = self._pod_sets.get(job)
        if known is None:
            whole = PodSetOutcome(DEFAULT, self._closed.jobs.facts[job].minimum, *self._counted[job].tolist())
            known = self._pod_sets[job] = (whole,) if self._closed.by_pod_sets else ()
        return known

    @cached_property
    def _counted(self) -> Amounts:
        """By job: how many of its tasks are there, gated, used."""
        counted: Amounts = (COUNTED @ self._closed.jobs.counts).T
        return counted

    def not_ready(self, job: int) -> str:
        """Which pods a job still needs before it can be tried; empty if there are enough."""
        return not_ready(self.pod_sets(job), plain_words=self._closed.plain_words)

    def _of_others(self, job: int) -> str:
        """Whose a job's pods are, if it misses pods and some name another scheduler; empty otherwise."""
        closed, theirs = self._closed, self._closed.jobs.foreign.get(job)
        if not theirs or self._counted[job][0] >= closed.jobs.minimum[job]:
            return ""
        return pods_of_others(theirs, closed.scheduler_names)

    def over(self, job: int) -> dict[str, Any] | None:
        """The answer of the queue that has no room for a job."""
        over = self._closed.refused.over.get(job)
        if over is None:
            return None
        return {"reason": over.reason, "message": over.message, "details": dict(over.details or {})}

    def with_tasks(self, job: int) -> list[str]:
        """Why a job waits: its own reasons, and those of its tasks that they do not contain already."""
        closed = self._closed
        counts = closed.jobs.counts[:, job]
        if counts.any() and not counts[_WAITING].any():
            return [str(one) for one in closed.refused.jobs.get(job, ())]
        found = list(self.of_job(job))
        if counts[_PENDING]:
            rows = self.tasks_of(job)
            in_order = rows[np.argsort(closed.tasks.rank[rows])].tolist()
            causes = dict.fromkeys(str(self.own[row]) for row in in_order if row in self.own)
            found += [cause for cause in causes if not any(cause in one for one in found)]
        return list(dict.fromkeys(found))

    def complete(self, job: int) -> list[str]:
        """Why a job waits, never without a reason; in the words of the profile, then in plain ones."""
        found = self._originals(job)
        if self._closed.plain_words:
            return found
        return found + [one for one in self._plain.of_job(job) if one not in found]

    @cached_property
    def _plain(self) -> PlainSentences:
        return PlainSentences(self._closed, self)

    def _originals(self, job: int) -> list[str]:
        stated = self._closed.refused.conditions.of(job)
        told = [one["message"] for one in stated if one.get("status") == "True" and one.get("message")]
        return (
            self.with_tasks(job)
            or self._of_its_tasks(job)
            or list(dict.fromkeys(told))
            or [self._lacking(job)]
        )

    def _of_its_tasks(self, job: int) -> list[str]:
        """The causes of a job's waiting tasks, the most frequent first, with the number of tasks if they differ."""
        columns, rows = self._closed.tasks, self.tasks_of(job)
        waiting = rows[WAITING[columns.status[rows]]].tolist()
        gated = [bool(columns.gated[row]) or columns.status[row] == Status.GATED for row in waiting]
        causes = (self.of_task(row, job, gated=behind) for row, behind in zip(waiting, gated, strict=True))
        return counted(causes)

    def _lacking(self, job: int) -> str:
        """How many pods of each status there are of a job that needs more."""
        closed, counts = self._closed, self._closed.jobs.counts[:, job].tolist()
        there = [
            f"{count} {_STATES.get(status, 'scheduled')}" for status, count in enumerate(counts) if count
        ]
        needs = f"gang needs {closed.jobs.minimum[job]} pods"
        return f"{needs}; {', '.join(there)}" if there else f"{needs}; none names this scheduler"

    def tasks_of(self, job: int) -> Any:
        """The rows of a job's tasks."""
        order, bounds = self._by_job
        return order[bounds[job] : bounds[job + 1]]

    @cached_property
    def _by_job(self) -> tuple[Any, list[int]]:
        jobs = self._closed.tasks.job
        order = np.argsort(jobs, kind="stable")
        return order, np.searchsorted(jobs[order], np.arange(len(self._closed.jobs.queue) + 1)).tolist()

    def condition(self, job: int, causes: list[str]) -> dict[str, Any] | None:
        """KAI's condition of a pod group that waits for these causes.

        None while the job has no pods that wait or too few of them, and as soon as any of it has a place.
        """
        closed = self._closed
        group, counts = closed.jobs.groups[job], closed.jobs.counts[:, job]
        if not isinstance(group, KaiPodGroup) or not causes:
            return None
        if not counts[_PENDING] or counts[ACTIVE_ALLOCATED].any():
            return None
        missing = self.queue_problem(job)
        if not missing and self.not_ready(job):
            return None
        reasons = explained(self.over(job), causes, QUEUE_MISSING if missing else POD_ERRORS)
        return scheduling_condition(pool_prefix(group, closed.pool) + joined(causes), reasons, closed.pool)
