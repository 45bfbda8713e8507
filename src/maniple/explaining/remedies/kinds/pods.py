"""Pods that are not there yet: behind scheduling gates, of another scheduler, or not created."""

from collections.abc import Iterator

import msgspec

from maniple.explaining.remedies.kinds.amounts import listed, plural
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, merged, setting_pods
from maniple.explaining.remedies.values import Change, Remedy
from maniple.objects.printable import printable

_GATES = ("spec", "schedulingGates")


def gates(subject: Subject) -> Iterator[Choice]:
    """Remove the scheduling gates of all pods."""
    gated = [pod for pod in subject.waiting if pod.spec.scheduling_gates]
    if not gated:
        return
    names = sorted({one.name for pod in gated for one in pod.spec.scheduling_gates})

    def build(_: Levels) -> tuple[Change, ...]:
        return merged(
            setting_pods((pod.key,), _GATES, msgspec.to_builtins(pod.spec.scheduling_gates), None)
            for pod in gated
        )

    def words(_: Levels) -> tuple[str, str]:
        amount = plural(len(gated), "pod")
        which = f"the scheduling gate{'s' if len(names) > 1 else ''} {listed(names)}"
        return amount, f"Without {which} (spec.schedulingGates) on {amount}"

    yield Choice("scheduling gates", (1,), build, words)


def of_another_scheduler(subject: Subject) -> Iterator[Remedy]:
    """Pods of the job that name another scheduler. They are not known here, so no cycle can prove it."""
    cluster = subject.cluster
    ours = sorted(cluster.dialect.scheduler_names)
    named: dict[str, list[str]] = {}
    for pod, (job, scheduler) in sorted(cluster.foreign.items()):
        if job == subject.key:
            named.setdefault(scheduler, []).append(pod)
    for scheduler, pods in sorted(named.items()) if ours else ():
        change = setting_pods(tuple(pods), ("spec", "schedulerName"), scheduler, ours[0])
        amount = plural(len(pods), "pod")
        text = f"With spec.schedulerName: {ours[0]} instead of {scheduler} in {amount} the job would be scheduled here"
        sentence = printable(f"{text}; pods keep theirs, so create them again")
        yield Remedy(kind="scheduler name", changes=(change,), amount=amount, sentence=sentence)


def missing(subject: Subject) -> Iterator[Choice]:
    """Create the pods that the minimum asks for, like those that are there."""
    lacking = {role: count for role, count in _lacking(subject).items() if count > 0}
    if not lacking or any(role not in subject.roles for role in lacking):
        return
    tops = tuple(lacking.values())

    def build(levels: Levels) -> tuple[Change, ...]:
        found = []
        for role, count in zip(lacking, levels, strict=True):
            like = subject.roles[role][0].key
            names = tuple(f"{like}-new-{number}" for number in range(count))
            if names:
                found.append(Change(operation="create", kind="Pod", objects=names, like=like))
        return tuple(found)

    def words(levels: Levels) -> tuple[str, str]:
        parts = [
            f"{plural(count, 'more pod')} like {subject.roles[role][0].key}"
            for role, count in zip(lacking, levels, strict=True)
            if count
        ]
        return plural(sum(levels), "pod"), f"With {listed(parts)}"

    yield Choice("missing pods", tops, build, words)


def _lacking(subject: Subject) -> dict[str, int]:
    """How many pods of each role the job needs and does not have."""
    facts, there = subject.facts, {role: len(pods) for role, pods in subject.roles.items()}
    parents = {one.parent for one in facts.groups}
    minimums = {one.name: one.minimum for one in facts.groups if one.name not in parents}
    minimums |= facts.role_minimums
    if minimums:
        found = {role: minimum - there.get(role, 0) for role, minimum in minimums.items()}
        if any(count > 0 for count in found.values()):
            return found
    if not subject.roles:
        return {"": facts.minimum}
    largest = max(subject.roles, key=lambda role: len(subject.roles[role]))
    return {largest: facts.minimum - len(subject.pods)}
