"""What surrounds a waiting job of a random cluster and keeps it waiting: claims, volumes, devices, quotas, an owner."""

from random import Random
from typing import Any

from tests.soak import shapes
from tests.soak.shapes import SPACE, ZONE

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
DRIVER = "dev.example.com"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
VOLUMES = ("claim", "unbound", "zone")  # ailments that come with a volume
DEVICES = ("devices", "no claim")  # and with devices
ELSEWHERE = "z9"  # a zone without nodes


def volume_objects(ailments: frozenset[str]) -> list[Raw]:
    """The claim `data` with its class and volume, as far as they are there."""
    if not ailments.intersection(("unbound", "zone")) or "claim" in ailments:
        return []
    storage = "storage.k8s.io/v1"
    made = [shapes.thing(storage, "StorageClass", "fast", provisioner="x", volumeBindingMode="Immediate")]
    spec: Raw = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if "unbound" in ailments:
        status = {"phase": "Pending"}
        return [*made, shapes.thing("v1", "PersistentVolumeClaim", "data", SPACE, spec=spec, status=status)]
    spec["volumeName"] = "pv-data"
    status = {"phase": "Bound"}
    claim = shapes.thing(
        "v1", "PersistentVolumeClaim", "data", SPACE, annotations=BOUND, spec=spec, status=status
    )
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [ELSEWHERE]}]}
    reference = {"namespace": SPACE, "name": "data", "uid": claim["metadata"].get("uid", "")}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "claimRef": reference,
    }
    labels = {ZONE: ELSEWHERE}
    where = shapes.thing("v1", "PersistentVolume", "pv-data", labels=labels, spec=volume, status=status)
    return [*made, claim, where]


def device_objects(random: Random, ailments: frozenset[str], nodes: list[str]) -> list[Raw]:
    """A class, and a slice of one or two devices on each node."""
    if not ailments.intersection(DEVICES):
        return []
    made = [shapes.thing("resource.k8s.io/v1", "DeviceClass", DRIVER, spec={"selectors": []})]
    for node in nodes:
        devices = [{"name": f"d{number}", "attributes": {}} for number in range(random.randint(1, 2))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
        made.append(shapes.thing("resource.k8s.io/v1", "ResourceSlice", f"{node}-slice", spec=spec))
    return made


def device_claim(name: str, count: int) -> Raw:
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return shapes.thing("resource.k8s.io/v1", "ResourceClaim", name, SPACE, spec=spec, status={})


def resource_quota(random: Random) -> Raw:
    hard = {GPU: str(random.randint(1, 3)), "cpu": str(random.choice((1, 2, 40)))}
    status = {"hard": hard, "used": {GPU: "1", "cpu": "1"}}
    return shapes.thing("v1", "ResourceQuota", "compute", SPACE, spec={"hard": hard}, status=status)


def owner(name: str, least: int, queue: str, age: int) -> Raw:
    labels = {"maniple.dev/queue": queue}
    notes = {"maniple.dev/min-member": str(least)}
    spec = {"parallelism": least, "completions": least}
    return shapes.thing("batch/v1", "Job", name, SPACE, age, labels=labels, annotations=notes, spec=spec)


def owned_by(job: Raw) -> list[Raw]:
    name, uid = job["metadata"]["name"], job["metadata"].get("uid", "")
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}]
