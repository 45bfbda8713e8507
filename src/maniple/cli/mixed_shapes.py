"""The benchmark clusters of mixed work: nodes of four kinds, gangs with different requests or constraints.

A columnar engine is best at gangs of equal tasks without constraints; these are the others. Named in
`shapes.SHAPES`. Random numbers come from a fixed seed, so a shape at a given scale is always the same
cluster.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

from maniple.cli.shape_model import FIRST_CREATED, FIRST_PENDING, GPU, UNLIMITED, Job, NodeKind, Shape, Share

Asks = Mapping[str, str]  # what one task requests, as Kubernetes writes it
Wishes = tuple[tuple[Asks, ...], Mapping[str, Any]]  # what the tasks of a gang request, and their constraints
Gang = Callable[[Random, int], Wishes]  # by its number

GANG = 8
QUEUES = ("q0", "q1", "q2", "q3")
KINDS = (
    NodeKind(64, 262144, 8, "a100"),
    NodeKind(96, 524288, 8, "h100"),
    NodeKind(32, 131072, 4, "t4"),
    NodeKind(128, 262144, 0, "cpu"),
)
ZONES, RACK = 10, 20  # the number of zones, and the nodes in a rack
USUAL: Asks = {"cpu": "4", "memory": "16Gi", GPU: "1"}


def _sized(count: int, scale: Fraction) -> int:
    return max(1, int(count * scale))


def _nodes(count: int, rng: Random) -> dict[str, NodeKind]:
    return {f"n{index:05d}": rng.choice(KINDS) for index in range(count)}


def _labels(index: int, name: str, kind: NodeKind) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"z{index % ZONES}",
        "rack": f"r{index // RACK}",
        "gpu": kind.model,
    }


def _waiting(count: int, rng: Random, gang: Gang, queues: tuple[str, ...] = QUEUES) -> tuple[Job, ...]:
    jobs = []
    for index in range(count):
        asks, constraints = gang(rng, index)
        name, queue, created = f"j{index:05d}", queues[index % len(queues)], FIRST_PENDING + index
        jobs.append(
            Job(
                name,
                queue,
                GANG,
                GANG,
                created,
                asks=asks,
                constraints=constraints,
                admitted=True,
            )
        )
    return tuple(jobs)


def _shape(nodes: Mapping[str, NodeKind], jobs: tuple[Job, ...], queues: tuple[str, ...] = QUEUES) -> Shape:
    labels = {name: _labels(index, name, nodes[name]) for index, name in enumerate(nodes)}
    shares = dict.fromkeys(queues, Share(UNLIMITED, UNLIMITED, UNLIMITED))
    return Shape(tuple(nodes), queues, jobs, shares=shares, kinds=nodes, labels=labels)


def mixed(count: int, gang: Gang) -> Callable[[Fraction], Shape]:
    """That many nodes of four kinds, and that many gangs."""

    def shape(scale: Fraction) -> Shape:
        rng, size = Random(5), _sized(count, scale)
        nodes = _nodes(size, rng)
        return _shape(nodes, _waiting(size, rng, gang))

    return shape


def backlog(scale: Fraction) -> Shape:
    """1,000 nodes full of the jobs of a queue, 5,000 different gangs of the same queue that have to wait."""
    rng, queues = Random(5), ("q0",)
    nodes = _nodes(_sized(1000, scale), rng)
    running = tuple(
        Job(
            f"low{index:05d}",
            queues[0],
            tasks=1,
            minimum=1,
            created=FIRST_CREATED + index,
            placed=(name,),
            asks=(kind.allocatable,),
        )
        for index, (name, kind) in enumerate(nodes.items())
    )
    waiting = _waiting(_sized(5000, scale), rng, own_request, queues)
    return _shape(nodes, running + waiting, queues)


# -- gangs -----------------------------------------------------------------------------------------------------------


def _some(rng: Random) -> Asks:
    """With one GPU."""
    return {"cpu": f"{rng.randint(500, 6000)}m", "memory": f"{rng.randint(1, 32000)}Mi", GPU: "1"}


def own_request(rng: Random, _: int) -> Wishes:
    """Every gang requests something else; one in three requests no GPUs."""
    if rng.random() < 0.7:
        asks = _some(rng)
    else:
        asks = {"cpu": f"{rng.randint(500, 16000)}m", "memory": f"{rng.randint(1, 64000)}Mi"}
    return (asks,) * GANG, {}


def own_request_each(rng: Random, _: int) -> Wishes:
    """Every pod requests something else."""
    return tuple(_some(rng) for _ in range(GANG)), {}


def selecting(rng: Random, index: int) -> Wishes:
    """A kind of GPU and a toleration."""
    constraints = {
        "nodeSelector": {"gpu": rng.choice(["a100", "h100", "t4"])},
        "tolerations": [{"key": f"t{index % 50}", "operator": "Exists"}],
    }
    asks = {"cpu": f"{rng.choice([1, 2, 3, 4])}", "memory": f"{rng.choice([4, 8, 16])}Gi", GPU: "1"}
    return (asks,) * GANG, constraints


def two_roles(_: Random, index: int) -> Wishes:
    """A master without GPUs, and seven workers."""
    return ({"cpu": f"{1 + index % 4}", "memory": "4Gi"}, *(USUAL,) * (GANG - 1)), {}


def _own_pods(index: int, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"job": f"j{index:05d}"}}, **more}


def apart(_: Random, index: int) -> Wishes:
    """Required: every pod on a node of its own."""
    term = _own_pods(index, topologyKey="kubernetes.io/hostname")
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return (USUAL,) * GANG, {"affinity": {"podAntiAffinity": rule}}


def together(_: Random, index: int) -> Wishes:
    """Required: all pods in one rack."""
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [_own_pods(index, topologyKey="rack")]}
    return (USUAL,) * GANG, {"affinity": {"podAffinity": rule}}


def rather_together(_: Random, index: int) -> Wishes:
    """Preferred: all pods in one rack."""
    term = {"weight": 100, "podAffinityTerm": _own_pods(index, topologyKey="rack")}
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return (USUAL,) * GANG, {"affinity": {"podAffinity": rule}}


def spread(_: Random, index: int) -> Wishes:
    """Required: evenly over the zones."""
    rule = _own_pods(
        index, maxSkew=1, topologyKey="topology.kubernetes.io/zone", whenUnsatisfiable="DoNotSchedule"
    )
    return (USUAL,) * GANG, {"topologySpreadConstraints": [rule]}


MIXED_SHAPES: dict[str, Callable[[Fraction], Shape]] = {
    "classes": mixed(1000, own_request),
    "tasks": mixed(1000, own_request_each),
    "selector": mixed(1000, selecting),
    "roles": mixed(1000, two_roles),
    "antiaff": mixed(1000, apart),
    "aff": mixed(1000, together),
    "prefaff": mixed(1000, rather_together),
    "spread": mixed(1000, spread),
    "differ": mixed(5000, own_request),
    "backlog": backlog,
}
