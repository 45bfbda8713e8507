"""Random objects from a small set of names, so that they refer to each other, replace each other and vanish again."""

from typing import Any

from hypothesis import strategies as st

from maniple.objects.meta import Object
from tests.support import group, hyper_node, make, node, pod, priority_class, queue, topology

NODES = [f"n{i}" for i in range(3)]
GROUPS = ["g0", "g1"]
QUEUES = ["default", "q1", "q2"]
PRIORITY_CLASSES = ["high", "low"]
CLAIMS = ["c0", "c1", "p0-scratch"]
VOLUMES = ["v0", "v1"]
STORAGE_CLASSES = ["fast", "slow"]
DRIVERS = ["disk.example.com", "net.example.com"]
NAMESPACES = ["default", "other", ""]
HYPER_NODES = ["h0", "h1", "h2"]
TIMES = ["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]

LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b"]), max_size=2)
AMOUNTS = st.dictionaries(
    st.sampled_from(
        ["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "example.com/rare", "requests.x"]
    ),
    st.sampled_from(["0", "1", "2", "500m", "1Gi"]),
    max_size=3,
)


def maybe(strategy: st.SearchStrategy[Any], nothing: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(nothing), strategy)


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    term: dict[str, Any] = {
        "topologyKey": draw(st.sampled_from(["zone", "kubernetes.io/hostname"])),
        "labelSelector": {"matchLabels": draw(LABELS)},
    }
    scope = draw(st.sampled_from(["own", "named", "selected"]))
    if scope == "named":
        term["namespaces"] = ["other"]
    elif scope == "selected":
        term["namespaceSelector"] = {"matchLabels": draw(LABELS)}
    if draw(st.booleans()):
        term["matchLabelKeys"] = ["app"]
    kind = draw(st.sampled_from(["podAffinity", "podAntiAffinity"]))
    if draw(st.booleans()):
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": draw(st.integers(1, 2)), "podAffinityTerm": term}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


VOLUME = st.one_of(
    st.sampled_from(CLAIMS).map(
        lambda claim: {"name": f"of-{claim}", "persistentVolumeClaim": {"claimName": claim}}
    ),
    st.just({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}),
)
SPREAD = st.sampled_from(["a", "b"]).map(
    lambda value: {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": value}},
    }
)
RESIZES: list[dict[str, Any]] = [
    {},
    {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]},
    {
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}],
        "resize": "Infeasible",
    },
    {
        "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    },
    {"initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "5"}}}]},
]
SIDECAR = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}


POD_NAMES = ["p0", "p1", "g0-worker-0", "g0-worker-1"]
PLACES = maybe(st.sampled_from([*NODES, "unknown"]), "")


@st.composite
def pods(draw: st.DrawFn, feature: str) -> Object:
    """Pods that differ in few ways, so that two of them are often alike in the rest."""
    body: dict[str, Any] = {
        "name": draw(st.sampled_from(POD_NAMES)),
        "on": draw(PLACES),
        "requests": {"cpu": "1"},
    }
    match feature:
        case "accounts":
            body |= draw(_accounted())
        case "terms":
            body["namespace"] = draw(st.sampled_from(NAMESPACES))
            body["labels"] = draw(LABELS)
            body["affinity"] = draw(maybe(affinities(), None))
            body["topologySpreadConstraints"] = draw(st.lists(SPREAD, max_size=1))
        case "volumes":
            body["namespace"] = draw(st.sampled_from(NAMESPACES))
            body["volumes"] = draw(st.lists(VOLUME, max_size=2, unique_by=_name))
        case "resizes":
            body["initContainers"] = draw(st.sampled_from([[], [SIDECAR]]))
            body["status"] = draw(st.sampled_from(RESIZES))
    return pod(**body)


@st.composite
def _accounted(draw: st.DrawFn) -> dict[str, Any]:
    gates = draw(maybe(st.sampled_from(["wait", "scheduling.volcano.sh/queue-allocation-gate"]), None))
    return {
        "requests": draw(AMOUNTS),
        "group": draw(maybe(st.sampled_from(GROUPS), "")),
        "role": draw(maybe(st.sampled_from(["worker", "master"]), "")),
        "phase": draw(st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Unknown"])),
        "namespace": draw(st.sampled_from(NAMESPACES)),
        "uid": draw(st.sampled_from(["", "", "u1", "u2"])),
        "created": draw(st.sampled_from(TIMES)),
        "deleted": draw(st.sampled_from(["", "", "2026-01-03T00:00:00Z"])),
        "status": {"nominatedNodeName": draw(st.sampled_from(["", "n0"]))},
        "schedulerName": draw(st.sampled_from(["volcano", "volcano", "other"])),
        "schedulingGates": [{"name": gates}] if gates else [],
    }


def _name(volume: dict[str, Any]) -> str:
    return str(volume["name"])


@st.composite
def nodes(draw: st.DrawFn) -> Object:
    labels = draw(LABELS) | draw(maybe(st.sampled_from([{"zone": "x"}, {"zone": "y", "rack": "1"}]), {}))
    return node(draw(st.sampled_from(NODES)), draw(AMOUNTS), labels=labels, unschedulable=draw(st.booleans()))


@st.composite
def groups(draw: st.DrawFn) -> Object:
    return group(
        draw(st.sampled_from(GROUPS)),
        draw(st.integers(0, 3)),
        queue=draw(st.sampled_from([*QUEUES, ""])),
        phase=draw(st.sampled_from(["", "Pending", "Inqueue", "Running"])),
        namespace=draw(st.sampled_from(NAMESPACES)),
        created=draw(st.sampled_from(TIMES)),
        priorityClassName=draw(st.sampled_from([*PRIORITY_CLASSES, ""])),
    )


@st.composite
def queues(draw: st.DrawFn) -> Object:
    return queue(
        draw(st.sampled_from(QUEUES)),
        weight=draw(st.integers(1, 3)),
        state=draw(st.sampled_from(["Open", "Closed", ""])),
        created=draw(st.sampled_from(TIMES)),
    )


@st.composite
def claims(draw: st.DrawFn) -> Object:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["volumeName"] = draw(st.sampled_from(VOLUMES))
    if draw(st.booleans()):
        spec["storageClassName"] = draw(st.sampled_from(STORAGE_CLASSES))
    namespace = draw(st.sampled_from(NAMESPACES))
    return make("v1", "PersistentVolumeClaim", draw(st.sampled_from(CLAIMS)), namespace=namespace, spec=spec)


@st.composite
def volumes(draw: st.DrawFn) -> Object:
    driver = draw(st.sampled_from(DRIVERS))
    source = {"csi": {"driver": driver, "volumeHandle": "h"}} if draw(st.booleans()) else {}
    return make("v1", "PersistentVolume", draw(st.sampled_from(VOLUMES)), spec=source)


@st.composite
def storage_classes(draw: st.DrawFn) -> Object:
    name = draw(st.sampled_from(STORAGE_CLASSES))
    return make("storage.k8s.io/v1", "StorageClass", name, provisioner=draw(st.sampled_from(DRIVERS)))


@st.composite
def csi_nodes(draw: st.DrawFn) -> Object:
    drivers = [
        {
            "name": name,
            "nodeID": "x",
            "allocatable": draw(st.sampled_from([None, {"count": 0}, {"count": 7}])),
        }
        for name in draw(st.lists(st.sampled_from(DRIVERS), unique=True))
    ]
    return make("storage.k8s.io/v1", "CSINode", draw(st.sampled_from(NODES)), spec={"drivers": drivers})


@st.composite
def hyper_nodes(draw: st.DrawFn) -> Object:
    members = st.one_of(
        st.sampled_from(NODES).map(lambda n: {"type": "Node", "selector": {"exactMatch": {"name": n}}}),
        st.just({"type": "Node", "selector": {"regexMatch": {"pattern": "[0-1]$"}}}),
        st.just({"type": "Node", "selector": {"labelMatch": {"matchLabels": {"zone": "x"}}}}),
        st.sampled_from(HYPER_NODES).map(
            lambda h: {"type": "HyperNode", "selector": {"exactMatch": {"name": h}}}
        ),
    )
    name = draw(st.sampled_from(HYPER_NODES))
    return hyper_node(name, draw(st.integers(1, 2)), *draw(st.lists(members, max_size=2)))


@st.composite
def workloads(draw: st.DrawFn) -> Object:
    namespace, labels = draw(st.sampled_from(NAMESPACES)), draw(LABELS)
    if draw(st.booleans()):
        return make("v1", "Service", "s", namespace=namespace, spec={"selector": labels})
    selector = {"selector": {"matchLabels": labels}}
    return make("apps/v1", "ReplicaSet", "s", namespace=namespace, spec=selector)


NAMESPACE_OBJECTS = st.builds(
    lambda name, labels: make("v1", "Namespace", name, labels=labels),
    st.sampled_from(["default", "other"]),
    LABELS,
)
PRIORITIES = st.builds(
    lambda name, value, default: priority_class(name, value, default=default),
    st.sampled_from(PRIORITY_CLASSES),
    st.integers(-1, 2),
    st.booleans(),
)
TOPOLOGIES = st.sampled_from([topology("t", "zone"), topology("t", "zone", "rack")])

# What belongs together comes together, often enough to meet; the last family is everything at once.
FAMILIES: dict[str, st.SearchStrategy[Object]] = {
    "accounts": st.one_of(pods("accounts"), nodes(), groups(), queues(), PRIORITIES),
    "terms": st.one_of(pods("terms"), pods("terms"), workloads(), NAMESPACE_OBJECTS),
    "volumes": st.one_of(pods("volumes"), claims(), volumes(), storage_classes(), csi_nodes(), nodes()),
    "resizes": st.one_of(pods("resizes"), groups()),
    "domains": st.one_of(nodes(), hyper_nodes(), TOPOLOGIES),
}
FAMILIES["everything"] = st.one_of(*FAMILIES.values())
