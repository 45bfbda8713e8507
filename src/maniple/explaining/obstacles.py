"""What keeps a job from being tried at all: its rights, its queue, pods that are missing, gated or not ours."""

from collections.abc import Iterator
from difflib import get_close_matches

import numpy as np

from maniple.cluster.statuses import ACTIVE_ALLOCATED, VALID, Status
from maniple.explaining.model import Cause
from maniple.explaining.names import Names
from maniple.explaining.parts import roles_of
from maniple.explaining.queues import Queues
from maniple.framework.plans.standing import pods_of_others, queue_problem
from maniple.framework.reasons import Refused
from maniple.framework.sentences import CLOSED, not_a_leaf
from maniple.framework.session import Session
from maniple.objects.printable import printable

_QUEUES = 5  # to list at most


class Obstacles:
    """Of the jobs of one session."""

    def __init__(self, session: Session, queues: Queues, names: Names) -> None:
        self._session = session
        self._queues = queues
        self._names = names
        self._served = frozenset(session.jobs.rows.tolist())

    def causes(self, job: int) -> Iterator[Cause]:
        """Why a job is not tried at all, and what of it does not exist."""
        session = self._session
        held, of_queue = session.held_back.get(job), [*self._of_queue(job)]
        if held is not None and held not in [one.sentence for one in of_queue]:
            kind = "Suspended" if job in session.cluster.jobs.suspended else "Refused"
            yield Cause(kind=kind, sentence=held, lasting=True)
        yield from of_queue
        yield from self._of_pods(job)
        for one in session.refusals.jobs.get(job, ()):
            if isinstance(one, Refused):
                yield Cause(kind=one.detail.kind, sentence=one.detail.phrase, subject=one.detail.subject)

    def _of_queue(self, job: int) -> Iterator[Cause]:
        session, queue = self._session, int(self._session.jobs.queue[job])
        name, facts = printable(session.job_facts(job).queue), session.queues.facts
        if queue < 0 or queue not in facts:
            text = f"queue {name} does not exist{self._nearest_queue(name)}"
            yield Cause(kind="QueueMissing", sentence=text, lasting=True, subject=name)
            return
        yield from self._not_a_leaf(queue, name)
        for one in self._queues.path(queue):
            if not facts[one].open and not self._has_begun(job):
                shut = printable(session.queue_name(one))
                text = CLOSED.format(queue=shut)
                yield Cause(kind="QueueClosed", sentence=text, lasting=True, subject=shut)

    def _nearest_queue(self, name: str) -> str:
        """Which queue may be the right one; not for a tenant, who may not know of the others."""
        if not self._names.all:
            return ""
        known = [printable(self._session.queue_name(one)) for one in self._session.queues.facts]
        near = get_close_matches(name, known, n=1)
        there = ", ".join(sorted(known)[:_QUEUES]) or "none"
        return f"; did you mean {near[0]}?" if near else f"; there is {there}"

    def _not_a_leaf(self, queue: int, name: str) -> Iterator[Cause]:
        problem = queue_problem(self._session, queue)
        if problem is not None and problem.others:
            text = not_a_leaf(name, sorted(problem.others) if self._names.all else ())
            yield Cause(kind="QueueNotLeaf", sentence=text, lasting=True, subject=name)
        elif problem is not None:
            yield Cause(kind="QueueBroken", sentence=printable(problem.complete), lasting=True, subject=name)

    def _has_begun(self, job: int) -> bool:
        return bool(ACTIVE_ALLOCATED @ self._session.jobs.counts[:, job])

    def _of_pods(self, job: int) -> Iterator[Cause]:
        """Pods that are not there yet, are behind a gate, or name another scheduler."""
        session = self._session
        foreign = self._foreign(job)
        for one in (*session.groups.of(job), *roles_of(session, job)) if job in self._served else ():
            there = session.groups.count(one, VALID)
            gated = self._gated(one.rows)
            where = f" of {printable(one.name)}" if one.name not in ("default", "") else ""
            lacks = one.minimum - there
            if lacks > 0 and foreign:
                continue
            if lacks > 0:
                text = f"gang needs {one.minimum} pods{where} and {there or 'none'} exist{'s' if there == 1 else ''}"
                yield Cause(
                    kind="PodsMissing",
                    sentence=f"{text}; create {lacks} more or lower the minimum",
                    part=where.removeprefix(" of "),
                    needed={"pods": str(one.minimum)},
                    there={"pods": str(there)},
                )
            elif gated and one.minimum > there - len(gated):
                gates = sorted({printable(gate) for _, names in gated for gate in names})
                text = (
                    f"{len(gated)} of {there} pods{where} wait behind the scheduling gate {', '.join(gates)}"
                )
                yield Cause(kind="SchedulingGate", sentence=text, subject=", ".join(gates), part=where[4:])
        if foreign:
            yield foreign

    def _gated(self, rows: object) -> list[tuple[int, list[str]]]:
        session, found = self._session, []
        for row in np.asarray(rows).tolist():
            waits = session.tasks.status[row] in (int(Status.PENDING), int(Status.GATED))
            gates = (
                [one.name for one in session.cluster.tasks.pods[row].spec.scheduling_gates] if waits else []
            )
            if gates:
                found.append((row, gates))
        return found

    def _foreign(self, job: int) -> Cause | None:
        session, theirs = self._session, dict[str, int]()
        for owner, scheduler in session.cluster.foreign.values():
            if session.cluster.jobs.index_of(owner) == job:
                theirs[scheduler] = theirs.get(scheduler, 0) + 1
        if not theirs or session.valid(job) >= int(session.jobs.minimum[job]):
            return None
        ours = tuple(sorted(session.cluster.dialect.scheduler_names))
        return Cause(
            kind="OtherScheduler",
            sentence=pods_of_others(theirs, ours),
            lasting=True,
            subject=", ".join(sorted(theirs)),
        )


__all__ = ["Obstacles"]
