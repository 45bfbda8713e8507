"""Clusters and cycles for the tests of gang-aware eviction."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from maniple.objects.meta import Object
from maniple.planner import Plan
from tests.actions.volcano.scenes import cycle
from tests.support import group, hyper_node, node, pod, priority_class, queue

ONE = {"cpu": "1", "memory": "1Gi"}
PRIORITY, GANG, CONFORMANCE = {"name": "priority"}, {"name": "gang"}, {"name": "conformance"}
PREDICATES, NODE_ORDER = {"name": "predicates"}, {"name": "nodeorder"}
TOPOLOGY = {"name": "network-topology-aware"}
PREEMPTING = (PRIORITY, GANG, CONFORMANCE, PREDICATES, NODE_ORDER)
RECLAIMING = (GANG, CONFORMANCE, {"name": "proportion"}, PREDICATES, NODE_ORDER)
CLASSES = (priority_class("low", 10), priority_class("middle", 50), priority_class("high", 100))
FORBIDDEN: dict[str, Any] = {"annotations": {"volcano.sh/preemptable": "false"}}
HARD: dict[str, Any] = {"mode": "hard", "highestTierAllowed": 1}


def running(job: str, count: int, on: str, first: int = 0, **fields: Any) -> list[Object]:
    numbers = range(first, first + count)
    return [pod(f"{job}-{i}", ONE, group=job, uid=f"{job}-{i}", on=on, **fields) for i in numbers]


def waiting(job: str, count: int, requests: dict[str, str] | None = None, **fields: Any) -> list[Object]:
    return [pod(f"{job}-{i}", requests or ONE, group=job, uid=f"{job}-{i}", **fields) for i in range(count)]


def run(
    *objects: Object,
    action: str,
    arguments: dict[str, Any] | None = None,
    compat: str = "better",
    plugins: Iterable[dict[str, Any]] | None = None,
    actions: str = "",
) -> Plan:
    chosen = tuple(plugins or (PREEMPTING if action == "gangpreempt" else RECLAIMING))
    return cycle(
        *objects,
        actions=actions or action,
        plugins=chosen,
        compat=compat,
        configurations=[{"name": action, "arguments": arguments or {}}],
    )


def preempt(*objects: Object, **more: Any) -> Plan:
    return run(*CLASSES, queue("default"), *objects, action="gangpreempt", **more)


def reclaim(*objects: Object, theirs: dict[str, Any] | None = None, **more: Any) -> Plan:
    return run(queue("mine"), queue("theirs", **(theirs or {})), *objects, action="gangreclaim", **more)


def topological(*objects: Object, **more: Any) -> Plan:
    return preempt(*objects, plugins=(*PREEMPTING, TOPOLOGY), **more)


def low(job: str, minimum: int, count: int, on: str, priority: str = "low", **fields: Any) -> list[Object]:
    return [
        group(job, minimum, phase="Running", priorityClassName=priority, **fields),
        *running(job, count, on),
    ]


def high(job: str, count: int, minimum: int | None = None, **fields: Any) -> list[Object]:
    needed = count if minimum is None else minimum
    return [group(job, needed, priorityClassName="high", **fields), *waiting(job, count)]


def theirs(job: str, minimum: int, count: int, on: str, **fields: Any) -> list[Object]:
    return [group(job, minimum, queue="theirs", phase="Running", **fields), *running(job, count, on)]


def mine(job: str, count: int, **fields: Any) -> list[Object]:
    return [group(job, count, queue="mine", **fields), *waiting(job, count)]


def policy(name: str, size: int, least: int, **topology: Any) -> dict[str, Any]:
    constraint = {"networkTopology": topology} if topology else {}
    selector = {"matchLabels": {"part": name}}
    return {
        "name": name,
        "subGroupSize": size,
        "minSubGroups": least,
        "matchLabelKeys": ["part", "rank"],
        "labelSelector": selector,
        **constraint,
    }


def part(job: str, name: str, rank: int, count: int, **fields: Any) -> list[Object]:
    labels = {"part": name, "rank": str(rank)}
    names_ = [f"{job}-{name}{rank}-{i}" for i in range(count)]
    return [pod(one, ONE, group=job, uid=one, labels=labels, **fields) for one in names_]


def member(name: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def racks(count: int) -> list[Object]:
    """Racks r0, r1, ... of two nodes of two cpus each."""
    objects: list[Object] = []
    for i in range(count):
        objects += [node(f"n{i}{side}", {"cpu": "2"}) for side in "ab"]
        objects.append(hyper_node(f"r{i}", 1, member(f"n{i}a"), member(f"n{i}b")))
    return objects


def filled(rack: int, job: str, priority: str = "low", minimum: int = 0) -> list[Object]:
    return [*low(job, minimum, 2, f"n{rack}a", priority), *running(job, 2, f"n{rack}b", first=2)]


def victims(plan: Plan) -> dict[str, int]:
    return dict(Counter(name.removeprefix("default/").rpartition("-")[0] for name in plan.evictions))


def evicted(plan: Plan) -> set[str]:
    return {name.removeprefix("default/") for name in plan.evictions}


def racks_of(plan: Plan) -> set[str]:
    return {name[:-1] for name in plan.pipelined.values()}
