"""The job that remedies are sought for, as objects: its group, its pods by what they are like, its queues.

Everything is read from the cluster, when the search begins; trials that change the cluster do not change it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import JobFacts
from maniple.cluster.resources import Amounts, scale
from maniple.cluster.statuses import ALIVE, Status
from maniple.explaining.remedies.values import Change, Step
from maniple.objects.core import Node, Pod
from maniple.objects.meta import Object
from maniple.objects.printable import printable
from maniple.objects.requests import pod_requests
from maniple.objects.selectors import node_selector_matches, untolerated
from maniple.plugins.kai.labelled import QUEUE_LABEL
from maniple.profiles.group_forms import is_made, ungrouped
from maniple.profiles.written_groups import is_written

KEEPING_OUT = ("NoSchedule", "NoExecute")
_GPU_PARTS = ("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices")


@dataclass(frozen=True, slots=True, eq=False)
class PodKind:
    """Pods of a role that are alike: what holds for the first holds for all."""

    role: str
    pods: tuple[Pod, ...]

    @property
    def sample(self) -> Pod:
        return self.pods[0]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(one.key for one in self.pods)

    @property
    def requests(self) -> dict[str, Fraction | int]:
        return {name: amount for name, amount in pod_requests(self.sample).items() if amount > 0}


class Subject:
    """One job of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        row: int,
        *,
        only_leaves_take_jobs: bool = True,
        queue_label: str = QUEUE_LABEL,
    ) -> None:
        self.cluster = cluster
        self.queue_label = queue_label  # where pods of KAI name their queue
        self.only_leaves_take_jobs = only_leaves_take_jobs
        self.key = cluster.jobs.keys[row]
        self.name = cluster.jobs.name(row)
        self.group: Object = cluster.jobs.objects[row]
        self.facts: JobFacts = cluster.jobs.facts[row]
        self.is_made = is_made(self.group)  # of pods without a PodGroup
        tasks = cluster.tasks
        rows = [one for one in tasks.pods if tasks.job[one] == row and ALIVE[tasks.status[one]]]
        rows.sort(key=tasks.keys.__getitem__)
        self.roles: dict[str, list[Pod]] = {}  # all pods that are there, by role
        waiting: dict[tuple[str, bytes], list[Pod]] = {}
        for one in rows:
            pod, number = ungrouped(tasks.pods[one]), int(tasks.role[one])
            role = tasks.roles[number] if number >= 0 else ""
            self.roles.setdefault(role, []).append(pod)
            if tasks.status[one] in (Status.PENDING, Status.GATED):
                waiting.setdefault((role, _likeness(pod)), []).append(pod)
        self.kinds = [PodKind(role, tuple(pods)) for (role, _), pods in waiting.items()]

    @cached_property
    def written_for(self) -> str:
        """The owner that a PodGroup was written for by Maniple: it follows that one, and a change of the group itself
        does not last. Empty if others wrote it."""
        references = self.group.metadata.owner_references if is_written(self.group) else ()
        return printable(" and ".join(f"{one.kind} {one.name}" for one in references))

    @property
    def pods(self) -> list[Pod]:
        return [pod for pods in self.roles.values() for pod in pods]

    @property
    def waiting(self) -> list[Pod]:
        return [pod for kind in self.kinds for pod in kind.pods]

    @cached_property
    def needed(self) -> int:
        """Pods that it lacks."""
        return max(self.facts.minimum - (len(self.pods) - len(self.waiting)), 1)

    @cached_property
    def queues(self) -> list[tuple[str, list[Object]]]:
        """The queues from its own up to the top, with the objects that define each."""
        table, name = self.cluster.queues, self.facts.queue
        found: list[tuple[str, list[Object]]] = []
        while name and name not in [one for one, _ in found]:
            row = table.index_of(name)
            if row is None or row not in table.facts:
                break
            found.append((name, table.all_of(row)))
            name = table.facts[row].parent
        return found

    @cached_property
    def ahead(self) -> NDArray[np.bool_]:
        """By job: it waits, and has a higher priority than this one, or the same and is older."""
        jobs, row = self.cluster.jobs, self.cluster.jobs.index_of(self.key)
        size = len(jobs)
        waits = jobs.defined[:size] & (jobs.counts[Status.PENDING, :size] > 0)
        waits[row] = False
        priority, created = jobs.priority[:size], jobs.created[:size]
        older = (priority == priority[row]) & (created <= created[row])
        found: NDArray[np.bool_] = waits & ((priority > priority[row]) | older)
        return found

    @cached_property
    def demands_ahead(self) -> Amounts:
        """What each job ahead of it requests, in columns."""
        jobs = self.cluster.jobs
        return jobs.pending[:, : len(jobs)][:, self.ahead]

    def demand_ahead(self, inside: Collection[int] | None = None) -> dict[str, Fraction | int]:
        """What jobs ahead of it request; only those in some queues, given by row."""
        jobs, chosen = self.cluster.jobs, self.ahead
        if inside is not None:
            chosen = chosen & np.isin(jobs.queue[: len(jobs)], sorted(inside))
        total = jobs.pending[:, : len(jobs)][:, chosen].sum(axis=1).tolist()
        names = self.cluster.resources.names
        return {name: Fraction(amount, scale(name)) for name, amount in zip(names, total, strict=False)}

    def pods_ahead(self) -> int:
        """How many pods of jobs ahead of it wait."""
        jobs = self.cluster.jobs
        return int(jobs.counts[Status.PENDING, : len(jobs)][self.ahead].sum())

    @cached_property
    def queue_part(self) -> Fraction:
        """Which part of anything new its queue gets, by weights, if every queue wants more."""
        part, table = Fraction(1), self.cluster.queues
        rows = (table.index_of(name) for name, _ in self.queues)
        for own in (table.facts[row] for row in rows if row is not None):
            together = sum(one.weight for one in table.facts.values() if one.parent == own.parent)
            part *= Fraction(max(own.weight, 1), max(together, 1))
        return min(part, Fraction(1))

    def demand(self) -> dict[str, Fraction | int]:
        """What the pods that it lacks request together; of several kinds, its first ones."""
        total: dict[str, Fraction | int] = {}
        for pod in self.waiting[: self.needed]:
            for name, amount in pod_requests(pod).items():
                total[name] = total.get(name, 0) + amount
        return {name: amount for name, amount in total.items() if amount > 0}

    def admits(self, node: Node) -> bool:
        """Whether a node is open to one of its kinds of pods, as far as selectors and taints go."""
        return any(admits(kind.sample, node) for kind in self.kinds)


def admits(pod: Pod, node: Node) -> bool:
    """Whether selectors, affinity to labels and taints let a pod onto a node."""
    labels, spec = node.metadata.labels, pod.spec
    if node.spec.unschedulable or any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None and not node_selector_matches(required, labels, node.metadata.name):
        return False
    return untolerated(spec.tolerations, node.spec.taints, KEEPING_OUT) is None


def _likeness(pod: Pod) -> bytes:
    parts = {key: pod.metadata.annotations.get(key) for key in _GPU_PARTS}
    return msgspec.json.encode((pod.spec, parts), order="sorted")


# -- changes ----------------------------------------------------------------------------------------------------------


def setting(item: Object, path: tuple[Step, ...], before: object, after: object) -> Change:
    """One field of one object."""
    return Change(
        operation="set",
        kind=item.kind,
        api_group=item.api_group,
        objects=(item.key,),
        path=path,
        before=before,
        after=after,
    )


def creating(kind: type[Object], key: str, after: dict[str, Any]) -> Change:
    """A new object with these fields."""
    return Change(operation="create", kind=kind.kind, api_group=kind.api_group, objects=(key,), after=after)


def setting_pods(keys: tuple[str, ...], path: tuple[Step, ...], before: object, after: object) -> Change:
    """One field of several pods."""
    return Change(operation="set", kind="Pod", objects=keys, path=path, before=before, after=after)


def merged(changes: Iterator[Change]) -> tuple[Change, ...]:
    """The same change of several objects as one."""
    found: dict[bytes, Change] = {}
    for change in changes:
        mark = msgspec.json.encode(msgspec.structs.replace(change, objects=()), order="sorted")
        known = found.get(mark)
        objects = (*(known.objects if known is not None else ()), *change.objects)
        found[mark] = msgspec.structs.replace(change, objects=objects)
    return tuple(found.values())
