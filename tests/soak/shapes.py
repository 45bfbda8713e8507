"""Raw objects of generated clusters, in few words. Time starts at `START`; what exists has an age before it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.soak.amounts import Raw

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPACE = "ml"
GROUP_API = {"volcano": "scheduling.volcano.sh/v1beta1", "kai": "scheduling.run.ai/v2alpha2"}
QUEUE_API = {"volcano": "scheduling.volcano.sh/v1beta1", "kai": "scheduling.run.ai/v2"}
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}
ZONE, RACK, HOST = "topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname"
DRIVER, STORAGE_DRIVER = "gpu.example.com", "disk.example.com"


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def thing(api: str, kind: str, name: str, space: str = "", age: int = 86400, **more: Any) -> Raw:
    """An object that was made `age` seconds before the start; `labels` and `annotations` belong to its metadata."""
    metadata: Raw = {
        "name": name,
        "uid": f"{kind}-{name}",
        "creationTimestamp": stamp(START - timedelta(seconds=age)),
    }
    if space:
        metadata["namespace"] = space
    for field in ("labels", "annotations"):
        if more.get(field):
            metadata[field] = more[field]
        more.pop(field, None)
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def node(name: str, room: Raw, node_labels: Raw, taints: list[Raw], *, closed: bool = False) -> Raw:
    spec: Raw = {"taints": taints} if taints else {}
    if closed:
        spec["unschedulable"] = True
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return thing("v1", "Node", name, labels={HOST: name, **node_labels}, spec=spec, status=status)


def priority_class(name: str, value: int, policy: str = "") -> Raw:
    more: Raw = {"preemptionPolicy": policy} if policy else {}
    return thing("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **more)


def queue(system: str, name: str, spec: Raw, *, closed: bool = False) -> Raw:
    status: Raw = {"status": {"state": "Closed" if closed else "Open"}} if system == "volcano" else {}
    return thing(QUEUE_API[system], "Queue", name, spec=spec, **status)


def hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Raw:
    said = [{"type": kind, "selector": {"exactMatch": {"name": one}}} for one in members]
    return thing("topology.volcano.sh/v1alpha1", "HyperNode", name, spec={"tier": tier, "members": said})


def topology(name: str, levels: list[str]) -> Raw:
    said = [{"nodeLabel": one} for one in levels]
    return thing("kai.scheduler/v1alpha1", "Topology", name, spec={"levels": said})


def budget(name: str, job: str, least: int) -> Raw:
    """Its status is worked out by the cluster."""
    spec = {"selector": {"matchLabels": {"job": job}}, "minAvailable": least}
    return thing("policy/v1", "PodDisruptionBudget", name, SPACE, spec=spec, status={"disruptionsAllowed": 0})


def storage_class(name: str, provisioner: str, zones: list[str] | None = None) -> Raw:
    more: Raw = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    if zones:
        more["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]
    return thing("storage.k8s.io/v1", "StorageClass", name, **more)


def volume(name: str, class_: str, size: str, place: tuple[str, str]) -> Raw:
    term = {"matchExpressions": [{"key": place[0], "operator": "In", "values": [place[1]]}]}
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return thing("v1", "PersistentVolume", name, spec=spec, status={"phase": "Available"})


def volume_claim(name: str, class_: str, size: str) -> Raw:
    spec = {
        "storageClassName": class_,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    return thing("v1", "PersistentVolumeClaim", name, SPACE, spec=spec, status={"phase": "Pending"})


def csi_node(name: str, limit: int) -> Raw:
    drivers = [{"name": STORAGE_DRIVER, "nodeID": name, "allocatable": {"count": limit}}]
    return thing("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})


def resource_slice(node_name: str, devices: int) -> Raw:
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    made = [{"name": f"gpu-{number}", "attributes": {}, "capacity": {}} for number in range(devices)]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": made}
    return thing("resource.k8s.io/v1", "ResourceSlice", f"{node_name}-slice", spec=spec)


def device_class(name: str) -> Raw:
    return thing("resource.k8s.io/v1", "DeviceClass", name, spec={"selectors": []})


def resource_claim(name: str, class_: str, count: int, queue_name: str) -> Raw:
    demand = {"deviceClassName": class_, "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": demand}]}}
    return thing(
        "resource.k8s.io/v1",
        "ResourceClaim",
        name,
        SPACE,
        labels={"kai.scheduler/queue": queue_name},
        spec=spec,
        status={},
    )
