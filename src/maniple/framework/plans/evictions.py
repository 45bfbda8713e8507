"""Evictions, and the pods that start once others have left: who leaves for whom, by which rule, in words.

Made by a plan from a closed session when it is read. Actions record a cause with every eviction
(`framework/reasons.py`); the sentences are made here, the same for all profiles.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from maniple.cluster.statuses import Status
from maniple.framework.plans.freezing import Closed
from maniple.framework.plans.outcome import OTHERS, Eviction, Starting
from maniple.framework.reasons import JOB, NO_JOB, POD, QUEUE, EvictionCause

_NAMED = 3  # pods or nodes that a sentence names at most
_ELSEWHERE = "of another namespace"  # where the originals' words name a workload


class Evictions:
    def __init__(self, closed: Closed) -> None:
        self._closed = closed

    # -- who leaves ---------------------------------------------------------------------------------------------------

    def all(self) -> Iterator[Eviction]:
        """In the order in which they were decided."""
        for row, cause in self._decided():
            yield self._eviction(row, cause)

    def notices(self) -> Iterator[Eviction]:
        """The same for the owners of the pods: nothing of other namespaces is named, unless a rule allows it."""
        for row, cause in self._decided():
            hidden = not self._closed.names_others and self._is_for_others(row, cause)
            yield self._eviction(row, cause, hidden=hidden)

    def _decided(self) -> Iterator[tuple[int, EvictionCause]]:
        for row, reason in self._closed.decided.evicted:
            yield row, reason if isinstance(reason, EvictionCause) else self._named(reason)

    def _is_for_others(self, row: int, cause: EvictionCause) -> bool:
        """Whether the job that gets the room is in another namespace than the pod."""
        names = self._closed.names
        return cause.actor != NO_JOB and _namespace(names.job(cause.actor)) != _namespace(names.tasks[row])

    def _named(self, reason: str) -> EvictionCause:
        """The cause of an action that gives a text only; its name, as a rule."""
        return EvictionCause(reason, reason if reason in self._closed.actions else "")

    def _eviction(self, row: int, cause: EvictionCause, *, hidden: bool = False) -> Eviction:
        """`hidden`: for which job the pod leaves is not said."""
        closed, names = self._closed, self._closed.names
        job, node, target = int(closed.tasks.job[row]), self._origin(row), self._target(row)
        pod, why = names.tasks[row], self._why(row, cause, hidden=hidden)
        actor = "" if cause.actor == NO_JOB else OTHERS if hidden else names.job(cause.actor)
        told = Eviction(
            pod=pod,
            job=names.job(job) if job >= 0 else "",
            text=str(cause).replace(JOB, _ELSEWHERE if hidden else actor).replace(POD, pod),
            action=cause.action,
            actor=actor,
            together=self.of_job[job],
            node=names.nodes[node] if node >= 0 else "",
            moves_to=names.nodes[target] if target >= 0 else "",
            pods=() if hidden else self._names(self._gets.get((cause.actor, node), ())),
            allowed_by=closed.decided.asked.get(cause.asked, ()),
            why=why,
        )
        return told if told.text else replace(told, text=told.sentence)

    def _names(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Sorted, so that what is said does not depend on the order of the input."""
        return tuple(sorted(self._closed.names.tasks[row] for row in rows))

    @cached_property
    def of_job(self) -> Counter[int]:
        """By job: how many of its pods are evicted, including those that move."""
        return Counter(int(self._closed.tasks.job[row]) for row, _ in self._closed.decided.evicted)

    @cached_property
    def moved_of_job(self) -> Counter[int]:
        """By job: how many of its pods move to another node."""
        evicted = self._closed.decided.evicted
        return Counter(int(self._closed.tasks.job[row]) for row, _ in evicted if self._target(row) >= 0)

    def _why(self, row: int, cause: EvictionCause, *, hidden: bool) -> str:
        """The rule by which a pod leaves, as the end of a sentence about it."""
        closed, names, target = self._closed, self._closed.names, self._target(row)
        if cause.actor == NO_JOB:
            return cause.detail or str(cause).replace(POD, names.tasks[row])
        own = int(closed.tasks.job[row])
        if cause.actor == own:
            return "makes room for another pod of its own job"
        goes = f"moves to {names.nodes[target]} and makes room" if target >= 0 else "makes room"
        queue, theirs = int(closed.jobs.queue[cause.actor]), self._queue(own)
        rule = f", {cause.detail.replace(QUEUE, theirs)}" if cause.detail else ""
        if hidden:
            return f"{goes} for {OTHERS}{rule}"
        of = f" of queue {names.queues[queue]}" if queue >= 0 and names.queues[queue] != theirs else ""
        return f"{goes} for job {names.job(cause.actor)}{of}{rule}"

    def _queue(self, job: int) -> str:
        queue = int(self._closed.jobs.queue[job]) if job >= 0 else -1
        return self._closed.names.queues[queue] if queue >= 0 else ""

    def _origin(self, row: int) -> int:
        """The node that a pod leaves."""
        tasks = self._closed.tasks
        return tasks.moved.get(row, int(tasks.node[row]))

    def _target(self, row: int) -> int:
        """The node to which a pod moves, or -1."""
        tasks = self._closed.tasks
        moves = row in tasks.moved and tasks.status[row] == Status.PIPELINED
        return int(tasks.node[row]) if moves else -1

    @cached_property
    def _gets(self) -> dict[tuple[int, int], list[int]]:
        """By job and node: its tasks that got the node in this cycle, at once or later."""
        tasks, found = self._closed.tasks, dict[tuple[int, int], list[int]]()
        decided = self._closed.decided
        placed = [rows for rows, _ in (*decided.bound, *decided.held)]
        for row in np.concatenate([decided.pipelined, *placed]).tolist():
            if row not in tasks.moved:
                found.setdefault((int(tasks.job[row]), int(tasks.node[row])), []).append(row)
        return found

    @cached_property
    def reasons(self) -> dict[int, str]:
        """By task: why it is evicted."""
        return {
            row: _with_action(one)
            for (row, _), one in zip(self._closed.decided.evicted, self.all(), strict=True)
        }

    def reason_of_job(self, job: int) -> list[str]:
        """Why a job loses pods, the most frequent reason first."""
        counts = self._reasons_by_job.get(job, Counter[str]())
        return [f"{pods(count)} evicted by {why}" for why, count in ranked(counts)]

    @cached_property
    def _reasons_by_job(self) -> dict[int, Counter[str]]:
        found: dict[int, Counter[str]] = {}
        for row, why in self.reasons.items():
            found.setdefault(int(self._closed.tasks.job[row]), Counter())[why] += 1
        return found

    # -- who starts then ----------------------------------------------------------------------------------------------

    def starting(self) -> dict[str, Starting]:
        """Every pod that claims what others are releasing."""
        names, tasks = self._closed.names, self._closed.tasks
        found = {}
        for row in self._closed.decided.pipelined.tolist():
            job, node = int(tasks.job[row]), int(tasks.node[row])
            after = self._names(self._after(job, node))
            found[names.tasks[row]] = Starting(
                job=names.job(job) if job >= 0 else "",
                node=names.nodes[node],
                after=after,
                reason=_starts(names.nodes[node], after),
            )
        return found

    def _after(self, job: int, node: int) -> list[int]:
        """The tasks that leave a node for a job; if none was evicted for it, all that leave."""
        return self._evicted_for.get((job, node)) or self._leaving.get(node, [])

    @cached_property
    def _evicted_for(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for row, cause in self._closed.decided.evicted:
            if isinstance(cause, EvictionCause):
                found.setdefault((cause.actor, self._origin(row)), []).append(row)
        return found

    @cached_property
    def _leaving(self) -> dict[int, list[int]]:
        """By node: the tasks that leave it."""
        tasks, found = self._closed.tasks, dict[int, list[int]]()
        gone = np.flatnonzero((tasks.status == Status.RELEASING) & (tasks.node >= 0))
        for row in sorted({*gone.tolist(), *tasks.moved}):
            found.setdefault(self._origin(row), []).append(row)
        return found

    def starts_of_job(self, job: int) -> list[str]:
        """When a job starts that claims what others are releasing."""
        tasks, names = self._closed.tasks, self._closed.names
        rows = self._closed.decided.pipelined
        nodes = {*tasks.node[rows[tasks.job[rows] == job]].tolist()}
        after = {row for node in nodes for row in self._after(job, node)}
        where = listed(sorted(names.nodes[node] for node in nodes), "node")
        if not after:
            return [f"starts when resources on {where} are released"]
        owners = Counter(names.job(int(tasks.job[row])) if tasks.job[row] >= 0 else "" for row in after)
        leave = [f"{pods(count)} of {name}" if name else pods(count) for name, count in ranked(owners)]
        have = "has" if len(after) == 1 else "have"
        return [f"starts when {listed(leave, 'job', ' and pods of')} {have} left {where}"]


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first, equals by name."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def pods(count: int) -> str:
    return f"{count:,} pod{'' if count == 1 else 's'}"


def listed(names: Iterable[str], word: str, more: str = " and") -> str:
    """ "a, b, c and 4 more nodes"."""
    several = [*names]
    left = len(several) - _NAMED
    shown = ", ".join(several[:_NAMED])
    return f"{shown}{more} {left} more {word}{'' if left == 1 else 's'}" if left > 0 else shown


def _starts(node: str, after: tuple[str, ...]) -> str:
    if not after:
        return f"starts on {node} when resources there are released"
    return f"starts on {node} when {listed(after, 'pod')} {'has' if len(after) == 1 else 'have'} left"


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _with_action(one: Eviction) -> str:
    """The action, the rule and the plugins that allowed it."""
    allowed = f"; allowed by {', '.join(one.allowed_by)}" if one.allowed_by else ""
    named = one.action and one.why != one.action
    return f"{one.action}: {one.why}{allowed}" if named else f"{one.why}{allowed}"


__all__ = ["Evictions", "listed", "pods", "ranked"]
