"""A larger part of what queues share: the weight of a queue and of those above it, in its system's own field."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.kinds.queue_fields import KAI_NAMES, changes, raised, shares_gpus
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject
from maniple.explaining.remedies.values import Step
from maniple.objects.kai import KaiQueue
from maniple.objects.meta import Object
from maniple.objects.printable import printable
from maniple.objects.volcano import VolcanoQueue

_STEPS = 63  # so that a weight grows to 64 times what it was at most
_LARGEST = 65535  # of Volcano's field


@dataclass(frozen=True, slots=True, eq=False)
class _Weight:
    queue: Object
    path: tuple[Step, ...]
    stated: float
    unit: float
    most: int

    def value(self, level: int) -> float | int:
        raised = Fraction(str(self.stated)) + level * Fraction(str(self.unit))
        return int(raised) if isinstance(self.stated, int) else float(raised)

    def said(self, level: int) -> str:
        field, name = ".".join(map(str, self.path)), self.queue.metadata.name
        return printable(f"{field} of queue {name} raised from {self.stated:g} to {self.value(level):g}")


def weights(subject: Subject) -> Iterator[Choice]:
    found = [weight for _, items in subject.queues for item in items for weight in _weights(subject, item)]
    if not found:
        return

    def words(levels: Levels) -> tuple[str, str]:
        more = raised(found, levels)
        amount = listed(f"{one.value(level):g} instead of {one.stated:g}" for one, level in more)
        return amount, f"With {listed(one.said(level) for one, level in more)}"

    yield Choice("queue weight", tuple(one.most for one in found), partial(changes, found), words)


def _weights(subject: Subject, item: Object) -> Iterator[_Weight]:
    if isinstance(item, VolcanoQueue):
        weight = item.spec.weight or 1
        most = min(_STEPS * weight, _LARGEST - weight)
        if most > 0:
            yield _Weight(item, ("spec", "weight"), weight, 1, most)
    elif isinstance(item, KaiQueue) and item.spec.resources is not None:
        demand = subject.demand()
        shares = shares_gpus(subject)
        for own, resource in KAI_NAMES.items():
            if resource in demand or (own == "gpu" and shares):
                weight = getattr(item.spec.resources, own).over_quota_weight
                unit = min(weight, 1.0) if weight > 0 else 1.0
                most = round(_STEPS * max(weight / unit, 1))
                yield _Weight(item, ("spec", "resources", own, "overQuotaWeight"), weight, unit, most)
