"""Random clusters full of ties: equal nodes, equal jobs, no times of creation, so that nothing but names can decide.

A cluster is made from its number alone. Objects are plain dictionaries, since it is their order that the tests shuffle.
"""

from random import Random
from typing import Any

Raw = dict[str, Any]

QUEUES = ("qa", "qb", "qc")
VOLCANO_API = "scheduling.volcano.sh/v1beta1"
_FIRST = ("priority", "gang", "conformance")
_PLAIN = ("drf", "predicates", "proportion", "nodeorder", "binpack")
_ALL_ACTIONS = "enqueue, allocate, backfill, reclaim, preempt"
CONFIGURATIONS: tuple[Raw, ...] = (
    {"actions": "enqueue, allocate, backfill", "second": ("overcommit", *_PLAIN)},
    {"actions": _ALL_ACTIONS, "second": _PLAIN},
    {"actions": _ALL_ACTIONS, "second": (*_PLAIN, "pdb", "task-topology")},
    {"actions": _ALL_ACTIONS, "second": ("drf", "predicates", ("capacity", "enableHierarchy"), "nodeorder")},
    {"actions": _ALL_ACTIONS, "second": (("drf", "enableHierarchy"), "predicates", "nodeorder")},
    {
        "actions": "enqueue, allocate, backfill, gangreclaim, gangpreempt",
        "second": (*_PLAIN, "network-topology-aware"),
    },
)


def configuration(number: int) -> Raw:
    """Every configuration gets its turn, in both ways of being compatible."""
    chosen = CONFIGURATIONS[number % len(CONFIGURATIONS)]
    tiers = [{"plugins": [_plugin(entry) for entry in entries]} for entries in (_FIRST, chosen["second"])]
    strict = number // len(CONFIGURATIONS) % 2 == 1
    return {"actions": chosen["actions"], "tiers": tiers, "compat": "strict" if strict else "better"}


def _plugin(entry: str | tuple[str, str]) -> Raw:
    """A plugin by its name, or with a switch that is on."""
    return {"name": entry} if isinstance(entry, str) else {"name": entry[0], entry[1]: True}


def objects(number: int) -> list[Raw]:
    random = Random(number)
    nodes = [_node(i, random) for i in range(random.randint(4, 9))]
    names = [node["metadata"]["name"] for node in nodes]
    classes = [
        {**_object("scheduling.k8s.io/v1", "PriorityClass", name), "value": value}
        for name, value in (("low", 1), ("high", 9))
    ]
    old = [one for i in range(3) for one in _old_job(f"old{i}", names[i::3], random)]
    jobs = [one for i in range(random.randint(5, 14)) for one in _job(f"j{i}", names, random)]
    return [*nodes, *classes, *_queues(random), *_hyper_nodes(names), *old, *jobs, *_budgets(random)]


def _object(api: str, kind: str, name: str, namespace: str = "", **metadata: Any) -> Raw:
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **scope, **metadata}}


def _node(number: int, random: Random) -> Raw:
    room = {"cpu": str(random.choice((4, 4, 6))), "memory": "32Gi", "pods": "20", "nvidia.com/gpu": "4"}
    labels = {"zone": f"z{number % 2}", "kubernetes.io/hostname": f"n{number}"}
    taints = [{"key": "spot", "effect": "PreferNoSchedule"}] if random.random() < 0.2 else []
    node = _object("v1", "Node", f"n{number}", labels=labels)
    return {**node, "spec": {"taints": taints}, "status": {"capacity": room, "allocatable": room}}


def _queues(random: Random) -> list[Raw]:
    """Leaves that share a parent, below a root; their place is written both as capacity and as drf read it."""
    leaves = [
        {
            **_object(VOLCANO_API, "Queue", name, annotations=_hierarchy(name, random)),
            "spec": {"weight": random.choice((1, 1, 2, 3)), "deserved": {"cpu": "8"}, "parent": "team"},
            "status": {"state": "Open"},
        }
        for name in QUEUES
    ]
    inner = [
        {**_object(VOLCANO_API, "Queue", name), "spec": spec, "status": {"state": "Open"}}
        for name, spec in (("root", {"weight": 1}), ("team", {"weight": 1, "parent": "root"}))
    ]
    return [*leaves, *inner]


def _hierarchy(name: str, random: Random) -> dict[str, str]:
    """Two queues may well name different weights for the step that they share."""
    weights = f"1/{random.choice((1, 1.7, 30))}/{random.choice((1, 1.3, 2))}"
    step = "others" if name == "qc" else "team"
    return {"volcano.sh/hierarchy": f"root/{step}/{name}", "volcano.sh/hierarchy-weights": weights}


def _hyper_nodes(names: list[str]) -> list[Raw]:
    """Two halves and the whole."""

    def member(kind: str, name: str) -> Raw:
        return {"type": kind, "selector": {"exactMatch": {"name": name}}}

    middle = (len(names) + 1) // 2
    parts = {"h0": names[:middle], "h1": names[middle:]}
    tree = [(name, 1, [member("Node", node) for node in held]) for name, held in parts.items()] + [
        ("top", 2, [member("HyperNode", name) for name in parts])
    ]
    return [
        {
            **_object("topology.volcano.sh/v1alpha1", "HyperNode", name),
            "spec": {"tier": tier, "members": members},
        }
        for name, tier, members in tree
    ]


def _old_job(name: str, nodes: list[str], random: Random) -> list[Raw]:
    """One that has filled its nodes, and can lose some tasks or only all of them."""
    spec = {"schedulerName": "volcano", "containers": [_container({"cpu": "1"})]}
    pods = [_pod(name, i, spec, nodes[i % len(nodes)]) for i in range(4 * len(nodes))]
    group = _object(VOLCANO_API, "PodGroup", name, "ml")
    minimum = random.choice((1, len(pods)))
    wanted = {"minMember": minimum, "queue": random.choice(("qa", "qa", "qb")), "priorityClassName": "low"}
    return [{**group, "spec": wanted, "status": {"phase": "Running"}}, *pods]


def _container(requests: Raw) -> Raw:
    return {"name": "main", "image": "x", "resources": {"requests": requests}}


def _job(name: str, nodes: list[str], random: Random) -> list[Raw]:
    size, runs = random.randint(1, 5), random.random() < 0.2
    spec: Raw = {"minMember": random.randint(1, size), "queue": random.choice(QUEUES)}
    spec["priorityClassName"] = random.choice(("low", "low", "high"))
    if random.random() < 0.3:
        spec["networkTopology"] = {"mode": random.choice(("hard", "soft")), "highestTierAllowed": 1}
    if random.random() < 0.5:
        spec["minResources"] = {"cpu": "1"}
    group = _object(VOLCANO_API, "PodGroup", name, "ml")
    phase = "Running" if runs else random.choice(("Pending", "Inqueue"))
    shape = _pod_spec(name, random)
    pods = [_pod(name, i, shape, random.choice(nodes) if runs else "") for i in range(size)]
    return [{**group, "spec": spec, "status": {"phase": phase}}, *pods]


def _pod_spec(job: str, random: Random) -> Raw:
    requests = random.choice(
        ({"cpu": "1"}, {"cpu": "2", "memory": "2Gi"}, {"nvidia.com/gpu": "1", "cpu": "1"}, {})
    )
    spec: Raw = {"schedulerName": "volcano", "containers": [_container(requests)]}
    kind = random.randrange(6)
    selector = {"matchLabels": {"job": job}}
    if kind == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    elif kind == 1:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        preferred = [{"weight": 5, "podAffinityTerm": term}]
        spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    elif kind == 2:
        spec["nodeSelector"] = {"zone": "z1"}
    return spec


def _pod(job: str, number: int, spec: Raw, node: str) -> Raw:
    notes = {"scheduling.k8s.io/group-name": job}
    pod = _object("v1", "Pod", f"{job}-w-{number}", "ml", labels={"job": job}, annotations=notes)
    placed = {"nodeName": node} if node else {}
    return {**pod, "spec": {**spec, **placed}, "status": {"phase": "Running" if node else "Pending"}}


def _budgets(random: Random) -> list[Raw]:
    job = f"j{random.randrange(5)}"
    budget = _object("policy/v1", "PodDisruptionBudget", "keep", "ml")
    return [
        {**budget, "spec": {"selector": {"matchLabels": {"job": job}}}, "status": {"disruptionsAllowed": 1}}
    ]
