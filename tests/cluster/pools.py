"""Objects to draw edits from: few names, a few shapes each, so that they name and replace each other and vanish.

Pools are made once; a test draws places in them, which is quick and leaves short failing examples.
"""

from itertools import product
from typing import Any

from maniple.objects.meta import Object
from tests.support import group, hyper_node, make, node, pod, priority_class, queue, topology

Shape = dict[str, Any]

EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
# No namespace and "default" are the same; a pod of that name in "other" is another pod.
PLACES = [
    ("p0", "default"),
    ("p0", ""),
    ("p0", "other"),
    ("g0-worker-0", "default"),
    ("g0-worker-1", "default"),
]
LABELS: list[dict[str, str]] = [{}, {"app": "a"}, {"app": "b", "tier": "a"}]


def pods(*shapes: Shape) -> list[Object]:
    return [
        pod(name, **{"namespace": namespace, **shape}) for (name, namespace), shape in product(PLACES, shapes)
    ]


def term(**more: Any) -> Shape:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, **more}


def required(kind: str, **more: Any) -> Shape:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(**more)]}}}


def preferred(kind: str, weight: int) -> Shape:
    weighted = {"weight": weight, "podAffinityTerm": term()}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}


ACCOUNTED = pods(
    {},
    {"requests": {"cpu": "1"}, "group": "g0"},
    {"requests": {"cpu": "1"}, "group": "g0", "uid": "u1", "created": EARLIER},
    {"requests": {"cpu": "2", "memory": "1Gi"}, "group": "g1", "role": "worker", "uid": "u2"},
    {"requests": {"cpu": "1"}, "group": "g0", "role": "master", "on": "n0"},
    {"requests": {"nvidia.com/gpu": "1"}, "group": "g0", "on": "n1", "phase": "Pending"},
    {"requests": {"example.com/rare": "1", "requests.x": "1"}, "on": "n0"},
    {"requests": {"cpu": "1"}, "group": "g0", "on": "unknown"},
    {"requests": {"cpu": "1"}, "group": "g0", "on": "n0", "deleted": LATER},
    {"requests": {"cpu": "1"}, "group": "g0", "on": "n0", "phase": "Succeeded"},
    {"requests": {"cpu": "1"}, "group": "g1", "on": "n1", "phase": "Failed"},
    {"requests": {"cpu": "1"}, "group": "g1", "on": "n1", "phase": "Unknown"},
    {"group": "g0"},
    {"group": "g0", "schedulingGates": [{"name": "wait"}]},
    {"requests": {"cpu": "1"}, "group": "g0", "schedulingGates": [{"name": "wait"}]},
    {"requests": {"cpu": "1"}, "group": "g0", "status": {"nominatedNodeName": "n0"}},
    {"requests": {"cpu": "1"}, "schedulerName": "other"},
    {"requests": {"cpu": "1"}, "schedulerName": "other", "on": "n0"},
    {"requests": {"memory": "8Ei", "cpu": "9000P"}, "group": "g0", "on": "n0"},
)

GROUPS = [
    group(
        name, minimum, namespace=namespace, queue=of, phase=phase, created=created, priorityClassName=priority
    )
    for name, namespace in (("g0", "default"), ("g0", ""), ("g0", "other"), ("g1", "default"))
    for minimum, of, phase, created, priority in (
        (1, "default", "Inqueue", "", ""),
        (2, "q1", "Running", EARLIER, "high"),
        (0, "", "", LATER, "low"),
    )
]
QUEUES = [
    queue(name, weight=weight, state=state, created=created)
    for name in ("default", "q1")
    for weight, state, created in ((1, "Open", ""), (3, "Closed", EARLIER))
]
PRIORITIES = [
    priority_class(name, value, default=default)
    for name in ("high", "low")
    for value, default in ((1, False), (2, True), (-1, True))
]
NODES = [
    node(name, amounts, labels=labels, unschedulable=unschedulable)
    for name in ("n0", "n1", "n2")
    for amounts, labels, unschedulable in (
        ({}, {}, False),
        ({"cpu": "4", "example.com/rare": "2"}, {"zone": "x"}, False),
        ({"nvidia.com/gpu": "8"}, {"zone": "y", "rack": "1"}, True),
    )
]

OWNERS = pods(
    *({"labels": labels} for labels in LABELS),
    required("podAffinity"),
    {**required("podAffinity", matchLabelKeys=["tier"]), "labels": LABELS[2]},
    required("podAntiAffinity", namespaces=["other"]),
    {**preferred("podAffinity", 1), "labels": LABELS[1]},
    preferred("podAntiAffinity", 2),
    {
        "topologySpreadConstraints": [
            {**term(), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
        ]
    },
)
WORKLOADS = [
    *(
        make("v1", "Service", "s", namespace=namespace, spec={"selector": labels})
        for namespace, labels in product(("", "default", "other"), LABELS)
    ),
    *(
        make("apps/v1", "ReplicaSet", "s", namespace=namespace, spec={"selector": {"matchLabels": labels}})
        for namespace, labels in product(("default", "other"), LABELS)
    ),
]
NAMESPACES = [
    make("v1", "Namespace", name, labels=labels) for name, labels in product(("default", "other"), LABELS)
]
ACROSS_NAMESPACES = pods(
    {},
    required("podAffinity", labelSelector={}, namespaceSelector={"matchLabels": {"app": "a"}}),
)

MOUNTING = pods(
    *(
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], "on": on}
        for on in ("", "n0")
    ),
    {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
)
CLAIMS = [
    make("v1", "PersistentVolumeClaim", name, namespace=namespace, spec=spec)
    for name, namespace in (("c", "default"), ("c", "other"), ("p0-scratch", "default"))
    for spec in ({}, {"volumeName": "v"}, {"storageClassName": "fast"})
]
VOLUMES = [
    make("v1", "PersistentVolume", "v", spec=spec)
    for spec in ({}, {"csi": {"driver": "disk.example.com", "volumeHandle": "h"}})
]
STORAGE_CLASSES = [
    make("storage.k8s.io/v1", "StorageClass", "fast", provisioner=driver)
    for driver in ("disk.example.com", "net.example.com")
]
CSI_NODES = [
    make("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})
    for name in ("n0", "n1")
    for drivers in (
        [],
        [{"name": "disk.example.com", "nodeID": "x", "allocatable": {"count": 7}}],
        [{"name": "net.example.com", "nodeID": "x"}],
    )
]

STATUS = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
REFUSED = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
SIDECAR = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
RESIZED = pods(
    *(
        {"requests": {"cpu": "8"}, "initContainers": [SIDECAR], "on": "n0", "status": status}
        for status in (
            {},
            {"containerStatuses": [STATUS]},
            {"containerStatuses": [STATUS], "resize": "Infeasible"},
            {"containerStatuses": [STATUS], "conditions": [REFUSED]},
            {"initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "5"}}}]},
            {"initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "6"}}}]},
        )
    )
)


def _members(*selectors: Shape) -> list[Shape]:
    return [
        {"type": "HyperNode" if "child" in s else "Node", "selector": s.get("child", s)} for s in selectors
    ]


def _exact(name: str) -> Shape:
    return {"exactMatch": {"name": name}}


HYPER_NODES = [
    hyper_node(name, tier, *_members(*selectors))
    for name, tier in (("h0", 1), ("h1", 2), ("h2", 2))
    for selectors in (
        (),
        (_exact("n0"), _exact("n2")),
        ({"regexMatch": {"pattern": "[0-1]$"}},),
        ({"labelMatch": {"matchLabels": {"zone": "x"}}}, {"child": _exact("h0")}),
        ({"child": _exact("h1")},),
    )
]
TOPOLOGIES = [topology("t", "zone"), topology("t", "zone", "rack")]

# What belongs together comes together, often enough to meet; the last family is everything at once.
FAMILIES: dict[str, list[list[Object]]] = {
    "accounts": [ACCOUNTED, ACCOUNTED, NODES, GROUPS, QUEUES, PRIORITIES],
    "priorities": [GROUPS, PRIORITIES],
    "terms": [OWNERS, OWNERS, WORKLOADS],
    "namespaces": [ACROSS_NAMESPACES, NAMESPACES],
    "volumes": [MOUNTING, CLAIMS, VOLUMES, STORAGE_CLASSES],
    "attachments": [NODES, CSI_NODES],
    "resizes": [RESIZED],
    "domains": [NODES, HYPER_NODES, TOPOLOGIES],
}
FAMILIES["everything"] = [pool for family in FAMILIES.values() for pool in family]
