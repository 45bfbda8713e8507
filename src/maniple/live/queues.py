"""Allocated amounts in the status of queues: the sum over their tasks and those of the queues below.

Pods whose bind is not confirmed are not counted yet.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from maniple.cluster.resources import written
from maniple.framework.plans.outcome import QueueHolding
from maniple.framework.plans.plan import Plan
from maniple.live.binding import Binding
from maniple.live.cache import Assumption
from maniple.live.dialect import LiveDialect
from maniple.live.pace import Pace
from maniple.live.refs import Ref, ref_of
from maniple.live.writing import Writing, now

AMOUNTS_SECONDS = 1.0
_ALWAYS_SHOWN = {"cpu": 0, "memory": 0}


class QueueStatuses:
    def __init__(self, writing: Writing, dialect: LiveDialect, binding: Binding) -> None:
        self._writing = writing
        self._dialect = dialect
        self._binding = binding
        self._holdings: Mapping[str, QueueHolding] = {}  # as of the last cycle, while binds are unfinished
        self._ended = 0
        self._confirm_next = 0.0
        self.pace: Pace[Ref, dict[str, str]] = Pace(self._write)

    def compare(self, plan: Plan) -> None:
        """Find the queues with outdated amounts, and have them written."""
        self._compare(plan.holdings)

    def confirm(self) -> None:
        """The same once binds have been confirmed since; while more are to come, as often as it is written."""
        due = not self._binding.pods or now() >= self._confirm_next
        if due and self._holdings and self._ended != self._binding.ended:
            self._compare(self._holdings)

    def _compare(self, holdings: Mapping[str, QueueHolding]) -> None:
        self._holdings, self._ended = holdings if self._binding.pods else {}, self._binding.ended
        self._confirm_next = now() + AMOUNTS_SECONDS
        shared = self._shared(holdings)
        for name, held in self._held(self._confirmed(holdings)).items():
            if name in shared:
                continue  # whoever schedules the other pods knows more
            allocated, found = _written(held), self._writing.cache.get
            for queue in filter(None, (found(kind, name) for kind in self._dialect.queue_kinds)):
                if self._dialect.queue_allocated(queue, allocated) is queue:
                    self.pace.drop(ref_of(queue))
                else:
                    self.pace.submit(ref_of(queue), allocated, AMOUNTS_SECONDS)

    def _write(self, ref: Ref, allocated: dict[str, str]) -> bool:
        before, dialect, port = self._writing.cache.get(*ref), self._dialect, self._writing.port
        if before is None:
            return False  # it was deleted while the amounts waited for their time
        patch = dialect.queue_patch(before, dialect.queue_allocated(before, allocated))
        assumption = Assumption(
            uid=before.metadata.uid,
            change=lambda seen: dialect.queue_allocated(seen, allocated),
            shown=lambda seen: dialect.queue_allocated(seen, allocated) is seen,
        )
        return self._writing.submit(
            ref, "status", assumption, lambda: port.patch_status(*ref, patch), self.pace
        )

    def _confirmed(self, holdings: Mapping[str, QueueHolding]) -> Mapping[str, QueueHolding]:
        """Without the pods whose bind is unfinished."""
        if not self._binding.pods:
            return holdings
        confirmed = dict(holdings)
        for queue, amounts in self._binding.amounts(self._writing.cache.cluster).items():
            if queue in holdings:
                own = Counter(holdings[queue].amounts)
                own.subtract(amounts)
                left = {name: amount for name, amount in own.items() if amount > 0}
                confirmed[queue] = replace(holdings[queue], amounts=left)
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

    def _held(self, holdings: Mapping[str, QueueHolding]) -> dict[str, Counter[str]]:
        """By queue: its own tasks, and those of all queues below."""
        total = {name: Counter(own.amounts) for name, own in holdings.items()}
        for name, own in holdings.items():
            above, passed = self._dialect.parent(name, own.parent), {name}
            while above in holdings and above not in passed:
                passed.add(above)
                total[above].update(own.amounts)
                above = self._dialect.parent(above, holdings[above].parent)
        return total


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as Kubernetes writes them; CPU and memory are always included."""
    return {name: written(name, amount) for name, amount in {**_ALWAYS_SHOWN, **amounts}.items()}
