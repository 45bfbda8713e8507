"""How a job stands among others: its queue's state, its priority, whether it may be preempted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maniple.cluster.facts import JobFacts
from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, creating, setting
from maniple.explaining.remedies.values import Change
from maniple.framework.session import NON_PREEMPTIBLE
from maniple.objects.core import PriorityClass
from maniple.objects.kai import KaiPodGroup
from maniple.objects.meta import Object
from maniple.objects.switches import CLOSED, OPEN, STATE, SUSPEND, is_suspended, wanted_state
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue

_MANY = 8  # priority classes that are tried
_SYSTEM = 1_000_000_000  # from here on classes are Kubernetes' own
_PREEMPTABLE = "volcano.sh/preemptable"
_KAI_LABEL = "priorityClassName"


def state(subject: Subject) -> Iterator[Choice]:
    """Open the queue, and those above it."""
    changes = [change for _, items in subject.queues for item in items for change in _opening(item)]
    if not changes:
        return
    names = listed(dict.fromkeys(key for change in changes for key in change.objects))

    def build(_: Levels) -> tuple[Change, ...]:
        return tuple(changes)

    def words(_: Levels) -> tuple[str, str]:
        return names, f"With queue {names} open"

    yield Choice("queue state", (1,), build, words)


def _opening(item: Object) -> Iterator[Change]:
    wanted = wanted_state(item)
    if wanted == CLOSED:
        yield setting(item, ("metadata", "annotations", STATE), wanted, OPEN)
    elif not wanted and isinstance(item, VolcanoQueue) and item.status.state not in ("", OPEN):
        yield setting(item, ("status", "state"), item.status.state, OPEN)


def suspension(subject: Subject) -> Iterator[Choice]:
    """Resume the job."""
    if not is_suspended(subject.group):
        return

    def build(_: Levels) -> tuple[Change, ...]:
        return (setting(subject.group, ("metadata", "annotations", SUSPEND), "true", None),)

    def words(_: Levels) -> tuple[str, str]:
        return subject.group.key, f"With {subject.group.key} resumed"

    yield Choice("suspension", (1,), build, words)


@dataclass(frozen=True, slots=True)
class _Class:
    """A priority class that a job could have. `new`: it would have to be created."""

    name: str
    value: int
    new: bool = False


def priority(subject: Subject) -> Iterator[Choice]:
    """The priority classes above the job's own, the lowest first; then new ones, each just above some jobs."""
    own = subject.cluster.priorities.value(subject.facts.priority_class)
    classes = [*_above(subject, own), *_new_classes(subject, own)]
    if not classes:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(_set_class(subject, classes[levels[0] - 1])) if levels[0] else ()

    def words(levels: Levels) -> tuple[str, str]:
        chosen, before = classes[levels[0] - 1], subject.facts.priority_class
        instead = f"{before} ({own})" if before else str(own)
        amount = f"{chosen.name} ({chosen.value})"
        return amount, f"With {'new ' if chosen.new else ''}priority class {amount} instead of {instead}"

    yield Choice("priority", (len(classes),), build, words, in_order=True)


def _above(subject: Subject, own: int) -> list[_Class]:
    by_value: dict[int, _Class] = {}
    for one in sorted(subject.cluster.priorities, key=lambda one: (one.value, one.metadata.name)):
        if own < one.value < _SYSTEM and one.preemption_policy != "Never":
            by_value.setdefault(one.value, _Class(one.metadata.name, one.value))
    return list(by_value.values())[:_MANY]


def _new_classes(subject: Subject, own: int) -> list[_Class]:
    """Nothing but the values of other jobs matters, so that one above each of these is enough."""
    jobs, known = subject.cluster.jobs, {one.metadata.name: one.value for one in subject.cluster.priorities}
    others = np.unique(jobs.priority[: len(jobs)][jobs.defined[: len(jobs)]]).tolist()
    above = (value + 1 for value in others if own <= value < _SYSTEM - 1)
    values = [value for value in above if value not in known.values()][:_MANY]
    names = (f"priority-{value}" for value in values)
    return [
        _Class(f"{name}-new" if name in known else name, value, new=True)
        for name, value in zip(names, values, strict=True)
    ]


def _set_class(subject: Subject, chosen: _Class) -> Iterator[Change]:
    name = chosen.name
    if chosen.new:
        after = {"apiVersion": "scheduling.k8s.io/v1", "value": chosen.value}
        yield creating(PriorityClass, name, after)
    if not subject.is_made:
        stated = subject.facts.priority_class or None
        yield setting(subject.group, ("spec", "priorityClassName"), stated, name)
        return
    for pod in subject.pods:
        labels = pod.metadata.labels
        if isinstance(subject.group, KaiPodGroup) and _KAI_LABEL in labels:
            yield setting(pod, ("metadata", "labels", _KAI_LABEL), labels[_KAI_LABEL], name)
        else:
            before = pod.spec.priority_class_name or None
            yield setting(pod, ("spec", "priorityClassName"), before, name)
            yield setting(pod, ("spec", "priority"), pod.spec.priority, chosen.value)


def preemptibility(subject: Subject) -> Iterator[Choice]:
    """Let a job be preempted that is not, so that it may exceed the quota of its queue."""
    if subject.is_made or _preemptible(subject, subject.facts):
        return
    group = subject.group
    if isinstance(group, KaiPodGroup):
        change = setting(group, ("spec", "preemptibility"), group.spec.preemptibility or None, "preemptible")
    elif isinstance(group, VolcanoPodGroup):
        stated = group.metadata.annotations.get(_PREEMPTABLE)
        change = setting(group, ("metadata", "annotations", _PREEMPTABLE), stated, "true")
    else:
        return

    def words(_: Levels) -> tuple[str, str]:
        return "preemptible", "As a preemptible job"

    yield Choice("preemptibility", (1,), lambda _: (change,), words)


def _preemptible(subject: Subject, facts: JobFacts) -> bool:
    said = facts.preemptible
    if said is not None:
        return said
    return subject.cluster.priorities.value(facts.priority_class) < NON_PREEMPTIBLE
