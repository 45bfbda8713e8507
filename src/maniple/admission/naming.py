"""Names of queues and priority classes in groups and pods: whether they exist, are open, and may be used."""

from collections.abc import Iterator

from maniple.admission.verdict import NAMESPACE, QUEUE, Finding, Lookup
from maniple.admission.world import Settings, World

Missing = set[Lookup]
_SHOWN = 5


def queue_findings(
    field: str, name: str, namespace: str, world: World, settings: Settings, missing: Missing
) -> Iterator[Finding]:
    """Of a queue that an object names itself."""
    problem = _existence(name, world, missing)
    if problem:
        refuses = not settings.unknown_queue_warns and world.knows_queues
        yield Finding(field, problem, refuses)
    else:
        yield from right_findings(field, name, namespace, world, missing)


def right_findings(
    field: str, name: str, namespace: str, world: World, missing: Missing
) -> Iterator[Finding]:
    """Whether the policy allows a namespace to use a queue, named or by default, if it exists."""
    if world.row(name) < 0:
        return
    if world.namespace(namespace) is None:
        missing.add(Lookup(NAMESPACE, namespace))
    if problem := world.rights.queue_problem(namespace, world.row(name)):
        yield Finding(field, problem)


def _existence(name: str, world: World, missing: Missing) -> str:
    """Why no job can be in a queue; empty if it can."""
    facts = world.queue(name)
    if facts is None:
        if name == world.default_queue:
            return ""  # the scheduler creates it
        missing.add(Lookup(QUEUE, name))
        return f"queue {name!r} does not exist; name a queue that does, or create it first"
    if not facts.open:
        return f"queue {name!r} is closed; name an open queue, or ask an administrator of queues to open it"
    if below := world.children(name):
        some = ", ".join(below[:_SHOWN]) + (" ..." if len(below) > _SHOWN else "")
        return f"queue {name!r} has queues below it, and only leaf queues hold jobs; name one of {some}"
    return ""


def priority_findings(
    field: str, name: str, namespace: str, queue: str, world: World, missing: Missing
) -> Iterator[Finding]:
    """Of the priority class that a group or a pod names."""
    if not name:
        return
    if world.namespace(namespace) is None:
        missing.add(Lookup(NAMESPACE, namespace))
    if problem := world.rights.class_problem(namespace, world.row(queue), name):
        yield Finding(field, problem)
    elif not world.knows_priority_class(name):
        yield Finding(field, f"priority class {name!r} does not exist; the default priority counts", False)
