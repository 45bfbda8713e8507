"""Short ways to write volumes, devices, and pods that need them, as users, administrators and drivers write them."""

from typing import Any

from tests.live.objects import NAMESPACE, Raw

LOCAL, MADE = "local", "made"  # storage classes: with volumes that are there, and with volumes that are made
DRIVER = "gpu.example.com"
GATE = "scheduling.volcano.sh/queue-allocation-gate"


def storage_class(name: str) -> Raw:
    provisioner = "kubernetes.io/no-provisioner" if name == LOCAL else "disk.example.com"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def csi_node(name: str) -> Raw:
    """The driver that makes volumes is on this node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": "disk.example.com", "nodeID": name, "topologyKeys": []}]},
    }


def volume(name: str, node: str, size: str = "1Gi") -> Raw:
    """A local volume."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": LOCAL,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim(name: str, class_name: str, size: str = "1Gi") -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def mounting(pod: Raw, claim: str) -> Raw:
    """A pod with a claim's volume."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


def devices(node: str, count: int) -> Raw:
    """What a driver publishes for a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(count)],
        },
    }


def device_class() -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {},
    }


def resource_claim(name: str, owner: Any = None, count: int = 1) -> Raw:
    """`owner`: the pod that it was made for from a template."""
    metadata: Raw = {"name": name, "namespace": NAMESPACE}
    if owner is not None:
        pod = {"apiVersion": "v1", "kind": "Pod", "name": owner.metadata.name, "uid": owner.metadata.uid}
        metadata["ownerReferences"] = [{**pod, "controller": True}]
    demand = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": demand}]}},
    }


def claiming(pod: Raw, claim: str = "") -> Raw:
    """A pod that uses a resource claim: one that others may use, or one of its own."""
    one = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "gpus"}
    return {**pod, "spec": {**pod["spec"], "resourceClaims": [{"name": "gpus", **one}]}}


def gated(pod: Raw, *others: str) -> Raw:
    """A pod that waits until its queue admits it."""
    metadata = pod["metadata"]
    annotations = {**metadata["annotations"], GATE: "true"}
    gates = [{"name": gate} for gate in (GATE, *others)]
    spec = {**pod["spec"], "schedulingGates": gates}
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
