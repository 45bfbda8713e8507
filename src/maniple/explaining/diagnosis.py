"""Why a job waits: the constraint that binds, in one sentence, and the chain of everything that stands in its way.

Made from the session of a cycle whose last action has run, by asking the filters, queues and plugins that decided. What
keeps a job from being tried at all comes first, then what lasts, then queues, then what passes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import replace

from maniple.cluster.cluster import Cluster
from maniple.cluster.statuses import ACTIVE_ALLOCATED, VALID, Status
from maniple.explaining.domains import Domains
from maniple.explaining.model import Cause, Domain, Explanation, Protection, Turn
from maniple.explaining.parts import Parts, Tried
from maniple.explaining.queues import Queues
from maniple.explaining.remedies.advising import advise
from maniple.explaining.remedies.trials import Budget, starts_now
from maniple.explaining.remedies.values import Advice
from maniple.explaining.victims import FREE, Victims
from maniple.framework.plans.outcome import JobOutcome
from maniple.framework.plans.plan import Plan
from maniple.framework.plans.standing import pods_of_others, queue_problem
from maniple.framework.reasons import Refused
from maniple.framework.sentences import CLOSED, not_a_leaf
from maniple.framework.session import Session
from maniple.objects.printable import printable
from maniple.placement.engine import Placement
from maniple.planner import DEFAULT_PROFILE, Conf, Planner

_PASSING_ROOM = ("Full", "Fragmented", "GpuFraction", "PodsPerNode", "DomainTooSmall")
_RIVALS = 3
_AHEAD = 20


class UnknownJobError(LookupError):
    """There is no job or pod of that name."""


class Diagnosis:
    """All jobs of one cycle."""

    def __init__(self, planner: Planner, cluster: Cluster, now: datetime | None = None) -> None:
        self._planner = planner
        self._cluster = cluster
        self._now = now
        self.session: Session = planner.session(cluster, now)
        self.plan: Plan = planner.frozen(self.session)
        self._placement = Placement(self.session)
        self._parts = Parts(self.session, self._placement)
        self._domains = Domains(self.session, self._parts)
        self._queues = Queues(self.session)
        self._victims = Victims(self.session)

    def of(self, name: str) -> Explanation:
        """Of a job, or of the job of a pod, given as namespace/name; raises UnknownJobError if there is none."""
        job = self._row(name)
        key = self.session.job_key(job)
        outcome = self.plan.job(job)
        facts = self.session.job_facts(job)
        begun = Explanation(
            job=key,
            profile=self._planner.profile.name,
            state=outcome.state,
            sentence="",
            queue=printable(facts.queue),
            original=tuple(outcome.reasons),
        )
        if outcome.state == "waiting":
            return self._waiting(begun, job, outcome)
        return replace(begun, sentence=self._served(job, outcome), causes=self._being_served(outcome))

    def advised(self, name: str, budget: Budget | None = None) -> Explanation:
        """The same with what would help, of a job that waits."""
        found = self.of(name)
        if found.state != "waiting":
            return found
        return replace(found, advice=self._advice(found.job, budget))

    def _advice(self, job: str, budget: Budget | None) -> Advice:
        return advise(self._planner, self._cluster, job, self._now, budget, self.plan)

    def _row(self, name: str) -> int:
        jobs, tasks = self.session.cluster.jobs, self.session.cluster.tasks
        names = {self.session.job_key(job): job for job in jobs.facts}
        if name in names:
            return names[name]
        if name in tasks.keys:
            owner = int(tasks.job[tasks.keys.index(name)])
            if owner in jobs.facts:
                return owner
            raise UnknownJobError(f"pod {printable(name)} belongs to no pod group")
        owned = jobs.owned_by(name)
        if len(owned) == 1:
            return owned[0]
        near = get_close_matches(name, names, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; the cluster has {len(names)} jobs"
        raise UnknownJobError(f"no job or pod {printable(name)}{hint}")

    # -- jobs that do not wait ----------------------------------------------------------------------------------------

    def _being_served(self, outcome: JobOutcome) -> tuple[Cause, ...]:
        kinds = {"starting": "BeingServed", "evicted": "Evicted"}
        kind = kinds.get(outcome.state)
        return tuple(Cause(kind=kind, sentence=one) for one in outcome.reasons) if kind else ()

    def _served(self, job: int, outcome: JobOutcome) -> str:
        if outcome.state in ("starting", "evicted"):
            return "; ".join(outcome.reasons)
        nodes = self._nodes_of(job)
        where = f" on {', '.join(nodes[:5])}{' ...' if len(nodes) > 5 else ''}" if nodes else ""
        words = {
            "placed": f"{outcome.placed} of its {outcome.total} pods are placed in this cycle{where}",
            "running": f"{outcome.ready} of its {outcome.total} pods have their places{where}",
            "completed": "it has completed",
            "idle": "it has no pods, and needs none",
        }
        return words.get(outcome.state, outcome.state)

    def _nodes_of(self, job: int) -> list[str]:
        nodes = self.session.tasks.node[self.session.tasks_of(job)]
        return sorted(self.session.node_name(node) for node in np.unique(nodes[nodes >= 0]).tolist())

    # -- jobs that wait -----------------------------------------------------------------------------------------------

    def _waiting(self, begun: Explanation, job: int, outcome: JobOutcome) -> Explanation:
        early = list(self._before_nodes(job))
        rows = self._parts.rows(job)
        tried = self._parts.tried(job) if len(rows) else []
        levels = self._queues.levels(job, rows) if job in self._in_session else ()
        rooms = self._domains.rooms(job) if len(rows) and not early else ()
        begun = replace(
            begun,
            parts=tuple(one.part for one in tried),
            levels=levels,
            domains=rooms,
            turn=self._turn(job),
        )
        causes = [*early, *self._of_room(job, tried, rooms)]
        protections: tuple[Protection, ...] = ()
        if causes and causes[0].kind in _PASSING_ROOM:
            protections = self._protections(job, tried)
            causes[0] = _spared(causes[0], protections)
        if not causes:
            text = "; ".join(outcome.reasons) or "not tried in this cycle"
            causes = [Cause(kind="Other", sentence=text)]
        return replace(begun, causes=tuple(causes), sentence=causes[0].sentence, protections=protections)

    @cached_property
    def _in_session(self) -> frozenset[int]:
        return frozenset(self.session.jobs.rows.tolist())

    def _of_room(self, job: int, tried: list[Tried], rooms: tuple[Domain, ...]) -> list[Cause]:
        """What lasts, then queues, then what passes: rivals first, since they may be the reason of all the rest."""
        short = [self._parts.cause(one) for one in tried if one.task >= 0]
        domain = self._domains.cause(job, rooms) if rooms else None
        lasting = _summed([one for one in short if one.lasting])
        passing = _summed([one for one in short if not one.lasting])
        if domain is not None:
            (lasting if domain.lasting else passing).insert(0, domain)
        queues = list(self._queues.causes(job, self._parts.rows(job))) if tried else []
        answered = self._queues.answered(job)
        if not queues and answered is not None:
            queues = [answered]
        rivals = [self._rival(job)] if passing and not lasting and not queues else []
        found = [*lasting, *queues, *filter(None, rivals), *passing]
        return found or (list(self._with_room(job)) if tried else [])

    def _with_room(self, job: int) -> Iterator[Cause]:
        """The nodes have room: the queue may have no more, or others stand before it."""
        share = self._queues.share_cause(job, self._parts.rows(job))
        if share is not None:
            yield share
        rival = self._rival(job)
        if rival is not None:
            yield rival

    # -- what comes before nodes --------------------------------------------------------------------------------------

    def _before_nodes(self, job: int) -> Iterator[Cause]:
        """Why a job is not tried at all, and what of it does not exist."""
        session = self.session
        if job in session.held_back:
            yield Cause(kind="Refused", sentence=session.held_back[job], lasting=True)
        yield from self._of_queue(job)
        yield from self._of_pods(job)
        for one in session.refusals.jobs.get(job, ()):
            if isinstance(one, Refused):
                yield Cause(kind=one.detail.kind, sentence=one.detail.phrase, subject=one.detail.subject)
        topology = self._domains.problem(job) if job in self._in_session else None
        if topology is not None:
            yield topology

    def _of_queue(self, job: int) -> Iterator[Cause]:
        session, queue = self.session, int(self.session.jobs.queue[job])
        name, facts = printable(session.job_facts(job).queue), session.queues.facts
        if queue < 0 or queue not in facts:
            known = [session.queue_name(one) for one in facts]
            near = get_close_matches(name, known, n=1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there is {', '.join(sorted(known)[:5]) or 'none'}"
            )
            yield Cause(
                kind="QueueMissing",
                sentence=f"queue {name} does not exist; {hint}",
                lasting=True,
                subject=name,
            )
            return
        yield from self._not_a_leaf(queue, name)
        for one in self._queues.path(queue):
            if not facts[one].open and not self._has_begun(job):
                shut = printable(session.queue_name(one))
                text = CLOSED.format(queue=shut)
                yield Cause(kind="QueueClosed", sentence=text, lasting=True, subject=shut)

    def _not_a_leaf(self, queue: int, name: str) -> Iterator[Cause]:
        problem = queue_problem(self.session, queue)
        if problem is not None and problem.others:
            text = not_a_leaf(name, sorted(problem.others))
            yield Cause(kind="QueueNotLeaf", sentence=text, lasting=True, subject=name)
        elif problem is not None:
            yield Cause(kind="QueueBroken", sentence=problem.complete, lasting=True, subject=name)

    def _has_begun(self, job: int) -> bool:
        return bool(ACTIVE_ALLOCATED @ self.session.jobs.counts[:, job])

    def _of_pods(self, job: int) -> Iterator[Cause]:
        """Pods that are not there yet, are behind a gate, or name another scheduler."""
        session = self.session
        foreign = self._foreign(job)
        for one in session.groups.of(job) if job in self._in_session else ():
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
        session, found = self.session, []
        for row in np.asarray(rows).tolist():
            waits = session.tasks.status[row] in (int(Status.PENDING), int(Status.GATED))
            gates = (
                [one.name for one in session.cluster.tasks.pods[row].spec.scheduling_gates] if waits else []
            )
            if gates:
                found.append((row, gates))
        return found

    def _foreign(self, job: int) -> Cause | None:
        session, theirs = self.session, dict[str, int]()
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

    # -- others -------------------------------------------------------------------------------------------------------

    def _turn(self, job: int) -> Turn | None:
        """The place in the order of the jobs of its queue that wait."""
        session = self.session
        queue = int(session.jobs.queue[job])
        if queue < 0 or job not in self._in_session:
            return None
        before = session.cluster.tasks
        waiting = np.zeros(len(session.jobs.queue), dtype=np.bool_)
        pending = (before.status == Status.PENDING) & (before.job >= 0)
        waiting[before.job[pending]] = True
        rows = session.jobs.rows
        line = rows[waiting[rows] & (session.jobs.queue[rows] == queue)]
        ordered = session.in_job_order(line).tolist()
        if job not in ordered:
            return None
        ahead = ordered[: ordered.index(job)]
        return Turn(
            position=len(ahead) + 1,
            waiting=len(ordered),
            ahead=tuple(session.job_key(one) for one in ahead[:_AHEAD]),
        )

    def _rival(self, job: int) -> Cause | None:
        """That the job would start if it were alone, and which jobs took its room in this cycle."""
        placed = self._placed_now(job)
        if not placed:
            return None
        alone = self._planner.session(self._cluster, self._now, alone=job)
        if not starts_now(alone, job):
            return None
        session = self.session
        most = sorted(placed.items(), key=lambda one: (-one[1], session.job_key(one[0])))
        named = ", ".join(f"{session.job_key(one)} ({count} pods)" for one, count in most[:_RIVALS])
        more = f" and {len(most) - _RIVALS} more jobs" if len(most) > _RIVALS else ""
        text = f"jobs ahead of it take the room in this cycle: {named}{more}"
        return Cause(
            kind="Rival",
            sentence=f"{text}; it would start if it were alone",
            subject=", ".join(session.job_key(one) for one in list(placed)[:_RIVALS]),
        )

    def _placed_now(self, job: int) -> dict[int, int]:
        """By job, how many of its pods got or claimed a place in this cycle."""
        session, found = self.session, dict[int, int]()
        tasks, before = session.tasks, session.cluster.tasks
        size = len(tasks.status)
        now = (tasks.node >= 0) & (before.status[:size] == Status.PENDING)
        for owner in tasks.job[now].tolist():
            if owner >= 0 and owner != job:
                found[owner] = found.get(owner, 0) + 1
        return found

    def _protections(self, job: int, tried: list[Tried]) -> tuple[Protection, ...]:
        stuck = next((one for one in tried if one.task >= 0), None)
        if stuck is None:
            rows = self._parts.rows(job)
            task = int(rows[0]) if len(rows) else -1
            class_ = self.session.classes[int(self.session.tasks.class_of[task])] if task >= 0 else None
        else:
            task, class_ = stuck.task, stuck.class_
        if class_ is None:
            return ()
        return self._victims.protections(job, task, ~self._placement.shut(class_))


def _summed(causes: list[Cause]) -> list[Cause]:
    """The causes of parts, with one in front that sums up several."""
    if len(causes) < 2:
        return causes
    text = "; ".join(one.sentence for one in causes)
    together = Cause(
        kind="SeveralParts",
        sentence=f"{len(causes)} parts of the gang are short: {text}",
        lasting=any(one.lasting for one in causes),
        part=", ".join(one.part for one in causes),
    )
    return [together, *causes]


def _spared(cause: Cause, protections: tuple[Protection, ...]) -> Cause:
    """The cause with why nothing is evicted for the job."""
    listed = [
        f"{one.pods} pod{'' if one.pods == 1 else 's'}{_of(one.jobs)}: {one.phrase}" for one in protections
    ]
    if not listed:
        return cause
    word = (
        "no eviction would help"
        if any(one.kind == FREE for one in protections)
        else "nothing can be evicted for it"
    )
    sentence = f"{cause.sentence}; {word} ({'; '.join(listed[:3])})"
    return replace(cause, sentence=sentence)


def _of(jobs: tuple[str, ...]) -> str:
    return f" of {', '.join(jobs)}" if jobs else ""


def explain(
    objects: Iterable[Any],
    job: str,
    conf: Conf = None,
    profile: str = DEFAULT_PROFILE,
    actions: Sequence[str] | None = None,
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    remedies: bool = True,
    budget: Budget | None = None,
) -> Explanation:
    """Why a job waits, or how it stands, and what would help.

    The arguments are those of `maniple.plan`, and the namespace/name of the job or of one of its pods. `remedies`: also
    look for what would help; each is proven by planning it, so that takes many cycles (`budget` says how many at most).
    """
    planner = Planner(conf=conf, profile=profile, actions=actions, options=options)
    diagnosis = Diagnosis(planner, planner.build(objects), now)
    return diagnosis.advised(job, budget) if remedies else diagnosis.of(job)


__all__ = ["Diagnosis", "UnknownJobError", "explain"]
