"""Gang-aware eviction: make room for a whole job in one network domain by evicting bundles.

Shared by gangpreempt and gangreclaim. Starving jobs come in queue order. For each, the domains that could be
cleared for it are tried, the widest first; in each, bundles of victims (`eviction/volcano/bundles.py`) are
evicted one after the other, and as soon as sums say that there could be enough room the job's sub-jobs are
placed on what will be free. The first domain in which every task finds a node and the job counts as pipelined
is taken, and is nominated for the sub-jobs. All of it happens in a transaction: a job that cannot be served
leaves no trace.

Some rules improve on Volcano; `gang_eviction` can select Volcano's own (`compat: strict` does). The plugins
that protect tasks from preemption or reclaim are consulted here too, and tasks that must not preempt request no
room; room that comes free anyway is used before any task is evicted; tasks that can be spared are evicted one
by one, and those that turn out not to be needed stay; a job is served up to its minimum
if its extra tasks do not fit; a nomination outlives the cycle.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from maniple.actions.volcano.gang_placing import Asking, GangPlacer, Places, PodSetDemand, covers
from maniple.actions.volcano.telling import tell_absent
from maniple.actions.volcano.topology import stopped
from maniple.actions.volcano.turns import JobTurns
from maniple.actions.volcano.worksheet import JobSheet, Worksheet, worksheets
from maniple.cluster.domains import ROOT
from maniple.cluster.priorities import NEVER
from maniple.cluster.resources import Amounts
from maniple.eviction.asking import demands_of, next_tasks, starving_jobs
from maniple.eviction.telling import PodSearch
from maniple.eviction.volcano.bundles import Bundle, BundlePool, Jobs, Mask, approved
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.groups.tree import Group, PodSet
from maniple.framework.points import POINTS, Purpose, TaskRows
from maniple.framework.reasons import EvictionCause
from maniple.framework.session import Session
from maniple.framework.transactions.operations import Operation
from maniple.framework.transactions.transaction import SavedPlan, Transaction
from maniple.placement.engine import Placement

NO_VICTIMS = "{reason}: evicting every pod that may be evicted would not make room"
NOT_ENTITLED = "{reason}: queue {queue!r} may not take from others for so much"
MOST_DOMAINS = 8


@dataclass(frozen=True, slots=True)
class Settings:
    domains: int  # to look at for a job, at most
    whole: bool  # whether gangs may be broken

    @classmethod
    def read(cls, given: Arguments) -> "Settings":
        domains = given.int("maxDomains", MOST_DOMAINS)
        settings = cls(domains if domains > 0 else MOST_DOMAINS, given.bool("allowWholeBundle", True))
        given.unknown(())
        return settings


class GangAction(ABC):
    """The two actions: which tasks they may evict, in what order, and which plugins decide."""

    name: ClassVar[str]  # also the eviction reason
    statuses: ClassVar[Mask]  # of tasks that may be victims
    rule: ClassVar[str]  # why a job may take from another, in plain words
    guard: ClassVar[str]  # the point at which plugins protect tasks from the action's simpler relative

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = Arguments(arguments, f"action {self.name}")
        self._settings = Settings.read(self.arguments)

    def run(self, session: Session, placement: Placement) -> None:
        starving = starving_jobs(session)
        tell_absent(session, starving)
        if starving:
            GangEviction(session, placement, self, self._settings).run(starving)

    def skips(self, session: Session, queue: int) -> bool:
        """Whether no job of the queue may request room."""
        return False

    def is_entitled(self, session: Session, queue: int, rows: TaskRows) -> bool:
        """Whether a queue may request room for all these tasks."""
        return True

    @abstractmethod
    def may_take(self, session: Session, job: int, victims: Jobs) -> Mask:
        """From which jobs a job may take tasks."""

    @abstractmethod
    def standing(self, session: Session, queue: int, jobs: Iterable[int]) -> dict[int, int]:
        """The places of jobs among victims; the smaller goes first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    bundle: Bundle
    operations: list[Operation]


class GangEviction:
    """One run of an action."""

    def __init__(
        self, session: Session, placement: Placement, action: GangAction, settings: Settings
    ) -> None:
        self._session = session
        self._rules = session.rules.gang_eviction
        self._placement = placement
        self._placer = GangPlacer(session, placement)
        self._action = action
        self._settings = settings
        self._pool = BundlePool(session, action.statuses)
        self._hopeless: dict[tuple[int, ...], tuple[int, dict[int, int]]] = {}

    def run(self, starving: list[int]) -> None:
        session = self._session
        sheets = {sheet.job: sheet for sheet in worksheets(session)}
        turns = JobTurns(session, [job for job in starving if job in sheets])
        while (queue := turns.next_queue()) is not None:
            if self._action.skips(session, queue):
                continue
            while (job := turns.next_job(queue)) is not None:
                self._serve(job, queue, sheets[job])

    def _serve(self, job: int, queue: int, sheet: Worksheet) -> None:
        session, reason = self._session, self._action.name
        shape = session.groups.root(job)
        refused = stopped(session, shape)
        for asking in self._askings(shape, queue, sheet) if refused is None else ():
            if not self._action.is_entitled(session, queue, asking.rows):
                refused = NOT_ENTITLED.format(reason=reason, queue=session.queue_name(queue))
            elif self._make_room(asking):
                return
            else:
                refused = NO_VICTIMS.format(reason=reason)
        if refused is not None:
            session.refusals.of_job(job, refused)

    # -- which jobs request room, and for which tasks -------------------------------------------------------------

    def _askings(self, shape: Group, queue: int, sheet: Worksheet) -> Iterator[Asking]:
        """All pending tasks, or for a job that is ready its first sub-job.

        Then what brings the job to its minimum, if that is less.
        """
        session, job = self._session, shape.job
        turns = JobSheet(session, shape, sheet)
        waiting = [
            (one, self._willing(turns[one].left())) for one in (turns.pop() for _ in range(len(turns)))
        ]
        waiting = [(one, rows) for one, rows in waiting if len(rows)]
        ready = session.hooks.job_ready(job)
        if ready:
            waiting = waiting[:1]
        if not waiting:
            return
        yield self._asking(shape, queue, waiting)
        if self._rules.serves_minimum and not shape.split and not ready:
            ((one, rows),) = waiting
            least = next_tasks(session, job, rows)
            if len(least) < len(rows):
                yield self._asking(shape, queue, [(one, least)])

    def _willing(self, rows: TaskRows) -> TaskRows:
        """Without gated tasks and, unless the rules include them, those that must not preempt."""
        session, pods = self._session, self._session.cluster.tasks.pods
        rows = rows[~session.tasks.gated[rows]]
        if session.rules.victims.never_preempting_pods_ask:
            return rows
        keep = [pods[row].spec.preemption_policy != NEVER for row in rows.tolist()]
        return rows[np.array(keep, dtype=np.bool_)]

    def _asking(self, shape: Group, queue: int, waiting: list[tuple[PodSet, TaskRows]]) -> Asking:
        session = self._session
        parts = [PodSetDemand(one, rows, demands_of(session, rows)) for one, rows in waiting]
        rows = np.concatenate([part.rows for part in parts])
        need: Amounts = session.requests(rows).sum(axis=1)
        demand = dict(Counter(session.tasks.class_of[rows].tolist()))
        return Asking(shape.job, queue, shape, parts, rows, need, demand)

    # -- where ----------------------------------------------------------------------------------------------------

    def _make_room(self, asking: Asking) -> bool:
        session = self._session
        if any(session.hooks.pre_predicate(session.classes[number]) is not None for number in asking.demand):
            return False
        if self._failed_before(asking):
            return False
        if any(self._cleared(asking, domain) for domain in self._domains(asking.shape)):
            return True
        terms = self._terms(asking)
        if terms is not None:
            self._hopeless[terms] = len(session.changes), asking.demand
        return False

    def _cleared(self, asking: Asking, domain: int) -> bool:
        session, trace, job = self._session, self._session.trace, asking.job
        if trace is None or not trace.follows(job):
            return self._clear(asking, domain)
        bundles = self._bundles(asking, domain)
        rows = np.concatenate([np.zeros(0, np.int64), *(bundle.rows for bundle in bundles)])
        PodSearch(session, asking.asker).begin(rows, self._approve, self._cause(job))
        fits = self._clear(asking, domain)
        nodes = int(session.domains.members[domain].sum())
        trace.domain(job, "", session.domains.names[domain], nodes, fits)
        trace.search_ended(job, fits, "" if fits else NO_VICTIMS.format(reason=self._action.name))
        return fits

    def _domains(self, shape: Group) -> list[int]:
        """Domains to try, in order. For a job without limits the whole cluster, if no plugin names any."""
        gradients = self._session.hooks.hyper_node_gradient_for_job(shape.job, ROOT, Purpose.EVICT)
        domains = list(dict.fromkeys(domain for gradient in gradients for domain in gradient))
        if not domains and not shape.bounded:
            return [ROOT]
        return domains[: self._settings.domains]

    def _terms(self, asking: Asking) -> tuple[int, ...] | None:
        """Plain jobs with equal terms and requests get the same result. None for jobs that are not plain."""
        session, job = self._session, asking.job
        shape = asking.shape
        if shape.bounded or shape.split or session.job_facts(job).role_minimums:
            return None
        missing = int(session.jobs.minimum[job]) - session.ready(job) - session.pipelined(job)
        return (
            asking.queue,
            int(session.jobs.priority[job]),
            int(missing <= len(asking.rows)),
            int(session.tasks.preemptable[asking.asker]),
            *session.jobs.allocated[:, job].tolist(),  # what shares are made of
            *sorted(asking.demand),
        )

    def _failed_before(self, asking: Asking) -> bool:
        """A job that requested no more, on the same terms, found nothing, and nothing has changed since."""
        terms = self._terms(asking)
        when, demand = self._hopeless.get(terms, (-1, {})) if terms is not None else (-1, {})
        if when != len(self._session.changes):
            return False
        return all(asking.demand[number] >= count for number, count in demand.items())

    # -- clearing a domain ----------------------------------------------------------------------------------------

    def _clear(self, asking: Asking, domain: int) -> bool:
        """Evict and pipeline inside a domain for good; False, and nothing done, when there is no way."""
        session, transaction = self._session, Transaction(self._session)
        within = session.domains.members[domain]
        bundles = self._bundles(asking, domain)
        free = self._placer.free(within)
        if not covers(free + self._freed(within, bundles), asking.need):
            return False
        taken: list[_Taken] = []
        cause = self._cause(asking.job)
        places = None
        if self._rules.free_room_first:
            places = self._placer.place_if_roomy(transaction, asking, domain)
        for bundle in self._victims(asking, bundles) if places is None else ():
            free = free + self._freed(within, [bundle])
            taken.append(self._take(transaction, bundle, cause))
            if covers(free, asking.need):
                places = self._placer.place_if_roomy(transaction, asking, domain)
            if places is not None:
                break
        if places is None:
            transaction.discard()
            return False
        if taken and self._rules.takes_what_helps:
            places = self._spare(transaction, asking, domain, taken)
        transaction.commit()
        if taken:
            self._pool.lose({one.bundle.job for one in taken})
            self._nominate(places)
        return True

    def _cause(self, job: int) -> EvictionCause:
        action = self._action
        guard = (action.guard,) if self._rules.asks_protectors and self._guarded else ()
        return EvictionCause(action.name, action.name, job, ("unified_evictable", *guard), action.rule)

    def _take(self, transaction: Transaction, bundle: Bundle, cause: EvictionCause) -> _Taken:
        start = transaction.checkpoint()
        transaction.evict(bundle.rows, cause)
        return _Taken(bundle, transaction.operations[start:])

    def _freed(self, within: Mask, bundles: list[Bundle]) -> Amounts:
        """What bundles free on the nodes of a domain."""
        rows = np.concatenate([np.zeros(0, np.int64), *(bundle.rows for bundle in bundles)])
        freed: Amounts = self._session.requests(rows[within[self._session.tasks.node[rows]]]).sum(axis=1)
        return freed

    def _bundles(self, asking: Asking, domain: int) -> list[Bundle]:
        """What could be evicted inside a domain, in that order, before the plugins are consulted."""
        session, action = self._session, self._action
        bundles = self._pool.bundles(
            domain,
            partial(action.may_take, session, asking.job),
            asking.need,
            partial(action.standing, session, asking.queue),
        )
        return [bundle for bundle in bundles if self._settings.whole or not bundle.whole]

    def _approve(self, asker: int, rows: TaskRows) -> TaskRows:
        """The tasks that plugins give up, by default also those plugins that only know of the simpler actions."""
        session = self._session
        allowed = session.hooks.unified_evictable(asker, rows)
        if not self._rules.asks_protectors or not self._guarded or not len(allowed):
            return allowed
        protecting: Callable[[int, TaskRows], TaskRows] = getattr(session.hooks, self._action.guard)
        return protecting(asker, rows[np.isin(rows, allowed)])

    @cached_property
    def _guarded(self) -> bool:
        """Whether any plugin protects tasks from the simpler action.

        Plugins that only protect gangs (`surplus`) do not count: bundles do that here.
        """
        guard, plugins = self._action.guard, self._session.plugins
        switch = POINTS[guard].switch
        return any(
            hasattr(plugin, guard)
            and not hasattr(plugin, "surplus")
            and (switch is None or option.enabled(switch))
            for option, plugin in plugins
        )

    def _victims(self, asking: Asking, bundles: list[Bundle]) -> Iterator[Bundle]:
        """What the plugins leave: all of it, or what is on nodes that help, safe ones task by task."""
        session = self._session
        left = approved(session, bundles, partial(self._approve, asking.asker), 2 * len(asking.rows))
        if not self._rules.takes_what_helps:
            yield from left
            return
        columns = [self._placement.column(session.classes[number]) for number in asking.demand]
        open_ = np.logical_or.reduce([column.open for column in columns])
        for bundle in left:
            helpful = open_[session.tasks.node[bundle.rows]]
            if bundle.whole and helpful.any():
                yield bundle
            elif not bundle.whole:
                for row in bundle.rows[helpful].tolist():
                    yield Bundle(bundle.job, np.array([row]), whole=False)

    # -- afterwards -----------------------------------------------------------------------------------------------

    def _spare(self, transaction: Transaction, asking: Asking, domain: int, taken: list[_Taken]) -> Places:
        """Let every bundle stay without which the job still fits, the most important first; then place the job anew.

        A job that is lost is lost with what it could have spared.
        """
        transaction.rollback(sum(len(one.operations) for one in taken))
        needed, lost = list[_Taken](), set[int]()
        for one in reversed(taken):
            if one.bundle.job not in lost and self._can_do_without(transaction, asking, domain, one):
                continue
            needed.append(one)
            if one.bundle.whole:
                lost.add(one.bundle.job)
        transaction.discard()
        for one in reversed(needed):
            transaction.replay(SavedPlan(tuple(one.operations)))
        places = self._placer.place(transaction, asking, domain)
        if places is None:
            raise AssertionError("tasks fitted and do not fit any more, although nothing changed")
        return places

    def _can_do_without(self, transaction: Transaction, asking: Asking, domain: int, one: _Taken) -> bool:
        """Take a bundle back if the job fits all the same."""
        for operation in one.operations:
            transaction.retract(operation)
        checkpoint = transaction.checkpoint()
        if self._placer.place_if_roomy(transaction, asking, domain) is not None:
            transaction.rollback(checkpoint)
            return True
        transaction.replay(SavedPlan(tuple(one.operations)))
        return False

    def _nominate(self, places: Places) -> None:
        for one, domain in places.items():
            self._session.groups.nominate(one, domain)
