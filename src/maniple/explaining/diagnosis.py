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
from maniple.cluster.statuses import Status
from maniple.explaining.domains import Domains
from maniple.explaining.model import Cause, Departure, Domain, Explanation, Protection, Turn
from maniple.explaining.names import Names
from maniple.explaining.obstacles import Obstacles
from maniple.explaining.parts import Parts, Tried
from maniple.explaining.places import Places, work_lost
from maniple.explaining.queues import Queues
from maniple.explaining.remedies.advising import advise
from maniple.explaining.remedies.kinds.amounts import plural
from maniple.explaining.remedies.rivals import pass_over
from maniple.explaining.remedies.trials import Budget, starts_now
from maniple.explaining.remedies.values import Advice
from maniple.explaining.victims import FREE, NOT_KNOWN, Victims
from maniple.explaining.what_if import own_memory
from maniple.framework.plans.outcome import JobOutcome
from maniple.framework.plans.plan import Plan
from maniple.framework.session import Session
from maniple.objects.printable import printable
from maniple.placement.engine import Placement
from maniple.planner import DEFAULT_PROFILE, Conf, Planner

_PASSING_ROOM = ("Full", "Fragmented", "GpuFraction", "PodsPerNode", "DomainTooSmall")
_LATER = "at the end of the cycle there is room, and the next cycle tries again"
_ROOM_SINCE = f"when the job had its turn in this cycle; {_LATER}"
_RIVALS = 3
_AHEAD = 20


class UnknownJobError(LookupError):
    """There is no job or pod of that name."""


class Diagnosis:
    """All jobs of one cycle. The cluster, and what plugins remember of earlier cycles, stay as they are."""

    def __init__(
        self,
        planner: Planner,
        cluster: Cluster,
        now: datetime | None = None,
        planned: tuple[Session, Plan] | None = None,
        *,
        discreet: bool = False,
    ) -> None:
        """`planned`: the cycle, if it has been planned and the cluster has not changed since but for what it decided.

        `discreet`: jobs, pods and queues of other namespaces than the job's own are not named.
        """
        self._planner = planner
        self._cluster = cluster
        self._now = now
        self.session, self.plan = planned or self._planned()
        self.trials = 0  # cycles that were planned to find out what others have to do with it
        self._discreet = discreet
        self._names = Names()
        self._placement = Placement(self.session)
        self._parts = Parts(self.session, self._placement, self._names)
        self._domains = Domains(self.session, self._parts)
        self._queues = Queues(self.session, self._names)
        self._obstacles = Obstacles(self.session, self._queues, self._names)
        self._victims = Victims(self.session, self._names)
        self._places = Places(self.session, self.plan, self.session.now)

    def _planned(self) -> tuple[Session, Plan]:
        with own_memory(self._cluster):
            session = self._planner.session(self._cluster, self._now)
            return session, self._planner.frozen(session)

    def of(self, name: str) -> Explanation:
        """Of a job, or of the job of a pod, given as namespace/name; raises UnknownJobError if there is none."""
        job = self._row(name)
        key = self._begin(job)
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
        if outcome.evicted or self.session.jobs.counts[Status.RELEASING, job]:
            begun = replace(begun, departures=self._places.departures(job))
        if outcome.state == "waiting":
            return self._waiting(begun, job, outcome)
        if outcome.state in ("placed", "running"):
            begun = replace(begun, places=self._places.of(job))
        sentence = self._served(job, outcome, begun.departures)
        return replace(begun, sentence=sentence, causes=self._being_served(outcome))

    def answer(self, name: str) -> Cause | None:
        """The cause that binds, without the rest of the explanation; None of a job that does not wait, or with no
        cause but what the plan says."""
        job = self._row(name)
        self._begin(job)
        if self.plan.job(job).state != "waiting":
            return None
        early = next(self._before_nodes(job), None)
        if early is not None:
            return early
        tried = self._tried(job)
        causes, _ = self._causes(job, tried, self._domains.rooms(job) if tried else ())
        return causes[0] if causes else None

    def _begin(self, job: int) -> str:
        """Let everything be named that the reader may know; returns the name of the job."""
        key = self.session.job_key(job)
        self._names.namespace = key.partition("/")[0] if self._discreet else None
        return key

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
        known = [row for row in jobs.rows_named(name) if row in jobs.facts and jobs.name(row) == name]
        if known:
            return known[-1]
        if name in tasks.keys:
            owner = int(tasks.job[tasks.keys.index(name)])
            if owner in jobs.facts:
                return owner
            raise UnknownJobError(f"pod {printable(name)} belongs to no pod group")
        owned = jobs.owned_by(name)
        if len(owned) == 1:
            return owned[0]
        names = [self.session.job_key(job) for job in jobs.facts]
        near = get_close_matches(name, names, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; the cluster has {len(names)} jobs"
        raise UnknownJobError(f"no job or pod {printable(name)}{hint}")

    # -- jobs that do not wait ----------------------------------------------------------------------------------------

    def _being_served(self, outcome: JobOutcome) -> tuple[Cause, ...]:
        kinds = {"starting": "BeingServed", "evicted": "Evicted"}
        kind = kinds.get(outcome.state)
        return tuple(Cause(kind=kind, sentence=one) for one in outcome.reasons) if kind else ()

    def _served(self, job: int, outcome: JobOutcome, departures: tuple[Departure, ...]) -> str:
        if outcome.state in ("starting", "evicted"):
            return "; ".join(filter(None, (*outcome.reasons, work_lost(departures))))
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
        tried = self._tried(job)
        levels = self._queues.levels(job, self._parts.rows(job)) if job in self._in_session else ()
        rooms = self._domains.rooms(job) if tried and not early else ()
        begun = replace(
            begun,
            parts=tuple(one.part for one in tried),
            levels=levels,
            domains=rooms,
            turn=self._turn(job),
        )
        causes, protections = self._causes(job, tried, rooms, early)
        if not causes:
            text = "; ".join(outcome.reasons) or "not tried in this cycle"
            causes = [Cause(kind="Other", sentence=text)]
        return replace(begun, causes=tuple(causes), sentence=causes[0].sentence, protections=protections)

    def _before_nodes(self, job: int) -> Iterator[Cause]:
        yield from self._obstacles.causes(job)
        topology = self._domains.problem(job) if job in self._in_session else None
        if topology is not None:
            yield topology

    def _tried(self, job: int) -> list[Tried]:
        return self._parts.tried(job) if len(self._parts.rows(job)) else []

    def _causes(
        self, job: int, tried: list[Tried], rooms: tuple[Domain, ...], early: Sequence[Cause] = ()
    ) -> tuple[list[Cause], tuple[Protection, ...]]:
        """All causes, the one that binds first, and why nothing is evicted for the job, if that is what it needs."""
        causes = [*early, *self._of_room(job, tried, rooms)]
        if not causes or causes[0].kind not in _PASSING_ROOM:
            return causes, ()
        protections = self._protections(job, tried)
        causes[0] = self._spared(causes[0], protections)
        return causes, protections

    @cached_property
    def _in_session(self) -> frozenset[int]:
        return frozenset(self.session.jobs.rows.tolist())

    def _of_room(self, job: int, tried: list[Tried], rooms: tuple[Domain, ...]) -> list[Cause]:
        """What lasts, then queues, then what passes: rivals first, since they may be the reason of all the rest."""
        short = [self._parts.cause(one) for one in tried if one.task >= 0]
        domain = self._domains.cause(job, rooms) if tried else None
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
        return found or (list(self._with_room(job, rooms)) if tried else [])

    def _with_room(self, job: int, rooms: tuple[Domain, ...]) -> Iterator[Cause]:
        """The nodes have room: the queue may have no more, or others stand before it."""
        share = self._queues.share_cause(job, self._parts.rows(job))
        if share is not None:
            yield share
        rival = self._rival(job)
        if rival is not None:
            yield rival
        elif miscounted := self._domains.miscounted(job, rooms):
            yield miscounted
        elif share is None and rooms and job in self.session.refusals.jobs:
            yield Cause(kind="RoomSince", sentence=f"no domain had room for all its pods {_ROOM_SINCE}")
        elif share is None and job in self.session.refusals.origins(self.session.tasks.job):
            yield Cause(kind="RoomSince", sentence=f"no node had room for the next pod {_ROOM_SINCE}")

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
        if not self._starts_alone(job):
            return None
        session = self.session
        most = sorted(placed.items(), key=lambda one: (-one[1], session.job_key(one[0])))
        keys = [session.job_key(one) for one, _ in most]
        counted = [f"{key} ({plural(count, 'pod')})" for key, (_, count) in zip(keys, most, strict=True)]
        text = f"jobs ahead of it take the room in this cycle: {self._names.listed(keys, counted, _RIVALS)}"
        return Cause(
            kind="Rival",
            sentence=f"{text}; it would start if it were alone",
            subject=", ".join(key for key in keys[:_RIVALS] if self._names.shows(key)),
        )

    def _starts_alone(self, job: int) -> bool:
        key = self._cluster.jobs.keys[job]
        self.trials += 1
        with own_memory(self._cluster):
            alone = self._planner.session(
                self._cluster, self._now, opened=lambda session: pass_over(session, key, None)
            )
        return starts_now(alone, job)

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
        return self._victims.protections(job, task, ~self._placement.judging.shut(class_))

    def _spared(self, cause: Cause, protections: tuple[Protection, ...]) -> Cause:
        """The cause with why nothing is evicted for the job."""
        listed = [f"{plural(one.pods, 'pod')}{self._of(one.jobs)}: {one.phrase}" for one in protections]
        if not listed:
            return cause
        kinds = {one.kind for one in protections}
        word = "no eviction would help" if FREE in kinds else "nothing can be evicted for it"
        if NOT_KNOWN in kinds:
            word = "whether evictions would help is not known yet"
        return replace(cause, sentence=f"{cause.sentence}; {word} ({'; '.join(listed[:3])})")

    def _of(self, jobs: tuple[str, ...]) -> str:
        named = [one for one in jobs if self._names.shows(one)]
        if not jobs or len(named) == len(jobs):
            return f" of {', '.join(named)}" if named else ""
        return f" of {', '.join([*named, 'other namespaces'])}"


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
