"""The search for remedies of one job: every kind is screened, and what would help is proven by a full cycle."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from maniple.cluster.cluster import Cluster
from maniple.explaining.remedies.kinds import (
    claims,
    constraints,
    ending,
    members,
    node_states,
    nodes,
    pods,
    queue_names,
    queues,
    requests,
    resource_quotas,
    standing,
    weights,
)
from maniple.explaining.remedies.kinds import topology as topologies
from maniple.explaining.remedies.kinds.combining import combined
from maniple.explaining.remedies.search import Choice, Levels, lowered, smallest
from maniple.explaining.remedies.subject import Subject
from maniple.explaining.remedies.trials import Budget, BudgetSpentError, Outcome, Trials
from maniple.explaining.remedies.values import Advice, Change, Remedy, Untried
from maniple.planner import Plan, Planner
from maniple.plugins.kai.labelled import queue_label

Maker = Callable[[Subject], Iterator[Choice]]
# In the order in which they are tried and shown: what is missing, what the job's owner can change, what the
# cluster's owner can.
_KINDS: dict[str, Maker] = {
    "scheduling gates": pods.gates,
    "missing pods": pods.missing,
    "queue": queue_names.queues,
    "queue state": standing.state,
    "suspension": standing.suspension,
    "volume claims": claims.volume_claims,
    "resource claims": claims.resource_claims,
    "toleration": constraints.tolerations,
    "selector": constraints.selectors,
    "affinity": constraints.affinity,
    "spread": constraints.spread,
    "topology": topologies.topology,
    "members": members.members,
    "request": requests.requests,
    "preemptibility": standing.preemptibility,
    "priority": standing.priority,
    "queue limit": queues.limits,
    "queue quota": queues.quotas,
    "queue weight": weights.weights,
    "resource quota": resource_quotas.resource_quotas,
    "cordoned nodes": node_states.uncordoned,
    "nodes not ready": node_states.ready,
    "devices": claims.devices,
    "nodes": nodes.nodes,
}
_CAPACITY = "capacity"  # Volcano's plugin, which may see queues as a tree
_ENDING, _COMBINED, _ALONE, _SETTLED = "ending jobs", "combined", "alone", "settled"


def remedies(
    planner: Planner,
    cluster: Cluster | Iterable[Any],
    job: str,
    now: datetime | None = None,
    budget: Budget | None = None,
    plan: Plan | None = None,
) -> tuple[Remedy, ...]:
    """The smallest change of each kind after which a job starts. `advise` says more."""
    return advise(planner, cluster, job, now, budget, plan).remedies


def advise(
    planner: Planner,
    cluster: Cluster | Iterable[Any],
    job: str,
    now: datetime | None = None,
    budget: Budget | None = None,
    plan: Plan | None = None,
) -> Advice:
    """What would help a job, given as namespace/name of its group; the cluster, or its objects.

    `plan`: that of the cluster as it is, where one was made; it saves a cycle.
    A cluster is changed for trials and put back as it was. Raises LookupError for a job that is not there.
    """
    if not isinstance(cluster, Cluster):
        cluster = planner.build(cluster)
    rows = [row for row in cluster.jobs.rows_named(job) if row in cluster.jobs.facts]
    if not rows:
        raise LookupError(f"job {job!r} does not exist; expected the namespace and name of a PodGroup")
    cluster.settle()
    trials = Trials(planner, cluster, cluster.jobs.keys[rows[0]], now, budget or Budget(), plan)
    if trials.base.starts:
        return Advice(job=job, starts=True, cycles=trials.cycles, full=trials.full)
    return Search(subject_of(planner, cluster, rows[0]), trials).advice()


def subject_of(planner: Planner, cluster: Cluster, row: int) -> Subject:
    """A job, as the configuration of a planner has it."""
    options = (option for tier in planner.configuration.tiers for option in tier)
    as_tree = any(option.name == _CAPACITY and option.enabled("enableHierarchy") for option in options)
    only_leaves = as_tree or planner.rules.queues.only_leaves_take_jobs
    label = queue_label(planner.options)
    return Subject(cluster, row, only_leaves_take_jobs=only_leaves, queue_label=label)


@dataclass(frozen=True, slots=True)
class Found:
    """A change that works, by the trial that said so."""

    choice: Choice
    levels: Levels
    outcome: Outcome


class Search:
    """One search; `shown` has the remedies that it came to, each with the levels that it stands for."""

    def __init__(self, subject: Subject, trials: Trials) -> None:
        self._subject, self._trials = subject, trials
        self._found: list[Found] = []
        self.shown: list[tuple[Remedy, Found]] = []
        self._alone: list[Remedy] = []
        self._untried: list[Untried] = []
        self._unfinished: set[str] = set()  # kinds of which a smaller change may do

    def advice(self) -> Advice:
        makers: dict[str, Maker] = {**_KINDS, _ENDING: self._ending, _COMBINED: self._combined}
        for kind, maker in makers.items():
            known = len(self._found)
            self._paid(kind, lambda maker=maker: self._screen(maker))  # type: ignore[misc]
            for one in self._found[known:]:
                self._paid(kind, lambda one=one: self._prove(one), one)  # type: ignore[misc]
        for number in range(len(self.shown)):
            self._paid(_SETTLED, lambda number=number: self._settle(number))  # type: ignore[misc]
        self._paid(_ALONE, self._without_rivals)
        if not self._subject.pods and not any(pods.of_another_scheduler(self._subject)):
            why = "the job has no pods, and what they would request is not known"
            self._untried.append(Untried(kind="missing pods", why=why))
        return Advice(
            job=self._subject.name,
            remedies=(
                *pods.of_another_scheduler(self._subject),
                *(remedy for remedy, _ in self.shown),
            ),
            alone=tuple(self._alone),
            untried=tuple(self._untried),
            cycles=self._trials.cycles,
            full=self._trials.full,
        )

    def _paid(self, kind: str, step: Callable[[], None], found: Found | None = None) -> None:
        """Take a step for as long as trials are paid for."""
        try:
            step()
        except BudgetSpentError:
            if found is not None:
                self._show(found)
            if kind not in (_ALONE, _SETTLED):
                what = "look into it" if found is None else "prove it with all jobs"
                self._untried.append(Untried(kind=kind, why=f"no cycle was left to {what}"))

    # -- screening ----------------------------------------------------------------------------------------------------

    def _ending(self, subject: Subject) -> Iterator[Choice]:
        return ending.ending(subject, self._trials.base.placed)

    def _combined(self, subject: Subject) -> Iterator[Choice]:
        """Several kinds together, where none of them is enough by itself."""
        if all(one.choice.kind == _ENDING for one in self._found):
            yield from combined(subject)

    def _screen(self, maker: Maker) -> None:
        """Keep the first choice of a kind that helps; of jobs that would have to end, the fewest."""
        best: Found | None = None
        for choice in maker(self._subject):
            found = self._smallest(choice)
            if found is None:
                continue
            if choice.kind != _ENDING:
                best = found
                break
            if best is None or sum(found.levels) < sum(best.levels):
                best = found
            if sum(best.levels) == 1:
                break
        if best is not None:
            self._found.append(best)

    def _smallest(self, choice: Choice, *, full: bool = False) -> Found | None:
        """The smallest change of a kind; the smallest so far if nothing is left to go on with."""
        outcomes: dict[Levels, Outcome] = {}

        def works(levels: Levels) -> bool:
            outcome = outcomes[levels] = self._trials.run(choice.build(levels), full=full, keep=choice.keep)
            self._trials.keeps_reserve |= outcome.starts and not outcome.full
            return outcome.starts

        def hint(levels: Levels) -> tuple[int, ...]:
            return choice.enough(outcomes[levels].filled) if choice.enough is not None else ()

        # What narrow trials find is settled by full ones; finer knobs take many, and start from exact levels.
        exact = self._trials.always_full or choice.refined is not None
        try:
            levels = smallest(choice, works, thorough=self._trials.always_full, hint=hint, exact=exact)
        except BudgetSpentError:
            working = [levels for levels, outcome in outcomes.items() if outcome.starts]
            if not working:
                raise
            self._unfinished.add(choice.kind)
            levels = min(working, key=sum)
            return Found(choice, levels, outcomes[levels])
        if levels is None:
            return None
        if choice.refined is not None and self._trials.always_full:
            return self._smallest(choice.refined(levels))
        return Found(choice, levels, outcomes[levels])

    # -- proving ------------------------------------------------------------------------------------------------------

    def _prove(self, found: Found) -> None:
        """Show a change if a full cycle starts the job, or a larger one; otherwise say that rivals are in the way."""
        choice, outcome = found.choice, found.outcome
        self._trials.keeps_reserve = False
        if not outcome.full:
            outcome = self._trials.run(choice.build(found.levels), full=True)
        proven = Found(choice, found.levels, outcome) if outcome.starts else self._wider(found)
        if proven is not None:
            self._show(proven)
        elif self._trials.run(choice.build(found.levels), alone=True).starts:
            self._alone.append(self._remedy(found, alone=True))

    def _wider(self, found: Found) -> Found | None:
        """A larger change, which leaves enough after rivals took theirs."""
        choice, (least, *others) = found.choice, found.levels
        if self._trials.always_full:
            return None
        if others or choice.in_order:
            return self._smallest(choice, full=True)
        for level in (2 * least, 4 * least, choice.tops[0]):
            if least < level <= choice.tops[0]:
                outcome = self._trials.run(choice.build((level,)), full=True)
                if outcome.starts:
                    return Found(choice, (level,), outcome)
        return None

    def _settle(self, number: int) -> None:
        """Make sure of a remedy that was screened by narrow cycles that full ones find no smaller change."""
        remedy, found = self.shown[number]
        if remedy.smallest or not remedy.proven:
            return
        if found.choice.refined is not None:
            finer = found.choice.refined(found.levels)
            found = Found(finer, finer.tops, found.outcome)
        outcomes = {found.levels: found.outcome}

        def works(levels: Levels) -> bool:
            outcomes[levels] = self._trials.run(found.choice.build(levels), full=True)
            return outcomes[levels].starts

        levels = lowered(found.choice, found.levels, works)
        settled = Found(found.choice, levels, outcomes[levels])
        self.shown[number] = self._remedy(settled, smallest=True), settled

    def _without_rivals(self) -> None:
        """Whether the job would start as it is if no other job waited."""
        if self._trials.run((), alone=True).starts:
            text = "The job would start as it is if no other job waited"
            self._alone.append(Remedy(kind="ending jobs", changes=(), amount="", sentence=text))

    def _show(self, found: Found) -> None:
        sure = self._trials.always_full and found.choice.kind not in self._unfinished
        self.shown.append((self._remedy(found, smallest=sure), found))

    def _remedy(self, found: Found, *, alone: bool = False, smallest: bool = False) -> Remedy:
        choice, subject, outcome = found.choice, self._subject, found.outcome
        changes = choice.build(found.levels)
        amount, words = choice.words(found.levels)
        end = "the job would start if no other job waited" if alone else "the job would start"
        lost = self._trials.base.placed - outcome.placed - {subject.key}
        gone = {pod for change in changes if change.operation == "delete" for pod in change.objects}
        jobs = subject.cluster.jobs
        rows = [row for key in sorted(lost) if (row := jobs.index_of(key)) is not None]
        return Remedy(
            kind=choice.kind,
            changes=changes,
            amount=amount,
            sentence=f"{words} {end}{_evicting(outcome)}{self._lasting(changes)}",
            proven=outcome.full and outcome.starts,
            smallest=smallest,
            evictions=outcome.evictions,
            competes_with=tuple(jobs.name(row) for row in rows if not self._gone(row, gone)),
        )

    def _lasting(self, changes: Iterable[Change]) -> str:
        """Where a change of the PodGroup has to be made to last."""
        group, owner = self._subject.group, self._subject.written_for
        concerned = any(one.kind == group.kind and group.key in one.objects for one in changes)
        return (
            f"; the PodGroup is written as {owner} has it, so make the change there"
            if owner and concerned
            else ""
        )

    def _gone(self, job: int, pods_gone: set[str]) -> bool:
        """Whether a job's pods are among those that are deleted."""
        tasks = self._subject.cluster.tasks
        rows = (tasks.index_of(pod) for pod in pods_gone)
        return any(row is not None and int(tasks.job[row]) == job for row in rows)


def _evicting(outcome: Outcome) -> str:
    count = len(outcome.evictions)
    if not count:
        return ""
    return f", and {count} pod{'s' if count > 1 else ''} would be evicted for it"
