"""Jobs with a network topology or with sub-jobs: a domain for the job, and inside it one for each sub-job.

Called by allocate, with a job's sheet. Domains come in gradients, the nearest first, and the first gradient in
which the job can be placed decides. There a job takes the domain in which its sub-jobs' scores add up highest,
a sub-job the one that scores highest; ties go to the first by name. Every trial is a transaction that can be
undone, so the final state is exactly that of the best trial.

Trials are few. A domain with fewer free slots than are needed is not tried. A sub-job's score does not depend
on the trial, so the best is tried first and the first that succeeds is the best. If the job is one sub-job, the
same applies to the job. Of domains that are alike, only one is tried.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maniple.actions.volcano.domain_reasons import DomainReasons
from maniple.actions.volcano.nomination import NominationPath
from maniple.actions.volcano.placing import Ground, TaskPlacer
from maniple.actions.volcano.worksheet import JobSheet, Worksheet
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import NONE, ROOT
from maniple.cluster.statuses import Status
from maniple.framework.criteria import Scores
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import Purpose, TaskRows
from maniple.framework.refusals import Refusals
from maniple.framework.session import Session
from maniple.framework.traces.events import DomainsOffered, DomainTaken
from maniple.framework.traces.recorder import Recorder
from maniple.framework.transactions.transaction import SavedPlan, Transaction
from maniple.placement.engine import Placement
from maniple.placement.room import DomainRoom
from maniple.placement.tables import trace_look

_LOOKED_INTO = 4  # domains with too little room, in a trace
NO_SUCH_TIER = "no HyperNode has the tier name {name!r}"
NOT_READY = "jobs with a network topology wait until these HyperNodes are repaired: {names}"
NOT_KEPT = "its network topology is hard, and no plugin is configured that keeps it (network-topology-aware)"


def stopped(session: Session, shape: Group) -> str | None:
    """Why a job with a topology cannot be tried at all."""
    limits, rules = shape.limits, session.rules.topology
    if rules.broken_domain_stops_all and limits and session.domains.broken:
        return NOT_READY.format(names=", ".join(sorted(session.domains.broken)))
    if rules.unkept_constraints_are_dropped:
        for limit in limits:
            if limit.unknown:
                session.report(f"job {session.job_key(shape.job)}: {NO_SUCH_TIER.format(name=limit.unknown)}")
        return None
    unknown = next((limit.unknown for limit in limits if limit.unknown), "")
    if unknown:
        return NO_SUCH_TIER.format(name=unknown)
    hard = any(limit.highest is not None and not limit.wished for limit in limits)
    return NOT_KEPT if hard and "hyper_node_gradient_for_job" not in session.hooks.answered else None


@dataclass(slots=True, eq=False)
class _Trial:
    """A job placed inside a domain."""

    domain: int
    transaction: Transaction
    score: float = 0.0
    refusals: Refusals = field(default_factory=Refusals)
    decided: dict[PodSet, int] = field(default_factory=dict)  # sub-job -> its domain
    before: dict[PodSet, int] = field(default_factory=dict)  # where those sub-jobs were
    plan: SavedPlan | None = None  # once it is undone
    after: Any = None  # what it left on the sheet

    def is_better(self, other: "_Trial | None") -> bool:
        return other is None or (self.score, -self.domain) > (other.score, -other.domain)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A domain to try for a job."""

    domain: int
    bound: float = np.inf  # the most that it can score
    likeness: bytes | None = None  # candidates with the same one end the same way

    def could_beat(self, best: _Trial | None) -> bool:
        return best is None or (self.bound, -self.domain) > (best.score, -best.domain)


class TopologyAllocation:
    """Serves jobs domain by domain."""

    def __init__(
        self, session: Session, placement: Placement, placer: TaskPlacer, nominations: NominationPath
    ) -> None:
        self._session = session
        self._placer = placer
        self._nominations = nominations
        self._placement = placement
        self._reasons = DomainReasons(session)
        self._known_room: DomainRoom | None = None
        self._job = -1  # that is being served

    @property
    def _room(self) -> DomainRoom:
        if self._known_room is None:
            self._known_room = DomainRoom(self._session, self._placement)
        return self._known_room

    def serve(self, sheet: JobSheet) -> bool:
        """One turn of a job. True when that ended in a commit."""
        session, waiting = self._session, [sheet[one].left() for one in sheet.pod_sets()]
        trace = session.traced(sheet.job)
        if trace is not None:
            trace.task_order(sheet.job, np.concatenate(waiting))
        self._reasons.begin(sheet.shape)
        trial = self._place_job(sheet)
        if trial is None:
            if trace is not None:
                trace.undone(sheet.job, 0, "no domain takes the job")
            self._reasons.conclude(np.concatenate(waiting))
            return False
        session.refusals.take_over(trial.refusals)
        ready = session.hooks.job_ready(sheet.job)
        if trace is not None:
            trace.asked(sheet.job, "job_ready", ready)
        if not ready:
            trial.transaction.keep()
            self._put_back(trial.before)
            return False
        trial.transaction.commit()
        self._put_back(trial.before)
        session.groups.settle(sheet.shape, trial.domain, trial.decided)
        return True

    # -- a domain for the job -------------------------------------------------------------------------------------

    def _place_job(self, sheet: JobSheet) -> _Trial | None:
        session, shape = self._session, sheet.shape
        before = sheet.mark()
        gradients = session.hooks.hyper_node_gradient_for_job(shape.job, ROOT, Purpose.ALLOCATE)
        for domains in self._offered(shape.job, None, gradients):
            best: _Trial | None = None
            tried: set[bytes] = set()
            for candidate in self._candidates(sheet, domains):
                if not candidate.could_beat(best):
                    break  # nor could those that promise less
                if candidate.likeness in tried:
                    continue
                if candidate.likeness is not None:
                    tried.add(candidate.likeness)
                if best is not None:
                    self._set_aside(best, sheet, before)
                trial = self._try_job(sheet, candidate.domain)
                self._tell(
                    sheet.job,
                    "",
                    candidate.domain,
                    fits=trial is not None,
                    score=None if trial is None else trial.score,
                )
                if trial is None:
                    sheet.restore(before)
                elif trial.is_better(best):
                    best = trial
                else:
                    self._set_aside(trial, sheet, before)
            if best is not None:
                self._take_up(best, sheet)
                trace = session.trace
                if trace is not None and trace.follows(sheet.job):
                    name = session.domains.names[best.domain]
                    trace.add(DomainTaken(session.job_key(sheet.job), name, best.score))
                return best
        return None

    def _candidates(self, sheet: JobSheet, domains: list[int]) -> Iterator[_Candidate]:
        """Domains of a gradient that have room, the most promising first."""
        need, demand = self._need_of_job(sheet.job), _demand(self._session, sheet)
        self._job = sheet.job
        roomy = self._roomy(domains, need, demand)
        bounds = self._bounds(sheet, roomy) if len(roomy) > 1 else None
        if bounds is not None:
            for place in np.argsort(-bounds, kind="stable").tolist():
                yield _Candidate(int(roomy[place]), float(bounds[place]))
            return
        alike = self._alike(sheet, roomy) if len(roomy) > 1 else None
        for domain in roomy.tolist():
            yield _Candidate(domain, likeness=alike[domain] if alike is not None else None)

    def _bounds(self, sheet: JobSheet, domains: Domains) -> Scores | None:
        """The highest score that a domain can have for the job, where that is known.

        It is known if the job is one sub-job and nothing is placed yet.
        """
        one, places = sheet.shape.members[0], self._session.groups.places
        if sheet.shape.split or one.domain != NONE:
            return None
        scores = self._scores(one, np.arange(len(places.tree)))
        return places.highest_below(scores)[domains]

    def _alike(self, sheet: JobSheet, domains: Domains) -> dict[int, bytes] | None:
        if sheet.shape.domain != NONE or any(one.domain != NONE for one in sheet.shape.members):
            return None  # where its other tasks are makes domains differ
        return self._room.likeness(_demand(self._session, sheet), domains)

    def _try_job(self, sheet: JobSheet, domain: int) -> _Trial | None:
        """Place the job's sub-jobs inside a domain, in order, until the job is ready."""
        hooks, trial = self._session.hooks, _Trial(domain, Transaction(self._session))
        while len(sheet):
            one = sheet.pop()
            score = self._place_pod_set(one, sheet[one], trial)
            if score is None:
                continue
            trial.score += score
            if len(sheet[one]):
                sheet.push(one)
            if hooks.job_ready(sheet.job):
                break
        if len(trial.transaction) and (hooks.job_ready(sheet.job) or hooks.job_pipelined(sheet.job)):
            trial.after = sheet.mark()
            return trial
        self._reasons.failed(trial.transaction, Ground(sheet.job, trial.refusals))
        trial.transaction.discard()
        self._put_back(trial.before)
        return None

    def _set_aside(self, trial: _Trial, sheet: JobSheet, before: Any) -> None:
        """Undo a trial, if it stands, so that the next starts from where it did."""
        if trial.plan is None:
            trial.plan = trial.transaction.save()
            trial.transaction.discard()
            self._put_back(trial.before)
            sheet.restore(before)

    def _take_up(self, trial: _Trial, sheet: JobSheet) -> None:
        if trial.plan is not None:
            trial.transaction.replay(trial.plan)
            sheet.restore(trial.after)

    def _put_back(self, before: dict[PodSet, int]) -> None:
        for one, domain in before.items():
            one.domain = domain

    # -- a domain for a sub-job -----------------------------------------------------------------------------------

    def _place_pod_set(self, one: PodSet, sheet: Worksheet, trial: _Trial) -> float | None:
        """The score of the domain that the sub-job was placed in; None when there is none inside the job's."""
        session, hooks = self._session, self._session.hooks
        if one.nominated != NONE and self._nominations.take(trial.transaction, one, sheet):
            self._decide(one, one.nominated, trial)
            return 0.0
        demand = _classes(session, sheet.left())
        gradients = hooks.hyper_node_gradient_for_pod_set(one, trial.domain, Purpose.ALLOCATE)
        for domains in self._offered(one.job, one, gradients):
            left = self._roomy(domains, self._need_of(one), demand, one)
            while len(left):
                scores = self._scores(one, left)
                place = int(scores.argmax())
                domain, score = int(left[place]), float(scores[place])
                fits = self._try_pod_set(one, sheet, domain, trial)
                self._tell(one.job, one.name, domain, fits=fits, score=score)
                if fits:
                    return score
                left = np.delete(left, place)
        trial.refusals.of_tasks(one.job, -1, sheet.left(), self._reasons.why(one), failed=False)
        return None

    def _try_pod_set(self, one: PodSet, sheet: Worksheet, domain: int, trial: _Trial) -> bool:
        session, mark, checkpoint = self._session, sheet.mark(), trial.transaction.checkpoint()
        within = None if domain == ROOT else session.domains.members[domain]
        ground = Ground(one.job, Refusals(), one, domain, within, session.groups.progress(one, domain))
        ready = self._placer.fill(trial.transaction, sheet, ground)
        placed = trial.transaction.checkpoint() > checkpoint
        if placed and (ready or session.groups.is_pipelined(one)):
            trial.refusals.take_over(ground.refusals)
            self._decide(one, domain, trial)
            return True
        self._reasons.failed(trial.transaction, ground)
        trial.transaction.rollback(checkpoint)
        sheet.restore(mark)
        return False

    def _tell(self, job: int, part: str, domain: int, *, fits: bool, score: float | None) -> None:
        session, trace = self._session, self._session.trace
        if trace is not None and trace.follows(job):
            nodes = int(session.domains.members[domain].sum())
            trace.domain(job, part, session.domains.names[domain], nodes, fits, score=score)

    def _decide(self, one: PodSet, domain: int, trial: _Trial) -> None:
        trial.before.setdefault(one, one.domain)
        one.domain = trial.decided[one] = self._session.groups.places.joined(one.domain, domain)

    # -- what is known without a trial ----------------------------------------------------------------------------

    def _roomy(
        self, gradient: list[int], need: int, demand: dict[int, int], part: PodSet | None = None
    ) -> Domains:
        """Domains of a gradient, by name, with slots for as many tasks as are needed."""
        domains = np.array(sorted(gradient), dtype=np.int64)
        if not len(domains):
            return domains
        slots = self._room.for_demand(demand)[domains]
        self._reasons.looked_at(domains, slots, need, part)
        trace, job = self._session.trace, self._job if part is None else part.job
        if trace is not None and trace.follows(job):
            names, tight = self._session.domains.names, (slots < need).tolist()
            found = zip(domains.tolist(), slots.tolist(), tight, strict=True)
            left = {domain: room for domain, room, few in found if few}
            room = {names[domain]: slots for domain, slots in left.items()}
            trace.domains_left(job, part.name if part is not None else "", need, room)
            self._look_into(trace, job, list(left))
        return domains[slots >= need]

    def _look_into(self, trace: Recorder, job: int, domains: list[int]) -> None:
        """Record what the nodes of domains that have too little room say to the first pod."""
        session = self._session
        rows = session.tasks_of(job)
        rows = rows[session.tasks.status[rows] == Status.PENDING]
        if len(rows) and trace.looks_at_tasks(job):
            for domain in domains if trace.everything else domains[:_LOOKED_INTO]:
                trace_look(session, self._placement, int(rows[0]), session.domains.members[domain])

    def _offered(self, job: int, part: PodSet | None, gradients: list[list[int]]) -> list[list[int]]:
        """The gradients, which are recorded if the job is traced."""
        session, trace = self._session, self._session.trace
        if trace is None or not trace.follows(job):
            return gradients
        tree = session.domains
        limit = part.limit if part is not None else session.groups.root(job).limit
        highest = limit.highest if limit is not None else None
        offered = {domain for gradient in gradients for domain in gradient}
        others = [
            tree.names[domain]
            for domain in range(1, len(tree))
            if domain not in offered and (highest is None or tree.tier[domain] <= highest)
        ]
        named = tuple(trace.some([tree.names[domain] for domain in gradient]) for gradient in gradients)
        name = part.name if part is not None else ""
        plugins = session.answering("hyper_node_gradient_for_job")
        by = plugins[0] if plugins else ""
        trace.add(DomainsOffered(session.job_key(job), name, named, trace.some(others), by))
        return gradients

    def _need_of_job(self, job: int) -> int:
        """Tasks without which a plan is not worth keeping: neither ready nor pipelined."""
        hooks = self._session.hooks
        return max(min(hooks.job_lack(job), hooks.job_lack_pipelined(job)), 1)

    def _need_of(self, one: PodSet) -> int:
        hooks = self._session.hooks
        if one.job not in self._session.groups.split:
            return self._need_of_job(one.job)
        return max(min(hooks.pod_set_lack(one), hooks.pod_set_lack_pipelined(one)), 1)

    def _scores(self, one: PodSet, domains: Domains) -> Scores:
        return np.broadcast_to(self._session.hooks.hyper_node_order(one, domains), domains.shape)


def _classes(session: Session, rows: TaskRows) -> dict[int, int]:
    """How many of the tasks are of each class."""
    return dict(Counter(session.tasks.class_of[rows].tolist()))


def _demand(session: Session, sheet: JobSheet) -> dict[int, int]:
    return _classes(session, np.concatenate([sheet[one].left() for one in sheet.pod_sets()]))
