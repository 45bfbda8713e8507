"""The clusters that `maniple bench` generates, each under the name of its benchmark shape.

A shape is written once, as nodes, queues and jobs, and then put into the objects of a dialect. Times and names are
fixed, so a shape at a given scale is always the same cluster. To add a shape, write its function and name it in SHAPES;
to add a dialect, write its objects and name them in DIALECTS.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

Object = dict[str, Any]

# Running jobs were created from here on, one a second; pending ones after all of them.
FIRST_CREATED = 1_760_000_000
FIRST_PENDING = FIRST_CREATED + 100_000
NAMESPACE = "bench"
GPU = "nvidia.com/gpu"
GANG = 8
WITH_EVICTION = ("enqueue", "allocate", "backfill", "reclaim", "preempt")
FOUR_QUEUES = ("q0", "q1", "q2", "q3")
SUB_GROUP_LABEL = "sub-group"
# Volcano's default, and the plugin that keeps gangs inside HyperNodes.
WITH_TOPOLOGY: dict[str, Any] = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [
        {"plugins": [{"name": name} for name in ("priority", "gang", "conformance")]},
        {
            "plugins": [
                {"name": name} for name in ("overcommit", "drf", "predicates", "proportion", "nodeorder")
            ]
        },
        {"plugins": [{"name": "network-topology-aware"}]},
    ],
}


@dataclass(frozen=True, slots=True)
class Job:
    """One gang: equal tasks, waiting, or running on the nodes that are named."""

    name: str
    queue: str
    tasks: int
    minimum: int
    created: int
    priority: int = 50
    gpus: int = 1
    placed: tuple[str, ...] = ()
    sub_group: int = (
        0  # tasks that have to be in one HyperNode of tier 1, the job in one of tier 2; 0 for a plain gang
    )

    @property
    def requests(self) -> dict[str, int]:
        """Of one task: cores, MiB and GPUs."""
        return {"cpu": 4 * self.gpus, "memory": 16384 * self.gpus, GPU: self.gpus}


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster to plan: nodes of 64 cores, 256 GiB and 8 GPUs, queues of equal weight, jobs."""

    nodes: tuple[str, ...]
    queues: tuple[str, ...]
    jobs: tuple[Job, ...]
    actions: tuple[str, ...] | None = field(default=None)
    racks: tuple[
        tuple[str, ...], ...
    ] = ()  # nodes that are close together: HyperNodes of tier 1, below one of tier 2
    conf: dict[str, Any] | None = None  # another configuration than the profile's default

    @property
    def tasks(self) -> int:
        return sum(job.tasks for job in self.jobs)


def sized(count: int, scale: Fraction) -> int:
    """`count` at that scale, rounded down, and never nothing."""
    return max(1, int(count * scale))


def node_names(count: int) -> tuple[str, ...]:
    return tuple(f"n{index:05d}" for index in range(count))


def pending_job(
    index: int, queue: str, tasks: int = GANG, prefix: str = "j", priority: int = 50, gpus: int = 1
) -> Job:
    created = FIRST_PENDING + index
    return Job(f"{prefix}{index:05d}", queue, tasks, tasks, created, priority, gpus)


def running_job(index: int, queue: str, placed: tuple[str, ...], minimum: int) -> Job:
    return Job(f"low{index:05d}", queue, len(placed), minimum, FIRST_CREATED + index, placed=placed)


def gangs_for_every_node(nodes: int) -> Shape:
    """As many gangs of 8 one-GPU tasks as there are nodes, in four queues: everything fits."""
    jobs = tuple(pending_job(index, FOUR_QUEUES[index % 4]) for index in range(nodes))
    return Shape(node_names(nodes), FOUR_QUEUES, jobs)


def shape_a(scale: Fraction) -> Shape:
    """1,000 nodes, 1,000 gangs of 8."""
    return gangs_for_every_node(sized(1000, scale))


def shape_b(scale: Fraction) -> Shape:
    """5,000 nodes, 5,000 gangs of 8."""
    return gangs_for_every_node(sized(5000, scale))


def shape_c(scale: Fraction) -> Shape:
    """5,000 nodes, one gang of 10,000."""
    return Shape(node_names(sized(5000, scale)), ("q0",), (pending_job(0, "q0", sized(10000, scale)),))


def shape_full(scale: Fraction) -> Shape:
    """1,000 full nodes, 1,000 gangs of 8 that cannot be placed: what a backlog costs."""
    nodes = node_names(sized(1000, scale))
    running = tuple(running_job(index, "qa", (node,) * GANG, GANG) for index, node in enumerate(nodes))
    return Shape(nodes, ("qa",), running + tuple(pending_job(index, "qa") for index in range(len(nodes))))


def full_nodes(nodes: tuple[str, ...], minimum: int) -> tuple[Job, ...]:
    """Every node filled by one job of 8 tasks."""
    return tuple(running_job(index, "qa", (node,) * GANG, minimum) for index, node in enumerate(nodes))


def starving_queue(scale: Fraction) -> tuple[Job, ...]:
    return tuple(pending_job(i, "qb", prefix="starve") for i in range(sized(200, scale)))


def reclaiming(scale: Fraction, minimum: int) -> Shape:
    nodes = node_names(sized(1000, scale))
    jobs = full_nodes(nodes, minimum) + starving_queue(scale)
    return Shape(nodes, ("qa", "qb"), jobs, WITH_EVICTION)


def shape_d(scale: Fraction) -> Shape:
    """1,000 nodes full of elastic jobs of one queue, 200 gangs of 8 of another: reclaim."""
    return reclaiming(scale, minimum=1)


def shape_d_gang(scale: Fraction) -> Shape:
    """As d, but those that run are strict gangs."""
    return reclaiming(scale, minimum=GANG)


def shape_d_single(scale: Fraction) -> Shape:
    """As d, but eight jobs of one task run on each node."""
    nodes = node_names(sized(1000, scale))
    running = tuple(running_job(i, "qa", (nodes[i // GANG],), 1) for i in range(GANG * len(nodes)))
    return Shape(nodes, ("qa", "qb"), running + starving_queue(scale), WITH_EVICTION)


def preempting(scale: Fraction, minimum: int) -> Shape:
    nodes = node_names(sized(1000, scale))
    high = tuple(pending_job(i, "qa", prefix="high", priority=75) for i in range(sized(100, scale)))
    return Shape(nodes, ("qa",), full_nodes(nodes, minimum) + high, WITH_EVICTION)


def shape_e(scale: Fraction) -> Shape:
    """1,000 nodes full of elastic jobs, 100 gangs of 8 that matter more, in one queue: preempt."""
    return preempting(scale, minimum=1)


def shape_e_gang(scale: Fraction) -> Shape:
    """As e, but those that run are strict gangs."""
    return preempting(scale, minimum=GANG)


def shape_hypernodes(scale: Fraction) -> Shape:
    """1,000 nodes in racks of 10, one job of 100 sub-groups of 10 whole nodes, each to be in one rack."""
    racks = sized(100, scale)
    nodes = node_names(10 * racks)
    job = Job("j00000", "q0", 10 * racks, 10 * racks, FIRST_PENDING, gpus=8, sub_group=10)
    by_rack = tuple(nodes[10 * rack : 10 * rack + 10] for rack in range(racks))
    return Shape(nodes, ("q0",), (job,), racks=by_rack, conf=WITH_TOPOLOGY)


SHAPES: dict[str, Callable[[Fraction], Shape]] = {
    "a": shape_a,
    "b": shape_b,
    "c": shape_c,
    "full": shape_full,
    "d": shape_d,
    "d_gang": shape_d_gang,
    "d_single": shape_d_single,
    "e": shape_e,
    "e_gang": shape_e_gang,
    "hypernodes": shape_hypernodes,
}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quantities(requests: dict[str, int], times: int = 1) -> dict[str, str]:
    return {name: f"{amount * times}{'Mi' if name == 'memory' else ''}" for name, amount in requests.items()}


def _node(name: str) -> Object:
    room = {"cpu": "64", "memory": "262144Mi", GPU: "8", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "creationTimestamp": _time(FIRST_CREATED)},
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _priority_class(value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"priority-{value}"},
        "value": value,
    }


def _pod(job: Job, index: int, group_annotation: str, scheduler: str) -> Object:
    name = f"{job.name}-task-{index}"
    spec: Object = {
        "schedulerName": scheduler,
        "priority": job.priority,
        "priorityClassName": f"priority-{job.priority}",
        "containers": [
            {"name": "main", "image": "bench", "resources": {"requests": _quantities(job.requests)}},
        ],
    }
    if job.placed:
        spec["nodeName"] = job.placed[index]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"pod-{name}",
            "annotations": {group_annotation: job.name, "volcano.sh/task-spec": "task"},
            "creationTimestamp": _time(job.created),
            **({"labels": {SUB_GROUP_LABEL: str(index // job.sub_group)}} if job.sub_group else {}),
        },
        "spec": spec,
        "status": {"phase": "Running" if job.placed else "Pending"},
    }


def _volcano_queue(name: str) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}", "creationTimestamp": _time(FIRST_CREATED)},
        "spec": {"weight": 1, "reclaimable": True},
        "status": {"state": "Open"},
    }


def _hyper_node(name: str, tier: int, kind: str, members: Iterable[str]) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "uid": f"hypernode-{name}"},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _hyper_nodes(racks: tuple[tuple[str, ...], ...]) -> list[Object]:
    names = [f"rack{index:04d}" for index in range(len(racks))]
    found = [_hyper_node(name, 1, "Node", nodes) for name, nodes in zip(names, racks, strict=True)]
    return [*found, _hyper_node("spine", 2, "HyperNode", names)] if found else []


def _sub_groups(job: Job) -> Object:
    """Hard limits for the job and for each of its sub-groups."""
    if not job.sub_group:
        return {}
    policy = {
        "name": "group",
        "subGroupSize": job.sub_group,
        "minSubGroups": job.tasks // job.sub_group,
        "matchLabelKeys": [SUB_GROUP_LABEL],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}, "subGroupPolicy": [policy]}


def _volcano_pod_group(job: Job) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": job.name,
            "namespace": NAMESPACE,
            "uid": f"podgroup-{job.name}",
            "creationTimestamp": _time(job.created),
        },
        "spec": {
            "minMember": job.minimum,
            "queue": job.queue,
            "priorityClassName": f"priority-{job.priority}",
            "minResources": _quantities(job.requests, job.minimum),
            **_sub_groups(job),
        },
        "status": {"phase": "Running" if job.placed else "Pending"},
    }


def volcano_objects(shape: Shape) -> list[Object]:
    """The shape as Volcano's objects. Every pod is a dictionary of its own, as it would be when read from a file."""
    objects = [_node(name) for name in shape.nodes]
    objects += [_priority_class(value) for value in sorted({job.priority for job in shape.jobs})]
    objects += [_volcano_queue(name) for name in shape.queues]
    objects += _hyper_nodes(shape.racks)
    for job in shape.jobs:
        objects.append(_volcano_pod_group(job))
        objects += [_pod(job, index, "scheduling.k8s.io/group-name", "volcano") for index in range(job.tasks)]
    return objects


DIALECTS: dict[str, Callable[[Shape], list[Object]]] = {"volcano": volcano_objects}
