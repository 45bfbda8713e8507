"""LeaderWorkerSet: one group per replica, a leader and its workers.

Its controller creates the workers of a replica when the leader is ready (`startupPolicy: LeaderReady`), or when it is
scheduled (`leaderworkerset.sigs.k8s.io/exclusive-topology`): then they come after it. Sub-groups (`subGroupPolicy`, or
KAI's `kai.scheduler/segment-size`) are sets with a topology of their own; the leader is in the first, unless it is
excluded.

A StatefulSet has the leaders; each leader owns a StatefulSet of its workers. The indexes of a pod are in its labels,
which a webhook adds; in a manifest they follow from the names.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from maniple.workloads.building import (
    Path,
    child,
    first_priority,
    group_of,
    shared,
    template_domain,
    template_of,
)
from maniple.workloads.fields import choice, count, fail, given_count, number_in_text, section, text, value
from maniple.workloads.kind import Kind
from maniple.workloads.labels import annotation, labelled_number, ordinal
from maniple.workloads.model import Chain, DomainWish, Group, Member, PodSet, Raw

_PREFIX = "leaderworkerset.sigs.k8s.io/"
_NAME = _PREFIX + "name"
_GROUP_INDEX = _PREFIX + "group-index"
_WORKER_INDEX = _PREFIX + "worker-index"
_EXCLUSIVE = _PREFIX + "exclusive-topology"
_SUBGROUP_EXCLUSIVE = _PREFIX + "subgroup-exclusive-topology"
_SEGMENT_SIZE = "kai.scheduler/segment-size"
_SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
_SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"

_TEMPLATE: Path = ("spec", "leaderWorkerTemplate")
_WORKERS: Path = (*_TEMPLATE, "workerTemplate")
_LEADER: Path = (*_TEMPLATE, "leaderTemplate")
_SUBGROUP: Path = (*_TEMPLATE, "subGroupPolicy")
_MOST_SETS = 1_000
_START = ("LeaderCreated", "LeaderReady")
_SUBGROUP_TYPES = ("LeaderWorker", "LeaderExcluded")


@dataclass(frozen=True, slots=True)
class _Replica:
    """What all replicas have in common."""

    size: int
    leader_first: bool
    segment: int | None = None  # pods of a sub-group
    leader_excluded: bool = False
    segment_domain: DomainWish | None = None

    @property
    def _skipped(self) -> int:
        """1 if the leader is one too many for even sub-groups: the webhook then leaves it out of the counting."""
        assert self.segment is not None
        return int((self.size - 1) % self.segment == 0 and self.size % self.segment != 0)

    def segment_of(self, worker: int) -> int:
        assert self.segment is not None
        return (worker - self._skipped) // self.segment

    def workers_in(self, number: int) -> int:
        assert self.segment is not None
        first = number * self.segment + self._skipped
        return max(min(first + self.segment, self.size) - max(first, 1), 0)


def _member(chain: Chain) -> Member:
    replica = chain.once("replica", lambda: _replica(chain.top))
    worker = _worker_index(chain.pod)
    index = _group_index(chain.pod, worker)
    group = chain.once(("group", index), lambda: _group(chain, replica, index))
    return Member(group, _set_name(replica, worker))


def _group(chain: Chain, replica: _Replica, index: int) -> Group:
    exclusive = annotation(chain.top, _EXCLUSIVE)
    templates = [template_of(chain.top, _leaders(chain.top)), template_of(chain.top, _WORKERS)]
    return group_of(
        shared(chain, templates),
        replica.size,
        tuple(_sets(replica)),
        most=replica.size,
        part=f"group-{index}",
        priority_class=first_priority(templates),
        domain=DomainWish(required=exclusive) if exclusive else None,
    )


def _leaders(owner: Raw) -> Path:
    return _LEADER if value(owner, _LEADER) is not None else _WORKERS


def _sets(replica: _Replica) -> Iterator[PodSet]:
    after = ("leader",) if replica.leader_first else ()
    if replica.segment is None:
        yield PodSet("leader", 1)
        if replica.size > 1:
            yield PodSet("workers", replica.size - 1, after=after)
        return
    if replica.leader_excluded:
        yield PodSet("leader", 1)
    else:
        inside = replica.workers_in(0)
        yield PodSet("segment-0", 1 + inside, domain=replica.segment_domain)
        yield PodSet("leader", 1, parent="segment-0")
        if inside:
            yield PodSet("segment-0-workers", inside, parent="segment-0", after=after)
    for number in range(replica.segment_of(replica.size - 1) + 1):
        workers = replica.workers_in(number)
        if workers and (number or replica.leader_excluded):
            yield PodSet(f"segment-{number}", workers, domain=replica.segment_domain, after=after)


def _set_name(replica: _Replica, worker: int) -> str:
    if worker == 0:
        return "leader"
    if replica.segment is None:
        return "workers"
    number = replica.segment_of(worker)
    return f"segment-{number}" if number or replica.leader_excluded else "segment-0-workers"


def _group_index(pod: Raw, worker: int) -> int:
    """The number of the replica; the name of a leader ends with it."""
    found = labelled_number(pod, _GROUP_INDEX)
    if found is None and worker == 0:
        found = ordinal(pod)
    if found is None:
        raise fail(pod, ("metadata", "labels", _GROUP_INDEX), "is missing: the replica is not known")
    return found


def _worker_index(pod: Raw) -> int:
    found = labelled_number(pod, _WORKER_INDEX)
    found = ordinal(pod) if found is None else found
    if found is None:
        raise fail(pod, ("metadata", "labels", _WORKER_INDEX), "is missing: leader or worker is not known")
    return found


def _replica(owner: Raw) -> _Replica:
    size = count(owner, (*_TEMPLATE, "size"), 1)
    if size < 1:
        raise fail(owner, (*_TEMPLATE, "size"), "must be 1 or more: the leader counts")
    start = choice(owner, ("spec", "startupPolicy"), _START)
    replica = _Replica(size, start == "LeaderReady" or bool(annotation(owner, _EXCLUSIVE)))
    policy = choice(owner, (*_SUBGROUP, "subGroupPolicyType"), _SUBGROUP_TYPES)
    path, segment = _segment(owner)
    if segment is None:
        return replica
    if not 1 <= segment <= size:
        raise fail(owner, path, f"must be from 1 to the size, {size}, not {segment}")
    if size // segment > _MOST_SETS:
        raise fail(owner, path, f"must be larger: no more than {_MOST_SETS:,} sub-groups of a replica")
    return replace(
        replica,
        segment=segment,
        leader_excluded=policy == "LeaderExcluded",
        segment_domain=_segment_domain(owner),
    )


def _segment(owner: Raw) -> tuple[Path, int | None]:
    """Where the size of sub-groups is said, and what it is: its own field, then KAI's annotation."""
    path: Path = (*_SUBGROUP, "subGroupSize")
    found = given_count(owner, path)
    for place in (("metadata", "annotations"), (*_WORKERS, "metadata", "annotations")):
        if found is None:
            path = (*place, _SEGMENT_SIZE)
            found = number_in_text(owner, path)
    return path, found


def _segment_domain(owner: Raw) -> DomainWish | None:
    exclusive = annotation(owner, _SUBGROUP_EXCLUSIVE)
    if exclusive:
        return DomainWish(required=exclusive)
    notes: Path = (*_WORKERS, "metadata", "annotations")
    required, preferred = text(owner, (*notes, _SEGMENT_REQUIRED)), text(owner, (*notes, _SEGMENT_PREFERRED))
    if not (required or preferred):
        return None
    named = template_domain(owner, _WORKERS) or DomainWish(
        topology=annotation(owner, "kai.scheduler/topology")
    )
    return DomainWish(topology=named.topology, required=required, preferred=preferred)


# -- what its controller creates ---------------------------------------------------------------------------------------


def _children(owner: Raw) -> Iterator[dict[str, Any]]:
    replica, replicas = _replica(owner), count(owner, ("spec", "replicas"), 1)
    name = text(owner, ("metadata", "name"))
    labels, notes = section(owner, ("metadata", "labels")), section(owner, ("metadata", "annotations"))
    marks = {_NAME: name, _WORKER_INDEX: "0"}
    size = {_PREFIX + "size": str(replica.size)}
    yield child(
        owner,
        "apps/v1",
        "StatefulSet",
        name,
        labels={**labels, _NAME: name},
        annotations={**notes, _PREFIX + "replicas": str(replicas)},
        spec={"replicas": replicas, "template": _template(owner, _leaders(owner), marks, size)},
    )
    if replica.size == 1:
        return
    for index in range(replicas):
        leader = child(owner, "v1", "Pod", f"{name}-{index}")
        marks = {_NAME: name, _GROUP_INDEX: str(index)}
        pods = _template(owner, _WORKERS, marks, {**size, _PREFIX + "leader-name": f"{name}-{index}"})
        yield child(
            leader,
            "apps/v1",
            "StatefulSet",
            f"{name}-{index}",
            labels={**labels, **marks},
            annotations=notes,
            spec={"replicas": replica.size - 1, "ordinals": {"start": 1}, "template": pods},
        )


def _template(owner: Raw, path: Path, labels: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    metadata = section(owner, (*path, "metadata"))
    return {
        "metadata": {
            **metadata,
            "labels": {**section(owner, (*path, "metadata", "labels")), **labels},
            "annotations": {**section(owner, (*path, "metadata", "annotations")), **annotations},
        },
        "spec": dict(section(owner, (*path, "spec"))),
    }


KINDS = (
    Kind(
        api_group="leaderworkerset.x-k8s.io",
        name="LeaderWorkerSet",
        plural="leaderworkersets",
        versions=("v1",),
        reads=(
            "spec.replicas",
            "spec.startupPolicy",
            "spec.leaderWorkerTemplate.size",
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
            "spec.leaderWorkerTemplate.leaderTemplate",
            "spec.leaderWorkerTemplate.workerTemplate",
        ),
        member=_member,
        reads_of_pod=(_GROUP_INDEX, _WORKER_INDEX),
        reads_pod_name=True,
        children=_children,
    ),
)
