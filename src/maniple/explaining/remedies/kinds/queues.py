"""More for a queue: its limit or its quota, at every level of the path, in the terms of its system."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from maniple.cluster.resources import scale
from maniple.explaining.remedies.kinds.amounts import MOST_STEPS, is_bytes, listed, step, written
from maniple.explaining.remedies.kinds.queue_fields import KAI_NAMES, changes, raised, shares_gpus
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject
from maniple.explaining.remedies.values import KindName, Step
from maniple.objects.kai import KaiQueue
from maniple.objects.meta import Object
from maniple.objects.quantity import Exact, parse
from maniple.objects.volcano import VolcanoQueue

_KAI_UNITS: dict[str, Fraction] = {
    "gpu": Fraction(1),
    "cpu": Fraction(1, 1000),  # they count millicores
    "memory": Fraction(10**6),  # and millions of bytes
}
_UNLIMITED = -1


@dataclass(frozen=True, slots=True, eq=False)
class _Ceiling:
    """One amount that a queue may have, in whole units, and the steps in which it is raised."""

    queue: Object
    path: tuple[Step, ...]
    resource: str
    stated: object
    amount: Exact
    unit: Exact
    guess: int
    more: int  # steps for jobs that are ahead
    word: str
    kai: str = ""  # its own name for the resource

    def value(self, level: int) -> object:
        raised = self.raised(level)
        if not self.kai:
            return written(self.resource, raised)
        plain = raised / _KAI_UNITS[self.kai]
        return float(plain)

    def raised(self, level: int) -> Exact:
        return self.amount + self.unit * level

    def text(self, amount: Exact) -> str:
        return written(self.resource, amount)


def limits(subject: Subject) -> Iterator[Choice]:
    yield from _choice(subject, "queue limit", quota=False)


def quotas(subject: Subject) -> Iterator[Choice]:
    yield from _choice(subject, "queue quota", quota=True)


def _choice(subject: Subject, kind: KindName, *, quota: bool) -> Iterator[Choice]:
    found = [one for name, items in subject.queues for one in _ceilings(subject, name, items, quota)]
    if not found:
        return

    def words(levels: Levels) -> tuple[str, str]:
        more = raised(found, levels)
        amount = listed(f"{one.text(one.unit * level)} {one.resource}" for one, level in more)
        said = listed(
            f"{one.word} of queue {one.queue.metadata.name} raised from {one.text(one.amount)} to "
            f"{one.text(one.raised(level))} {one.resource}"
            for one, level in more
        )
        return amount, f"With the {said}"

    guess = tuple(one.guess for one in found)
    tops = tuple(min(4 * one.guess + one.more, 8 * MOST_STEPS) for one in found)
    keep = frozenset(_same_queue(subject))
    yield Choice(kind, tops, partial(changes, found), words, guesses=(guess,), keep=keep)


def _same_queue(subject: Subject) -> Iterator[str]:
    """Jobs of the same queue that are ahead: the change meets their demand first."""
    jobs, row = subject.cluster.jobs, subject.cluster.jobs.index_of(subject.key)
    same = jobs.queue[: len(jobs)] == jobs.queue[row]
    for one in np.flatnonzero(subject.ahead & same).tolist():
        yield jobs.keys[one]


def _ceilings(subject: Subject, name: str, items: list[Object], quota: bool) -> Iterator[_Ceiling]:
    demand, held, ahead = subject.demand(), _held(subject, name), _demand_ahead(subject, name)
    for item in items:
        if isinstance(item, KaiQueue) and item.spec.resources is not None:
            for own, resource in KAI_NAMES.items():
                of_resource = getattr(item.spec.resources, own)
                stated = of_resource.quota if quota else of_resource.limit
                needed = demand.get(resource, 0) or (
                    Fraction(subject.needed) if own == "gpu" and shares_gpus(subject) else 0
                )
                if stated == _UNLIMITED or not needed:
                    continue
                word = "quota" if quota else "limit"
                path = ("spec", "resources", own, word)
                amount = Fraction(str(stated)) * _KAI_UNITS[own]
                has, more = held.get(resource, 0), ahead.get(resource, 0)
                yield _made(item, path, resource, stated, amount, needed, has, more, word, own)
        elif isinstance(item, VolcanoQueue):
            amounts = item.spec.deserved if quota else item.spec.capability
            word = "deserved" if quota else "capability"
            for resource, needed in demand.items():
                if not quota and resource not in amounts:
                    continue
                stated = amounts.get(resource)
                amount = Fraction(parse(stated if stated is not None else 0))
                has, more = held.get(resource, 0), ahead.get(resource, 0)
                yield _made(
                    item, ("spec", word, resource), resource, stated, amount, needed, has, more, word, ""
                )


def _made(
    item: Object,
    path: tuple[Step, ...],
    resource: str,
    stated: object,
    amount: Fraction,
    needed: Exact,
    held: Exact,
    ahead: Exact,
    word: str,
    kai: str,
) -> _Ceiling:
    unit = step(resource, needed)
    if kai and is_bytes(resource):
        unit = Fraction(10**6) * max(1, round(Fraction(needed) / 10**6 / MOST_STEPS))
    missing = max(held + needed - amount, needed, unit)
    steps, more = int(-(-missing // unit)), int(-(-ahead // unit))
    return _Ceiling(item, path, resource, stated, amount, unit, steps, more, word, kai)


def _inside(subject: Subject, name: str) -> set[int]:
    """The rows of a queue and of those below it."""
    return {row for row in subject.cluster.queues.facts if name in _path(subject, row)}


def _demand_ahead(subject: Subject, name: str) -> dict[str, Exact]:
    return subject.demand_ahead(_inside(subject, name))


def _held(subject: Subject, name: str) -> dict[str, Exact]:
    """What jobs of a queue and of those below it have."""
    cluster, inside = subject.cluster, _inside(subject, name)
    jobs = cluster.jobs
    of_queue = (
        np.isin(jobs.queue[: len(jobs)], sorted(inside)) if inside else np.zeros(len(jobs), dtype=np.bool_)
    )
    total = jobs.allocated[:, : len(jobs)][:, of_queue].sum(axis=1).tolist()
    return {
        resource: Fraction(amount, scale(resource))
        for resource, amount in zip(cluster.resources.names, total, strict=False)
    }


def _path(subject: Subject, row: int) -> list[str]:
    queues, found = subject.cluster.queues, list[str]()
    at: int | None = row
    while at is not None and at in queues.facts and queues.keys[at] not in found:
        found.append(queues.keys[at])
        at = queues.index_of(queues.facts[at].parent)
    return found
