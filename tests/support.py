"""Short ways to write objects and to open a session on them, for every test that needs a cluster.

Objects are written as Kubernetes writes them and go through `load`, so that a test cannot build what could
never come in.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_volcano
from maniple.framework.session import Session
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.profiles.rules import VOLCANO_RULES
from maniple.profiles.volcano import VolcanoDialect

GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
Raw = dict[str, Any]


def make(api: str, kind: str, name: str, *, namespace: str = "", **fields: Any) -> Object:
    """Any object. `labels`, `annotations`, `uid`, `created`, `deleted` go into the metadata, the rest beside it."""
    metadata: Raw = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    for field, written in (
        ("labels", "labels"),
        ("annotations", "annotations"),
        ("uid", "uid"),
        ("created", "creationTimestamp"),
        ("deleted", "deletionTimestamp"),
    ):
        value = fields.pop(field, None)
        if value:
            metadata[written] = value
    return load({"apiVersion": api, "kind": kind, "metadata": metadata, **fields})


def node(
    name: str,
    allocatable: Mapping[str, Any] | None = None,
    *,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
    images: Iterable[Mapping[str, Any]] = (),
    **metadata: Any,
) -> Object:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", **(allocatable or {})}
    spec: Raw = {"taints": list(taints), "unschedulable": unschedulable}
    status: Raw = {"allocatable": amounts, "capacity": amounts, "images": list(images)}
    return make("v1", "Node", name, spec=spec, status=status, **metadata)


def pod(
    name: str,
    requests: Mapping[str, Any] | None = None,
    *,
    group: str = "",
    role: str = "",
    on: str = "",
    phase: str = "",
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    uid: str = "",
    created: str = "",
    deleted: str = "",
    **spec: Any,
) -> Object:
    """A pod with one container; `on` names its node, and further arguments are fields of its spec."""
    notes = {
        **({GROUP_NAME: group} if group else {}),
        **({ROLE: role} if role else {}),
        **(annotations or {}),
    }
    container = {"name": "main", "image": "work:1", "resources": {"requests": dict(requests or {})}}
    body: Raw = {"schedulerName": "volcano", "containers": [container], **spec}
    if on:
        body["nodeName"] = on
    return make(
        "v1",
        "Pod",
        name,
        namespace=namespace,
        spec=body,
        status={"phase": phase or ("Running" if on else "Pending"), **(status or {})},
        annotations=notes,
        labels=labels,
        uid=uid,
        created=created,
        deleted=deleted,
    )


def group(
    name: str,
    minimum: int = 1,
    *,
    queue: str = "default",
    phase: str = "Inqueue",
    namespace: str = "default",
    created: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Volcano PodGroup; further arguments are fields of its spec."""
    body = {"minMember": minimum, "queue": queue, **spec}
    return make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        name,
        namespace=namespace,
        spec=body,
        status={"phase": phase},
        created=created,
        annotations=annotations,
    )


def queue(
    name: str,
    *,
    weight: int = 1,
    state: str = "Open",
    created: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    return make(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        name,
        spec={"weight": weight, **spec},
        status={"state": state},
        created=created,
        annotations=annotations,
    )


def hyper_node(name: str, tier: int, *members: Mapping[str, Any], tier_name: str = "") -> Object:
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    return make("topology.volcano.sh/v1alpha1", "HyperNode", name, spec=spec)


def topology(name: str, *levels: str) -> Object:
    return make(
        "kai.scheduler/v1alpha1", "Topology", name, spec={"levels": [{"nodeLabel": key} for key in levels]}
    )


def priority_class(name: str, value: int, *, default: bool = False) -> Object:
    return make("scheduling.k8s.io/v1", "PriorityClass", name, value=value, globalDefault=default)


def cluster_of(*objects: Object) -> Cluster:
    return Cluster.from_objects(VolcanoDialect(), objects)


def open_session(cluster: Cluster) -> Session:
    """A session that no plugin has a say in."""
    return Session(
        snapshot.take(cluster),
        load_volcano(None, known_actions=("enqueue", "allocate", "backfill")),
        rules=VOLCANO_RULES,
        actions=(),
        now=None,
        options={},
    )
