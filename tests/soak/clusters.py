"""Random clusters, each from its profile and its number alone: nodes, queues, and jobs that run, half run or
wait.

A cluster has some of the features below, not all, so that what goes wrong can be told apart. Everything that
runs was placed by the oracle's rules, so that the cluster is a legal one to begin with.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.soak import shapes
from tests.soak.amounts import Raw
from tests.soak.jobs import Jobs
from tests.soak.shapes import RACK, ZONE

PROFILES = ("maniple", "kai", "volcano")
FEATURES = {
    "fractions": 0.25, "mig": 0.12, "devices": 0.15, "volumes": 0.2, "ports": 0.2, "spread": 0.2, "affinity": 0.25,
    "topology": 0.25, "budgets": 0.25, "roles": 0.25, "sub-groups": 0.25, "elastic": 0.5, "leaving": 0.3,
    "nominated": 0.15, "firm": 0.3, "critical": 0.1, "never": 0.15, "taints": 0.3, "selectors": 0.3, "limits": 0.4,
    "guarantees": 0.2, "tree": 0.5, "runtimes": 0.1, "closed": 0.05, "others": 0.15, "small": 0.15, "mixed": 0.3,
    "limits-only": 0.06, "not-ready": 0.06, "makers": 0.08,
}  # fmt: skip
ACTS = 1
CLASSES = {"low": 10, "mid": 50, "high": 75, "never": 75, "build": 100, "urgent": 125}


@dataclass
class Scenario:
    """What is followed: a cluster under a profile with a configuration."""

    profile: str
    objects: list[Raw]
    conf: Any = None
    seed: int = 0
    acts: int = 0  # how often, once all is at rest, a job that runs is over
    features: frozenset[str] = field(default_factory=frozenset)


def generate(profile: str, seed: int) -> Scenario:
    random = Random(f"{profile} {seed}")
    features = frozenset(name for name, rate in FEATURES.items() if random.random() < rate)
    if profile == "volcano":
        features -= {"fractions", "runtimes"}
    if profile == "kai":
        features -= {"guarantees", "closed"}
    nodes = _nodes(random, features)
    conf = _configuration(random, features) if profile == "volcano" else None
    queues = _queues(random, profile, features, nodes)
    objects = [*nodes, *queues, *_classes(features), *_domains(profile, features, nodes)]
    if "volumes" in features:
        objects += _storage(random, nodes)
    if "devices" in features:
        objects += _devices(random, nodes)
    objects = Jobs(random, profile, features, objects).made()
    return Scenario(profile, objects, conf, seed, ACTS, features)


def _classes(features: frozenset[str]) -> list[Raw]:
    found = [shapes.priority_class(name, value) for name, value in CLASSES.items() if name != "never"]
    if "never" in features:
        found.append(shapes.priority_class("never", CLASSES["never"], "Never"))
    return found


# -- nodes ------------------------------------------------------------------------------------------------------------


def _nodes(random: Random, features: frozenset[str]) -> list[Raw]:
    count, gpus = random.choice((2, 2, 3, 3, 4, 5, 6, 8)), random.choice((2, 2, 4, 4, 8))
    racks = random.randint(1, 4)
    return [_node(random, features, number, gpus, racks) for number in range(count)]


def _node(random: Random, features: frozenset[str], number: int, gpus: int, racks: int) -> Raw:
    rack = number % racks
    found = {ZONE: f"z{rack // 2}", RACK: f"r{rack}", "disk": random.choice(("ssd", "hdd"))}
    room = {"cpu": random.choice(("8", "16", "32")), "memory": random.choice(("32Gi", "64Gi")), "pods": "110"}
    if "small" in features and random.random() < 0.4:
        room["pods"] = random.choice(("3", "5"))
    if random.random() < 0.75:
        room["nvidia.com/gpu"] = str(random.choice((gpus, gpus, 2)) if "mixed" in features else gpus)
        found |= {"nvidia.com/gpu.memory": "40000", "nvidia.com/gpu.count": room["nvidia.com/gpu"]}
    elif "mig" in features:
        room["nvidia.com/mig-1g.5gb"] = random.choice(("4", "7"))
        found |= {"nvidia.com/mig.strategy": "mixed", "node-role.kubernetes.io/mig-enabled": "true"}
    taints = []
    if "taints" in features and random.random() < 0.35:
        effect = random.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"))
        taints.append({"key": "dedicated", "value": "ml", "effect": effect})
    closed = "taints" in features and random.random() < 0.08
    if "makers" in features and "nvidia.com/gpu" in room and random.random() < 0.5:
        room["amd.com/gpu"] = room.pop("nvidia.com/gpu")
    made = shapes.node(f"n{number}", room, found, taints, closed=closed)
    if "not-ready" in features and random.random() < 0.3:
        made["status"]["conditions"][0]["status"] = "False"
    return made


def _domains(profile: str, features: frozenset[str], nodes: list[Raw]) -> list[Raw]:
    if "topology" not in features:
        return []
    made: list[Raw] = [] if profile == "volcano" else [shapes.topology("network", [ZONE, RACK])]
    if profile == "kai":
        return made
    zones: dict[str, dict[str, list[str]]] = {}
    for one in nodes:
        has = one["metadata"]["labels"]
        zones.setdefault(has[ZONE], {}).setdefault(has[RACK], []).append(one["metadata"]["name"])
    for zone, racks in zones.items():
        made += [shapes.hyper_node(f"s-{rack}", 1, "Node", names) for rack, names in racks.items()]
        made.append(shapes.hyper_node(f"s-{zone}", 2, "HyperNode", [f"s-{rack}" for rack in racks]))
    return made


def _storage(random: Random, nodes: list[Raw]) -> list[Raw]:
    zones = sorted({one["metadata"]["labels"][ZONE] for one in nodes})
    allowed = zones[:1] if random.random() < 0.2 else None
    made = [
        shapes.storage_class("made", shapes.STORAGE_DRIVER, allowed),
        shapes.storage_class("local", "kubernetes.io/no-provisioner"),
    ]
    for one in nodes:
        name = one["metadata"]["name"]
        if random.random() < 0.5:
            made.append(shapes.volume(f"pv-{name}", "local", "100Gi", (shapes.HOST, name)))
        if random.random() < 0.8:
            made.append(shapes.csi_node(name, random.choice((1, 2, 16))))
    return made


def _devices(random: Random, nodes: list[Raw]) -> list[Raw]:
    """Devices of claims are on nodes of their own kind: no device is offered twice."""
    made = [shapes.device_class("gpu")]
    bare = [
        one for one in nodes if not {"nvidia.com/gpu", "amd.com/gpu"} & one["status"]["allocatable"].keys()
    ]
    return made + [shapes.resource_slice(one["metadata"]["name"], random.choice((2, 4))) for one in bare]


# -- queues -----------------------------------------------------------------------------------------------------------


def _queues(random: Random, profile: str, features: frozenset[str], nodes: list[Raw]) -> list[Raw]:
    gpus = sum(int(one["status"]["allocatable"].get("nvidia.com/gpu", 0)) for one in nodes)
    leaves = random.randint(1, 4)
    tree = "tree" in features
    parents = [f"d{number}" for number in range(random.randint(1, 2))] if tree else []
    made = [_queue(random, profile, features, name, "", max(gpus, 1), top=True) for name in parents]
    for number in range(leaves):
        parent = random.choice(parents) if parents else ""
        share = max(gpus // leaves, 1)
        made.append(_queue(random, profile, features, f"q{number}", parent, share))
    if profile == "volcano":
        made.append(shapes.queue("volcano", "root", {"weight": 1, "reclaimable": False}))
    return made


def _queue(
    random: Random,
    profile: str,
    features: frozenset[str],
    name: str,
    parent: str,
    share: int,
    *,
    top: bool = False,
) -> Raw:
    system = profile if profile != "maniple" else random.choice(("volcano", "kai"))
    quota = share if top else random.choice((0, share // 2, share, share))
    limit = quota + random.choice((1, 2, 4)) if "limits" in features and random.random() < 0.5 else None
    if system == "kai":
        return shapes.queue("kai", name, _kai_queue(random, features, parent, quota, limit, top=top))
    spec: Raw = {"weight": random.choice((1, 1, 2, 4))}
    if parent:
        spec["parent"] = parent
    elif profile == "volcano":
        spec["parent"] = "root"
    if random.random() < 0.7:
        spec["deserved"] = {"nvidia.com/gpu": str(quota), "cpu": str(4 * quota)}
    if limit is not None:
        spec["capability"] = {"nvidia.com/gpu": str(limit)}
        if random.random() < 0.3:
            spec["capability"]["cpu"] = str(4 * limit)
    if "guarantees" in features and not top and random.random() < 0.4:
        spec["guarantee"] = {"resource": {"nvidia.com/gpu": str(min(2, quota))}}
    if random.random() < 0.12:
        spec["reclaimable"] = False
    if random.random() < 0.2:
        spec["priority"] = random.choice((1, 5))
    closed = "closed" in features and not top and random.random() < 0.4
    return shapes.queue("volcano", name, spec, closed=closed)


def _kai_queue(
    random: Random, features: frozenset[str], parent: str, quota: int, limit: int | None, *, top: bool
) -> Raw:
    open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {
        "quota": quota,
        "limit": -1 if limit is None else limit,
        "overQuotaWeight": random.choice((0, 1, 1, 3)) if not top else 1,
    }
    cpu = open_
    if "limits" in features and random.random() < 0.3 and not top:
        cpu = {"quota": 4000 * max(quota, 1), "limit": 8000 * max(quota, 1), "overQuotaWeight": 1}
    spec: Raw = {"resources": {"gpu": gpu, "cpu": cpu, "memory": open_}}
    if parent:
        spec["parentQueue"] = parent
    if random.random() < 0.3:
        spec["priority"] = random.choice((50, 100, 200))
    if "runtimes" in features and random.random() < 0.5:
        spec[random.choice(("preemptMinRuntime", "reclaimMinRuntime"))] = "90s"
    return spec


# -- configurations ---------------------------------------------------------------------------------------------------

_FIRST = ("priority", "gang", "conformance")
_PREDICATES = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": True}}
_LAST = (_PREDICATES, "nodeorder", "binpack")
_EVICTING = "enqueue, allocate, backfill, reclaim, preempt"
CAPACITY_TREE = {"name": "capacity", "enableHierarchy": True}


def _configuration(random: Random, features: frozenset[str]) -> Raw:
    tree = "tree" in features
    share: Any = CAPACITY_TREE if tree else random.choice(("proportion", "capacity"))
    second: list[Any] = [
        *(["overcommit"] if random.random() < 0.5 else []),
        *(["drf"] if random.random() < 0.5 else []),
    ]
    second += [share, *_LAST]
    actions = random.choice((_EVICTING, _EVICTING, "enqueue, allocate, backfill, preempt, reclaim"))
    if "topology" in features:
        second.append("network-topology-aware")
        if random.random() < 0.5:
            actions = "enqueue, allocate, backfill, gangreclaim, gangpreempt"
    # In the first tier, which decides alone if it finds anything: behind it, budgets would not be asked about.
    first = [*_FIRST, *(["pdb"] if "budgets" in features else [])]
    tiers = [[{"name": one} if isinstance(one, str) else one for one in tier] for tier in (first, second)]
    return {"actions": actions, "tiers": [{"plugins": tier} for tier in tiers]}
