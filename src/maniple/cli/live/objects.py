"""The nodes, gangs and pods that `bench --live` creates: plain ones, with room for 16 pods on a node."""

from typing import Any

Raw = dict[str, Any]

# Everything that a run creates outside of its namespace has this label, and so does the namespace.
LABEL = "maniple.dev/bench"
PODS_OF_A_NODE = 16


def namespace(name: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LABEL: "true"}}}


def node(number: int) -> Raw:
    """Ready, with room for 16 pods; tainted, so that no other pod is placed on it."""
    name = node_name(number)
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "true", "kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": LABEL, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}],
        },
    }


def node_name(number: int) -> str:
    return f"maniple-bench-{number:05d}"


def pod(name: str, scheduler: str, annotations: dict[str, str] | None = None, *, on: str = "") -> Raw:
    """A pending pod; with `on` it is created on that node already."""
    spec: Raw = {
        "schedulerName": scheduler,
        "nodeSelector": {LABEL: "true"},
        "tolerations": [{"key": LABEL, "operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": "bench",
                "resources": {"requests": {"cpu": "4", "memory": "16Gi"}},
            }
        ],
    }
    if on:
        spec["nodeName"] = on
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def members(gang: str, size: int) -> list[str]:
    """The names of a gang's pods."""
    return [f"{gang}-{number}" for number in range(size)]
