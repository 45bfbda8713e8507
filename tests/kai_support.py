"""Short ways to write KAI's objects and to open a session on them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_kai
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.profiles.catalogue import KAI
from maniple.profiles.kai import KaiDialect
from maniple.profiles.options import checked_kai
from tests.support import make, node

Raw = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")


def gpu_node(name: str, gpus: int = 4, *, memory: int | None = 1000, **more: Any) -> Object:
    labels = {"nvidia.com/gpu.memory": str(memory)} if memory is not None else {}
    labels |= more.pop("labels", {})
    return node(name, {"nvidia.com/gpu": str(gpus), **more.pop("allocatable", {})}, labels=labels, **more)


def queue(name: str, parent: str = "", **more: Any) -> Object:
    unlimited = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
    resources = {"gpu": unlimited, "cpu": unlimited, "memory": unlimited}
    spec = {"parentQueue": parent, "resources": resources, **more.pop("spec", {})}
    return make("scheduling.run.ai/v2", "Queue", name, spec=spec, **more)


def group(name: str, minimum: int = 1, *, queue: str = "default", **more: Any) -> Object:
    spec = {"minMember": minimum, "queue": queue, **more.pop("spec", {})}
    return make("scheduling.run.ai/v2alpha2", "PodGroup", name, namespace="default", spec=spec, **more)


def sub_group(name: str, minimum: int = 1, parent: str | None = None, **more: Any) -> Raw:
    return {"name": name, "minMember": minimum, **({"parent": parent} if parent is not None else {}), **more}


def pod(
    name: str,
    requests: Mapping[str, Any] | None = None,
    *,
    group: str = "",
    role: str = "",
    on: str = "",
    phase: str = "",
    fraction: str = "",
    memory: str = "",
    devices: str = "",
    groups: tuple[str, ...] = (),
    **more: Any,
) -> Object:
    """`groups`: the shared devices that it has parts of. What else is given is metadata, `status` or `spec`."""
    written = {
        "pod-group-name": group,
        "gpu-fraction": fraction,
        "gpu-memory": memory,
        "gpu-fraction-num-devices": devices,
    }
    annotations = {key: value for key, value in written.items() if value} | more.pop("annotations", {})
    labels = {"kai.scheduler/subgroup-name": role} if role else {}
    labels |= {"runai-gpu-group": groups[0]} if groups else {}
    labels |= {f"runai-gpu-group/{one}": one for one in groups[1:]} | more.pop("labels", {})
    container = {"name": "main", "resources": {"requests": dict(requests or {})}}
    spec = {"schedulerName": "kai-scheduler", "containers": [container], **more.pop("spec", {})}
    if on:
        spec["nodeName"] = on
    status = {"phase": phase or ("Running" if on else "Pending"), **more.pop("status", {})}
    return make(
        "v1",
        "Pod",
        name,
        namespace="default",
        spec=spec,
        status=status,
        annotations=annotations,
        labels=labels,
        **more,
    )


def bind_request(pod: str, node: str, *, name: str = "", status: Raw | None = None, **spec: Any) -> Object:
    return make(
        "scheduling.run.ai/v1alpha2",
        "BindRequest",
        name or pod,
        namespace="default",
        spec={"podName": pod, "selectedNode": node, **spec},
        status=status or {},
    )


def claim(name: str, device_class: str = "gpu.example.com", **exactly: Any) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": device_class, **exactly}}
    spec = {"devices": {"requests": [request]}}
    return make("resource.k8s.io/v1", "ResourceClaim", name, namespace="default", spec=spec)


def device_slice(name: str, node: str, devices: int, driver: str = "gpu.example.com", **spec: Any) -> Object:
    body = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"d{number}"} for number in range(devices)],
        **spec,
    }
    return make("resource.k8s.io/v1", "ResourceSlice", name, spec=body)


def cluster_of(*objects: Object, dialect: KaiDialect | None = None) -> Cluster:
    return Cluster.from_objects(dialect or KaiDialect(), objects)


def open_session(*objects: Object, strict: bool = False, options: Mapping[str, Any] | None = None) -> Session:
    conf = {"compat": "strict"} if strict else None
    configuration = load_kai(conf, known_actions=ACTIONS)
    taken = snapshot.take(cluster_of(*objects, dialect=KaiDialect(strict=strict)))
    rules = KAI.rules_for(configuration)
    return Session(taken, configuration, rules=rules, actions=(), now=NOW, options=checked_kai(options))
