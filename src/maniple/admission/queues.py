"""Queues of both systems: parents, circles, amounts, and what is in a queue that is to be deleted."""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from maniple.admission.naming import Missing
from maniple.admission.verdict import QUEUE, Finding, Lookup
from maniple.admission.world import ROOT, Queue, World
from maniple.framework.rights import NAMESPACE_SELECTOR
from maniple.objects.kai import KaiQueue
from maniple.objects.meta import Object, ResourceList
from maniple.objects.quantity import format_quantity, parse
from maniple.objects.selector_text import parse_selector
from maniple.objects.volcano import VolcanoQueue

Amounts = Mapping[str, Any]  # by resource; what is not stated is left out
_UNLIMITED = -1  # in KAI's queues
_SHOWN = 5
_EMPTY_BEFORE = "delete or move them first"


def queue_findings(queue: Queue, world: World, missing: Missing) -> Iterator[Finding]:
    """What is wrong with a queue that is created or changed."""
    yield from _own_amounts(queue)
    yield from _selector(queue)
    yield from _parent(queue, world, missing)
    yield from _beside_relatives(queue, world)


def deletion_findings(queue: Queue, world: World) -> Iterator[Finding]:
    """Why a queue may not be deleted."""
    name = queue.metadata.name
    if isinstance(queue, VolcanoQueue) and name in (ROOT, world.default_queue):
        why = "all other queues are below it" if name == ROOT else "jobs that name no queue are in it"
        yield Finding("", f"cannot be deleted: {why}")
        return
    if any(type(one) is not type(queue) for one in world.queue_objects(name)):
        return  # the other system's object of that name still defines the queue
    below = world.children(name)
    if below:
        some = ", ".join(below[:_SHOWN]) + (" ..." if len(below) > _SHOWN else "")
        yield Finding("", f"has {_counted(len(below), 'queue')} below it ({some}); {_EMPTY_BEFORE}")
    jobs = world.jobs_in(name)
    if jobs:
        yield Finding("", f"holds {_counted(jobs, 'pod group')}; {_EMPTY_BEFORE}")
    elif used := _in_use(queue.status.allocated):
        yield Finding("", f"its pods still use {used} (status.allocated); {_EMPTY_BEFORE}")


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _in_use(allocated: ResourceList) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(allocated.items()) if parse(amount) > 0)


# -- the queue by itself ----------------------------------------------------------------------------------------------


def _own_amounts(queue: Queue) -> Iterator[Finding]:
    if isinstance(queue, KaiQueue):
        yield from _kai_amounts(queue)
        return
    stated = {field: amounts(queue) for field, amounts in _VOLCANO_FIELDS.items()}
    for field, amounts in stated.items():
        for name, amount in amounts.items():
            if amount < 0 and field == "spec.capability":
                text = f"{_shown(amount)} counts as no limit; leave the resource out instead"
                yield Finding(f"{field}.{name}", text, False)
            elif amount < 0:
                yield Finding(f"{field}.{name}", f"must not be negative: {_shown(amount)}")
    pairs = (("spec.guarantee.resource", "spec.deserved"), ("spec.deserved", "spec.capability"))
    for small, large in (*pairs, ("spec.guarantee.resource", "spec.capability")):
        for name, amount in stated[small].items():
            most = stated[large].get(name, -1)
            if 0 <= most < amount:
                text = f"{_shown(amount)} is above {large} {_shown(most)}; lower it, or raise {large}"
                yield Finding(f"{small}.{name}", text)


def _kai_amounts(queue: KaiQueue) -> Iterator[Finding]:
    resources = queue.spec.resources
    if resources is None:
        yield Finding(
            "spec.resources",
            "missing: the queue would have a quota and a limit of 0 of everything; state gpu, cpu and memory, "
            "with -1 for unlimited",
        )
        return
    for name in ("gpu", "cpu", "memory"):
        one = getattr(resources, name)
        for word, amount in (("quota", one.quota), ("limit", one.limit)):
            if amount < 0 and amount != _UNLIMITED:
                text = f"must not be negative, except for -1, which means unlimited: {amount:g}"
                yield Finding(f"spec.resources.{name}.{word}", text)
        if one.over_quota_weight < 0:
            field = f"spec.resources.{name}.overQuotaWeight"
            yield Finding(field, f"must not be negative: {one.over_quota_weight:g}")
        if 0 <= one.limit < one.quota:
            text = f"{one.limit:g} is below quota {one.quota:g}, which the queue can then never use in full"
            yield Finding(f"spec.resources.{name}.limit", text, False)


def _selector(queue: Queue) -> Iterator[Finding]:
    text = queue.metadata.annotations.get(NAMESPACE_SELECTOR)
    found = parse_selector(text) if text is not None else None
    if isinstance(found, str):
        yield Finding(f"metadata.annotations.{NAMESPACE_SELECTOR}", f"{found}; it would select no namespace")


# -- the queue in its tree --------------------------------------------------------------------------------------------


def _parent(queue: Queue, world: World, missing: Missing) -> Iterator[Finding]:
    field = "spec.parentQueue" if isinstance(queue, KaiQueue) else "spec.parent"
    name = queue.metadata.name
    facts = world.dialect.queue(queue)
    parent = facts.parent if facts is not None else ""
    if not parent or (parent == ROOT and isinstance(queue, VolcanoQueue)):
        return
    way = [name, parent]
    while way[-1] != name and (above := world.queue(way[-1])) is not None and above.parent:
        if above.parent in way[1:]:
            break  # a circle above, of which this queue is no part
        way.append(above.parent)
    if way[-1] == name:
        circle = " -> ".join(way)
        yield Finding(field, f"would close a circle: {circle}; name a parent that is not below {name!r}")
    elif world.queue(parent) is None:
        missing.add(Lookup(QUEUE, parent))
        text = f"queue {parent!r} does not exist; create it first, or name a parent that does"
        yield Finding(field, text, world.knows_queues)
    elif jobs := world.jobs_in(parent):
        yield Finding(
            field,
            f"queue {parent!r} holds {_counted(jobs, 'pod group')}, and only leaf queues hold jobs; "
            "move them to another queue first, or name another parent",
        )


def _volcano(read: Callable[[VolcanoQueue], ResourceList]) -> Callable[[Object], Amounts]:
    def amounts(queue: Object) -> Amounts:
        assert isinstance(queue, VolcanoQueue)
        return {name: parse(amount) for name, amount in read(queue).items()}

    return amounts


def _kai_quotas(queue: Object) -> Amounts:
    assert isinstance(queue, KaiQueue)
    resources = queue.spec.resources
    if resources is None:
        return {}
    quotas = {name: getattr(resources, name).quota for name in ("gpu", "cpu", "memory")}
    return {f"{name}.quota": inf if quota == _UNLIMITED else quota for name, quota in quotas.items()}


_VOLCANO_FIELDS: Mapping[str, Callable[[Object], Amounts]] = {
    "spec.guarantee.resource": _volcano(lambda queue: queue.spec.guarantee.resource),
    "spec.deserved": _volcano(lambda queue: queue.spec.deserved),
    "spec.capability": _volcano(lambda queue: queue.spec.capability),
}
# What a queue may not have more of than the queue above it states.
_NARROWING: Mapping[type[Object], Mapping[str, Callable[[Object], Amounts]]] = {
    VolcanoQueue: {name: _VOLCANO_FIELDS[name] for name in ("spec.guarantee.resource", "spec.deserved")},
    KaiQueue: {"spec.resources": _kai_quotas},
}


def _beside_relatives(queue: Queue, world: World) -> Iterator[Finding]:
    """A queue has no more than its parent, and no less than each of its children."""
    facts, name = world.dialect.queue(queue), queue.metadata.name
    if facts is not None and facts.parent:
        for parent in _of_kind(queue, world.queue_objects(facts.parent)):
            for field, own, most in _above(queue, parent):
                text = f"{_shown(own)} is above that of its parent {facts.parent!r}, {_shown(most)}"
                yield Finding(field, f"{text}; lower it, or raise the parent's first")
    for child in world.children(name):
        for item in _of_kind(queue, world.queue_objects(child)):
            for field, needed, own in _above(item, queue):
                text = f"{_shown(own)} is below that of queue {child!r} under it, {_shown(needed)}"
                yield Finding(field, f"{text}; raise it, or lower that of {child!r} first")


def _of_kind(queue: Object, objects: list[Object]) -> list[Object]:
    return [one for one in objects if type(one) is type(queue)]


def _above(child: Object, parent: Object) -> Iterator[tuple[str, Any, Any]]:
    """Every field in which a child states more than its parent states, with both amounts."""
    for field, amounts in _NARROWING[type(child)].items():
        most = amounts(parent)
        for name, amount in amounts(child).items():
            if name in most and amount > most[name]:
                yield f"{field}.{name}", amount, most[name]


def _shown(amount: Any) -> str:
    if isinstance(amount, float):
        return "unlimited" if amount == inf else f"{amount:g}"
    return format_quantity(amount)
