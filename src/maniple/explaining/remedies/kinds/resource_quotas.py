"""More for a namespace: ResourceQuotas that admission of jobs holds to what they request together."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from maniple.explaining.remedies.kinds.amounts import MOST_STEPS, listed, step, written
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change
from maniple.objects.core import ResourceQuota
from maniple.objects.meta import Quantity
from maniple.objects.printable import printable
from maniple.objects.quantity import Exact, parse

_MORE = 4  # times what is missing now: jobs that are admitted before take their part


@dataclass(frozen=True, slots=True, eq=False)
class _Limit:
    quota: ResourceQuota
    resource: str
    stated: Quantity
    unit: Exact
    missing: int  # steps

    def raised(self, level: int) -> str:
        return written(self.resource, parse(self.stated) + self.unit * level)


def resource_quotas(subject: Subject) -> Iterator[Choice]:
    """Raise the limits that the job's stated minimum is above."""
    found = [*_limits(subject)]
    if not found:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(
            change
            for one, level in zip(found, levels, strict=True)
            if level
            for change in _raised(one, one.raised(level))
        )

    def words(levels: Levels) -> tuple[str, str]:
        raised = [(one, level) for one, level in zip(found, levels, strict=True) if level]
        amount = listed(f"{written(one.resource, one.unit * level)} {one.resource}" for one, level in raised)
        said = listed(
            f"spec.hard[{one.resource}] of ResourceQuota {one.quota.key} raised from {one.stated} "
            f"to {one.raised(level)}"
            for one, level in raised
        )
        return amount, printable(f"With {said}")

    guess = tuple(one.missing for one in found)
    tops = tuple(_MORE * one.missing + MOST_STEPS for one in found)
    yield Choice("resource quota", tops, build, words, guesses=(guess,))


def _limits(subject: Subject) -> Iterator[_Limit]:
    minimum = subject.facts.min_resources or {}
    namespace = subject.key.partition("/")[0]
    for key, quota in sorted(subject.cluster.all(ResourceQuota).items()):
        hard = quota.status.hard or quota.spec.hard
        for name in sorted(minimum) if key.partition("/")[0] == namespace else ():
            if name not in hard:
                continue
            needed = Fraction(parse(minimum[name]))
            over = Fraction(parse(quota.status.used.get(name, 0))) + needed - parse(hard[name])
            if needed > 0:
                unit = step(name, max(over, needed))
                yield _Limit(quota, name, hard[name], unit, max(int(-(-over // unit)), 1))


def _raised(one: _Limit, amount: str) -> Iterator[Change]:
    """In the specification, and in the status that follows it."""
    for part, stated in (("spec", one.quota.spec.hard), ("status", one.quota.status.hard)):
        if one.resource in stated or part == "spec":
            yield setting(one.quota, (part, "hard", one.resource), stated.get(one.resource), amount)
