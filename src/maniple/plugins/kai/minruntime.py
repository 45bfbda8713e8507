"""minruntime: a job that has started is protected for a while.

Arguments `defaultPreemptMinRuntime`, `defaultReclaimMinRuntime` (durations; 0s), `reclaimResolveMethod` (lca,
queue). Queues may set their own `preemptMinRuntime` and `reclaimMinRuntime`. For preemption the first queue
that sets one counts, from the victim's leaf up; likewise for reclaim with the method `queue`. With `lca` the
search starts where the paths of the two queues part: the branch towards the victim, then upwards; between
different trees only the victim's top queue counts.

A protected job that cannot lose any task is no victim. One that can spare tasks may lose these: the scenario
is refused if it would be left with less than its minimum.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from maniple.cluster.statuses import ACTIVE_USED
from maniple.framework.configuration.arguments import TextArguments
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.points import TaskRows
from maniple.framework.session import Session
from maniple.objects.kai import KaiQueue
from maniple.plugins.settings import report

LCA, QUEUE = "lca", "queue"


class MinRuntime:
    name = "minruntime"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        given = TextArguments(arguments, self.name)
        self._session = session
        self._preempt = max(int(given.duration("defaultPreemptMinRuntime", 0)), 0)
        self._reclaim = max(int(given.duration("defaultReclaimMinRuntime", 0)), 0)
        self._method = given.string("reclaimResolveMethod", LCA) or LCA
        report(session, given)
        if self._method not in (LCA, QUEUE):
            session.report(
                f'minruntime: argument reclaimResolveMethod: "{self._method}" must be lca or queue; lca is used'
            )
            self._method = LCA
        self._by_queue: dict[tuple[int, int], int] = {}

    @property
    def protects(self) -> bool:
        """Whether any job may be protected, for as long as it has not run long enough."""
        return not self._idle

    # -- protected jobs -------------------------------------------------------------------------------------------

    def reclaim_victim_filter(self, actor: int, victim: int) -> bool:
        return self._idle or not self._protected_from_reclaim(actor, victim) or self._elastic(victim)

    def preempt_victim_filter(self, actor: int, victim: int) -> bool:
        return self._idle or not self._protected_from_preemption(victim) or self._elastic(victim)

    def reclaim_scenario_validator(self, outcome: Any) -> bool:
        return self._idle or all(
            self._keeps_its_minimum(job, rows)
            for job, rows in outcome.victims.items()
            if self._protected_from_reclaim(outcome.actor, job) and self._elastic(job)
        )

    def preempt_scenario_validator(self, outcome: Any) -> bool:
        return self._idle or all(
            self._keeps_its_minimum(job, rows)
            for job, rows in outcome.victims.items()
            if self._protected_from_preemption(job) and self._elastic(job)
        )

    @cached_property
    def _idle(self) -> bool:
        """Whether no queue sets a time, so that no job is protected."""
        said = (time for times in self._queues.values() for time in times)
        return self._session.now is None or not (
            self._preempt or self._reclaim or any(time for time in said if time is not None)
        )

    def _elastic(self, job: int) -> bool:
        return self._session.groups.elastic(job)

    def _protected_from_preemption(self, victim: int) -> bool:
        return self._runs_shorter_than(victim, self._time(victim, -1))

    def _protected_from_reclaim(self, actor: int, victim: int) -> bool:
        return self._runs_shorter_than(victim, self._time(victim, int(self._session.jobs.queue[actor])))

    def _runs_shorter_than(self, job: int, time: int) -> bool:
        now, started = self._session.now, self._session.job_facts(job).started
        if now is None or started is None or time <= 0:
            return False
        length = timedelta(microseconds=time / 1000)
        return now < _same_kind(started, now) + length and now < self._oldest(job, now) + length

    def _oldest(self, job: int, now: datetime) -> datetime:
        """When the first of the pods that run was started, by its kubelet.

        The start of a job is noted on its group, where its owner can write a later one. Its pods start after it.
        """
        session = self._session
        rows = session.tasks_of(job)
        rows = rows[ACTIVE_USED[session.tasks.status[rows]]]
        times = [session.cluster.tasks.pods[row].status.start_time for row in rows.tolist()]
        return min((_same_kind(one, now) for one in times if one is not None), default=now)

    def _keeps_its_minimum(self, job: int, rows: TaskRows) -> bool:
        pod_sets = self._session.groups
        for one in pod_sets.of(job):
            lost = int(np.isin(rows, one.rows).sum())
            if lost and pod_sets.count(one, ACTIVE_USED) - lost < one.minimum:
                return False
        return True

    # -- durations ------------------------------------------------------------------------------------------------

    @cached_property
    def _queues(self) -> dict[int, tuple[int | None, int | None]]:
        """The times that queues set for preemption and for reclaim."""
        return {
            queue: (
                _said(self._session, item, "preemptMinRuntime", item.spec.preempt_min_runtime),
                _said(self._session, item, "reclaimMinRuntime", item.spec.reclaim_min_runtime),
            )
            for queue in self._session.queues.objects
            if (item := self._session.queues.stated(queue, KaiQueue)) is not None
        }

    def _time(self, victim: int, asking: int) -> int:
        """Nanoseconds that a victim is protected for, from a queue that reclaims, or (-1) from its own."""
        key = (int(self._session.jobs.queue[victim]), asking)
        known = self._by_queue.get(key)
        if known is None:
            known = self._by_queue[key] = self._resolved(*key)
        return known

    def _resolved(self, queue: int, asking: int) -> int:
        tree = self._session.queue_tree
        path = tree.path(queue) if queue in tree else []
        if asking < 0:
            return self._first(path, 0, self._preempt)
        if self._method == LCA:
            path = _from_the_fork(path, tree.path(asking) if asking in tree else [])
        return self._first(path, 1, self._reclaim)

    def _first(self, path: list[int], which: int, default: int) -> int:
        said = (self._queues[queue][which] for queue in path if queue in self._queues)
        return next((time for time in said if time is not None), default)


def _from_the_fork(victim: list[int], asking: list[int]) -> list[int]:
    """The victim's path upwards, from the last queue before it meets the other's."""
    if not victim or not asking or victim[-1] != asking[-1]:
        return victim[-1:]
    common = set(asking)
    shared = sum(queue in common for queue in victim)
    return victim[max(len(victim) - shared - 1, 0) :]


def _said(session: Session, queue: KaiQueue, field: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return nanoseconds(text)
    except ValueError as error:
        session.report(f"Queue {queue.metadata.name}: spec.{field}: {error}")
        return None


def _same_kind(time: datetime, like: datetime) -> datetime:
    return time if (time.tzinfo is None) == (like.tzinfo is None) else time.replace(tzinfo=like.tzinfo)


__all__ = ["MinRuntime"]
