"""The status of queues: what their jobs hold and request, how many there are, and whether the queue is open.

A queue counts what queues below it hold. Pods whose bind is not confirmed are not counted yet. Which fields are written
is the dialect's choice: all of them where no controller of the original system does it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter

from maniple.cluster.cluster import Cluster
from maniple.cluster.resources import written
from maniple.framework.plans.outcome import QueueHolding
from maniple.framework.plans.plan import Plan
from maniple.live.assumptions import Assumption
from maniple.live.binding import Binding
from maniple.live.dialect import LiveDialect, QueueReport
from maniple.live.pace import Pace
from maniple.live.refs import Ref, ref_of
from maniple.live.writing import Writing, now
from maniple.objects.meta import Object
from maniple.objects.printable import printable
from maniple.objects.volcano import VolcanoPodGroup

AMOUNTS_SECONDS = 1.0
_ALWAYS_SHOWN = {"cpu": 0, "memory": 0}
Part = Callable[[QueueHolding], Mapping[str, int]]
# What a queue holds, of it for good, and requests; its jobs; whether that is all; the queues below it
_Parts = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], int, bool, list[str]]
_AMOUNTS: Part = attrgetter("amounts")
_FIXED: Part = attrgetter("fixed")
_REQUESTED: Part = attrgetter("requested")


def _jobs(one: QueueHolding) -> Mapping[str, int]:
    return {"": one.jobs}


class QueueStatuses:
    def __init__(self, writing: Writing, dialect: LiveDialect, binding: Binding) -> None:
        self._writing = writing
        self._dialect = dialect
        self._binding = binding
        self._holdings: Mapping[str, QueueHolding] = {}  # as of the last cycle, while binds are unfinished
        self._ended = 0
        self._confirm_next = 0.0
        self._phases = _Phases()
        self._made: dict[str, tuple[tuple[_Parts, Mapping[str, int]], QueueReport]] = {}
        self.pace: Pace[Ref, QueueReport] = Pace(self._write)

    def count(self, group: Object, queue: str) -> None:
        """A group of a queue as it now reads; no queue if it is not served."""
        if isinstance(group, VolcanoPodGroup):
            self._phases.put(ref_of(group), queue, group.status.phase)

    def forget(self, item: Object) -> None:
        self._phases.put(ref_of(item), "", "")
        if isinstance(item, self._dialect.queue_kinds):
            self._made.pop(item.metadata.name, None)

    def compare(self, plan: Plan) -> None:
        """Find the queues with an outdated status, and have it written."""
        self._compare(plan.holdings)

    def confirm(self) -> None:
        """The same once binds have been confirmed since; while more are to come, as often as it is written."""
        due = not self._binding.pods or now() >= self._confirm_next
        if due and self._holdings and self._ended != self._binding.ended:
            self._compare(self._holdings)

    def _compare(self, holdings: Mapping[str, QueueHolding]) -> None:
        self._holdings, self._ended = holdings if self._binding.pods else {}, self._binding.ended
        self._confirm_next = now() + AMOUNTS_SECONDS
        for name, report in self._reports(self._confirmed(holdings)):
            found = (self._writing.cache.get(kind, name) for kind in self._dialect.queue_kinds)
            for queue in filter(None, found):
                if self._dialect.queue_status(queue, report) is queue:
                    self.pace.drop(ref_of(queue))
                else:
                    self.pace.submit(ref_of(queue), report, AMOUNTS_SECONDS)

    def _write(self, ref: Ref, report: QueueReport) -> bool:
        before, dialect, port = self._writing.cache.get(*ref), self._dialect, self._writing.port
        if before is None:
            return False  # it was deleted while the report waited for its time
        patch = dialect.queue_patch(before, dialect.queue_status(before, report))
        assumption = Assumption(
            uid=before.metadata.uid,
            change=lambda seen: dialect.queue_status(seen, report),
            shown=lambda seen: dialect.queue_status(seen, report) is seen,
        )
        return self._writing.submit(
            ref, "status", assumption, lambda: port.patch_status(*ref, patch), self.pace
        )

    def _reports(self, holdings: Mapping[str, QueueHolding]) -> Iterable[tuple[str, QueueReport]]:
        shared, above = self._shared(holdings), self._ways_up(holdings)
        held, fixed, requested, jobs = (
            _with_below(holdings, above, part) for part in (_AMOUNTS, _FIXED, _REQUESTED, _jobs)
        )
        children: dict[str, list[str]] = {}
        for name in sorted(holdings):
            children.setdefault(self._dialect.parent(name, holdings[name].parent), []).append(name)
        for name in holdings:
            known = name not in shared  # otherwise the scheduler of the other pods knows more
            parts = (held[name], fixed[name], requested[name], jobs[name][""], known, children.get(name, []))
            yield name, self._report(name, parts, self._phases.of(name))

    def _report(self, name: str, parts: _Parts, phases: Mapping[str, int]) -> QueueReport:
        """Most queues are as they were: what was put into words for them is used again."""
        before = self._made.get(name)
        if before is not None and before[0] == (parts, phases):
            return before[1]
        held, fixed, requested, jobs, known, children = parts
        made = QueueReport(
            allocated=_written(held) if known else None,
            fixed=_written(fixed) if known else None,
            requested=_written(requested),
            children=tuple(children),
            phases=phases,
            jobs=jobs,
        )
        self._made[name] = (parts, phases), made
        return made

    def _confirmed(self, holdings: Mapping[str, QueueHolding]) -> Mapping[str, QueueHolding]:
        """Without the pods whose bind is unfinished."""
        if not self._binding.pods:
            return holdings
        confirmed, cluster = dict(holdings), self._writing.cache.cluster
        binding, fixed = self._binding.amounts(cluster)
        for queue, amounts in binding.items():
            if queue in holdings:
                known = holdings[queue]
                confirmed[queue] = replace(
                    known,
                    amounts=_less(known.amounts, amounts),
                    fixed=_less(known.fixed, fixed.get(queue, {})),
                )
        return confirmed

    def _shared(self, holdings: Mapping[str, QueueHolding]) -> set[str]:
        """Queues with pods of other schedulers, their own or below them."""
        found = set[str]()
        for name, own in holdings.items():
            above = name if own.shared else ""
            while above in holdings and above not in found:
                found.add(above)
                above = self._dialect.parent(above, holdings[above].parent)
        return found

    def _ways_up(self, holdings: Mapping[str, QueueHolding]) -> dict[str, list[str]]:
        """By queue: those above it."""
        found = {}
        for name, own in holdings.items():
            above, passed = self._dialect.parent(name, own.parent), [name]
            while above in holdings and above not in passed:
                passed.append(above)
                above = self._dialect.parent(above, holdings[above].parent)
            found[name] = passed[1:]
        return found


class _Phases:
    """How many pod groups of each queue are in which phase, kept as groups change."""

    def __init__(self) -> None:
        self._known: dict[Ref, tuple[str, str]] = {}  # by group: its queue and its phase
        self._counts: dict[str, Counter[str]] = {}

    def put(self, ref: Ref, queue: str, phase: str) -> None:
        before = self._known.pop(ref, None)
        if before is not None:
            counts = self._counts[before[0]]
            counts[before[1]] -= 1
            if not counts.total():
                del self._counts[before[0]]
        if queue:
            self._known[ref] = queue, phase
            self._counts.setdefault(queue, Counter())[phase] += 1

    def of(self, queue: str) -> Mapping[str, int]:
        """A copy: what waits to be written must not change."""
        return dict(self._counts.get(queue, {}))


def orphaned(cluster: Cluster, queue: Object) -> str:
    """What to report when a queue is gone and jobs still name it; empty if there are none."""
    table, jobs, name = cluster.queues, cluster.jobs, queue.metadata.name
    row = table.index_of(name)
    if row is None or table.defined[row]:
        return ""  # nothing names it, or another system has a queue of the name
    number = sum(1 for job in jobs.facts if jobs.queue[job] == row)
    if not number:
        return ""
    return (
        f"Queue {printable(name)}: deleted while {number} {'job names' if number == 1 else 'jobs name'} it;"
        " pods that run stay, the others wait until the queue exists again or their jobs name another"
    )


def _with_below(
    holdings: Mapping[str, QueueHolding], above: Mapping[str, list[str]], part: Part
) -> dict[str, Mapping[str, int]]:
    """By queue: its own amounts, and those of all queues below."""
    total: dict[str, Mapping[str, int]] = {name: part(own) for name, own in holdings.items()}
    sums: dict[str, Counter[str]] = {}
    for name, own in holdings.items():
        for one in above[name]:
            sums.setdefault(one, Counter(part(holdings[one]))).update(part(own))
    return {**total, **{name: dict(one) for name, one in sums.items()}}


def _less(amounts: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, int]:
    left = Counter(amounts)
    left.subtract(taken)
    return {name: amount for name, amount in left.items() if amount > 0}


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as Kubernetes writes them; CPU and memory are always included."""
    return {name: written(name, amount) for name, amount in {**_ALWAYS_SHOWN, **amounts}.items()}
