"""The clusters that `maniple bench` generates, each under the name of its benchmark shape.

A shape is written once, as nodes, queues and jobs, and then converted to the objects of a dialect
(`shape_objects`). Times and names are fixed, so a shape at a given scale is always the same cluster. To add a
shape, write its function and name it in SHAPES. Those of mixed work are in `mixed_shapes`.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from maniple.cli.mixed_shapes import MIXED_SHAPES
from maniple.cli.shape_model import FIRST_CREATED, FIRST_PENDING, UNLIMITED, Job, Object, Shape, Share
from maniple.cli.shape_objects import kai_objects, maniple_objects, volcano_objects

GANG = 8
WITH_EVICTION = ("enqueue", "allocate", "backfill", "reclaim", "preempt")
FOUR_QUEUES = ("q0", "q1", "q2", "q3")
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


def sized(count: int, scale: Fraction) -> int:
    """`count` at that scale, rounded down, at least 1."""
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
    """1,000 full nodes, 1,000 gangs of 8 that cannot be placed: the cost of a backlog."""
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
    """As d, but the running jobs are strict gangs."""
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
    """1,000 nodes full of elastic jobs, 100 gangs of 8 with a higher priority, in one queue: preempt."""
    return preempting(scale, minimum=1)


def shape_e_gang(scale: Fraction) -> Shape:
    """As e, but the running jobs are strict gangs."""
    return preempting(scale, minimum=GANG)


def shape_hypernodes(scale: Fraction) -> Shape:
    """1,000 nodes in racks of 10, one job of 100 sub-groups of 10 whole nodes, each to be in one rack."""
    racks = sized(100, scale)
    nodes = node_names(10 * racks)
    job = Job("j00000", "q0", 10 * racks, 10 * racks, FIRST_PENDING, gpus=8, sub_group=10)
    by_rack = tuple(nodes[10 * rack : 10 * rack + 10] for rack in range(racks))
    return Shape(nodes, ("q0",), (job,), racks=by_rack, conf=WITH_TOPOLOGY)


def shape_d_quota(scale: Fraction) -> Shape:
    """As d, with half of everything as the quota of each queue."""
    shape = shape_d(scale)
    nodes = len(shape.nodes)
    return replace(shape, shares=dict.fromkeys(shape.queues, Share(4 * nodes, 32 * nodes, 131072 * nodes)))


def wide_gangs(scale: Fraction) -> tuple[Job, ...]:
    return tuple(pending_job(i, "qa", 2, prefix="wide", gpus=8) for i in range(sized(100, scale)))


def shape_f(scale: Fraction) -> Shape:
    """1,000 nodes half used by one job each, 100 gangs of two tasks that need a whole node: consolidation."""
    nodes = node_names(sized(1000, scale))
    running = tuple(running_job(index, "qa", (node,) * 4, 4) for index, node in enumerate(nodes))
    return Shape(nodes, ("qa",), running + wide_gangs(scale), WITH_EVICTION)


def shape_f_scatter(scale: Fraction) -> Shape:
    """As f, but four jobs of one task on each node, created in no particular order."""
    nodes = node_names(sized(1000, scale))
    places = list(nodes) * 4
    Random(7).shuffle(places)
    running = tuple(running_job(index, "qa", (node,), 1) for index, node in enumerate(places))
    return Shape(nodes, ("qa",), running + wide_gangs(scale), WITH_EVICTION)


def single_jobs(nodes: tuple[str, ...]) -> tuple[Job, ...]:
    """Every node full of jobs of one task; jobs created one after the other are on different nodes."""
    count = GANG * len(nodes)
    return tuple(running_job(i, "queue-0", (nodes[i % len(nodes)],), 1) for i in range(count))


def shape_reclaim_large(scale: Fraction) -> Shape:
    """1,000 nodes full of jobs of one task without any quota, one gang of 100 whole nodes that has one."""
    nodes = node_names(sized(1000, scale))
    large = pending_job(0, "queue-1", max(1, len(nodes) // 10), prefix="large", gpus=8)
    shares = {
        "queue-0": Share(0, UNLIMITED, UNLIMITED, weight=0),
        "queue-1": Share(GANG * len(nodes), UNLIMITED, UNLIMITED, weight=0),
    }
    return Shape(nodes, tuple(shares), (*single_jobs(nodes), large), WITH_EVICTION, shares=shares)


def shape_hopeless(scale: Fraction) -> Shape:
    """500 nodes full of jobs of one task, a gang of 10 whole nodes, and a quota that is one GPU too small."""
    nodes = node_names(sized(500, scale))
    gang = pending_job(0, "queue-1", 10, prefix="hopeless", gpus=8)
    shares = {
        "queue-0": Share(max(0, GANG * (len(nodes) - 10) + 1), UNLIMITED, UNLIMITED, weight=0),
        "queue-1": Share(UNLIMITED, UNLIMITED, UNLIMITED),
    }
    return Shape(nodes, tuple(shares), (*single_jobs(nodes), gang), WITH_EVICTION, shares=shares)


SHAPES: dict[str, Callable[[Fraction], Shape]] = {
    "a": shape_a,
    "b": shape_b,
    "c": shape_c,
    "full": shape_full,
    "d": shape_d,
    "d_gang": shape_d_gang,
    "d_single": shape_d_single,
    "d_quota": shape_d_quota,
    "e": shape_e,
    "e_gang": shape_e_gang,
    "f": shape_f,
    "f_scatter": shape_f_scatter,
    "reclaim_large": shape_reclaim_large,
    "hopeless": shape_hopeless,
    "hypernodes": shape_hypernodes,
    **MIXED_SHAPES,
}

# To add a dialect, write its objects and name them here.
DIALECTS: dict[str, Callable[[Shape], list[Object]]] = {
    "volcano": volcano_objects,
    "kai": kai_objects,
    "maniple": maniple_objects,
}
